package discover

import (
	"context"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/plan"
)

// Wish is what a person asked for at plan create.
type Wish struct {
	Name       string           // of the plan; empty: after the first namespace
	Namespaces []plan.Namespace // empty: all that are not the system's
	Location   string           // a BackupStorageLocation; empty: the one that both clusters have
	UID        string           // of the plan; empty: a new one
}

// Proposal is a plan made from what the clusters hold, and what about it a
// person must look at.
type Proposal struct {
	Plan   *plan.Plan `json:"plan"`
	Claims []Row      `json:"claims"`
	Notes  []string   `json:"notes,omitempty"` // what needs a decision, one sentence each
}

// Row is one claim as mig pv discover shows it.
type Row struct {
	Claim            string   `json:"claim"`
	Volume           string   `json:"volume,omitempty"`
	Phase            string   `json:"phase"`
	Capacity         string   `json:"capacity,omitempty"`
	Used             string   `json:"used"` // a quantity, or "unknown"
	StorageClass     string   `json:"storageClass,omitempty"`
	AccessModes      []string `json:"accessModes,omitempty"`
	VolumeMode       string   `json:"volumeMode,omitempty"`
	Backend          string   `json:"backend,omitempty"`
	Supported        []string `json:"supported"`
	Action           string   `json:"action"` // empty: a person must choose
	DestinationClass string   `json:"destinationClass,omitempty"`
	Why              string   `json:"why"` // of action and class
	MountedBy        []string `json:"mountedBy"`
	State            string   `json:"state"` // planned, new, vanished
}

// States of a row beside the plan.
const (
	Planned  = "planned"  // in the plan and in the cluster
	New      = "new"      // in the cluster, not in the plan yet
	Vanished = "vanished" // in the plan, no longer in the cluster
)

// ParseNamespaces reads "shop:shop-prod,other" as it stands on the command line.
func ParseNamespaces(arg string) ([]plan.Namespace, error) { return nil, nil }

// Propose makes a plan from what both clusters hold. src and dst say in the
// plan how the clusters are reached. Errors are those of reaching the source;
// what could not be looked at on the destination is a note.
func Propose(ctx context.Context, src cluster.Source, dst cluster.Destination, w Wish) (*Proposal, error) {
	return nil, nil
}

// Refresh looks for the plan's claims again: new claims are added to a copy of
// the plan, facts are brought up to date, what the user chose stays as it is,
// and claims that vanished are pointed out, not removed.
func Refresh(ctx context.Context, src cluster.Source, dst cluster.Destination, p *plan.Plan) (*Proposal, error) {
	return nil, nil
}
