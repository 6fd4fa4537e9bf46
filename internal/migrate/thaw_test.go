package migrate

import (
	"strings"
	"testing"

	"github.com/mig-cli/mig/internal/plan"
)

const frozenText = `apiVersion: mig/v1alpha1
kind: MigrationPlan
metadata: {name: shop, uid: 5f0c8a52-6f1e-4c40-9a38-0b6a7f0e9a11}
spec:
  source: {context: old-name}
  destination: {context: dst}
  storage: {location: default}
  namespaces: [{name: shop, destination: shop-prod}]
  volumes: [{claim: shop/data, action: copy%s}]
`

func TestAPlanThatAnotherMigFrozeCanAlwaysBeTakenBack(t *testing.T) {
	now := runOf(t).Plan
	for name, of := range map[string]struct {
		more    string
		refused string
	}{
		"as this one writes it":     {"", ""},
		"a wish no longer taken":    {", verify: true", "verify"},
		"a field that is not known": {", shrink: true", "shrink"},
	} {
		text := []byte(strings.Replace(frozenText, "%s", of.more, 1))
		for _, back := range []Kind{Rollback, Close} {
			v, err := thaw(back, text, now)
			if err != nil || v.DestinationNamespace("shop") != "shop-prod" || len(v.Copied()) != 1 {
				t.Errorf("%s: %s: got %+v, %v", name, back, v, err)
			}
			if v.Plan().Spec.Source.Context != "src" {
				t.Errorf("%s: %s: the source is reached by %q, which is another machine's", name, back, v.Plan().Spec.Source.Context)
			}
		}
		for _, on := range []Kind{Cutover, Stage} {
			_, err := thaw(on, text, now)
			if (err != nil) != (of.refused != "") || err != nil && !strings.Contains(err.Error(), of.refused) {
				t.Errorf("%s: %s: got %v", name, on, err)
			}
		}
	}
}

func TestWhatIsNoPlanIsRefusedOnTheWayBackToo(t *testing.T) {
	for _, text := range []string{"", "[]", "spec: {namespaces: []}", "spec: {namespaces: [{name: kube-system}]}"} {
		if _, err := thaw(Rollback, []byte(text), plan.Valid{}); err == nil {
			t.Errorf("%q is taken for a plan", text)
		}
	}
}
