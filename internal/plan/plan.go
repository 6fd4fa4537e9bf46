// Package plan is the plan file: its types, reading it with positions in every
// error, its defaults and what must be true of it on its own. It knows no
// cluster, no client and no clock.
package plan

// APIVersion and Kind of a plan file.
const (
	APIVersion = "mig/v1alpha1"
	Kind       = "MigrationPlan"
)

// Plan is what a person writes: which namespaces and volumes go from which
// cluster to which, and how. What each field means stands in the docs method
// behind its type, once, for the comments of a file, mig explain and editors.
type Plan struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   Metadata `json:"metadata"`
	Spec       Spec     `json:"spec"`

	at positions // where each field stands in the file; empty for a plan that was not read from one
}

func (Plan) docs() map[string]Doc {
	return map[string]Doc{
		"apiVersion": {Brief: "the version of this form", Values: []string{APIVersion}, Required: true},
		"kind":       {Brief: "what this file is", Values: []string{Kind}, Required: true},
		"metadata":   {Brief: "the plan's name and identity", Required: true},
		"spec":       {Brief: "what is migrated, from where to where, and how", Required: true},
	}
}

// Metadata names a plan.
type Metadata struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

func (Metadata) docs() map[string]Doc {
	return map[string]Doc{
		"name": {Brief: "the plan's name, for people", Form: FormName, Required: true},
		"uid": {
			Brief: "made once, at random; what mig makes in the clusters carries it: never change or copy it", Comment: true, Form: FormUID, Required: true,
			More: "A copied plan file needs a uid of its own: mig plan create makes one. By it mig tells which backups, restores and records are this plan's.",
		},
	}
}

// Spec is the wish.
type Spec struct {
	Source         Cluster           `json:"source"`
	Destination    Cluster           `json:"destination"`
	Storage        Storage           `json:"storage"`
	Namespaces     []Namespace       `json:"namespaces"`
	Volumes        []Volume          `json:"volumes,omitempty"`
	StorageClasses map[string]string `json:"storageClasses,omitempty"`
	Include        Filter            `json:"include,omitzero"`
	Exclude        Filter            `json:"exclude,omitzero"`
	Images         Images            `json:"images,omitzero"`
	NodeSelectors  NodeSelectors     `json:"nodeSelectors,omitzero"`
	Mover          string            `json:"mover,omitempty"`
	HelperImage    string            `json:"helperImage,omitempty"`
	Quiesce        Quiesce           `json:"quiesce,omitzero"`
	Accept         []Accept          `json:"accept,omitempty"`
	Hooks          []Hook            `json:"hooks,omitempty"`
	Limits         LimitsSpec        `json:"limits,omitzero"`
}

func (Spec) docs() map[string]Doc {
	return map[string]Doc{
		"source":      {Brief: "where the namespaces are; its objects and data are never deleted", Comment: true, Required: true},
		"destination": {Brief: "where they go", Comment: true, Required: true},
		"storage":     {Brief: "the object store between the two", Comment: true, Required: true},
		"namespaces": {
			Brief: "name: on the source; destination: its name there, where it is another one", Comment: true, Required: true,
			More: "No two may get the same name on the destination. Names may be swapped.",
		},
		"volumes": {
			Brief: "every claim of the namespaces, and what happens to it",
			More:  "volume, capacity, used, storageClass, accessModes, volumeMode and supported are as they were found; mig pv discover --update brings them up to date. The rest is yours to choose, here or with mig pv set.",
		},
		"storageClasses": {
			Brief: "class on the source: class on the destination, for volumes without one of their own", Comment: true, Shown: true,
			More: "A class that is not named here keeps its name.",
		},
		"include":       {Brief: "only these objects go along", Instead: "whole namespaces are migrated"},
		"exclude":       {Brief: "these objects stay behind", Instead: "whole namespaces are migrated"},
		"images":        {Brief: "from where the workloads pull their images on the destination", Instead: "push the images to the registry that the workloads name"},
		"nodeSelectors": {Brief: "node selectors of the workloads on the destination", Instead: "label the destination's nodes like the source's"},
		"mover": {
			Brief: "who restores the data of the volumes", Values: []string{MoverAuto, MoverMig, MoverVelero}, Default: MoverAuto,
			More: "velero: Velero's node-agent, as a whole and into fresh claims. mig: mig-mover, in place: what a stage has brought is brought up to date, and the cutover restores only what has changed since. auto: mig-mover where helperImage is set and can be used, else Velero. Velero's node-agent makes the copy in the object store in any case.",
		},
		"helperImage": {
			Brief: "the image of mig-mover, which reads volumes next to them", Form: FormImage,
			More: "Needed for mover: mig, and where a volume says verify: true. The pods that only mount a volume run the image of Velero itself.",
		},
		"quiesce": {Brief: "the application is stopped for the last copy", Comment: true, Shown: true},
		"accept": {
			Brief: "findings of mig plan validate that you have seen and accept: {type, object, why}", Comment: true, Shown: true,
			More: "They no longer block, and stand in the record of every run with your reason.",
		},
		"hooks":  {Brief: "pods that run at points of the cutover", Instead: "run hooks yourself before and after mig migrate"},
		"limits": {Brief: "how long things may take"},
	}
}

