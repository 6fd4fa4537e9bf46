package plan

import (
	"slices"
	"strings"
)

// Valid is a plan that Validate found sound. Only Validate makes one, so no
// unchecked plan reaches a run.
type Valid struct{ plan Plan }

// Plan is the plan with its defaults filled in.
func (v Valid) Plan() Plan { return v.plan }

// Reached is the plan with its clusters reached as another says: that one may be
// another machine's.
func (v Valid) Reached(as Valid) Valid {
	v.plan.Spec.Source, v.plan.Spec.Destination = as.plan.Spec.Source, as.plan.Spec.Destination
	return v
}

// Verified are the copied volumes whose files are compared.
func (v Valid) Verified() []Volume {
	return slices.DeleteFunc(v.Copied(), func(v Volume) bool { return !v.Verify })
}

// WithMover says whether mig-mover is to restore the volumes, in place and only
// what has changed; else Velero does, anew and into fresh claims.
func (v Valid) WithMover() bool {
	return v.plan.Spec.HelperImage != "" && v.plan.Spec.Mover != MoverVelero && len(v.Copied()) > 0
}

// NeedsMover says whether nothing else will do: the plan names mig-mover, or has
// volumes that it is to compare.
func (v Valid) NeedsMover() bool { return v.plan.Spec.Mover == MoverMig || len(v.Verified()) > 0 }

// Parallelism is how many volumes are restored at once.
func (v Valid) Parallelism() int { return v.plan.Spec.Limits.Parallelism }

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
