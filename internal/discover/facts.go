// Package discover looks into the two clusters and gives back what it saw as
// plain values. It changes nothing and judges nothing: what the facts mean for
// a plan is said by package preflight.
package discover

import (
	"slices"
	"strings"
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
	// Optional: without it some checks are left out, and the plan can run.
	Optional bool `json:"optional,omitempty"`
	// Objects names what exactly, where it is not the whole part: the APIs that
	// are down.
	Objects []string `json:"objects,omitempty"`
}

// Facts is what was seen of one cluster.
type Facts struct {
	Context        string         `json:"context"`
	Server         string         `json:"server"`
	Reach          Reach          `json:"reach"`
	Error          string         `json:"error,omitempty"`   // why it was not reached
	Version        string         `json:"version,omitempty"` // v1.34.4
	UID            string         `json:"uid,omitempty"`     // of the namespace kube-system
	OpenShift      bool           `json:"openShift,omitempty"`
	Access         Access         `json:"access"`
	Namespaces     []Namespace    `json:"namespaces,omitempty"`
	StorageClasses []StorageClass `json:"storageClasses,omitempty"`
	Nodes          []Node         `json:"nodes,omitempty"`
	// PriorityClasses and RuntimeClasses are looked at where pods of the plan name
	// some, LimitRanges and Quotas in the plan's namespaces.
	PriorityClasses []PriorityClass `json:"priorityClasses,omitempty"`
	RuntimeClasses  []RuntimeClass  `json:"runtimeClasses,omitempty"`
	LimitRanges     []LimitRange    `json:"limitRanges,omitempty"`
	Quotas          []Quota         `json:"quotas,omitempty"`
	Kinds           []Kind          `json:"-"` // hundreds, and nobody's to read
	Velero          Velero          `json:"velero"`
	Plans           []OtherPlan     `json:"plans,omitempty"` // of which Velero's namespace holds a record
	Rights          []Right         `json:"rights,omitempty"`
	Gaps            []Gap           `json:"gaps,omitempty"`
}

// Access is how we get to the cluster, and for how long.
type Access struct {
	User             string        `json:"user,omitempty"`        // who the cluster takes us for
	Credentials      string        `json:"credentials,omitempty"` // client certificate, token; empty: another kind
	CredentialsUntil time.Time     `json:"credentialsUntil,omitzero"`
	CertificateUntil time.Time     `json:"certificateUntil,omitzero"` // of the API server
	Insecure         bool          `json:"insecure,omitempty"`        // its certificate is not checked
	Now              time.Time     `json:"now,omitzero"`              // by the cluster's clock when it was looked at; zero: not told
	Ahead            time.Duration `json:"ahead,omitempty"`           // of that clock before this machine's
}

// Node is one node.
type Node struct {
	Name          string            `json:"name"`
	Ready         bool              `json:"ready"`
	Unschedulable bool              `json:"unschedulable,omitempty"`
	Labels        map[string]string `json:"labels,omitempty"`
	Taints        []Taint           `json:"taints,omitempty"` // that keep pods away for good
}

// OtherPlan is what the clusters remember of a plan of mig, maybe our own.
type OtherPlan struct {
	Name       string    `json:"name"`
	UID        string    `json:"uid"`
	Namespaces []string  `json:"namespaces,omitempty"` // under whichever name this cluster may have them
	Run        string    `json:"run,omitempty"`        // the last one's uid
	Kind       string    `json:"kind,omitempty"`       // migrate, rollback
	State      string    `json:"state,omitempty"`      // as package record says it
	Started    time.Time `json:"started,omitzero"`
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
	Outside   []Outside  `json:"outside,omitempty"`
	PodNeeds  []PodNeeds `json:"podNeeds,omitempty"`
	Services  []Service  `json:"services,omitempty"` // that have node ports
	// Subscriptions of the Operator Lifecycle Manager, and what it makes of them.
	// Filled by Look alone, as is Unserved.
	Subscriptions []Subscription `json:"subscriptions,omitempty"`
	Generated     []string       `json:"generated,omitempty"` // Kind/namespace/name
	Unserved      []Unserved     `json:"unserved,omitempty"`
	// Objects are those of the namespaces whose destination exists already:
	// what of them is there too would be met. Filled by Look alone.
	Objects []Object `json:"objects,omitempty"`
}

// DestinationFacts is what was seen of the destination.
type DestinationFacts struct {
	Facts
	Objects []Object `json:"objects,omitempty"` // in the destination's namespaces, where they exist
	// FreeVolumes are those that any claim could bind.
	FreeVolumes []FreeVolume `json:"freeVolumes,omitempty"`
	Capacity    []Capacity   `json:"capacity,omitempty"` // what CSI drivers say is left
	// Refused are the namespaces that the cluster would not let be made, with
	// what it said. Filled by Look alone.
	Refused []Refused `json:"refused,omitempty"`
	// Services with node ports, of the whole cluster, where the plan has some, and
	// Webhooks that do not answer. Filled by Look alone.
	Services []Service `json:"services,omitempty"`
	Webhooks []Webhook `json:"webhooks,omitempty"`
}

