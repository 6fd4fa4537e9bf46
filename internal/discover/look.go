package discover

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/progress"
)

// The parts of a look. A Gap names one of them.
const (
	PartIdentity       = "identity" // the uid of kube-system
	PartNamespaces     = "namespaces"
	PartStorageClasses = "storage classes"
	PartClaims         = "claims"
	PartVolumes        = "volumes"
	PartPods           = "pods"
	PartWorkloads      = "workloads"
	PartVelero         = "Velero"
	PartNodeAgent      = "node-agent"
	PartLocations      = "storage locations"
	PartRepository     = "repository password"
	PartRights         = "rights"
	PartObjects        = "objects"
	PartAPIs           = "APIs" // which kinds there are
	PartNodes          = "nodes"
	PartPlans          = "records of plans"
	PartBusy           = "what Velero is busy with"
	PartClassMaps      = "storage class maps of Velero"
	PartMigController  = "mig-controller"
	PartCredentials    = "credentials of the storage locations"
	PartFreeVolumes    = "free volumes"
	PartQuotas         = "quotas"
	PartCapacity       = "storage capacity"
	PartUsage          = "used bytes"
	PartRefusals       = "dry runs of the namespaces"
	PartLimitRanges    = "limit ranges"
	PartPriorities     = "priority classes"
	PartRuntimes       = "runtime classes"
	PartServices       = "services"
	PartWebhooks       = "webhooks"
	PartUnserved       = "objects of kinds that the other side serves otherwise"
	PartSubscriptions  = "operator subscriptions"
)

// inParallel is how many questions one cluster is asked at once.
const inParallel = 8

// Look looks at both clusters at once for a plan, and then, where a
// destination namespace exists already, for what the plan's objects would meet
// there. A part that cannot be looked at is a Gap in the facts. The only error
// is ctx's.
func Look(ctx context.Context, src cluster.Source, dst cluster.Destination, v plan.Valid) (SourceFacts, DestinationFacts, error) {
	var s SourceFacts
	var d DestinationFacts
	var both errgroup.Group
	both.Go(func() (err error) { s, err = LookSource(ctx, src, v); return err })
	both.Go(func() (err error) { d, err = LookDestination(ctx, dst, v); return err })
	if err := both.Wait(); err != nil {
		return s, d, err
	}
	lookAtMet(ctx, src, &s, d, v)
	lookAtRefusals(ctx, dst, s, &d, v)
	lookAtNeeds(ctx, src, dst, &s, &d, v)
	return s, d, ctx.Err()
}

// lookAtMet lists the source's objects of those namespaces whose destination
// holds something already.
func lookAtMet(ctx context.Context, src cluster.Source, s *SourceFacts, d DestinationFacts, v plan.Valid) {
	var namespaces []string
	for _, ns := range v.SourceNamespaces() {
		to := v.DestinationNamespace(ns)
		if slices.ContainsFunc(d.Objects, func(o Object) bool { return o.Namespace == to }) {
			namespaces = append(namespaces, ns)
		}
	}
	if s.Reach != Reached || len(namespaces) == 0 {
		return
	}
	l := newLook(ctx, src.Cluster)
	l.part(PartObjects, func(ctx context.Context) (err error) {
		s.Objects, err = objects(ctx, src.Cluster, namespaces)
		return err
	})
	s.Gaps = append(s.Gaps, l.wait()...)
}

// LookSource looks at the source for a plan. The only error is ctx's.
func LookSource(ctx context.Context, src cluster.Source, v plan.Valid) (SourceFacts, error) {
	s := SourceFacts{Facts: facts(src.Cluster)}
	if !s.reach(ctx, src.Cluster) {
		return s, ctx.Err()
	}
	namespaces := v.SourceNamespaces()
	l := newLook(ctx, src.Cluster)
	l.common(&s.Facts, namespaces)
	l.part(PartRights, func(ctx context.Context) (err error) {
		s.Rights, err = askRights(ctx, src.Client, sourceRights(namespaces, src.VeleroNamespace, len(v.Verified()) > 0))
		return err
	})
	l.part(PartBusy, func(ctx context.Context) (err error) {
		s.Velero.Busy, err = unfinishedBackups(ctx, src.Client, src.VeleroNamespace)
		return err
	})
	l.optional(PartServices, func(ctx context.Context) (err error) {
		s.Services, err = servicesWithPorts(ctx, src.Client, namespaces)
		return err
	})
	l.limits(&s.Facts, namespaces)
	apps := l.applications(namespaces)
	s.Gaps = l.wait()
	apps.into(&s)
	l = newLook(ctx, src.Cluster)
	l.second(&s.Facts)
	l.optional(PartUsage, func(ctx context.Context) error { return lookAtUsage(ctx, src.Cluster, &s) })
	s.Gaps = append(s.Gaps, l.wait()...)
	return s, ctx.Err()
}

