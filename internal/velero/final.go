package velero

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/plan"
)

// FinalModifiers change what the final restore makes: a StatefulSet's claim
// templates ask for the class that its claims have on the destination, so that
// a later replica gets a volume too, and what was stopped when it was backed up
// is what it was before. nil where nothing is to be changed.
func FinalModifiers(o naming.Owner, p plan.Valid, namespace string, sets []appsv1.StatefulSet, undo []Undo) (*corev1.ConfigMap, error) {
	var rules []modifierRule
	for _, u := range undo {
		rules = append(rules, modifierRule{
			Conditions:   modifierConditions{GroupResource: u.GroupResource, Namespaces: []string{u.Namespace}, ResourceNameRegex: exactly(u.Name)},
			MergePatches: []patchData{{PatchData: u.Patch}},
		})
	}
	for _, s := range sets {
		if patches := templatePatches(p, s); len(patches) > 0 {
			rules = append(rules, modifierRule{
				Conditions: modifierConditions{GroupResource: "statefulsets.apps", Namespaces: []string{s.Namespace}, ResourceNameRegex: exactly(s.Name)},
				Patches:    patches,
			})
		}
	}
	if len(rules) == 0 {
		return nil, nil //nolint:nilnil // nothing to modify is an answer, not an error
	}
	return modifierConfigMap(o, namespace, o.FinalModifiers(), StepFinalRestore, rules)
}

// Undo is the JSON merge patch that makes of one backed-up object what it was
// before the run changed it.
type Undo struct {
	GroupResource string // deployments.apps
	Namespace     string // on the source
	Name          string
	Patch         string
}

func templatePatches(p plan.Valid, s appsv1.StatefulSet) []jsonPatch {
	var out []jsonPatch
	for i, t := range s.Spec.VolumeClaimTemplates {
		class := t.Spec.StorageClassName
		if class == nil {
			continue // the destination's default, as it was the source's
		}
		if to := TemplateClass(p, s.Namespace, s.Name, t.Name, *class); to != "" && to != *class {
			out = append(out, jsonPatch{Operation: "replace", Path: fmt.Sprintf("/spec/volumeClaimTemplates/%d/spec/storageClassName", i), Value: to})
		}
	}
	return out
}

// TemplateClass is the destination's class of the claims that a template of a
// StatefulSet made (TEMPLATE-SET-ORDINAL), else that of the template's class;
// empty: it stays.
func TemplateClass(p plan.Valid, namespace, set, template, class string) string {
	prefix := namespace + "/" + template + "-" + set + "-"
	for _, v := range p.Copied() {
		if ordinal, ok := strings.CutPrefix(v.Claim, prefix); ok && isOrdinal(ordinal) {
			return p.DestinationClass(v)
		}
	}
	return p.Plan().Spec.StorageClasses[class]
}

func isOrdinal(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
