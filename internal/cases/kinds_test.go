//go:build e2e

package cases

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestAnAPIThatIsDownIsNamedAndTheRestIsLookedAt(t *testing.T) {
	p := open(t, scenario{"J06", "api-compat", api})
	p.given(p.src(), apiService("v1.oracle.example"), namespace("temple"), deployment("temple", "priest"))
	p.exits(done, "plan", "create", "--src", "src", "--dst", "dst", "--namespaces", "temple")
	p.wantFound(p.validated(), "APIsDown", "oracle.example")
	p.exits(done, "pv", "discover")
}

// apiService is an aggregated API whose server nobody has.
func apiService(name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": "oracle.example", "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100), "insecureSkipTLSVerify": true,
		"service": map[string]any{"namespace": "delphi", "name": "pythia", "port": int64(443)},
	}}}
	o.SetAPIVersion("apiregistration.k8s.io/v1")
	o.SetKind("APIService")
	o.SetName(name)
	return o
}

func TestAVolumeOnANodesDiskIsCopiedIntoANewOne(t *testing.T) {
	p := open(t, scenario{"F03", "scheduling", api})
	ice := claim("cellar", "ice", "by-node")
	ice.Spec.VolumeName = "disk-of-s1"
	disk := volumeFor(ice, corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/mnt/ice"}})
	disk.Name = "disk-of-s1"
	disk.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"node-s1"}}},
	}}}}
	p.given(p.src(), disk, namespace("cellar"), ice, deployment("cellar", "cook", mountsClaim("ice")))
	p.given(p.dst(), asDefault(storageClass("plain", "cloth.example")))
	p.planned("cellar")
	p.wantReady(p.validated())
	row := p.discovered().of("cellar/ice")
	if row.Backend != "local" || row.Action != "copy" || row.DestinationClass != "plain" {
		t.Errorf("a volume of one node can only be copied: %+v", row)
	}
}