// LookDestination looks at the destination for a plan. The only error is ctx's.
func LookDestination(ctx context.Context, dst cluster.Destination, v plan.Valid) (DestinationFacts, error) {
	d := DestinationFacts{Facts: facts(dst.Cluster)}
	if !d.reach(ctx, dst.Cluster) {
		return d, ctx.Err()
	}
	var namespaces []string
	for _, ns := range v.SourceNamespaces() {
		namespaces = append(namespaces, v.DestinationNamespace(ns))
	}
	l := newLook(ctx, dst.Cluster)
	l.common(&d.Facts, namespaces)
	l.part(PartRights, func(ctx context.Context) (err error) {
		d.Rights, err = askRights(ctx, dst.Client, destinationRights(namespaces, dst.VeleroNamespace, v.WithMover() || len(v.Verified()) > 0))
		return err
	})
	l.part(PartObjects, func(ctx context.Context) (err error) {
		d.Objects, err = existingObjects(ctx, dst.Cluster, namespaces)
		return err
	})
	l.destination(&d, namespaces)
	d.Gaps = l.wait()
	l = newLook(ctx, dst.Cluster)
	l.second(&d.Facts)
	d.Gaps = append(d.Gaps, l.wait()...)
	return d, ctx.Err()
}

// destination asks what only the destination is asked.
func (l *look) destination(d *DestinationFacts, namespaces []string) {
	c := l.c.Client
	l.part(PartBusy, func(ctx context.Context) (err error) {
		d.Velero.Busy, err = unfinishedRestores(ctx, c, l.c.VeleroNamespace)
		return err
	})
	l.optional(PartFreeVolumes, func(ctx context.Context) (err error) { d.FreeVolumes, err = listFreeVolumes(ctx, c); return err })
	l.limits(&d.Facts, namespaces)
	l.optional(PartCapacity, func(ctx context.Context) (err error) { d.Capacity, err = listCapacity(ctx, c); return err })
}

// limits asks what the namespaces let pods and claims have.
func (l *look) limits(f *Facts, namespaces []string) {
	c := l.c.Client
	l.optional(PartQuotas, func(ctx context.Context) (err error) { f.Quotas, err = listQuotas(ctx, c, namespaces); return err })
	l.optional(PartLimitRanges, func(ctx context.Context) (err error) {
		f.LimitRanges, err = listLimitRanges(ctx, c, namespaces)
		return err
	})
}

// second asks what can be asked only when the rest is known.
func (l *look) second(f *Facts) {
	l.part(PartCredentials, func(ctx context.Context) error { return lookAtCredentials(ctx, l.c.Client, &f.Velero) })
}

func facts(c *cluster.Cluster) Facts {
	return Facts{Context: c.Access.Context, Server: c.Server, Velero: Velero{Namespace: c.VeleroNamespace}}
}

// reach notes how far the cluster lets itself be reached.
func (f *Facts) reach(ctx context.Context, c *cluster.Cluster) bool {
	version, r, err := reach(ctx, c)
	f.Version, f.Reach = version, r
	if err != nil {
		f.Error = progress.Redact(cluster.Plain(err))
	}
	if r == Reached {
		f.Access = greet(ctx, c)
	}
	return r == Reached
}

// look asks one cluster several things at once and gathers what could not be
// answered.
type look struct {
	ctx   context.Context //nolint:containedctx // of one look, which ends before the call that made it
	c     *cluster.Cluster
	group errgroup.Group

	mu   sync.Mutex
	gaps []Gap
}

func newLook(ctx context.Context, c *cluster.Cluster) *look {
	l := &look{ctx: ctx, c: c}
	l.group.SetLimit(inParallel)
	return l
}

// part asks one thing beside the others. Each part fills a place of its own.
func (l *look) part(name string, ask func(context.Context) error) {
	l.ask(Gap{Part: name}, ask)
}

// optional asks one thing without which some checks are left out.
func (l *look) optional(name string, ask func(context.Context) error) {
	l.ask(Gap{Part: name, Optional: true}, ask)
}

func (l *look) ask(gap Gap, ask func(context.Context) error) {
	l.group.Go(func() error {
		err := ask(l.ctx)
		if err == nil {
			return nil
		}
		gap.Denied, gap.Error, gap.Objects = cluster.IsDenied(err), inWords(err), DownAPIs(err)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.gaps = append(l.gaps, gap)
		return nil
	})
}

// inWords is an error's text for a person. What client-go says of an answer
// that is a page, and not Kubernetes', has no type of its own.
func inWords(err error) string {
	said := progress.Redact(cluster.Plain(err))
	if rest, ok := strings.CutPrefix(said, "serializer for "); ok {
		return "the answer is not Kubernetes', but " + strings.TrimSuffix(rest, " doesn't exist") + ": something between us and the cluster answered"
	}
	return said
}

