package step

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mig-cli/mig/internal/manifest"
	"github.com/mig-cli/mig/internal/mover"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/progress"
)

// readerPod is a pod that has read a volume, or is at it.
func readerPod(state corev1.ContainerState) *corev1.Pod {
	p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node-1"}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: state}}
	switch {
	case state.Terminated == nil:
		p.Status.Phase = corev1.PodPending
	case state.Terminated.ExitCode == 0:
		p.Status.Phase = corev1.PodSucceeded
	default:
		p.Status.Phase = corev1.PodFailed
	}
	return p
}

func said(s manifest.Summary) *corev1.Pod {
	text, _ := json.Marshal(s)
	return readerPod(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: string(text)}})
}

// found is a summary whose three digests are given, from the exact to the least.
func found(digests string) manifest.Summary {
	return manifest.Summary{End: true, Entries: 3, Bytes: 2048, Digest: []byte{digests[0]}, Timeless: []byte{digests[1]}, Carried: []byte{digests[2]}}
}

func TestVolumesAreVerifiedOnlyWhenBothSidesSayTheSame(t *testing.T) {
	written := found("aaa")
	written.Changed = 2
	waiting := readerPod(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
	noImage := readerPod(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}})
	noFile := readerPod(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: "permission denied"}})
	for name, c := range map[string]struct {
		src, dst *corev1.Pod
		verdict  pipeline.Verdict
		says     string
		facts    int
		warns    string
	}{
		"not begun":                        {nil, nil, pipeline.Act, "reading 1 volume on both sides", 0, ""},
		"one side has not begun":           {said(found("aaa")), nil, pipeline.Act, "reading", 0, ""},
		"one side reads":                   {said(found("aaa")), waiting, pipeline.Wait, "0 of 1 volumes done", 0, ""},
		"all is equal":                     {said(found("aaa")), said(found("aaa")), pipeline.Done, "1 volume, 2.0 KiB", 1, ""},
		"directories have other times":     {said(found("aaa")), said(found("baa")), pipeline.Done, "equal on both sides", 1, ""},
		"what a copy drops is missing":     {said(found("aaa")), said(found("bba")), pipeline.Done, "equal on both sides", 1, "does not carry: \"pipe\" is missing"},
		"a byte differs":                   {said(found("aaa")), said(found("bbb")), pipeline.Failed, "shop/data differs on the destination: \"ledger\" has another content", 0, ""},
		"the source was written to":        {said(written), said(found("aaa")), pipeline.Failed, "was written to on the source while it was read: 2 entries", 0, ""},
		"the image cannot be pulled":       {said(found("aaa")), noImage, pipeline.Failed, "on the destination, on node node-1: ImagePullBackOff: no such image", 0, ""},
		"a volume cannot be read":          {noFile, said(found("aaa")), pipeline.Failed, "could not be read on the source: mig-mover ended with code 1: Error permission denied", 0, ""},
		"another program under that image": {said(manifest.Summary{}), said(found("aaa")), pipeline.Failed, "ended without saying what it found", 0, ""},
	} {
		d, err := decideVerified([]pairOf{{"shop/data", c.src, c.dst}}, func(_ pairOf, v mover.Verdict) (string, error) {
			if v == mover.Lossy {
				return `"pipe" is missing`, nil
			}
			return `"ledger" has another content`, nil
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		check(t, name, d, c.verdict, c.says)
		if len(d.Facts) != c.facts || textOf(d.Warnings) != "" != (c.warns != "") || !strings.Contains(textOf(d.Warnings), c.warns) {
			t.Errorf("%s: facts %v, warnings %q", name, d.Facts, textOf(d.Warnings))
		}
	}
}

func textOf(notes []progress.Note) string {
	var out []string
	for _, n := range notes {
		out = append(out, n.Text())
	}
	return strings.Join(out, "; ")
}

func TestManifestsThatDifferAreReadOnceNotAtEveryLook(t *testing.T) {
	s := &volumesVerified{named: map[string]string{"shop/data": `"pipe" is missing`}} // with no cluster to read from again
	if names, err := s.name(t.Context(), pairOf{claim: "shop/data"}, mover.Lossy); err != nil || names != `"pipe" is missing` {
		t.Errorf("got %q, %v", names, err)
	}
}
