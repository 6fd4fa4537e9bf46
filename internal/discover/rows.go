package discover

import (
	"context"
	"maps"
	"slices"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/plan"
)

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
	Where            string   `json:"where,omitempty"` // of a volume that is a place: nfs server:/path
	Owner            string   `json:"owner,omitempty"` // Kind/name of the workload whose it is
	Zone             string   `json:"zone,omitempty"`
	Nodes            []string `json:"nodes,omitempty"` // that its volume is tied to
	Supported        []string `json:"supported"`
	Action           string   `json:"action"` // empty: a person must choose
	DestinationClass string   `json:"destinationClass,omitempty"`
	Why              string   `json:"why"` // of action and class
	MountedBy        []string `json:"mountedBy"`
	State            string   `json:"state"` // planned, new, vanished, temporary
}

// States of a row beside the plan.
const (
	Planned  = "planned"  // in the plan and in the cluster
	New      = "new"      // in the cluster, not in the plan yet
	Vanished = "vanished" // in the plan, no longer in the cluster
	// Temporary: the claim of an ephemeral volume, which its pod makes and takes
	// with it. No plan holds it.
	Temporary = "temporary"
)

// Refresh looks for the plan's claims again: new claims are added to a copy of
// the plan, facts are brought up to date, what the user chose stays as it is,
// and claims that vanished are pointed out, not removed. Errors as of Propose.
func Refresh(ctx context.Context, src cluster.Source, dst cluster.Destination, p *plan.Plan) (*Proposal, error) {
	s, err := lookAround(ctx, src, dst, p.Spec.Namespaces)
	if err != nil {
		return nil, err
	}
	out := &Proposal{Plan: copyOf(p)}
	if _, err := out.namespaces(ctx, src, s, p.Spec.Namespaces); err != nil {
		return nil, err
	}
	if err := lookAtClaims(ctx, src, s, p.Spec.Namespaces); err != nil {
		return nil, err
	}
	out.merge(s)
	out.outside(s)
	out.gaps(s)
	return out, nil
}

// copyOf shares nothing with the plan that merge changes.
func copyOf(p *plan.Plan) *plan.Plan {
	out := *p
	out.Spec.Volumes = slices.Clone(p.Spec.Volumes)
	out.Spec.StorageClasses = make(map[string]string, len(p.Spec.StorageClasses))
	maps.Copy(out.Spec.StorageClasses, p.Spec.StorageClasses)
	return &out
}

// merge brings the plan's volumes up to date, in their order, and adds the new ones.
func (p *Proposal) merge(s *sides) {
	found := map[string]Claim{}
	for _, c := range s.source.Claims {
		found[c.Key()] = c
	}
	known := map[string]bool{}
	for i := range p.Plan.Spec.Volumes {
		v := &p.Plan.Spec.Volumes[i]
		known[v.Claim] = true
		c, ok := found[v.Claim]
		if !ok {
			p.vanished(*v)
			continue
		}
		setFacts(v, c, SuggestAction(c))
		p.class(v, c, s)
		p.row(*v, c, s, Planned)
	}
	for _, c := range s.source.Claims {
		switch {
		case known[c.Key()]:
		case c.EphemeralOf != "":
			p.temporary(c)
		default:
			p.add(c, s, New)
			p.note("claim %s is new: it was added to the plan", c.Key())
		}
	}
}

// temporary shows the claim of an ephemeral volume.
func (p *Proposal) temporary(c Claim) {
	used := plan.Unknown
	if c.UsedBytes > 0 {
		used = wholeMi(c.UsedBytes)
	}
	p.Claims = append(p.Claims, Row{
		Claim: c.Key(), Volume: c.Volume, Phase: c.Phase, Capacity: c.Capacity, Used: used, StorageClass: c.StorageClass, AccessModes: c.AccessModes,
		VolumeMode: c.VolumeMode, Backend: c.Backend, Owner: c.Owner(), Supported: []string{string(plan.Skip)}, Action: string(plan.Skip),
		Why: "temporary, not copied: pod " + c.EphemeralOf + " makes its own and takes it with it", MountedBy: mountedBy(c), State: Temporary,
	})
}

// outside shows what is not in claims, and tells of what somebody may miss.
func (p *Proposal) outside(s *sides) {
	p.Outside = s.source.Outside
	for _, o := range p.Outside {
		if o.Class == OutsideData {
			p.note("%s keeps data outside of claims (%s): %s", o.Workload, o.Says(), o.Verdict)
		}
	}
}

func (p *Proposal) vanished(v plan.Volume) {
	p.Claims = append(p.Claims, Row{
		Claim: v.Claim, Volume: v.Volume, Phase: "gone", Capacity: v.Capacity, Used: plan.Unknown, StorageClass: v.StorageClass,
		Supported: []string{}, Action: string(v.Action), Why: "no such claim on the source any more", MountedBy: []string{}, State: Vanished,
	})
	p.note("claim %s is in the plan and no longer on the source: take it out of the plan, or find out who deleted it", v.Claim)
}
