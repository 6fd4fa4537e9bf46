// Package plan is the plan file: its types, reading it with positions in every
// error, its defaults and what must be true of it on its own. It knows no
// cluster, no client and no clock.
package plan

import "strings"

// APIVersion and Kind of a plan file.
const (
	APIVersion = "mig/v1alpha1"
	Kind       = "MigrationPlan"
)

// Plan is what a person writes: which namespaces and volumes go from which
// cluster to which, and how.
type Plan struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   Metadata `json:"metadata"`
	Spec       Spec     `json:"spec"`

	at positions // where each field stands in the file; empty for a plan that was not read from one
}

// Metadata names a plan.
type Metadata struct {
	Name string `json:"name"` // a DNS-1123 subdomain
	UID  string `json:"uid"`  // random, made once; labels in the clusters carry it, never the name
}

// Spec is the wish.
type Spec struct {
	Source         Cluster           `json:"source"`
	Destination    Cluster           `json:"destination"`
	Storage        Storage           `json:"storage"`
	Namespaces     []Namespace       `json:"namespaces"`
	Volumes        []Volume          `json:"volumes,omitempty"`
	StorageClasses map[string]string `json:"storageClasses,omitempty"` // source class -> destination class, for volumes without one of their own
	Quiesce        Quiesce           `json:"quiesce,omitempty"`
	Accept         []Accept          `json:"accept,omitempty"`
	Limits         LimitsSpec        `json:"limits,omitempty"`
}

// Cluster says how one of the two clusters is reached.
type Cluster struct {
	Context         string `json:"context"`
	Kubeconfig      string `json:"kubeconfig,omitempty"`      // a path, relative to the working directory; empty: kubectl's rules
	VeleroNamespace string `json:"veleroNamespace,omitempty"` // empty: velero
}

// Storage is the object store that both clusters' Velero reach.
type Storage struct {
	Location string `json:"location"` // a BackupStorageLocation of this name on both sides
}

// Namespace is one namespace of the source, and its name on the destination.
type Namespace struct {
	Name        string `json:"name"`
	Destination string `json:"destination,omitempty"` // empty: the same name
}

// Action is what happens to a volume.
type Action string

// The actions. Empty means that a person must still choose.
const (
	Copy Action = "copy"
	Move Action = "move" // refused by name until it is built
	Skip Action = "skip"
)

// CopyFilesystem is the copy method that reads and writes files; the others
// are refused by name until they are built.
const CopyFilesystem = "filesystem"

// Unknown is the used size of a volume whose size cannot be had.
const Unknown = "unknown"

// DefaultVeleroNamespace is where Velero is looked for when the plan is silent.
const DefaultVeleroNamespace = "velero"

// Volume is one claim of the plan's namespaces. Volume, Capacity, Used,
// StorageClass, AccessModes, VolumeMode and Supported are facts of discovery;
// the rest is the user's choice.
type Volume struct {
	Claim        string            `json:"claim"` // namespace/name on the source
	Volume       string            `json:"volume,omitempty"`
	Capacity     string            `json:"capacity,omitempty"` // a quantity
	Used         string            `json:"used,omitempty"`     // a quantity, or "unknown"
	StorageClass string            `json:"storageClass,omitempty"`
	AccessModes  []string          `json:"accessModes,omitempty"`
	VolumeMode   string            `json:"volumeMode,omitempty"`
	Supported    []Action          `json:"supported,omitempty"`
	Action       Action            `json:"action"`
	CopyMethod   string            `json:"copyMethod,omitempty"` // filesystem
	Destination  VolumeDestination `json:"destination,omitempty"`
	Verify       bool              `json:"verify,omitempty"`
}

// VolumeDestination is the claim on the destination. Empty fields mean: as on
// the source, the class by Spec.StorageClasses.
type VolumeDestination struct {
	StorageClass string   `json:"storageClass,omitempty"`
	AccessModes  []string `json:"accessModes,omitempty"`
	Size         string   `json:"size,omitempty"` // a quantity
}

// Quiesce says how the application is stopped at the cutover.
type Quiesce struct {
	Enabled *bool    `json:"enabled,omitempty"` // nil: true
	Except  []string `json:"except,omitempty"`  // Kind/namespace/name of workloads that stay up; they may mount no selected claim
}

// Accept is a finding that a person has seen and accepts.
type Accept struct {
	Type   string `json:"type"`   // of the condition
	Object string `json:"object"` // as the condition names it; "*" for all
	Why    string `json:"why"`
}

// AllObjects accepts a finding on whatever object it is.
const AllObjects = "*"

// LimitsSpec bounds the waiting.
type LimitsSpec struct {
	Timeouts    map[string]string `json:"timeouts,omitempty"`    // step -> duration
	MaxDowntime string            `json:"maxDowntime,omitempty"` // a duration
}

// Valid is a plan that Validate found sound. Only Validate makes one, so no
// unchecked plan reaches a run.
type Valid struct{ plan Plan }

// Plan is the plan with its defaults filled in.
func (v Valid) Plan() Plan { return v.plan }

// Name of the plan.
func (v Valid) Name() string { return v.plan.Metadata.Name }

// UID of the plan.
func (v Valid) UID() string { return v.plan.Metadata.UID }

// SourceNamespaces are the namespaces on the source, in the plan's order.
func (v Valid) SourceNamespaces() []string {
	out := make([]string, 0, len(v.plan.Spec.Namespaces))
	for _, n := range v.plan.Spec.Namespaces {
		out = append(out, n.Name)
	}
	return out
}

// DestinationNamespace is the name that a namespace of the source has on the
// destination.
func (v Valid) DestinationNamespace(source string) string {
	for _, n := range v.plan.Spec.Namespaces {
		if n.Name == source && n.Destination != "" {
			return n.Destination
		}
	}
	return source
}

// DestinationClass is the storage class that a volume's claim gets on the
// destination: its own choice, else the plan's for the source's class, else the
// source's name. Empty means the default class of the destination.
func (v Valid) DestinationClass(vol Volume) string {
	if vol.Destination.StorageClass != "" {
		return vol.Destination.StorageClass
	}
	if class, ok := v.plan.Spec.StorageClasses[vol.StorageClass]; ok {
		return class
	}
	return vol.StorageClass
}

// Accepts says whether a person has accepted a finding on an object.
func (v Valid) Accepts(conditionType, object string) bool {
	for _, a := range v.plan.Spec.Accept {
		if a.Type == conditionType && (a.Object == AllObjects || a.Object == object) {
			return true
		}
	}
	return false
}

// NamespaceMapping holds the namespaces whose name changes, as Velero's
// restores want it.
func (v Valid) NamespaceMapping() map[string]string {
	m := map[string]string{}
	for _, n := range v.plan.Spec.Namespaces {
		if n.Destination != "" && n.Destination != n.Name {
			m[n.Name] = n.Destination
		}
	}
	return m
}

// Copied are the volumes whose data the run copies, in the plan's order.
func (v Valid) Copied() []Volume {
	var out []Volume
	for _, vol := range v.plan.Spec.Volumes {
		if vol.Action == Copy {
			out = append(out, vol)
		}
	}
	return out
}

// Namespace is the claim's namespace on the source.
func (v Volume) Namespace() string { ns, _, _ := strings.Cut(v.Claim, "/"); return ns }

// Name is the claim's name.
func (v Volume) Name() string { _, name, _ := strings.Cut(v.Claim, "/"); return name }
