package discover

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

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
	// Outside is data that is not in claims, and so in no plan.
	Outside []Outside `json:"outside,omitempty"`
	Notes   []string  `json:"notes,omitempty"` // what needs a decision, one sentence each
}

// SameClusterError is a source that is the destination, maybe under another name.
type SameClusterError struct{ Source, Destination, UID string }

func (e *SameClusterError) Error() string {
	return fmt.Sprintf("contexts %s and %s are one cluster (its kube-system has the uid %s): a migration needs two", e.Source, e.Destination, e.UID)
}

// NoNamespaceError is a namespace that the source does not have.
type NoNamespaceError struct {
	Context string
	Names   []string
	Near    []string // others that it has
}

func (e *NoNamespaceError) Error() string {
	said := fmt.Sprintf("source cluster (context %s) has no namespace %s", e.Context, strings.Join(e.Names, ", "))
	if len(e.Near) > 0 {
		said += "; it has " + few(e.Near)
	}
	return said
}

// few names the first ten and counts the rest.
func few(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// NamespaceArgError is a list of namespaces on the command line that cannot be read.
type NamespaceArgError struct{ Arg, Part, Why string }

func (e *NamespaceArgError) Error() string {
	return fmt.Sprintf("namespaces %q: %q: %s; want SOURCE or SOURCE:DESTINATION, with commas between", e.Arg, e.Part, e.Why)
}

// ParseNamespaces reads "shop:shop-prod,other" as it stands on the command
// line. Errors: *NamespaceArgError.
func ParseNamespaces(arg string) ([]plan.Namespace, error) {
	var out []plan.Namespace
	for part := range strings.SplitSeq(arg, ",") {
		part = strings.TrimSpace(part)
		source, destination, mapped := strings.Cut(part, ":")
		if why := wrongName(source); why != "" {
			return nil, &NamespaceArgError{arg, part, why}
		}
		if strings.Contains(destination, ":") {
			return nil, &NamespaceArgError{arg, part, "one colon is enough"}
		}
		if why := wrongName(destination); mapped && why != "" {
			return nil, &NamespaceArgError{arg, part, why}
		}
		out = append(out, plan.Namespace{Name: source, Destination: destination})
	}
	return out, nil
}

func wrongName(name string) string {
	if name == "" {
		return "a name is missing"
	}
	return strings.Join(plan.BadLabel(name), "; ")
}

// sides is what a proposal is made from.
type sides struct {
	source      SourceFacts
	destination Facts
}

// Propose makes a plan from what both clusters hold. Errors: *ReachError or
// *NeitherReachedError, *SameClusterError, *NoNamespaceError, *PartError where without the part no
// plan can be made. What else could not be looked at is a note.
func Propose(ctx context.Context, src cluster.Source, dst cluster.Destination, w Wish) (*Proposal, error) {
	s, err := lookAround(ctx, src, dst, w.Namespaces)
	if err != nil {
		return nil, err
	}
	p := &Proposal{Plan: &plan.Plan{APIVersion: plan.APIVersion, Kind: plan.Kind}}
	spec := &p.Plan.Spec
	spec.Source = plan.Cluster{Context: src.Access.Context, Kubeconfig: src.Access.Kubeconfig, VeleroNamespace: ownNamespace(src.VeleroNamespace)}
	spec.Destination = plan.Cluster{Context: dst.Access.Context, Kubeconfig: dst.Access.Kubeconfig, VeleroNamespace: ownNamespace(dst.VeleroNamespace)}
	if spec.Namespaces, err = p.namespaces(ctx, src, s, w.Namespaces); err != nil {
		return nil, err
	}
	if err := lookAtClaims(ctx, src, s, spec.Namespaces); err != nil {
		return nil, err
	}
	p.head(w)
	p.location(s, w.Location)
	p.volumes(s)
	p.outside(s)
	p.gaps(s)
	enabled := true
	spec.Quiesce.Enabled = &enabled
	return p, nil
}

// ownNamespace is empty where the plan need not name it.
func ownNamespace(veleroNamespace string) string {
	if veleroNamespace == plan.DefaultVeleroNamespace {
		return ""
	}
	return veleroNamespace
}

// PartError is a part of a cluster without which no plan can be made.
type PartError struct {
	Side, Context string
	Part          string
	Denied        bool
	Err           error
}

func (e *PartError) Error() string {
	return fmt.Sprintf("%s cluster (context %s): %s: %v", e.Side, e.Context, e.Part, e.Err)
}

func (e *PartError) Unwrap() error { return e.Err }

// lookAround looks at what both clusters have for any plan, and at the asked
// namespaces of the source, or at all.
func lookAround(ctx context.Context, src cluster.Source, dst cluster.Destination, asked []plan.Namespace) (*sides, error) {
	s := &sides{source: SourceFacts{Facts: facts(src.Cluster)}, destination: facts(dst.Cluster)}
	if err := reachBoth(ctx, src, dst, s); err != nil {
		return nil, err
	}
	here, there := newLook(ctx, src.Cluster), newLook(ctx, dst.Cluster)
	here.around(&s.source.Facts)
	there.around(&s.destination)
	here.part(PartNamespaces, func(ctx context.Context) (err error) {
		s.source.Namespaces, err = askedNamespaces(ctx, src, asked)
		return err
	})
	s.source.Gaps, s.destination.Gaps = here.wait(), there.wait()
	if uid := s.source.UID; uid != "" && uid == s.destination.UID {
		return nil, &SameClusterError{Source: src.Access.Context, Destination: dst.Access.Context, UID: uid}
	}
	return s, ctx.Err()
}

func reachBoth(ctx context.Context, src cluster.Source, dst cluster.Destination, s *sides) error {
	reachOne := func(side string, c *cluster.Cluster, f *Facts) error {
		version, r, err := reach(ctx, c)
		f.Version, f.Reach = version, r
		if err != nil {
			return &ReachError{Side: side, Context: c.Access.Context, Server: c.Server, Reach: r, Err: err}
		}
		return nil
	}
	answer := make(chan error, 1)
	go func() { answer <- reachOne("destination", dst.Cluster, &s.destination) }()
	here := reachOne("source", src.Cluster, &s.source.Facts)
	switch there := <-answer; {
	case here != nil && there != nil:
		return &NeitherReachedError{Source: here, Destination: there}
	case here != nil:
		return here
	default:
		return there
	}
}

// askedNamespaces gives those of the asked namespaces that there are, or all where
// none is asked for.
func askedNamespaces(ctx context.Context, src cluster.Source, asked []plan.Namespace) ([]Namespace, error) {
	if len(asked) == 0 {
		return listNamespaces(ctx, src.Client)
	}
	return getNamespaces(ctx, src.Client, namesOf(asked))
}

func namesOf(namespaces []plan.Namespace) []string {
	return each(namespaces, func(n *plan.Namespace) string { return n.Name })
}

// around asks what any plan needs to know.
func (l *look) around(f *Facts) {
	l.part(PartIdentity, func(ctx context.Context) (err error) { f.UID, err = l.c.UID(ctx); return err })
	l.part(PartStorageClasses, func(ctx context.Context) (err error) {
		f.StorageClasses, err = listStorageClasses(ctx, l.c.Client)
		return err
	})
	l.part(PartLocations, func(ctx context.Context) (err error) {
		f.Velero.Locations, err = listLocations(ctx, l.c.Client, l.c.VeleroNamespace)
		return err
	})
}

// lookAtClaims lists the applications of the namespaces. Claims that cannot be
// listed are an error: a plan without them would leave data behind.
func lookAtClaims(ctx context.Context, src cluster.Source, s *sides, namespaces []plan.Namespace) error {
	l := newLook(ctx, src.Cluster)
	apps := l.mounters(namesOf(namespaces))
	claimsErr := l.claims(ctx, apps, namesOf(namespaces))
	s.source.Gaps = append(s.source.Gaps, l.wait()...)
	if claimsErr != nil {
		return &PartError{
			Side: "source", Context: src.Access.Context, Part: PartClaims,
			Denied: cluster.IsDenied(claimsErr), Err: claimsErr,
		}
	}
	apps.into(&s.source)
	l = newLook(ctx, src.Cluster)
	l.optional(PartUsage, func(ctx context.Context) error { return lookAtUsage(ctx, src.Cluster, &s.source) })
	s.source.Gaps = append(s.source.Gaps, l.wait()...)
	return ctx.Err()
}

func (p *Proposal) note(format string, args ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}

// head names the plan.
func (p *Proposal) head(w Wish) {
	p.Plan.Metadata = plan.Metadata{Name: w.Name, UID: w.UID}
	if w.Name == "" && len(p.Plan.Spec.Namespaces) > 0 {
		p.Plan.Metadata.Name = p.Plan.Spec.Namespaces[0].Name
	}
	if w.UID == "" {
		p.Plan.Metadata.UID = string(uuid.NewUUID())
	}
}

// namespaces are those asked for, which must be there, or all that are not the
// system's.
func (p *Proposal) namespaces(ctx context.Context, src cluster.Source, s *sides, asked []plan.Namespace) ([]plan.Namespace, error) {
	if len(asked) > 0 && s.source.HasGap(PartNamespaces) {
		p.note("the source's namespaces cannot be listed, so it was not checked that they exist")
		return asked, nil
	}
	if len(asked) == 0 {
		return p.everyNamespace(ctx, src, s)
	}
	var missing []string
	for _, n := range asked {
		found, ok := s.source.Namespace(n.Name)
		switch {
		case !ok:
			missing = append(missing, n.Name)
		case found.Phase == "Terminating":
			p.note("namespace %s is being deleted on the source", n.Name)
		}
	}
	if len(missing) > 0 {
		known, _ := listNamespaces(ctx, src.Client) // for the message alone
		return nil, &NoNamespaceError{Context: src.Access.Context, Names: missing, Near: ownNames(known, src.VeleroNamespace)}
	}
	return asked, nil
}

func ownNames(namespaces []Namespace, veleroNamespace string) []string {
	var out []string
	for _, n := range namespaces {
		if !plan.IsSystemNamespace(n.Name) && n.Name != veleroNamespace {
			out = append(out, n.Name)
		}
	}
	return out
}

func (p *Proposal) everyNamespace(ctx context.Context, src cluster.Source, s *sides) ([]plan.Namespace, error) {
	for _, g := range s.source.Gaps {
		if g.Part == PartNamespaces {
			return nil, &PartError{Side: "source", Context: src.Access.Context, Part: g.Part, Denied: g.Denied, Err: fmt.Errorf("%s; name those to migrate with --namespaces", g.Error)}
		}
	}
	var out []plan.Namespace
	for _, name := range ownNames(s.source.Namespaces, src.VeleroNamespace) {
		n, _ := s.source.Namespace(name)
		switch {
		case n.Phase == "Terminating":
			p.note("namespace %s is being deleted on the source and was left out", name)
		case name == metav1.NamespaceDefault && p.isEmpty(ctx, src, name):
		default:
			out = append(out, plan.Namespace{Name: name})
		}
	}
	if len(out) == 0 {
		return nil, &PartError{Side: "source", Context: src.Access.Context, Part: PartNamespaces, Err: errNoNamespaces}
	}
	return out, nil
}

var errNoNamespaces = fmt.Errorf("there are none but the system's")

// isEmpty says whether a namespace holds nothing but what the cluster made.
// Where that cannot be told it does not count as empty.
func (p *Proposal) isEmpty(ctx context.Context, src cluster.Source, name string) bool {
	found, err := objects(ctx, src.Cluster, []string{name})
	return err == nil && len(found) == 0
}

// location takes the storage location asked for, or one that both clusters have
// over the same bucket.
func (p *Proposal) location(s *sides, asked string) {
	here, there := s.source.Velero, s.destination.Velero
	name := asked
	if name == "" {
		name = commonLocation(here.Locations, there.Locations)
	}
	if name == "" {
		name = "default"
	}
	p.Plan.Spec.Storage.Location = name
	for _, side := range []struct {
		what  string
		facts Facts
	}{{"source", s.source.Facts}, {"destination", s.destination}} {
		if _, ok := side.facts.Velero.Location(name); !ok && !side.facts.HasGap(PartLocations) {
			p.note("the %s (context %s) has no BackupStorageLocation %s in namespace %s: Velero must be installed there and share one with the other cluster",
				side.what, side.facts.Context, name, side.facts.Velero.Namespace)
		}
	}
}

func commonLocation(here, there []Location) string {
	best := ""
	for _, h := range here {
		for _, t := range there {
			if h.Name == t.Name && h.Bucket == t.Bucket && h.Prefix == t.Prefix && (best == "" || h.Default) {
				best = h.Name
			}
		}
	}
	return best
}

// volumes puts every claim into the plan, with what suggests itself.
func (p *Proposal) volumes(s *sides) {
	for _, c := range s.source.Claims {
		if c.EphemeralOf != "" {
			p.temporary(c)
			continue
		}
		p.add(c, s, Planned)
	}
}

// add puts a claim into the plan, with what suggests itself.
func (p *Proposal) add(c Claim, s *sides, state string) {
	choice := SuggestAction(c)
	v := plan.Volume{Claim: c.Key(), Action: choice.Action}
	if v.Action == plan.Copy {
		v.CopyMethod = plan.CopyFilesystem
	}
	setFacts(&v, c, choice)
	p.class(&v, c, s)
	p.Plan.Spec.Volumes = append(p.Plan.Spec.Volumes, v)
	p.row(v, c, s, state)
}

// setFacts writes into a volume of the plan what was found.
func setFacts(v *plan.Volume, c Claim, choice ActionChoice) {
	v.Volume, v.Capacity, v.StorageClass = c.Volume, c.Capacity, c.StorageClass
	v.AccessModes, v.VolumeMode, v.Supported = c.AccessModes, c.VolumeMode, choice.Supported
	if c.UsedBytes > 0 {
		v.Used = wholeMi(c.UsedBytes)
	}
	if v.Used == "" {
		v.Used = plan.Unknown
	}
}

// wholeMi is a number of bytes as a quantity in whole Mi, so that a plan made
// again does not differ by what a program wrote in between.
func wholeMi(n int64) string {
	const mi = 1 << 20
	return resource.NewQuantity((n+mi-1)/mi*mi, resource.BinarySI).String()
}

// class maps a volume's class in the plan, once for all volumes of that class.
func (p *Proposal) class(v *plan.Volume, c Claim, s *sides) {
	spec := &p.Plan.Spec
	if v.Action == plan.Skip || v.Destination.StorageClass != "" {
		return
	}
	if s.destination.HasGap(PartStorageClasses) {
		return
	}
	ofClass := SuggestClass(v.StorageClass, s.source.StorageClasses, s.destination.StorageClasses)
	choice := SuggestClassFor(c, s.source.StorageClasses, s.destination.StorageClasses)
	mapped, isMapped := spec.StorageClasses[v.StorageClass]
	switch {
	case choice.Destination == "":
	case isMapped && (mapped != ofClass.Destination || choice == ofClass): // a person's choice, or it fits
	case v.StorageClass == "", choice != ofClass:
		v.Destination.StorageClass = choice.Destination
	default:
		if spec.StorageClasses == nil {
			spec.StorageClasses = map[string]string{}
		}
		spec.StorageClasses[v.StorageClass] = choice.Destination
	}
}

// row is a volume of the plan as it is shown, and the notes that it needs.
func (p *Proposal) row(v plan.Volume, c Claim, s *sides, state string) {
	choice, class := SuggestAction(c), SuggestClassFor(c, s.source.StorageClasses, s.destination.StorageClasses)
	r := Row{
		Claim: v.Claim, Volume: c.Volume, Phase: c.Phase, Capacity: c.Capacity, Used: v.Used, StorageClass: c.StorageClass,
		AccessModes: c.AccessModes, VolumeMode: c.VolumeMode, Backend: c.Backend, Action: string(v.Action),
		Where: c.Where, Owner: c.Owner(), Zone: c.Zone, Nodes: c.TiedTo,
		Supported: each(choice.Supported, func(a *plan.Action) string { return string(*a) }),
		MountedBy: mountedBy(c), State: state, Why: choice.Why,
	}
	if v.Action != choice.Action {
		r.Why = "chosen in the plan; " + choice.Why
	}
	if v.Action != plan.Skip {
		r.DestinationClass = p.destinationClass(v)
		r.Why += "; class: " + whyClass(r.DestinationClass, class)
		r.Why += placed(c, r.DestinationClass, s.destination)
	}
	p.Claims = append(p.Claims, r)
	switch {
	case v.Action == "":
		p.note("choose an action for claim %s: %s", v.Claim, choice.Why)
	case v.Action == plan.Copy && r.DestinationClass == "" && v.StorageClass != "":
		p.note("choose a storage class of the destination for %s: %s", v.StorageClass, class.Why)
	}
}

// placed says what is odd about a volume's place, and that it does not matter.
func placed(c Claim, class string, destination Facts) string {
	said := ""
	switch {
	case len(c.TiedTo) > 0:
		said += "; its volume is tied to node " + strings.Join(c.TiedTo, ", ") + ": the copy is a new one"
	case c.Static && c.Where != "":
		said += "; made by hand (" + c.Where + "): the copy is a new volume"
	}
	if to, ok := destination.StorageClass(class); ok && to.BindingMode == "WaitForFirstConsumer" && len(c.Running()) == 0 {
		said += "; unused, and " + class + " waits for a first consumer: a helper pod is it"
	}
	return said
}

func whyClass(chosen string, suggested ClassChoice) string {
	if chosen != suggested.Destination {
		return "chosen in the plan"
	}
	return suggested.Why
}

func (p *Proposal) destinationClass(v plan.Volume) string {
	if v.Destination.StorageClass != "" {
		return v.Destination.StorageClass
	}
	return p.Plan.Spec.StorageClasses[v.StorageClass]
}

// gaps tells what was not looked at, and that the plan is made without it.
func (p *Proposal) gaps(s *sides) {
	for _, side := range []struct {
		what  string
		facts Facts
	}{{"source", s.source.Facts}, {"destination", s.destination}} {
		for _, g := range side.facts.Gaps {
			p.note("the %s's %s could not be looked at: %s", side.what, g.Part, g.Error)
		}
	}
}
