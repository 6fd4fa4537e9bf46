package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// QuiescedKinds are the kinds of workload that a cutover stops, and so those
// that spec.quiesce.except may name.
func QuiescedKinds() []string {
	return []string{"CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"}
}

// Validate checks what must be true of a plan whatever the clusters hold, and
// tells everything that is wrong, in the order of the file. An action that is
// not chosen yet is no mistake in the plan: preflight asks for it. Without
// problems it gives the plan back with its defaults filled in.
func (p *Plan) Validate() (Valid, []Problem) {
	c := &checker{plan: p}
	for _, check := range []func(){c.head, c.clusters, c.namespaces, c.volumes, c.storageClasses, c.mover, c.quiesce, c.accept, c.limits} {
		check()
	}
	if len(c.problems) > 0 {
		sortProblems(c.problems)
		return Valid{}, c.problems
	}
	return Valid{plan: p.withDefaults()}, nil
}

// Position is where a field stands in the file that the plan was read from.
func (p *Plan) Position(field string) Position { return p.at.of(field) }

// withDefaults is a copy of the plan that shares nothing with it that is changed.
func (p *Plan) withDefaults() Plan {
	out := *p
	for _, c := range []*Cluster{&out.Spec.Source, &out.Spec.Destination} {
		if c.VeleroNamespace == "" {
			c.VeleroNamespace = DefaultVeleroNamespace
		}
	}
	out.Spec.Namespaces = slices.Clone(p.Spec.Namespaces)
	for i, n := range out.Spec.Namespaces {
		if n.Destination == "" {
			out.Spec.Namespaces[i].Destination = n.Name
		}
	}
	out.Spec.Volumes = slices.Clone(p.Spec.Volumes)
	for i, v := range out.Spec.Volumes {
		if v.Action == Copy && v.CopyMethod == "" {
			out.Spec.Volumes[i].CopyMethod = CopyFilesystem
		}
	}
	if out.Spec.Quiesce.Enabled == nil {
		enabled := true
		out.Spec.Quiesce.Enabled = &enabled
	}
	return out
}

// checker gathers problems.
type checker struct {
	plan     *Plan
	problems []Problem
}

func (c *checker) problem(field, format string, args ...any) {
	c.problems = append(c.problems, Problem{Field: field, Pos: c.plan.at.of(field), Message: fmt.Sprintf(format, args...)})
}

// want tells what a text breaks of its form; optional allows none.
func (c *checker) want(field, value string, form Form) {
	if value == "" {
		c.problem(field, "is missing")
		return
	}
	c.optional(field, value, form)
}

func (c *checker) optional(field, value string, form Form) {
	if value == "" {
		return
	}
	if broken := form.broken(value); len(broken) > 0 {
		c.problem(field, "%q: %s", short(value), strings.Join(broken, "; "))
	}
}

func (c *checker) head() {
	p := c.plan
	if p.APIVersion != APIVersion {
		c.problem("apiVersion", "want %s, got %q", APIVersion, short(p.APIVersion))
	}
	if p.Kind != Kind {
		c.problem("kind", "want %s, got %q", Kind, short(p.Kind))
	}
	c.want("metadata.name", p.Metadata.Name, FormName)
	c.want("metadata.uid", p.Metadata.UID, FormUID)
}

func (c *checker) clusters() {
	s := c.plan.Spec
	for _, side := range []struct {
		field   string
		cluster Cluster
	}{{"spec.source", s.Source}, {"spec.destination", s.Destination}} {
		if strings.TrimSpace(side.cluster.Context) == "" {
			c.problem(side.field+".context", "is missing: the name of a kubeconfig context")
		}
		if strings.HasPrefix(side.cluster.Kubeconfig, "~") {
			c.problem(side.field+".kubeconfig", "%s: a shell expands ~, a plan file does not; write the path out", side.cluster.Kubeconfig)
		}
		c.optional(side.field+".veleroNamespace", side.cluster.VeleroNamespace, FormLabel)
	}
	if s.Source.Context != "" && s.Source.Context == s.Destination.Context && s.Source.Kubeconfig == s.Destination.Kubeconfig {
		c.problem("spec.destination.context", "is the source's too (%s): a migration needs two clusters", s.Source.Context)
	}
	c.want("spec.storage.location", s.Storage.Location, FormName)
}

