package labtest

import (
	"strings"
	"testing"
)

func TestObjectsThatDifferAreNamedWithTheFirstField(t *testing.T) {
	web := func(replicas int64) map[string]any {
		return map[string]any{"metadata": map[string]any{"name": "web"}, "spec": map[string]any{"paused": false, "replicas": replicas}}
	}
	before := Objects{"Deployment.apps shop/web": web(3), "Secret shop/gone": {}}
	now := Objects{"Deployment.apps shop/web": web(0), "Secret shop/new": {}}
	err := before.SameAs(now)
	if err == nil {
		t.Fatal("no difference is found")
	}
	for _, want := range []string{
		"Deployment.apps shop/web: /spec/replicas was 3, is 0", "Secret shop/gone is gone", "Secret shop/new was not there before",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("nothing is said of %q: %v", want, err)
		}
	}
	if err := before.SameAs(before); err != nil {
		t.Error(err)
	}
}

func TestMarksThatStayForAuditAreNoDifference(t *testing.T) {
	marked := func(annotations map[string]any) Objects {
		metadata := map[string]any{"name": "data"}
		if annotations != nil {
			metadata["annotations"] = annotations
		}
		return Objects{"PersistentVolumeClaim shop/data": {"metadata": metadata}}
	}
	before, now := marked(nil), marked(map[string]any{"mark": "x"})
	if before.SameAs(now) == nil {
		t.Error("the mark is not seen at all")
	}
	if err := before.Without("mark").SameAs(now.Without("mark")); err != nil {
		t.Error(err)
	}
}
