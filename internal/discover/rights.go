package discover

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Right is one thing that mig must be allowed to do on a cluster.
type Right struct {
	Verb        string `json:"verb"`
	Group       string `json:"group"` // "" is the core group
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"` // empty: cluster-wide
	Why         string `json:"why"`
	Allowed     bool   `json:"allowed"`
	// Optional: without it a check or a figure is left out, and a run works.
	Optional bool `json:"optional,omitempty"`
}

// need is a row of the table of rights.
type need struct {
	group    string
	resource string
	verbs    []string
	why      string
}

// What every run asks of the cluster as a whole, on either side.
func clusterNeeds() []need {
	return []need{
		{"", "namespaces", []string{"get", "list", "patch"}, "find the namespaces and mark what was migrated"},
		{"storage.k8s.io", "storageclasses", []string{"list"}, "map storage classes"},
		{"", "persistentvolumes", []string{"get", "list"}, "see what claims are made of"},
	}
}

// What every run asks of Velero's namespace, on either side.
func veleroNeeds() []need {
	return []need{
		{"", "configmaps", []string{"get", "list", "create", "update", "delete"}, "keep the run's record and what Velero reads with a backup"},
		{"", "secrets", []string{"get"}, "compare the repository password"},
		{"", "pods", []string{"list"}, "see that Velero runs"},
		{"", "events", []string{"list"}, "explain what is stuck"},
		{"apps", "deployments", []string{"get"}, "see that Velero runs"},
		{"apps", "daemonsets", []string{"get"}, "see that node-agent runs"},
		{"coordination.k8s.io", "leases", []string{"get", "list", "create", "update", "delete"}, "hold the run's lock"},
		{"events.k8s.io", "events", []string{"create", "patch"}, "tell what happens"},
		{"velero.io", "backupstoragelocations", []string{"get", "list"}, "see that storage is there"},
		{"velero.io", "backups", []string{"get", "list", "create", "patch"}, "back up, and know the backup on the other side"},
		{"velero.io", "podvolumebackups", []string{"get", "list", "patch"}, "see that every volume is captured, and stop what does not end"},
		{"velero.io", "downloadrequests", []string{"get", "list", "create", "delete"}, "read what Velero left out"},
	}
}

// What a run asks of the source's namespaces.
func sourceNeeds() []need {
	return []need{
		{"", "persistentvolumeclaims", []string{"get", "list", "patch"}, "find the volumes and mark what was migrated"},
		{"", "pods", []string{"get", "list", "create", "delete"}, "find writers, and mount volumes that no pod mounts"},
		{"", "events", []string{"list"}, "explain what is stuck"},
		{"events.k8s.io", "events", []string{"create", "patch"}, "tell what happens"},
		{"apps", "deployments", []string{"get", "list", "patch"}, "quiesce"},
		{"apps", "statefulsets", []string{"get", "list", "patch"}, "quiesce"},
		{"apps", "daemonsets", []string{"get", "list", "patch"}, "quiesce"},
		{"apps", "replicasets", []string{"get", "list", "patch"}, "quiesce"},
		{"apps", "controllerrevisions", []string{"list", "delete"}, "leave no trace of a quiesced DaemonSet in its history"},
		{"", "replicationcontrollers", []string{"get", "list", "patch"}, "quiesce"},
		{"batch", "cronjobs", []string{"get", "list", "patch"}, "quiesce"},
		{"batch", "jobs", []string{"get", "list"}, "find running Jobs"},
		{"autoscaling", "horizontalpodautoscalers", []string{"list"}, "find what scales workloads"},
	}
}