func (c *checker) namespaces() {
	spec := c.plan.Spec
	if len(spec.Namespaces) == 0 {
		c.problem("spec.namespaces", "is empty: name at least one namespace")
	}
	sources, destinations := map[string]int{}, map[string]int{}
	for i, n := range spec.Namespaces {
		field := fmt.Sprintf("spec.namespaces[%d]", i)
		c.want(field+".name", n.Name, FormLabel)
		c.optional(field+".destination", n.Destination, FormLabel)
		c.system(field+".name", n.Name, spec.Source)
		c.system(field+".destination", orElse(n.Destination, n.Name), spec.Destination)
		if first, ok := sources[n.Name]; ok {
			c.problem(field+".name", "namespace %s is there twice; the first is spec.namespaces[%d]", n.Name, first)
			continue
		}
		sources[n.Name] = i
		destination := orElse(n.Destination, n.Name)
		if first, ok := destinations[destination]; ok {
			c.problem(field+".destination", "%s and %s would both become %s on the destination", spec.Namespaces[first].Name, n.Name, destination)
			continue
		}
		destinations[destination] = i
	}
}

// system refuses the namespaces that a cluster itself lives in, and Velero's:
// quiescing or rolling them back would break the cluster.
func (c *checker) system(field, name string, on Cluster) {
	if IsSystemNamespace(name) || name == orElse(on.VeleroNamespace, DefaultVeleroNamespace) {
		c.problem(field, "%s belongs to the cluster itself or to Velero and is not migrated", name)
	}
}

// IsSystemNamespace says of a namespace's name whether it is the cluster's own.
func IsSystemNamespace(name string) bool {
	return strings.HasPrefix(name, "kube-") || name == "openshift" || strings.HasPrefix(name, "openshift-")
}

func (c *checker) volumes() {
	seen := map[string]int{}
	for i, v := range c.plan.Spec.Volumes {
		field := fmt.Sprintf("spec.volumes[%d]", i)
		c.claim(field, v.Claim)
		if first, ok := seen[v.Claim]; ok {
			c.problem(field+".claim", "claim %s is there twice; the first is spec.volumes[%d]", v.Claim, first)
		}
		seen[v.Claim] = i
		c.choice(field, v)
		c.facts(field, v)
	}
}

func (c *checker) claim(field, claim string) {
	namespace, name, ok := strings.Cut(claim, "/")
	switch {
	case claim == "":
		c.problem(field+".claim", "is missing: want NAMESPACE/NAME")
	case !ok || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0:
		c.problem(field+".claim", "%q: want NAMESPACE/NAME of a claim on the source", short(claim))
	case !slices.ContainsFunc(c.plan.Spec.Namespaces, func(n Namespace) bool { return n.Name == namespace }):
		c.problem(field+".claim", "claim %s: its namespace is not in spec.namespaces", claim)
	}
}

func (c *checker) choice(field string, v Volume) {
	switch v.Action {
	case Copy, Skip, "":
	case Move:
		c.problem(field+".action", "move is not built yet; use copy or skip")
	default:
		c.problem(field+".action", "%q: want copy or skip", short(string(v.Action)))
	}
	switch v.CopyMethod {
	case "", CopyFilesystem:
	case "snapshot", "block":
		c.problem(field+".copyMethod", "%s is not built yet; use %s", v.CopyMethod, CopyFilesystem)
	default:
		c.problem(field+".copyMethod", "%q: want %s", short(v.CopyMethod), CopyFilesystem)
	}
	c.optional(field+".destination.storageClass", v.Destination.StorageClass, FormName)
	c.accessModes(field+".destination.accessModes", v.Destination.AccessModes)
	c.optional(field+".destination.size", v.Destination.Size, FormQuantity)
	if q, err := resource.ParseQuantity(v.Destination.Size); err == nil && q.Sign() >= 0 && q.Cmp(*resource.NewQuantity(1, resource.BinarySI)) < 0 {
		c.problem(field+".destination.size", "%q: want a size such as 10Gi, a byte at least", short(v.Destination.Size))
	}
	if v.Verify && c.plan.Spec.HelperImage == "" {
		c.problem(field+".verify", "needs spec.helperImage, the image of mig-mover: it reads the volume on both sides")
	}
}

func (c *checker) facts(field string, v Volume) {
	c.optional(field+".capacity", v.Capacity, FormQuantity)
	if v.Used != Unknown {
		c.optional(field+".used", v.Used, FormQuantity)
	}
	c.optional(field+".storageClass", v.StorageClass, FormName)
	c.accessModes(field+".accessModes", v.AccessModes)
	if !slices.Contains([]string{"", "Filesystem", "Block"}, v.VolumeMode) {
		c.problem(field+".volumeMode", "%q: want Filesystem or Block", short(v.VolumeMode))
	}
	for i, a := range v.Supported {
		if !slices.Contains([]Action{Copy, Move, Skip}, a) {
			c.problem(fmt.Sprintf("%s.supported[%d]", field, i), "%q: want copy, move or skip", short(string(a)))
		}
	}
}

