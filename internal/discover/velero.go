package discover

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

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
	defaultSecret  = "cloud-credentials"
	defaultKey     = "cloud"
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
	l.part(PartClassMaps, func(ctx context.Context) (err error) { v.ClassMaps, err = listClassMaps(ctx, c, ns); return err })
	l.part(PartMigController, func(ctx context.Context) error { v.MigControllers = findMigControllers(ctx, c, ns); return nil })
}

func lookAtServer(ctx context.Context, c client.Client, v *Velero) error {
	var ns corev1.Namespace
	err := c.Get(ctx, client.ObjectKey{Name: v.Namespace}, &ns)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	v.Exists = err == nil
	v.Server, err = getServer(ctx, c, v.Namespace, veleroServer)
	if err == nil && !v.Server.Found {
		v.Elsewhere = findServers(ctx, c)
	}
	return err
}

// getServer reads a Deployment; one that is not there is not Found.
func getServer(ctx context.Context, c client.Client, namespace, name string) (Deployment, error) {
	var d appsv1.Deployment
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &d); err != nil {
		return Deployment{}, client.IgnoreNotFound(err)
	}
	return serverOf(&d), nil
}

func serverOf(d *appsv1.Deployment) Deployment {
	out := Deployment{Found: true, Wanted: wanted(d.Spec.Replicas), Ready: d.Status.ReadyReplicas}
	pod := d.Spec.Template.Spec
	for _, c := range pod.InitContainers {
		out.Plugins = append(out.Plugins, c.Image)
	}
	if len(pod.Containers) == 0 {
		return out
	}
	server := pod.Containers[0]
	out.Image, out.Version = server.Image, versionOf(server.Image)
	args := slices.Concat(server.Command, server.Args)
	out.Features, out.Uploader = listArg(args, "features"), strings.Join(listArg(args, "uploader-type"), "")
	out.RestoreOnly = slices.Contains(args, "--restore-only") || slices.Contains(args, "--restore-only=true")
	out.BackupTTL, _ = time.ParseDuration(strings.Join(listArg(args, "default-backup-ttl"), "")) // not said: Velero's own
	out.Credentials = slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Secret != nil && v.Secret.SecretName == defaultSecret })
	out.OADP = isOADP(d)
	return out
}

// listArg is the value of a flag --name=a,b or --name a,b of a command line.
func listArg(args []string, name string) []string {
	for i, arg := range args {
		value, ok := strings.CutPrefix(arg, "--"+name+"=")
		if !ok && arg == "--"+name && i+1 < len(args) {
			value, ok = args[i+1], true
		}
		if ok && value != "" {
			return strings.Split(value, ",")
		}
	}
	return nil
}

// isOADP says whether the OADP operator keeps the Deployment: it would undo a
// change made beside its DataProtectionApplication.
func isOADP(d *appsv1.Deployment) bool {
	return d.Labels["openshift.io/oadp"] != "" || slices.ContainsFunc(d.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Kind == "DataProtectionApplication"
	})
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
		Version: versionOf(spec.Image), HostPods: hostPods(&ds.Spec.Template.Spec), Privileged: isPrivileged(&ds.Spec.Template.Spec),
	}
	for _, t := range spec.Tolerations {
		agent.Tolerations = append(agent.Tolerations, t.Key+"="+t.Value+":"+string(t.Effect))
	}
	agent.Nodes, err = listAgentNodes(ctx, c, &ds)
	return agent, err
}

// hostPods is the directory of a node that node-agent reads the pods' volumes
// from: what it mounts at /host_pods (velero pkg/install/daemonset.go).
func hostPods(pod *corev1.PodSpec) string {
	for _, c := range pod.Containers {
		for _, m := range c.VolumeMounts {
			if m.MountPath != "/host_pods" {
				continue
			}
			for _, v := range pod.Volumes {
				if v.Name == m.Name && v.HostPath != nil {
					return v.HostPath.Path
				}
			}
		}
	}
	return ""
}

func isPrivileged(pod *corev1.PodSpec) bool {
	return slices.ContainsFunc(pod.Containers, func(c corev1.Container) bool {
		return c.SecurityContext != nil && c.SecurityContext.Privileged != nil && *c.SecurityContext.Privileged
	})
}

func listAgentNodes(ctx context.Context, c client.Client, ds *appsv1.DaemonSet) ([]AgentNode, error) {
	var out []AgentNode
	_, err := all(ctx, func(ctx context.Context, opts ...client.ListOption) ([]struct{}, metav1.ListMeta, error) {
		var list corev1.PodList
		err := c.List(ctx, &list, opts...)
		for i := range list.Items {
			if p := &list.Items[i]; metav1.IsControlledBy(p, ds) {
				out = append(out, AgentNode{Node: p.Spec.NodeName, Pod: p.Name, Ready: isReady(p)})
			}
		}
		return nil, list.ListMeta, err
	}, client.InNamespace(ds.Namespace))
	slices.SortFunc(out, func(a, b AgentNode) int { return cmp.Compare(a.Node, b.Node) })
	return out, err
}

func isReady(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
