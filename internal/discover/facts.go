// Package discover looks into the two clusters and gives back what it saw as
// plain values. It changes nothing and judges nothing: what the facts mean for
// a plan is said by package preflight.
package discover

import (
	"time"

	"github.com/mig-cli/mig/internal/naming"
)

// Reach says how far a cluster let itself be reached.
type Reach string

// How a cluster answered.
const (
	Reached       Reach = "reached"
	Unreachable   Reach = "unreachable"    // no answer: refused, no route, unknown host, time-out
	NotKubernetes Reach = "not-kubernetes" // an answer, but not a Kubernetes API's
	Untrusted     Reach = "untrusted"      // its certificate is not signed by who the kubeconfig trusts
	Denied        Reach = "denied"         // our credentials are not accepted
	Failed        Reach = "failed"         // anything else; Error says what
)

// Gap is a part that could not be looked at. The rest was looked at all the same.
type Gap struct {
	Part   string `json:"part"` // storage classes, claims of shop, ...
	Denied bool   `json:"denied"`
	Error  string `json:"error"`
}

// Facts is what was seen of one cluster.
type Facts struct {
	Context        string         `json:"context"`
	Server         string         `json:"server"`
	Reach          Reach          `json:"reach"`
	Error          string         `json:"error,omitempty"`   // why it was not reached
	Version        string         `json:"version,omitempty"` // v1.34.4
	UID            string         `json:"uid,omitempty"`     // of the namespace kube-system
	Namespaces     []Namespace    `json:"namespaces,omitempty"`
	StorageClasses []StorageClass `json:"storageClasses,omitempty"`
	Velero         Velero         `json:"velero"`
	Rights         []Right        `json:"rights,omitempty"`
	Gaps           []Gap          `json:"gaps,omitempty"`
}

// Namespace returns the namespace of a name, if it was seen.
func (f Facts) Namespace(name string) (Namespace, bool) {
	for _, n := range f.Namespaces {
		if n.Name == name {
			return n, true
		}
	}
	return Namespace{}, false
}

// StorageClass returns the class of a name, if it was seen.
func (f Facts) StorageClass(name string) (StorageClass, bool) {
	for _, c := range f.StorageClasses {
		if c.Name == name {
			return c, true
		}
	}
	return StorageClass{}, false
}

// DefaultStorageClass is the class of claims that name none, if there is one.
func (f Facts) DefaultStorageClass() (StorageClass, bool) {
	for _, c := range f.StorageClasses {
		if c.Default {
			return c, true
		}
	}
	return StorageClass{}, false
}

// HasGap says whether a part could not be looked at, so that nothing may be
// concluded from its absence.
func (f Facts) HasGap(part string) bool {
	for _, g := range f.Gaps {
		if g.Part == part {
			return true
		}
	}
	return false
}

// SourceFacts is what was seen of the source.
type SourceFacts struct {
	Facts
	Claims    []Claim    `json:"claims,omitempty"`
	Pods      []Pod      `json:"pods,omitempty"`
	Workloads []Workload `json:"workloads,omitempty"`
	// Objects are those of the namespaces whose destination exists already:
	// what of them is there too would be met. Filled by Look alone.
	Objects []Object `json:"objects,omitempty"`
}

// DestinationFacts is what was seen of the destination.
type DestinationFacts struct {
	Facts
	Objects []Object `json:"objects,omitempty"` // in the destination's namespaces, where they exist
}