// wait ends the look; the gaps come in the order of their names, whoever was first.
func (l *look) wait() []Gap {
	_ = l.group.Wait() // parts give no errors, but gaps
	slices.SortFunc(l.gaps, func(a, b Gap) int {
		return cmp.Or(cmp.Compare(a.Part, b.Part), cmp.Compare(a.Error, b.Error))
	})
	return l.gaps
}

// common asks what is of interest on either side.
func (l *look) common(f *Facts, namespaces []string) {
	l.part(PartIdentity, func(ctx context.Context) (err error) { f.UID, err = l.c.UID(ctx); return err })
	l.part(PartNamespaces, func(ctx context.Context) (err error) {
		f.Namespaces, err = getNamespaces(ctx, l.c.Client, namespaces)
		return err
	})
	l.part(PartStorageClasses, func(ctx context.Context) (err error) {
		f.StorageClasses, err = listStorageClasses(ctx, l.c.Client)
		return err
	})
	l.part(PartAPIs, func(context.Context) (err error) { f.Kinds, f.OpenShift, err = lookAtAPIs(l.c.Discovery); return err })
	l.optional(PartNodes, func(ctx context.Context) (err error) { f.Nodes, err = listNodes(ctx, l.c.Client); return err })
	l.part(PartPlans, func(ctx context.Context) (err error) {
		f.Plans, err = listPlans(ctx, l.c.Client, l.c.VeleroNamespace)
		return err
	})
	l.velero(&f.Velero)
}

// getNamespaces gives those of the named namespaces that exist.
func getNamespaces(ctx context.Context, c client.Client, names []string) ([]Namespace, error) {
	if len(names) > fewNamespaces {
		found, err := listNamespaces(ctx, c)
		return inOrder(found, names, func(n Namespace) string { return n.Name }), err
	}
	found, err := getEach(ctx, c, names, func() *corev1.Namespace { return &corev1.Namespace{} })
	return each(found, func(ns **corev1.Namespace) Namespace { return namespaceOf(*ns) }), err
}

func listNamespaces(ctx context.Context, c client.Client) ([]Namespace, error) {
	return all(ctx, func(ctx context.Context, opts ...client.ListOption) ([]Namespace, metav1.ListMeta, error) {
		var list corev1.NamespaceList
		err := c.List(ctx, &list, opts...)
		return each(list.Items, namespaceOf), list.ListMeta, err
	})
}

func namespaceOf(ns *corev1.Namespace) Namespace {
	out := Namespace{Name: ns.Name, Phase: string(ns.Status.Phase), Labels: ns.Labels, Annotations: ns.Annotations}
	if ns.DeletionTimestamp == nil {
		return out
	}
	out.Since = ns.DeletionTimestamp.UTC()
	for _, c := range ns.Status.Conditions {
		if c.Status == corev1.ConditionTrue && c.Message != "" {
			out.HeldBy = append(out.HeldBy, progress.Redact(c.Message))
		}
	}
	return out
}

func listStorageClasses(ctx context.Context, c client.Client) ([]StorageClass, error) {
	return all(ctx, func(ctx context.Context, opts ...client.ListOption) ([]StorageClass, metav1.ListMeta, error) {
		var list storagev1.StorageClassList
		err := c.List(ctx, &list, opts...)
		return each(list.Items, storageClassOf), list.ListMeta, err
	})
}

func storageClassOf(sc *storagev1.StorageClass) StorageClass {
	out := StorageClass{
		Name: sc.Name, Provisioner: sc.Provisioner, BindingMode: string(storagev1.VolumeBindingImmediate),
		Default: sc.Annotations["storageclass.kubernetes.io/is-default-class"] == "true",
	}
	if sc.VolumeBindingMode != nil {
		out.BindingMode = string(*sc.VolumeBindingMode)
	}
	if sc.AllowVolumeExpansion != nil {
		out.Expandable = *sc.AllowVolumeExpansion
	}
	if sc.ReclaimPolicy != nil {
		out.Reclaim = string(*sc.ReclaimPolicy)
	}
	for _, term := range sc.AllowedTopologies {
		want := map[string][]string{}
		for _, e := range term.MatchLabelExpressions {
			want[e.Key] = e.Values
		}
		out.Topologies = append(out.Topologies, want)
	}
	return out
}

// each turns the items of a list into the values that are kept of them.
func each[From, To any](items []From, turn func(*From) To) []To {
	out := make([]To, 0, len(items))
	for i := range items {
		out = append(out, turn(&items[i]))
	}
	return out
}