// Cluster says how one of the two clusters is reached.
type Cluster struct {
	Context         string `json:"context"`
	Kubeconfig      string `json:"kubeconfig,omitempty"`
	VeleroNamespace string `json:"veleroNamespace,omitempty"`
}

func (Cluster) docs() map[string]Doc {
	return map[string]Doc{
		"context": {Brief: "of the kubeconfig", Comment: true, Required: true},
		"kubeconfig": {
			Brief: "a path; without it kubectl's rules (KUBECONFIG, then the home file)", Comment: true,
			More: "Relative to the plan's file. Needed where both clusters have their own file, whose contexts may then have the same name.",
		},
		"veleroNamespace": {Brief: "where Velero is", Form: FormLabel, Default: DefaultVeleroNamespace},
	}
}

// Storage is the object store that both clusters' Velero reach.
type Storage struct {
	Location              string      `json:"location"`
	Provider              string      `json:"provider,omitempty"`
	Bucket                string      `json:"bucket,omitempty"`
	Prefix                string      `json:"prefix,omitempty"`
	Region                string      `json:"region,omitempty"`
	S3URL                 string      `json:"s3Url,omitempty"`
	CACert                string      `json:"caCert,omitempty"`
	InsecureSkipTLSVerify bool        `json:"insecureSkipTLSVerify,omitempty"`
	Credentials           Credentials `json:"credentials,omitzero"`
}

func (Storage) docs() map[string]Doc {
	const own = "make a BackupStorageLocation on both clusters and name it in spec.storage.location"
	return map[string]Doc{
		"location":              {Brief: "a BackupStorageLocation of this name on both clusters, with the same bucket and prefix", Comment: true, Form: FormName, Required: true},
		"provider":              {Brief: "whose object store it is", Values: []string{"aws", "azure", "gcp"}, Instead: own},
		"bucket":                {Brief: "the bucket, which must exist", Instead: own},
		"prefix":                {Brief: "the path within the bucket", Instead: own},
		"region":                {Brief: "the bucket's region", Instead: own},
		"s3Url":                 {Brief: "the URL of a store that speaks S3", Instead: own},
		"caCert":                {Brief: "the file of the authority that signed the store's certificate", Instead: own},
		"insecureSkipTLSVerify": {Brief: "whether the store's certificate is not verified", Instead: own},
		"credentials":           {Brief: "where the store's credentials are; never the credentials themselves", Instead: own},
	}
}

// Credentials say where credentials are, one of the three.
type Credentials struct {
	Secret string `json:"secret,omitempty"`
	File   string `json:"file,omitempty"`
	Env    string `json:"env,omitempty"`
}

func (Credentials) docs() map[string]Doc {
	const own = "make a BackupStorageLocation on both clusters and name it in spec.storage.location"
	return map[string]Doc{
		"secret": {Brief: "a Secret in Velero's namespace", Instead: own},
		"file":   {Brief: "a file on this machine", Instead: own},
		"env":    {Brief: "an environment variable that holds them", Instead: own},
	}
}

// Namespace is one namespace of the source, and its name on the destination.
type Namespace struct {
	Name        string `json:"name"`
	Destination string `json:"destination,omitempty"`
}