// Namespace is one namespace.
type Namespace struct {
	Name        string            `json:"name"`
	Phase       string            `json:"phase"` // Active, Terminating
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// OfPlan is the uid of the plan that made the namespace; empty where mig did not.
func (n Namespace) OfPlan() string { return naming.OfPlanUID(n.Labels) }

// StorageClass is one storage class.
type StorageClass struct {
	Name        string `json:"name"`
	Provisioner string `json:"provisioner"`
	Default     bool   `json:"default"`
	BindingMode string `json:"bindingMode"` // Immediate, WaitForFirstConsumer
	Expandable  bool   `json:"expandable"`
}

// Claim is one PersistentVolumeClaim with its volume and the pods that mount it.
type Claim struct {
	Namespace     string            `json:"namespace"`
	Name          string            `json:"name"`
	UID           string            `json:"uid,omitempty"`
	Phase         string            `json:"phase"` // Pending, Bound, Lost
	Volume        string            `json:"volume,omitempty"`
	Capacity      string            `json:"capacity,omitempty"`
	Requested     string            `json:"requested,omitempty"`
	StorageClass  string            `json:"storageClass,omitempty"`
	AccessModes   []string          `json:"accessModes,omitempty"`
	VolumeMode    string            `json:"volumeMode,omitempty"` // Filesystem, Block
	Labels        map[string]string `json:"labels,omitempty"`
	Terminating   bool              `json:"terminating,omitempty"`
	Backend       string            `json:"backend,omitempty"`     // csi, hostPath, local, nfs, ...: the kind of the volume's source
	Provisioner   string            `json:"provisioner,omitempty"` // the CSI driver, or who made the volume
	ReclaimPolicy string            `json:"reclaimPolicy,omitempty"`
	StatefulSet   string            `json:"statefulSet,omitempty"` // whose template made it
	MountedBy     []Mounter         `json:"mountedBy,omitempty"`
}

// Key is namespace/name.
func (c Claim) Key() string { return c.Namespace + "/" + c.Name }

// Running are the mounters whose pod runs: Velero sees a volume through them only.
func (c Claim) Running() []Mounter {
	var out []Mounter
	for _, m := range c.MountedBy {
		if m.Phase == "Running" {
			out = append(out, m)
		}
	}
	return out
}

// Mounter is a pod that mounts a claim.
type Mounter struct {
	Pod      string `json:"pod"`
	Phase    string `json:"phase"` // Pending, Running, Succeeded, Failed
	Node     string `json:"node,omitempty"`
	ReadOnly bool   `json:"readOnly,omitempty"`
}

// Finished says that the pod came to its end and writes no more.
func (m Mounter) Finished() bool { return m.Phase == "Succeeded" || m.Phase == "Failed" }

// Pod is one pod of the namespaces, with what matters to a migration.
type Pod struct {
	Namespace     string   `json:"namespace"`
	Name          string   `json:"name"`
	Phase         string   `json:"phase"`
	Node          string   `json:"node,omitempty"`
	Controller    string   `json:"controller,omitempty"` // Kind/name of its controlling owner; empty: a bare pod
	Static        bool     `json:"static,omitempty"`     // a kubelet's own (a mirror pod)
	HostPaths     []string `json:"hostPaths,omitempty"`
	EmptyDirs     []string `json:"emptyDirs,omitempty"`     // names of the volumes, those in memory left out
	BackupVolumes []string `json:"backupVolumes,omitempty"` // the user's own backup.velero.io/backup-volumes
	OfPlan        string   `json:"ofPlan,omitempty"`        // uid of the plan whose run made it
}

// Key is namespace/name.
func (p Pod) Key() string { return p.Namespace + "/" + p.Name }

// Finished says that the pod came to its end.
func (p Pod) Finished() bool { return p.Phase == "Succeeded" || p.Phase == "Failed" }

// Workload is an object that keeps pods running, or scales what does.
type Workload struct {
	Kind       string `json:"kind"` // Deployment, StatefulSet, DaemonSet, ReplicaSet, ReplicationController, Job, CronJob, HorizontalPodAutoscaler
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	Replicas   int32  `json:"replicas,omitempty"`   // wished for
	Active     int32  `json:"active,omitempty"`     // of a Job: pods that run
	Suspended  bool   `json:"suspended,omitempty"`  // of a Job or CronJob
	Paused     bool   `json:"paused,omitempty"`     // of a Deployment
	Controller string `json:"controller,omitempty"` // Kind/name of its controlling owner
	GitOps     string `json:"gitOps,omitempty"`     // who applies it again and again: Argo CD, Flux
	Scales     string `json:"scales,omitempty"`     // of an autoscaler: Kind/name of what it scales
	// ScaleDeletesClaims: a StatefulSet whose claims go when it is scaled down.
	ScaleDeletesClaims bool `json:"scaleDeletesClaims,omitempty"`
}

// Key is Kind/namespace/name, as spec.quiesce.except names workloads.
func (w Workload) Key() string { return w.Kind + "/" + w.Namespace + "/" + w.Name }

// Object is any object, by its metadata alone.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	OfPlan     string `json:"ofPlan,omitempty"`  // uid of the plan whose run made it
	Restore    string `json:"restore,omitempty"` // Velero's restore that made it
	Owned      bool   `json:"owned,omitempty"`   // has a controlling owner, which makes it again
}

// Velero is what was seen of Velero in its namespace.
type Velero struct {
	Namespace       string     `json:"namespace"`
	Exists          bool       `json:"exists"`                // the namespace
	Elsewhere       []string   `json:"elsewhere,omitempty"`   // namespaces with a Velero server, where it is not in its namespace
	MissingAPIs     []string   `json:"missingAPIs,omitempty"` // resources of velero.io/v1 that the cluster does not serve
	Server          Deployment `json:"server"`
	NodeAgent       NodeAgent  `json:"nodeAgent"`
	Locations       []Location `json:"locations,omitempty"`
	RepoCredentials string     `json:"-"` // a digest of the repository password; empty: there is none yet
}

// Location returns the storage location of a name, if it was seen.
func (v Velero) Location(name string) (Location, bool) {
	for _, l := range v.Locations {
		if l.Name == name {
			return l, true
		}
	}
	return Location{}, false
}

// Deployment is Velero's server.
type Deployment struct {
	Found   bool   `json:"found"`
	Image   string `json:"image,omitempty"`
	Version string `json:"version,omitempty"` // of the image's tag, or as Velero's own status requests tell; may be unknown
	Wanted  int32  `json:"wanted"`
	Ready   int32  `json:"ready"`
}

// NodeAgent is Velero's DaemonSet that reads and writes volumes.
type NodeAgent struct {
	Found        bool              `json:"found"`
	Image        string            `json:"image,omitempty"`
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	Tolerations  []string          `json:"tolerations,omitempty"` // key=value:effect
	Wanted       int32             `json:"wanted"`
	Ready        int32             `json:"ready"`
	Nodes        []AgentNode       `json:"nodes,omitempty"`
}

// ReadyOn says whether a node has a ready node-agent.
func (a NodeAgent) ReadyOn(node string) bool {
	for _, n := range a.Nodes {
		if n.Node == node && n.Ready {
			return true
		}
	}
	return false
}

// AgentNode is the node-agent's pod on one node.
type AgentNode struct {
	Node  string `json:"node"`
	Pod   string `json:"pod"`
	Ready bool   `json:"ready"`
}

// Location is a BackupStorageLocation.
type Location struct {
	Name          string            `json:"name"`
	Phase         string            `json:"phase"` // Available, Unavailable; empty: not validated yet
	Message       string            `json:"message,omitempty"`
	Provider      string            `json:"provider"`
	Bucket        string            `json:"bucket"`
	Prefix        string            `json:"prefix,omitempty"`
	AccessMode    string            `json:"accessMode,omitempty"` // ReadWrite, ReadOnly
	Default       bool              `json:"default,omitempty"`
	Config        map[string]string `json:"config,omitempty"` // region, s3Url, ...
	LastValidated time.Time         `json:"lastValidated,omitzero"`
}
