package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

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
	for _, check := range []func(){c.head, c.clusters, c.namespaces, c.volumes, c.storageClasses, c.quiesce, c.accept, c.limits} {
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

// want tells what a name breaks of the rules of Kubernetes; optional allows none.
func (c *checker) want(field, value string, rules func(string) []string) {
	if value == "" {
		c.problem(field, "is missing")
		return
	}
	c.optional(field, value, rules)
}

func (c *checker) optional(field, value string, rules func(string) []string) {
	if value == "" {
		return
	}
	if broken := rules(value); len(broken) > 0 {
		c.problem(field, "%q: %s", short(value), strings.Join(broken, "; "))
	}
}

// uidForm fits a label's value and a part of a name.
var uidForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{6,61})[a-z0-9]$`)

func (c *checker) head() {
	p := c.plan
	if p.APIVersion != APIVersion {
		c.problem("apiVersion", "want %s, got %q", APIVersion, short(p.APIVersion))
	}
	if p.Kind != Kind {
		c.problem("kind", "want %s, got %q", Kind, short(p.Kind))
	}
	c.want("metadata.name", p.Metadata.Name, validation.IsDNS1123Subdomain)
	c.want("metadata.uid", p.Metadata.UID, func(uid string) []string {
		if uidForm.MatchString(uid) {
			return nil
		}
		return []string{"want 8 to 63 of a-z, 0-9 and -, as mig plan create makes it"}
	})
}

func (c *checker) clusters() {
	s := c.plan.Spec
	for _, side := range []struct {
		field   string
		cluster Cluster
	}{{"spec.source", s.Source}, {"spec.destination", s.Destination}} {
		if side.cluster.Context == "" {
			c.problem(side.field+".context", "is missing: the name of a kubeconfig context")
		}
		if strings.HasPrefix(side.cluster.Kubeconfig, "~") {
			c.problem(side.field+".kubeconfig", "%s: a shell expands ~, a plan file does not; write the path out", side.cluster.Kubeconfig)
		}
		c.optional(side.field+".veleroNamespace", side.cluster.VeleroNamespace, validation.IsDNS1123Label)
	}
	if s.Source.Context != "" && s.Source.Context == s.Destination.Context && s.Source.Kubeconfig == s.Destination.Kubeconfig {
		c.problem("spec.destination.context", "is the source's too (%s): a migration needs two clusters", s.Source.Context)
	}
	c.want("spec.storage.location", s.Storage.Location, validation.IsDNS1123Subdomain)
}

func (c *checker) namespaces() {
	spec := c.plan.Spec
	if len(spec.Namespaces) == 0 {
		c.problem("spec.namespaces", "is empty: name at least one namespace")
	}
	sources, destinations := map[string]int{}, map[string]int{}
	for i, n := range spec.Namespaces {
		field := fmt.Sprintf("spec.namespaces[%d]", i)
		c.want(field+".name", n.Name, validation.IsDNS1123Label)
		c.optional(field+".destination", n.Destination, validation.IsDNS1123Label)
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
	c.optional(field+".destination.storageClass", v.Destination.StorageClass, validation.IsDNS1123Subdomain)
	c.accessModes(field+".destination.accessModes", v.Destination.AccessModes)
	c.optional(field+".destination.size", v.Destination.Size, positiveQuantity)
}

func (c *checker) facts(field string, v Volume) {
	c.optional(field+".capacity", v.Capacity, quantity)
	if v.Used != Unknown {
		c.optional(field+".used", v.Used, quantity)
	}
	c.optional(field+".storageClass", v.StorageClass, validation.IsDNS1123Subdomain)
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
	known := []string{"ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"}
	for i, m := range modes {
		if !slices.Contains(known, m) {
			c.problem(fmt.Sprintf("%s[%d]", field, i), "%q: want one of %s", short(m), strings.Join(known, ", "))
		}
	}
}

func quantity(s string) []string {
	q, err := resource.ParseQuantity(s)
	if err != nil || q.Sign() < 0 {
		return []string{"want a size such as 10Gi"}
	}
	return nil
}

func positiveQuantity(s string) []string {
	if q, err := resource.ParseQuantity(s); err != nil || q.Sign() <= 0 {
		return []string{"want a size such as 10Gi, more than nothing"}
	}
	return nil
}

func (c *checker) storageClasses() {
	for _, from := range sortedKeys(c.plan.Spec.StorageClasses) {
		field := fmt.Sprintf("spec.storageClasses[%s]", from)
		c.optional(field, from, validation.IsDNS1123Subdomain)
		c.want(field, c.plan.Spec.StorageClasses[from], validation.IsDNS1123Subdomain)
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
		if a.Why == "" {
			c.problem(field+".why", "is missing: whoever reads the record later wants to know")
		}
	}
}

func (c *checker) limits() {
	limits := c.plan.Spec.Limits
	c.optional("spec.limits.maxDowntime", limits.MaxDowntime, duration)
	for _, step := range sortedKeys(limits.Timeouts) {
		c.want(fmt.Sprintf("spec.limits.timeouts[%s]", step), limits.Timeouts[step], duration)
	}
}

func duration(s string) []string {
	if d, err := time.ParseDuration(s); err != nil || d <= 0 {
		return []string{"want a duration such as 30m or 1h30m"}
	}
	return nil
}

func sortedKeys(m map[string]string) []string {
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
