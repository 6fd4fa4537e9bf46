package mover

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mig-cli/mig/internal/manifest"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/velero"
)

func written(t *testing.T, entries ...manifest.Entry) (*bytes.Buffer, manifest.Summary) {
	t.Helper()
	var out bytes.Buffer
	w, err := manifest.NewWriter(&out, manifest.Base64, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range append([]manifest.Entry{{Path: manifest.Root, Type: manifest.Directory, Mode: 0o755}}, entries...) {
		if err := w.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	s, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	return &out, s
}

func file(path string, content byte) manifest.Entry {
	return manifest.Entry{Path: manifest.Text(path), Type: manifest.File, Mode: 0o600, Size: 5, Hash: bytes.Repeat([]byte{content}, 32)}
}

func TestWhatDiffersIsNamedByPathAndWhatACopyDropsApart(t *testing.T) {
	mode := file("c", 1)
	mode.Mode = 0o644
	dir := func(at int64) manifest.Entry {
		return manifest.Entry{Path: "d", Type: manifest.Directory, Mode: 0o700, MTime: at}
	}
	pipe := manifest.Entry{Path: "p", Type: manifest.FIFO, Mode: 0o600}
	for name, c := range map[string]struct {
		src, dst []manifest.Entry
		verdict  Verdict
		says     string
	}{
		"nothing":             {[]manifest.Entry{file("a", 1)}, []manifest.Entry{file("a", 1)}, Same, ""},
		"a directory's time":  {[]manifest.Entry{dir(1)}, []manifest.Entry{dir(2)}, Same, ""},
		"a dropped pipe":      {[]manifest.Entry{dir(1), pipe}, []manifest.Entry{dir(2)}, Lossy, `"p" is missing (fifo)`},
		"a flipped byte":      {[]manifest.Entry{file("a", 1), pipe}, []manifest.Entry{file("a", 2)}, Differs, `"a" has another content`},
		"a mode":              {[]manifest.Entry{file("c", 1)}, []manifest.Entry{mode}, Differs, `"c": mode is 0644, on the source 0600`},
		"a file too many":     {[]manifest.Entry{file("a", 1)}, []manifest.Entry{file("a", 1), file("b", 1)}, Differs, `"b" is there and not on the source (file)`},
		"many files too many": {nil, []manifest.Entry{file("a", 1), file("b", 1), file("c", 1), file("d", 1), file("e", 1), file("f", 1), file("g", 1)}, Differs, `; and 2 more`},
	} {
		src, a := written(t, c.src...)
		dst, b := written(t, c.dst...)
		if v := Judge(a, b); v != c.verdict {
			t.Errorf("%s: verdict %d, want %d", name, v, c.verdict)
		}
		if c.verdict == Same {
			continue
		}
		text, err := Name(c.verdict, src, dst)
		if err != nil || !strings.Contains(text, c.says) || strings.Contains(text, "mtime") || c.verdict == Differs && strings.Contains(text, `"p"`) {
			t.Errorf("%s: named %q, %v", name, text, err)
		}
	}
}

func TestALogThatWasCutOffIsNotTakenForAVolume(t *testing.T) {
	src, _ := written(t, file("a", 1))
	dst, _ := written(t, file("a", 1), file("b", 1))
	cut := bytes.NewReader(dst.Bytes()[:dst.Len()/2])
	if text, err := Name(Differs, src, cut); err == nil {
		t.Errorf("named %q of half a manifest", text)
	}
}

func TestAReadingPodSeesTheVolumeAsNodeAgentDoesAndWritesNothing(t *testing.T) {
	at := Volume{
		Claim: "shop/data", Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "1234"}, Spec: corev1.PodSpec{NodeName: "node-2"}},
		PV: &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"}},
	}
	agent := velero.NodeAgent{HostPods: "/var/lib/kubelet/pods"}
	p := ManifestPod(naming.Owner{PlanUID: "p", RunUID: "r"}, "velero", "registry.test/mig-mover:1", at, agent)
	args := strings.Join(p.Spec.Containers[0].Args, " ")
	if p.Spec.NodeName != "node-2" || !strings.Contains(args, "--root /host_pods/1234/volumes/*/pvc-1 ") {
		t.Errorf("reads %s on %s", args, p.Spec.NodeName)
	}
	if m := p.Spec.Containers[0].VolumeMounts[0]; !m.ReadOnly || p.Spec.Volumes[0].HostPath.Path != agent.HostPods {
		t.Errorf("mounts %+v", m)
	}
	if naming.ClaimOf(p) != "shop/data" {
		t.Errorf("is of claim %q", naming.ClaimOf(p))
	}
	at.PV.Spec.CSI = &corev1.CSIPersistentVolumeSource{}
	p = ManifestPod(naming.Owner{RunUID: "r"}, "velero", "i", at, agent)
	if args := strings.Join(p.Spec.Containers[0].Args, " "); !strings.Contains(args, "/pvc-1/mount ") {
		t.Errorf("of a CSI driver it reads %s", args)
	}
}
