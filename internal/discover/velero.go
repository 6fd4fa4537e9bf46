package discover

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/velero"
)

// Names that Velero's installers give to what it consists of.
const (
	veleroServer   = "velero"
	repoSecret     = "velero-repo-credentials"
	repoSecretKey  = "repository-password"
	componentLabel = "component"
)

// veleroAPIs are the resources of velero.io/v1 that a run works with.
func veleroAPIs() []string {
	return []string{
		"backups", "restores", "podvolumebackups", "podvolumerestores", "backupstoragelocations",
		"backuprepositories", "deletebackuprequests", "downloadrequests",
	}
}

// velero asks for all that Velero consists of.
func (l *look) velero(v *Velero) {
	c, ns := l.c.Client, v.Namespace
	l.part(PartVelero, func(ctx context.Context) error { return lookAtServer(ctx, c, v) })
	l.part(PartVelero, func(context.Context) (err error) { v.MissingAPIs, err = missingAPIs(l.c.Discovery); return err })
	l.part(PartNodeAgent, func(ctx context.Context) (err error) { v.NodeAgent, err = getNodeAgent(ctx, c, ns); return err })
	l.part(PartLocations, func(ctx context.Context) (err error) { v.Locations, err = listLocations(ctx, c, ns); return err })
	l.part(PartRepository, func(ctx context.Context) (err error) {
		v.RepoCredentials, err = digestRepository(ctx, c, ns)
		return err
	})
}

func lookAtServer(ctx context.Context, c client.Client, v *Velero) error {
	var ns corev1.Namespace
	err := c.Get(ctx, client.ObjectKey{Name: v.Namespace}, &ns)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	v.Exists = err == nil
	var d appsv1.Deployment
	err = c.Get(ctx, client.ObjectKey{Namespace: v.Namespace, Name: veleroServer}, &d)
	if apierrors.IsNotFound(err) {
		v.Elsewhere = findServers(ctx, c)
		return nil
	}
	if err != nil {
		return err
	}
	v.Server = serverOf(&d)
	return nil
}

func serverOf(d *appsv1.Deployment) Deployment {
	out := Deployment{Found: true, Wanted: wanted(d.Spec.Replicas), Ready: d.Status.ReadyReplicas}
	if containers := d.Spec.Template.Spec.Containers; len(containers) > 0 {
		out.Image = containers[0].Image
		out.Version = versionOf(out.Image)
	}
	return out
}

var versionTag = regexp.MustCompile(`:v?(\d+\.\d+\.\d+[^@]*)`)

// versionOf reads the version from an image's tag; empty where the tag tells none.
func versionOf(image string) string {
	if m := versionTag.FindStringSubmatch(image); m != nil {
		return "v" + m[1]
	}
	return ""
}

// findServers looks for Velero's server in other namespaces, for the message
// alone: no right to look is no finding.
func findServers(ctx context.Context, c client.Client) []string {
	var list appsv1.DeploymentList
	if err := c.List(ctx, &list, client.MatchingLabels{componentLabel: veleroServer}); err != nil {
		return nil
	}
	var out []string
	for _, d := range list.Items {
		if d.Name == veleroServer {
			out = append(out, d.Namespace)
		}
	}
	return out
}

// apiLister tells what an API group serves; the discovery client does.
type apiLister interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

func missingAPIs(d apiLister) ([]string, error) {
	served, err := d.ServerResourcesForGroupVersion(velerov1.SchemeGroupVersion.String())
	if apierrors.IsNotFound(err) {
		return veleroAPIs(), nil
	}
	if err != nil {
		return nil, err
	}
	missing := slices.DeleteFunc(veleroAPIs(), func(name string) bool {
		return slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == name })
	})
	return missing, nil
}

func getNodeAgent(ctx context.Context, c client.Client, namespace string) (NodeAgent, error) {
	var ds appsv1.DaemonSet
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: velero.NodeAgentDaemonSet}, &ds)
	if err != nil {
		return NodeAgent{}, client.IgnoreNotFound(err)
	}
	spec := velero.NodeAgentOf(&ds)
	agent := NodeAgent{
		Found: true, Image: spec.Image, NodeSelector: spec.NodeSelector,
		Wanted: ds.Status.DesiredNumberScheduled, Ready: ds.Status.NumberReady,
	}
	for _, t := range spec.Tolerations {
		agent.Tolerations = append(agent.Tolerations, t.Key+"="+t.Value+":"+string(t.Effect))
	}
	agent.Nodes, err = listAgentNodes(ctx, c, &ds)
	return agent, err
}

func listAgentNodes(ctx context.Context, c client.Client, ds *appsv1.DaemonSet) ([]AgentNode, error) {
	var out []AgentNode
	_, err := all(ctx, func(ctx context.Context, opts ...client.ListOption) ([]struct{}, string, error) {
		var list corev1.PodList
		err := c.List(ctx, &list, opts...)
		for i := range list.Items {
			if p := &list.Items[i]; metav1.IsControlledBy(p, ds) {
				out = append(out, AgentNode{Node: p.Spec.NodeName, Pod: p.Name, Ready: isReady(p)})
			}
		}
		return nil, list.Continue, err
	}, client.InNamespace(ds.Namespace))
	slices.SortFunc(out, func(a, b AgentNode) int { return cmp.Compare(a.Node, b.Node) })
	return out, err
}

func isReady(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func listLocations(ctx context.Context, c client.Client, namespace string) ([]Location, error) {
	var list velerov1.BackupStorageLocationList
	err := c.List(ctx, &list, client.InNamespace(namespace))
	if isNoSuchAPI(err) {
		return nil, nil // told by MissingAPIs
	}
	out := each(list.Items, locationOf)
	slices.SortFunc(out, func(a, b Location) int { return cmp.Compare(a.Name, b.Name) })
	return out, err
}

func locationOf(l *velerov1.BackupStorageLocation) Location {
	out := Location{
		Name: l.Name, Phase: string(l.Status.Phase), Message: l.Status.Message, Provider: l.Spec.Provider,
		AccessMode: string(l.Spec.AccessMode), Default: l.Spec.Default, Config: l.Spec.Config,
	}
	if l.Spec.ObjectStorage != nil {
		out.Bucket, out.Prefix = l.Spec.ObjectStorage.Bucket, l.Spec.ObjectStorage.Prefix
	}
	if t := l.Status.LastValidationTime; t != nil {
		out.LastValidated = t.UTC()
	}
	return out
}

// digestRepository keeps of the repository's password only what tells whether
// two clusters have the same.
func digestRepository(ctx context.Context, c client.Client, namespace string) (string, error) {
	var s corev1.Secret
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: repoSecret}, &s); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	password := s.Data[repoSecretKey]
	if len(password) == 0 {
		return "", nil
	}
	sum := sha256.Sum256(password)
	return hex.EncodeToString(sum[:]), nil
}