// What a run asks of the destination's namespaces.
func destinationNeeds() []need {
	return []need{
		{"", "persistentvolumeclaims", []string{"get", "list", "patch"}, "prove that volumes are restored, and mark them"},
		{"", "pods", []string{"get", "list", "delete"}, "see that workloads are ready, and end the pods of the volume restore"},
		{"", "events", []string{"list"}, "explain what is stuck"},
		{"events.k8s.io", "events", []string{"create", "patch"}, "tell what happens"},
		{"apps", "deployments", []string{"get", "list"}, "see that workloads are ready"},
		{"apps", "statefulsets", []string{"get", "list"}, "see that workloads are ready"},
		{"apps", "daemonsets", []string{"get", "list"}, "see that workloads are ready"},
		{"apps", "replicasets", []string{"get", "list"}, "see that workloads are ready"},
		{"", "replicationcontrollers", []string{"get", "list"}, "see that workloads are ready"},
		{"batch", "cronjobs", []string{"get", "list"}, "see that workloads are ready"},
		{"batch", "jobs", []string{"get", "list"}, "see that workloads are ready"},
		{"*", "*", []string{"list", "delete"}, "find what a restore would meet, and take it back with mig rollback"},
	}
}

// What checks and rarer commands ask of a cluster beside; without them those
// checks are left out, and those commands say what they lack.
func optionalClusterNeeds() []need {
	return []need{
		{"", "nodes", []string{"list"}, "see where volumes and pods can be"},
		{"scheduling.k8s.io", "priorityclasses", []string{"list"}, "see whether the classes that pods name are on both sides"},
		{"node.k8s.io", "runtimeclasses", []string{"list"}, "see whether the classes that pods name are on both sides"},
	}
}

// What is asked of the destination as a whole beside.
func optionalDestinationNeeds() []need {
	const takeBack = "take back with mig rollback what a restore made outside of namespaces"
	return []need{
		{"storage.k8s.io", "csistoragecapacities", []string{"list"}, "see how much room the storage has"},
		{"", "services", []string{"get", "list"}, "see who has a node port, and whether webhooks have a server"},
		{"discovery.k8s.io", "endpointslices", []string{"list"}, "see whether webhooks have a server"},
		{"admissionregistration.k8s.io", "validatingwebhookconfigurations", []string{"list"}, "see which webhooks would keep objects from being made"},
		{"admissionregistration.k8s.io", "mutatingwebhookconfigurations", []string{"list"}, "see which webhooks would keep objects from being made"},
		{"operators.coreos.com", "catalogsources", []string{"get"}, "see whether operators can be installed, with OLM"},
		{"*", "*", []string{"list"}, "find what a restore made outside of namespaces"},
		{"rbac.authorization.k8s.io", "clusterrolebindings", []string{"get", "list", "delete"}, takeBack},
		{"rbac.authorization.k8s.io", "clusterroles", []string{"delete"}, takeBack},
		{"rbac.authorization.k8s.io", "rolebindings", []string{"list"}, "see who else uses a role before it is taken back"},
		{"", "persistentvolumes", []string{"delete"}, takeBack},
	}
}

// What is asked of the source as a whole beside.
func optionalSourceNeeds() []need {
	return []need{{"apiextensions.k8s.io", "customresourcedefinitions", []string{"get"}, "tell which kinds bring their definition along"}}
}

// What is asked of the source's namespaces beside.
func optionalSourceNamespaceNeeds() []need {
	return []need{
		{"*", "*", []string{"list"}, "see what has changed since the objects were backed up, and what the destination would refuse"},
		{"", "services", []string{"list"}, "see which node ports are wanted"},
		{"", "resourcequotas", []string{"list"}, "see whether helper pods fit"},
		{"", "limitranges", []string{"list"}, "see whether helper pods fit"},
		{"apps.openshift.io", "deploymentconfigs", []string{"get", "list", "patch"}, "quiesce, on OpenShift"},
	}
}

// What is asked of the destination's namespaces beside.
func optionalNamespaceNeeds() []need {
	return []need{
		{"", "resourcequotas", []string{"list"}, "see whether claims and pods fit"},
		{"", "limitranges", []string{"list"}, "see whether pods fit"},
		{"apps.openshift.io", "deploymentconfigs", []string{"get", "list"}, "see that workloads are ready, on OpenShift"},
	}
}

