package step

import (
	"context"
	"fmt"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/velero"
)

// captures looks at every copied claim's way through the run's stage backup
// and, where the run has come so far, its stage restore.
func (r Run) captures(ctx context.Context, withRestores bool) ([]velero.Capture, error) {
	uids, err := r.claimUIDs(ctx)
	if err != nil {
		return nil, err
	}
	var backups velerov1.PodVolumeBackupList
	if err := r.Source.List(ctx, &backups, client.InNamespace(r.Source.VeleroNamespace),
		client.MatchingLabels{naming.VeleroBackupName: r.Owner.StageBackup()}); err != nil {
		return nil, err
	}
	var restores velerov1.PodVolumeRestoreList
	if withRestores {
		if err := r.Destination.List(ctx, &restores, client.InNamespace(r.Destination.VeleroNamespace),
			client.MatchingLabels{naming.VeleroRestoreName: r.Owner.StageRestore()}); err != nil {
			return nil, err
		}
	}
	return velero.Captures(uids, r.copiedClaims(), backups.Items, restores.Items), nil
}

// claimUIDs maps the plan's copied claims, namespace/name, to their uids.
func (r Run) claimUIDs(ctx context.Context) (map[string]string, error) {
	uids := map[string]string{}
	for _, ns := range r.copiedNamespaces() {
		var list corev1.PersistentVolumeClaimList
		if err := r.Source.List(ctx, &list, client.InNamespace(ns)); err != nil {
			return nil, err
		}
		for _, c := range list.Items {
			uids[c.Namespace+"/"+c.Name] = string(c.UID)
		}
	}
	for _, claim := range r.copiedClaims() {
		if uids[claim] == "" {
			return nil, fmt.Errorf("claim %s of the plan is no longer on the source", claim)
		}
	}
	return uids, nil
}

func (r Run) copiedClaims() []string { return claimsOf(r.Plan.Copied()) }

func claimsOf(volumes []plan.Volume) []string {
	out := make([]string, 0, len(volumes))
	for _, v := range volumes {
		out = append(out, v.Claim)
	}
	return out
}

func (r Run) copiedNamespaces() []string {
	var out []string
	seen := map[string]bool{}
	for _, v := range r.Plan.Copied() {
		if !seen[v.Namespace()] {
			seen[v.Namespace()] = true
			out = append(out, v.Namespace())
		}
	}
	return out
}

// nodeAgent reads what stage pods take over from a cluster's node-agent.
func nodeAgent(ctx context.Context, c *cluster.Cluster) (velero.NodeAgent, error) {
	var ds appsv1.DaemonSet
	key := client.ObjectKey{Namespace: c.VeleroNamespace, Name: velero.NodeAgentDaemonSet}
	if err := c.Get(ctx, key, &ds); err != nil {
		return velero.NodeAgent{}, fmt.Errorf("node-agent of context %s: %w", c.Access.Context, err)
	}
	return velero.NodeAgentOf(&ds), nil
}