func (c *checker) accessModes(field string, modes []string) {
	known := AccessModes()
	for i, m := range modes {
		if !slices.Contains(known, m) {
			c.problem(fmt.Sprintf("%s[%d]", field, i), "%q: want one of %s", short(m), strings.Join(known, ", "))
		} else if slices.Index(modes, m) < i {
			c.problem(fmt.Sprintf("%s[%d]", field, i), "%s is there twice", m)
		}
	}
}

func (c *checker) storageClasses() {
	for _, from := range sortedKeys(c.plan.Spec.StorageClasses) {
		field := fmt.Sprintf("spec.storageClasses[%s]", from)
		if from == "" {
			c.problem(field, "a class without a name; for claims that name no class write destination: {storageClass: …} in spec.volumes")
		}
		c.optional(field, from, FormName)
		c.want(field, c.plan.Spec.StorageClasses[from], FormName)
	}
}

func (c *checker) quiesce() {
	for i, e := range c.plan.Spec.Quiesce.Except {
		field := fmt.Sprintf("spec.quiesce.except[%d]", i)
		parts := strings.Split(e, "/")
		switch {
		case len(parts) != 3 || parts[1] == "" || parts[2] == "":
			c.problem(field, "%q: want KIND/NAMESPACE/NAME, such as Deployment/shop/web", short(e))
		case !slices.Contains(QuiescedKinds(), parts[0]):
			c.problem(field, "%q: want one of the kinds %s", short(parts[0]), strings.Join(QuiescedKinds(), ", "))
		case !slices.ContainsFunc(c.plan.Spec.Namespaces, func(n Namespace) bool { return n.Name == parts[1] }):
			c.problem(field, "%s: its namespace is not in spec.namespaces", e)
		case slices.Index(c.plan.Spec.Quiesce.Except, e) < i:
			c.problem(field, "%s is there twice", e)
		}
	}
}

func (c *checker) accept() {
	for i, a := range c.plan.Spec.Accept {
		field := fmt.Sprintf("spec.accept[%d]", i)
		if a.Type == "" {
			c.problem(field+".type", "is missing: the condition's type, as mig plan validate prints it")
		}
		if a.Object == "" {
			c.problem(field+".object", "is missing: the object as the condition names it, or %q for all", AllObjects)
		}
		if strings.TrimSpace(a.Why) == "" {
			c.problem(field+".why", "is missing: whoever reads the record later wants to know")
		}
		same := func(b Accept) bool { return b.Type == a.Type && b.Object == a.Object }
		if first := slices.IndexFunc(c.plan.Spec.Accept, same); first < i && a.Type != "" && a.Object != "" {
			c.problem(field, "is there twice; the first is spec.accept[%d]", first)
		}
	}
}

func (c *checker) limits() {
	limits := c.plan.Spec.Limits
	c.optional("spec.limits.maxDowntime", limits.MaxDowntime, FormDuration)
	if limits.Parallelism < 0 {
		c.problem("spec.limits.parallelism", "%d: want a number above 0", limits.Parallelism)
	}
	for _, step := range sortedKeys(limits.Timeouts) {
		field := fmt.Sprintf("spec.limits.timeouts[%s]", step)
		c.want(field, limits.Timeouts[step], FormDuration)
		switch near := meant(step, StepNames()); {
		case near == step:
		case near != "":
			c.problem(field, "no run has a step %q; did you mean %s?", short(step), near)
		default:
			c.problem(field, "no run has a step %q: see mig migrate --dry-run", short(step))
		}
	}
}

func (c *checker) mover() {
	c.optional("spec.helperImage", c.plan.Spec.HelperImage, FormImage)
	switch mover := c.plan.Spec.Mover; mover {
	case "", MoverAuto, MoverVelero:
	case MoverMig:
		if c.plan.Spec.HelperImage == "" {
			c.problem("spec.mover", "%s needs spec.helperImage, the image of mig-mover", mover)
		}
	default:
		c.problem("spec.mover", "%q: want %s, %s or %s", short(mover), MoverAuto, MoverMig, MoverVelero)
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func orElse(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}