// What is asked of Velero's namespace beside, on the source.
func optionalSourceVeleroNeeds() []need {
	return []need{{"velero.io", "deletebackuprequests", []string{"get", "create", "delete"}, "have backups and their data deleted with mig plan close"}}
}

// What is asked of Velero's namespace beside, on the destination.
func optionalDestinationVeleroNeeds() []need {
	const forget = "forget backups with mig plan close"
	return []need{
		{"velero.io", "backups", []string{"delete"}, forget},
		{"velero.io", "podvolumebackups", []string{"delete"}, forget},
	}
}

// eventNeeds are asked of the namespace that Events of objects without a
// namespace stand in.
func eventNeeds() []need {
	return []need{{"events.k8s.io", "events", []string{"create", "patch"}, "tell what happens to namespaces"}}
}

// withoutEvents marks the rights to tell Events: the record holds the same, so a
// run does without.
func withoutEvents(rights []Right) []Right {
	for i, r := range rights {
		if r.Group == eventsv1.GroupName {
			rights[i].Optional = true
		}
	}
	return rights
}

func optional(rights []Right) []Right {
	for i := range rights {
		rights[i].Optional = true
	}
	return rights
}

// everywhereNeeds are asked in all namespaces of either side, for they cannot be
// asked in one.
func everywhereNeeds() []need {
	return []need{{"", "pods", []string{"list"}, "find helper pods that were left behind"}}
}

// verifyRights are asked where mig-mover works; else they are optional.
func verifyRights(veleroNamespace string, verifies bool) []Right {
	const why = "read and write volumes where they are, with mig-mover"
	out := rights(veleroNamespace, []need{{"", "pods", []string{"create", "delete"}, why}})
	out = append(out, Right{Verb: "get", Resource: "pods", Subresource: "log", Namespace: veleroNamespace, Why: why})
	if !verifies {
		return optional(out)
	}
	return out
}

// sourceRights is all that a run needs on the source; verifies says that it has
// volumes compared.
func sourceRights(namespaces []string, veleroNamespace string, verifies bool) []Right {
	return withoutEvents(slices.Concat(
		verifyRights(veleroNamespace, verifies),
		rights("", clusterNeeds()),
		rights("", everywhereNeeds()),
		rights(veleroNamespace, veleroNeeds()),
		rights(veleroNamespace, []need{
			{"velero.io", "backups", []string{"delete"}, "take back a backup that Velero has not begun"},
			{"velero.io", "restores", []string{"list"}, "see what Velero still does for the plan"},
		}),
		inEach(namespaces, sourceNeeds()),
		optional(rights("", slices.Concat(optionalClusterNeeds(), optionalSourceNeeds()))),
		optional(rights(veleroNamespace, optionalSourceVeleroNeeds())),
		optional(inEach(namespaces, optionalSourceNamespaceNeeds())),
	))
}

// fillRights are asked where mig-mover restores; else they are optional.
func fillRights(namespaces []string, mover bool) []Right {
	const why = "make the volumes that mig-mover fills"
	out := inEach(namespaces, []need{{"", "persistentvolumeclaims", []string{"create"}, why}, {"", "pods", []string{"create"}, why}})
	if !mover {
		return optional(out)
	}
	return out
}

