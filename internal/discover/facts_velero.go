package discover

import "time"

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
	// Busy is what Velero has not ended yet: backups on the source, restores on
	// the destination.
	Busy []Work `json:"busy,omitempty"`
	// ClassMaps are the ConfigMaps by which others change storage classes in
	// every restore of the cluster.
	ClassMaps []string `json:"classMaps,omitempty"`
	// MigControllers are the live controllers of the reference system.
	MigControllers []string `json:"migControllers,omitempty"`
}

// Work is a backup or restore that Velero has not ended yet.
type Work struct {
	Kind   string    `json:"kind"` // Backup, Restore
	Name   string    `json:"name"`
	Phase  string    `json:"phase"`
	Since  time.Time `json:"since,omitzero"`
	OfPlan string    `json:"ofPlan,omitempty"` // uid of the plan whose run made it
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

	Features    []string      `json:"features,omitempty"`    // feature flags that are on
	Uploader    string        `json:"uploader,omitempty"`    // kopia, restic; empty: not said, which is kopia
	Plugins     []string      `json:"plugins,omitempty"`     // images of its plugins
	OADP        bool          `json:"oadp,omitempty"`        // the OADP operator keeps it
	RestoreOnly bool          `json:"restoreOnly,omitempty"` // it makes no backups
	BackupTTL   time.Duration `json:"backupTTL,omitempty"`   // of backups that name none; 0: not said, which is 30 days
	Credentials bool          `json:"credentials,omitempty"` // it has the installation's own credentials
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

	Version    string `json:"version,omitempty"`
	HostPods   string `json:"hostPods,omitempty"` // the directory of the node in which it finds the pods' volumes; empty: none
	Privileged bool   `json:"privileged,omitempty"`
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
	// ValidatedEvery is how often Velero looks at it; 0: as the server was told, a minute by default.
	ValidatedEvery *time.Duration    `json:"validatedEvery,omitempty"`
	Secret         *CredentialSecret `json:"secret,omitempty"` // nil: none is named, or it could not be read
	// Authority: the location says whose certificates to trust, beside those that the system trusts.
	Authority bool `json:"authority,omitempty"`
}

// CredentialSecret is the Secret with the credentials of a location, without
// anything of what it holds.
type CredentialSecret struct {
	Name string `json:"name"`
	Key  string `json:"key"`
	Own  bool   `json:"own,omitempty"`  // the location names it; else it is the installation's
	Flaw string `json:"flaw,omitempty"` // what is wrong with it: is missing, is empty, has no aws_access_key_id
}
