package cli

import (
	"context"
	"testing"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/compare"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/verify"
)

func TestVerifyNamesWhatDiffersAndExitsWith3(t *testing.T) {
	b := newBench(t)
	writePlan(t, "shop.yaml", shopPlan)
	says := func(r verify.Report) {
		b.Verify = func(context.Context, cluster.Source, cluster.Destination, plan.Valid) (verify.Report, error) {
			return r, nil
		}
	}
	says(verify.Report{Plan: "shop", Equal: true, Objects: 12, Others: 2, Findings: []verify.Finding{}})
	b.wants(t, b.mig("verify"), 0, "", "Plan shop: 12 objects on both sides, and nothing differs that is not as it must be; 2 others on the destination that the source has not\n")
	says(verify.Report{Plan: "shop", Objects: 12, Findings: []verify.Finding{
		{Kind: "Service", Namespace: "shop", Name: "web", Destination: "shop-prod", Problem: verify.Missing},
		{Kind: "ConfigMap", Namespace: "shop", Name: "settings", Destination: "shop-prod", Problem: verify.Differs, Differences: []compare.Difference{{Path: "data.mode", Source: "live"}}},
	}, Unread: []string{"on the destination: widgets.example.com: forbidden"}})
	b.wants(t, b.mig("verify"), 3, "Service shop-prod/web", "mig: error: plan shop: of 12 objects, 2 are missing on the destination or differ there")
	b.wants(t, b.mig("verify"), 3, "ConfigMap shop-prod/settings   differs   data.mode   live     -", "compared with nothing, on the destination: widgets.example.com: forbidden")
	b.wants(t, b.mig("verify", "-o", "json"), 3, `"problem": "missing"`, `"type":"exit_error","code":3`)
}
