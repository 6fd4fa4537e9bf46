package labtest

import (
	"context"
	"os"
	"path/filepath"

	"github.com/mig-cli/mig/internal/cluster"
)

// Gather writes into dir what is known of a run that went wrong: what both
// clusters hold of the namespaces, of Velero and of mig, and the logs.
// What cannot be had is said in its file.
func (l *Lab) Gather(ctx context.Context, dir string, namespaces ...string) error {
	for _, c := range l.Both() {
		if err := l.gatherOf(ctx, c, filepath.Join(dir, c.Access.Context), namespaces); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) gatherOf(ctx context.Context, c *cluster.Cluster, dir string, namespaces []string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	const v = VeleroNamespace
	asked := map[string][]string{
		"overview.txt":        {"get", "nodes,namespaces,persistentvolumes,storageclasses", "-o", "wide"},
		"pods.txt":            {"get", "pods", "-A", "-o", "wide"},
		"events.txt":          {"get", "events.events.k8s.io", "-A", "-o", "custom-columns=TIME:.eventTime,OLD:.deprecatedLastTimestamp,TYPE:.type,REASON:.reason,KIND:.regarding.kind,IN:.regarding.namespace,NAME:.regarding.name,NOTE:.note"},
		"velero.yaml":         {"-n", v, "get", "backups,restores,podvolumebackups,podvolumerestores,backupstoragelocations,backuprepositories,deletebackuprequests,downloadrequests", "-o", "yaml"},
		"records.yaml":        {"-n", v, "get", "configmaps,leases", "-o", "yaml"},
		"velero.log":          {"-n", v, "logs", "deployment/velero", "--all-containers", "--tail", "5000"},
		"node-agent.log":      {"-n", v, "logs", "--selector", "name=node-agent", "--prefix", "--tail", "5000"},
		"velero-describe.txt": {"-n", v, "describe", "pods"},
	}
	for _, ns := range namespaces {
		asked[ns+".yaml"] = []string{"-n", ns, "get", "all,configmaps,persistentvolumeclaims", "-o", "yaml"}
		asked[ns+"-describe.txt"] = []string{"-n", ns, "describe", "pods,persistentvolumeclaims"}
	}
	for name, args := range asked {
		out, err := l.Kubectl(ctx, c, "", args...)
		if err != nil {
			out += "\n" + err.Error() + "\n"
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(out), 0o600); err != nil {
			return err
		}
	}
	return nil
}
