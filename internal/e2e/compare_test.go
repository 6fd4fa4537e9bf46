//go:build e2e

package e2e

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mig-cli/mig/internal/compare"
	"github.com/mig-cli/mig/internal/labtest"
)

// differsByRuleAlone sets every object of the source beside its twin on the
// destination, as real clusters and a real Velero have made it.
func (s *scenario) differsByRuleAlone() {
	s.t.Helper()
	there, err := labtest.ObjectsOf(s.t.Context(), s.dst(), s.dest)
	s.must(err)
	here, err := labtest.ObjectsOf(s.t.Context(), s.src(), s.name)
	s.must(err)
	m := compare.Mapping{Namespaces: map[string]string{s.name: s.dest}, Classes: map[string]string{}}
	compared := 0
	for key, object := range here {
		source := &unstructured.Unstructured{Object: object}
		if kind := source.GetKind(); kind == "Namespace" || kind == "PersistentVolume" || kind == "ReplicaSet" || kind == "PersistentVolumeClaim" || compare.MadeByCluster(source) {
			continue // named otherwise, made anew, or as the plan says
		}
		twin, ok := there[strings.Replace(key, " "+s.name+"/", " "+s.dest+"/", 1)]
		if !ok {
			s.t.Errorf("%s is not on the destination", key)
			continue
		}
		compared++
		for _, d := range compare.Differences(source, &unstructured.Unstructured{Object: twin}, m) {
			if d.Path != "spec.replicas" && d.Path != "spec.suspend" {
				s.t.Errorf("%s differs: %+v", key, d)
			}
		}
	}
	if compared < 5 {
		s.t.Errorf("only %d objects were compared of %d", compared, len(here))
	}
}
