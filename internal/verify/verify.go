// Package verify holds a plan's source and destination side by side: what the
// plan covers against what is there. It knows no runs, and of volumes only the
// claims: their contents are compared while the application stands still, by a
// run's own step.
package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/compare"
	"github.com/mig-cli/mig/internal/discover"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/quiesce"
	"github.com/mig-cli/mig/internal/velero"
)

// What can be wrong with an object of the source.
const (
	Missing = "missing" // it is not on the destination
	Differs = "differs" // it is, and in something that nothing explains
)

// Finding is an object of the source with what is wrong on the destination.
type Finding struct {
	Kind        string               `json:"kind"`
	Namespace   string               `json:"namespace"` // on the source
	Name        string               `json:"name"`
	Destination string               `json:"destination"` // the namespace there
	Problem     string               `json:"problem"`
	Differences []compare.Difference `json:"differences,omitempty"`
}

// Object is Kind namespace/name, as on the destination.
func (f Finding) Object() string {
	return fmt.Sprintf("%s %s/%s", f.Kind, f.Destination, f.Name)
}

// Report is what a comparison found.
type Report struct {
	Plan    string `json:"plan"`
	Equal   bool   `json:"equal"`
	Objects int    `json:"objects"` // of the source that were held against the destination's
	// Others are objects of the destination's namespaces that the source has not.
	Others   int       `json:"others"`
	Findings []Finding `json:"findings"`
	Unread   []string  `json:"unread,omitempty"` // what could not be listed, and is compared with nothing
}

// Objects looks at both clusters and compares. What a kind's list fails with is
// told in the report. Errors: ctx's, or that a side could not be asked at all.
func Objects(ctx context.Context, src cluster.Source, dst cluster.Destination, p plan.Valid) (Report, error) {
	var to []string
	for _, ns := range p.SourceNamespaces() {
		to = append(to, p.DestinationNamespace(ns))
	}
	here, errHere := discover.WholeObjects(ctx, src.Cluster, p.SourceNamespaces())
	there, errThere := discover.WholeObjects(ctx, dst.Cluster, to)
	if ctx.Err() != nil {
		return Report{}, ctx.Err()
	}
	if err := errors.Join(errHere, errThere); err != nil && len(here) == 0 {
		return Report{}, err
	}
	r := Compare(p, here, there)
	for side, err := range map[string]error{"source": errHere, "destination": errThere} {
		if err != nil {
			r.Unread, r.Equal = append(r.Unread, fmt.Sprintf("on the %s: %v", side, err)), false
		}
	}
	slices.Sort(r.Unread)
	return r, nil
}

type identity struct {
	schema.GroupKind

	namespace, name string
}

func identityOf(o *unstructured.Unstructured, namespace string) identity {
	return identity{o.GroupVersionKind().GroupKind(), namespace, o.GetName()}
}

// Compare holds objects of the source against those of the destination. A
// workload that mig has stopped counts as it was before.
func Compare(p plan.Valid, here, there []*unstructured.Unstructured) Report {
	r := Report{Plan: p.Name(), Findings: []Finding{}}
	twins := map[identity]*unstructured.Unstructured{}
	for _, o := range there {
		twins[identityOf(o, o.GetNamespace())] = o
	}
	m := compare.Mapping{Namespaces: p.NamespaceMapping(), Classes: map[string]string{}}
	for _, o := range here {
		if !isCovered(p, o) {
			continue
		}
		r.Objects++
		to := p.DestinationNamespace(o.GetNamespace())
		f := Finding{Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), Destination: to}
		twin, ok := twins[identityOf(o, to)]
		if !ok {
			f.Problem = Missing
			r.Findings = append(r.Findings, f)
			continue
		}
		delete(twins, identityOf(o, to))
		want, have := planned(p, o, twin)
		if f.Differences = compare.Differences(want, have, m); len(f.Differences) > 0 {
			f.Problem = Differs
			r.Findings = append(r.Findings, f)
		}
	}
	for _, o := range twins {
		if naming.OfPlanUID(o.GetLabels()) == "" {
			r.Others++
		}
	}
	r.Equal = len(r.Findings) == 0
	return r
}

// isCovered says whether the plan takes an object of the source along.
func isCovered(p plan.Valid, o *unstructured.Unstructured) bool {
	switch {
	case compare.MadeByCluster(o), o.GetLabels()[naming.VeleroExclude] == "true", o.GetLabels()[naming.LabelCreatedBy] == naming.CreatedBy:
		return false
	case o.GetKind() == "PersistentVolumeClaim":
		return volumeOf(p, o) != nil
	case o.GetKind() == "Pod", o.GetKind() == "Job":
		return !hasEnded(o)
	default:
		return true
	}
}

// hasEnded says of a pod or a Job that it will not run again: such are not
// restored (velero pkg/restore/restore.go).
func hasEnded(o *unstructured.Unstructured) bool {
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
	done, _, _ := unstructured.NestedString(o.Object, "status", "completionTime")
	return phase == string(corev1.PodSucceeded) || phase == string(corev1.PodFailed) || done != ""
}

func volumeOf(p plan.Valid, claim *unstructured.Unstructured) *plan.Volume {
	for _, v := range p.Copied() {
		if v.Claim == claim.GetNamespace()+"/"+claim.GetName() {
			return &v
		}
	}
	return nil
}

// planned are both objects without what the plan itself makes different.
func planned(p plan.Valid, source, destination *unstructured.Unstructured) (want, have *unstructured.Unstructured) {
	want, have = source.DeepCopy(), destination
	if before, err := quiesce.AsBefore(quiesce.Workload{Unstructured: want}, naming.Owner{PlanName: p.Name(), PlanUID: p.UID()}); err == nil {
		want = before.Unstructured
	}
	templates, _, _ := unstructured.NestedSlice(want.Object, "spec", "volumeClaimTemplates")
	for _, t := range templates {
		if template, ok := t.(map[string]any); ok {
			mapClass(p, want, template)
		}
	}
	if len(templates) > 0 {
		_ = unstructured.SetNestedSlice(want.Object, templates, "spec", "volumeClaimTemplates") // it was read there
	}
	if v := volumeOf(p, source); v != nil && source.GetKind() == "PersistentVolumeClaim" {
		if class := p.DestinationClass(*v); class != "" {
			_ = unstructured.SetNestedField(want.Object, class, "spec", "storageClassName") // a claim has a spec
		}
		if len(v.Destination.AccessModes) > 0 {
			_ = unstructured.SetNestedStringSlice(want.Object, v.Destination.AccessModes, "spec", "accessModes")
		}
		if v.Destination.Size != "" {
			_ = unstructured.SetNestedField(want.Object, v.Destination.Size, "spec", "resources", "requests", "storage")
		}
	}
	return want, have
}

// mapClass gives a claim template the class that the plan says.
func mapClass(p plan.Valid, set *unstructured.Unstructured, template map[string]any) {
	class, _, _ := unstructured.NestedString(template, "spec", "storageClassName")
	name, _, _ := unstructured.NestedString(template, "metadata", "name")
	if to := velero.TemplateClass(p, set.GetNamespace(), set.GetName(), name, class); class != "" && to != "" {
		_ = unstructured.SetNestedField(template, to, "spec", "storageClassName")
	}
}