// destinationRights is all that a run needs on the destination; mover says that
// mig-mover works there.
func destinationRights(namespaces []string, veleroNamespace string, mover bool) []Right {
	return withoutEvents(slices.Concat(
		verifyRights(veleroNamespace, mover),
		fillRights(namespaces, mover),
		rights("", clusterNeeds()),
		rights("", everywhereNeeds()),
		rights("", []need{{"", "namespaces", []string{"create", "delete"}, "make the namespaces, and take them back with mig rollback"}}),
		rights(veleroNamespace, veleroNeeds()),
		rights(veleroNamespace, []need{
			{"velero.io", "podvolumebackups", []string{"create"}, "know the backup without waiting for Velero's sync"},
			{"velero.io", "restores", []string{"get", "list", "create", "patch", "delete"}, "restore"},
			{"velero.io", "podvolumerestores", []string{"get", "list", "patch"}, "see that every volume is restored, and stop what does not end"},
		}),
		inEach(namespaces, destinationNeeds()),
		optional(rights("", slices.Concat(optionalClusterNeeds(), optionalDestinationNeeds()))),
		optional(rights(veleroNamespace, optionalDestinationVeleroNeeds())),
		optional(rights(metav1.NamespaceDefault, eventNeeds())),
		optional(inEach(namespaces, optionalNamespaceNeeds())),
	))
}

func inEach(namespaces []string, needs []need) []Right {
	var out []Right
	for _, ns := range namespaces {
		out = append(out, rights(ns, needs)...)
	}
	return out
}

func rights(namespace string, needs []need) []Right {
	var out []Right
	for _, n := range needs {
		for _, verb := range n.verbs {
			out = append(out, Right{Verb: verb, Group: n.group, Resource: n.resource, Namespace: namespace, Why: n.why})
		}
	}
	return out
}

// askRights asks the cluster about each right. Whoever may do everything is
// asked once; what is allowed everywhere is not asked for each namespace.
func askRights(ctx context.Context, c client.Client, wanted []Right) ([]Right, error) {
	everything, err := isAllowed(ctx, c, Right{Verb: "*", Group: "*", Resource: "*"})
	if err != nil {
		return nil, err
	}
	if everything {
		for i := range wanted {
			wanted[i].Allowed = true
		}
		return wanted, nil
	}
	answers := &answers{c: c, known: map[Right]bool{}}
	if err := answers.ask(ctx, everywhere(wanted)); err != nil {
		return nil, err
	}
	if err := answers.ask(ctx, answers.notEverywhere(wanted)); err != nil {
		return nil, err
	}
	for i, r := range wanted {
		wanted[i].Allowed = answers.allowed(r)
	}
	return wanted, nil
}

// answers are what the cluster said about rights, by what was asked.
type answers struct {
	c     client.Client
	mu    sync.Mutex
	known map[Right]bool
}

func question(r Right) Right { r.Why, r.Allowed, r.Optional = "", false, false; return r }

func everywhere(wanted []Right) []Right {
	var out []Right
	for _, r := range wanted {
		q := question(r)
		q.Namespace = ""
		out = append(out, q)
	}
	return unique(out)
}

func (a *answers) notEverywhere(wanted []Right) []Right {
	var out []Right
	for _, r := range wanted {
		if !a.allowed(r) && r.Namespace != "" {
			out = append(out, question(r))
		}
	}
	return unique(out)
}

func unique(in []Right) []Right {
	slices.SortFunc(in, func(a, b Right) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Subresource, b.Subresource), cmp.Compare(a.Verb, b.Verb))
	})
	return slices.Compact(in)
}

func (a *answers) allowed(r Right) bool {
	q := question(r)
	if a.known[q] {
		return true
	}
	q.Namespace = ""
	return a.known[q]
}

func (a *answers) ask(ctx context.Context, questions []Right) error {
	var group errgroup.Group
	group.SetLimit(inParallel)
	for _, q := range questions {
		group.Go(func() error {
			yes, err := isAllowed(ctx, a.c, q)
			a.mu.Lock()
			defer a.mu.Unlock()
			a.known[q] = yes
			return err
		})
	}
	return group.Wait()
}

func isAllowed(ctx context.Context, c client.Client, r Right) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: r.Namespace, Verb: r.Verb, Group: r.Group, Resource: r.Resource, Subresource: r.Subresource},
	}}
	err := c.Create(ctx, review)
	return review.Status.Allowed, err
}