// FreeVolume is a PersistentVolume that is bound to no claim.
type FreeVolume struct {
	Name         string   `json:"name"`
	StorageClass string   `json:"storageClass,omitempty"`
	Capacity     string   `json:"capacity"`
	AccessModes  []string `json:"accessModes,omitempty"`
	VolumeMode   string   `json:"volumeMode,omitempty"`
	ReservedFor  string   `json:"reservedFor,omitempty"` // namespace/name of the one claim that may have it
}

// Quota is a ResourceQuota.
type Quota struct {
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	Hard      map[string]string `json:"hard"` // resource -> quantity
	Used      map[string]string `json:"used"`
	Scopes    []string          `json:"scopes,omitempty"` // the pods that it counts; none: all
}

// Capacity is what a CSI driver says that a class has left in one part of the
// cluster.
type Capacity struct {
	StorageClass string `json:"storageClass"`
	Left         string `json:"left"`
	Largest      string `json:"largest,omitempty"` // volume that can be made
}

// Refused is an object that a server-side dry run did not admit.
type Refused struct {
	Object string `json:"object"`
	Why    string `json:"why"`
}

// Outside is data that a pod template keeps outside of claims, or where it
// would: no copy of claims holds it.
type Outside struct {
	Workload string   `json:"workload"` // Kind/namespace/name
	Volume   string   `json:"volume"`
	Kind     string   `json:"kind"`             // hostPath, emptyDir, ephemeral
	Path     string   `json:"path,omitempty"`   // on the node
	Mounts   []string `json:"mounts,omitempty"` // paths in the containers
	Images   []string `json:"images,omitempty"` // of the containers that mount it
	ReadOnly bool     `json:"readOnly,omitempty"`
	Size     string   `json:"size,omitempty"` // its limit, or what it asks for
	Used     string   `json:"used"`           // a quantity, or unknown
	// Class says what it is: data, system (the node's own files), scratch.
	Class   OutsideClass `json:"class"`
	Verdict string       `json:"verdict"` // not copied: hostPath
}

// OutsideClass says what becomes of a volume that is no claim.
type OutsideClass string

// The classes of volumes that are no claims.
const (
	OutsideData    OutsideClass = "data"    // somebody may miss it
	OutsideSystem  OutsideClass = "system"  // the node's own files, which every node has
	OutsideScratch OutsideClass = "scratch" // meant to be lost with the pod
)

// Namespace is one namespace.
type Namespace struct {
	Name        string            `json:"name"`
	Phase       string            `json:"phase"` // Active, Terminating
	Since       time.Time         `json:"terminatingSince,omitzero"`
	HeldBy      []string          `json:"heldBy,omitempty"` // why a Terminating one is still there, as the cluster says it
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
	Reclaim     string `json:"reclaimPolicy,omitempty"` // Delete, Retain
	// Topologies are the node labels that its volumes can be made for, any one
	// of them; empty: anywhere.
	Topologies []map[string][]string `json:"topologies,omitempty"`
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
	EphemeralOf   string            `json:"ephemeralOf,omitempty"` // the pod that made it and that it goes with
	NoClass       bool              `json:"noClass,omitempty"`     // it asks for no class, not for the default one
	Static        bool              `json:"static,omitempty"`      // its volume was made by hand
	Where         string            `json:"where,omitempty"`       // of a volume that is a place: nfs server:/path, hostPath /path
	Zone          string            `json:"zone,omitempty"`        // that its volume is tied to
	TiedTo        []string          `json:"tiedTo,omitempty"`      // nodes that its volume is tied to
	UsedBytes     int64             `json:"usedBytes,omitempty"`   // 0: unknown
	SizeBytes     int64             `json:"sizeBytes,omitempty"`   // of its file system; 0: unknown
	MountedBy     []Mounter         `json:"mountedBy,omitempty"`
}

// Key is namespace/name.
func (c Claim) Key() string { return c.Namespace + "/" + c.Name }

// Owner is the workload whose claim it is, Kind/name: the StatefulSet that made
// it, else who runs the pods that mount it; empty where there is none.
func (c Claim) Owner() string {
	if c.StatefulSet != "" {
		return "StatefulSet/" + c.StatefulSet
	}
	var out []string
	for _, m := range c.MountedBy {
		out = append(out, m.Workload)
	}
	slices.Sort(out)
	return strings.Join(slices.DeleteFunc(slices.Compact(out), func(s string) bool { return s == "" }), ", ")
}

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
	Workload string `json:"workload,omitempty"` // Kind/name of what keeps the pod running
}

// Finished says that the pod came to its end and writes no more.
func (m Mounter) Finished() bool { return m.Phase == "Succeeded" || m.Phase == "Failed" }

// Pod is one pod of the namespaces, with what matters to a migration.
type Pod struct {
	Namespace     string   `json:"namespace"`
	Name          string   `json:"name"`
	Phase         string   `json:"phase"`
	Node          string   `json:"node,omitempty"`
	Controller    string   `json:"controller,omitempty"`    // Kind/name of its controlling owner; empty: a bare pod
	Static        bool     `json:"static,omitempty"`        // a kubelet's own (a mirror pod)
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
	// TemplateClasses are the storage classes that a StatefulSet's claim
	// templates ask for.
	TemplateClasses []string `json:"templateClasses,omitempty"`
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
	Stays      bool   `json:"stays,omitempty"`   // is labelled to be in no backup of Velero's
	// Finalizers of an object that is being deleted: they keep it.
	Finalizers []string `json:"finalizers,omitempty"`
}