func (Namespace) docs() map[string]Doc {
	return map[string]Doc{
		"name":        {Brief: "its name on the source", Form: FormLabel, Required: true},
		"destination": {Brief: "its name on the destination", Form: FormLabel, Default: "the same name"},
	}
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

// The movers of data.
const (
	MoverAuto   = "auto"
	MoverMig    = "mig"
	MoverVelero = "velero"
)

// Unknown is the used size of a volume whose size cannot be had.
const Unknown = "unknown"

// DefaultVeleroNamespace is where Velero is looked for when the plan is silent.
const DefaultVeleroNamespace = "velero"

// AccessModes are those of claims, as Kubernetes names them.
func AccessModes() []string {
	return []string{"ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"}
}

// Volume is one claim of the plan's namespaces. Volume, Capacity, Used,
// StorageClass, AccessModes, VolumeMode and Supported are facts of discovery;
// the rest is the user's choice.
type Volume struct {
	Claim        string            `json:"claim"`
	Volume       string            `json:"volume,omitempty"`
	Capacity     string            `json:"capacity,omitempty"`
	Used         string            `json:"used,omitempty"`
	StorageClass string            `json:"storageClass,omitempty"`
	AccessModes  []string          `json:"accessModes,omitempty"`
	VolumeMode   string            `json:"volumeMode,omitempty"`
	Supported    []Action          `json:"supported,omitempty"`
	Action       Action            `json:"action"`
	CopyMethod   string            `json:"copyMethod,omitempty"`
	Destination  VolumeDestination `json:"destination,omitzero"`
	Verify       bool              `json:"verify,omitempty"`
}

func (Volume) docs() map[string]Doc {
	return map[string]Doc{
		"claim":        {Brief: "NAMESPACE/NAME of the claim on the source", Form: FormClaim, Required: true},
		"volume":       {Brief: "the volume that the claim is bound to", Fact: true},
		"capacity":     {Brief: "the volume's size", Form: FormQuantity, Fact: true},
		"used":         {Brief: "how much of it is used, or unknown", Fact: true},
		"storageClass": {Brief: "its class on the source", Form: FormName, Fact: true},
		"accessModes":  {Brief: "its access modes on the source", Values: AccessModes(), Fact: true},
		"volumeMode":   {Brief: "files or a block device", Values: []string{"Filesystem", "Block"}, Fact: true},
		"supported":    {Brief: "the actions that are possible", Values: []string{string(Copy), string(Move), string(Skip)}, Fact: true},
		"action": {
			Brief: "copy (the data goes along) or skip (neither claim nor data does)", Choice: true,
			Values: []string{string(Copy), string(Skip)}, Unbuilt: []string{string(Move)}, Default: "none: a person must choose, or the plan cannot run",
		},
		"copyMethod": {
			Brief: "how the data is copied: by files", Choice: true,
			Values: []string{CopyFilesystem}, Unbuilt: []string{"snapshot", "block"}, Default: CopyFilesystem,
		},
		"destination": {Brief: "the claim there: storageClass, accessModes, size; what is left out stays as on the source", Choice: true},
		"verify": {
			Brief: "compare the files of both sides, byte by byte, before the application starts on the destination", Default: "false",
			More: "Needs spec.helperImage. Both volumes are read as a whole while the application stands still.",
		},
	}
}

// VolumeDestination is the claim on the destination. Empty fields mean: as on
// the source, the class by Spec.StorageClasses.
type VolumeDestination struct {
	StorageClass string   `json:"storageClass,omitempty"`
	AccessModes  []string `json:"accessModes,omitempty"`
	Size         string   `json:"size,omitempty"`
	Name         string   `json:"name,omitempty"`
}

func (VolumeDestination) docs() map[string]Doc {
	return map[string]Doc{
		"storageClass": {Brief: "its class", Form: FormName, Default: "what spec.storageClasses says for the source's class, else the class of that name"},
		"accessModes":  {Brief: "its access modes", Values: AccessModes(), Default: "those of the source"},
		"size":         {Brief: "its size", Form: FormQuantity, Default: "that of the source"},
		"name":         {Brief: "its name", Instead: "the claim keeps its name"},
	}
}

// Filter chooses objects.
type Filter struct {
	Resources     []string `json:"resources,omitempty"`
	LabelSelector string   `json:"labelSelector,omitempty"`
}

func (Filter) docs() map[string]Doc {
	const whole = "whole namespaces are migrated"
	return map[string]Doc{
		"resources":     {Brief: "kinds of objects, as kubectl names them: configmaps, deployments.apps", Instead: whole},
		"labelSelector": {Brief: "objects with these labels, as in kubectl -l", Instead: whole},
	}
}

// Images say from where images are pulled.
type Images struct {
	Registries map[string]string `json:"registries,omitempty"`
}

func (Images) docs() map[string]Doc {
	return map[string]Doc{
		"registries": {Brief: "registry of the source: registry of the destination", Instead: "push the images to the registry that the workloads name"},
	}
}

// NodeSelectors say what becomes of the workloads' node selectors.
type NodeSelectors struct {
	Drop   []string          `json:"drop,omitempty"`
	Rename map[string]string `json:"rename,omitempty"`
}

func (NodeSelectors) docs() map[string]Doc {
	const like = "label the destination's nodes like the source's"
	return map[string]Doc{
		"drop":   {Brief: "label keys that are taken out", Instead: like},
		"rename": {Brief: "label key of the source: label key of the destination", Instead: like},
	}
}

// Quiesce says how the application is stopped at the cutover.
type Quiesce struct {
	Enabled *bool    `json:"enabled,omitempty"` // nil: true
	Except  []string `json:"except,omitempty"`
}

func (Quiesce) docs() map[string]Doc {
	return map[string]Doc{
		"enabled": {Brief: "whether it is stopped at all", Default: "true"},
		"except": {
			Brief: "KIND/NAMESPACE/NAME of workloads that stay up; they may mount no copied claim", Comment: true, Shown: true, Lines: true, Form: FormWorkload,
		},
	}
}

// Accept is a finding that a person has seen and accepts.
type Accept struct {
	Type   string `json:"type"`
	Object string `json:"object"`
	Why    string `json:"why"`
}

func (Accept) docs() map[string]Doc {
	return map[string]Doc{
		"type":   {Brief: "the condition's type, as mig plan validate prints it", Required: true},
		"object": {Brief: `the object as the condition names it, or "*" for all`, Required: true},
		"why":    {Brief: "your reason, for whoever reads the record later", Required: true},
	}
}

// AllObjects accepts a finding on whatever object it is.
const AllObjects = "*"

// Hook is a pod that runs at a point of the cutover.
type Hook struct {
	Phase          string   `json:"phase"`
	Cluster        string   `json:"cluster"`
	Namespace      string   `json:"namespace,omitempty"`
	ServiceAccount string   `json:"serviceAccount,omitempty"`
	Image          string   `json:"image"`
	Command        []string `json:"command,omitempty"`
	Timeout        string   `json:"timeout,omitempty"`
}

func (Hook) docs() map[string]Doc {
	const self = "run hooks yourself before and after mig migrate"
	return map[string]Doc{
		"phase":          {Brief: "when it runs", Values: []string{"PreBackup", "PostBackup", "PreRestore", "PostRestore"}, Instead: self},
		"cluster":        {Brief: "where it runs", Values: []string{"source", "destination"}, Instead: self},
		"namespace":      {Brief: "the namespace that it runs in", Instead: self},
		"serviceAccount": {Brief: "the service account that it runs as", Instead: self},
		"image":          {Brief: "the image that it runs", Instead: self},
		"command":        {Brief: "the command that it runs", Instead: self},
		"timeout":        {Brief: "how long it may take", Instead: self},
	}
}

// LimitsSpec bounds the waiting.
type LimitsSpec struct {
	Timeouts    map[string]string `json:"timeouts,omitempty"` // step -> duration
	MaxDowntime string            `json:"maxDowntime,omitempty"`
	Parallelism int               `json:"parallelism,omitempty"`
}

func (LimitsSpec) docs() map[string]Doc {
	return map[string]Doc{
		"timeouts": {
			Brief: "step: how long it may take, such as 10m", Comment: true, Form: FormDuration, Keys: StepNames(),
			More: "The steps are those of mig migrate --dry-run.",
		},
		"maxDowntime": {
			Brief: "the source comes up again when it was down for so long and nothing runs on the destination yet", Comment: true, Form: FormDuration,
		},
		"parallelism": {
			Brief: "how many volumes mig-mover restores at once", Default: "4",
			More: "How many Velero copies at once is for its node-agent's configuration to say.",
		},
	}
}

// StepNames are the steps of all runs, which limits.timeouts may name. A test
// of the tables keeps them equal.
func StepNames() []string {
	return []string{
		"AnnotateResources", "BackupsPurged", "DestinationCleaned", "DestinationGone", "DestinationVolumesMounted", "EnsureAnnotationsDeleted",
		"EnsureClaimsUnmarked", "EnsureDestinationClaims", "EnsureFinalRestore", "EnsureInitialBackup", "EnsureInitialBackupCurrent", "EnsureInitialBackupReplicated", "EnsureQuiesced",
		"EnsureStageBackup", "EnsureStageBackupReplicated", "EnsureStagePods", "EnsureStagePodsDeleted", "EnsureStageRestore",
		"EnsureUnquiesced", "FinalRestoreCreated", "InitialBackupCreated", "MoverReady", "Prepare", "QuiesceApplications", "RestoresDeleted",
		"StageBackupCreated", "StageMarksRemoved", "StagePodsCreated", "StagePodsDeleted", "StageRestoreCreated", "StagedClaimsRemoved", "StorageEnsured",
		"TurnGiven", "TurnTaken", "UnquiesceApplications", "VeleroQueuesFree", "VeleroWorkStopped", "VolumesVerified", "WorkloadsReady",
	}
}
