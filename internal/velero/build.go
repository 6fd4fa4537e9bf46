// Package velero builds the objects that mig asks Velero to work on and reads
// what Velero says of them. It is pure: values in, values out. It knows no
// client, does not wait, and decides nothing beyond one object's meaning.
package velero

import (
	"maps"
	"regexp"
	"slices"
	"strconv"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/plan"
)

// configMapKind is how Velero's specs refer to a ConfigMap beside them
// (velero internal/resourcepolicies and internal/resourcemodifiers).
const configMapKind = "configmap"

// Names of steps that make Velero's objects; they label what is made.
const (
	StepInitialBackup = "EnsureInitialBackup"
	StepStagePods     = "EnsureStagePods"
	StepStageBackup   = "EnsureStageBackup"
	StepStageRestore  = "EnsureStageRestore"
	StepFinalRestore  = "EnsureFinalRestore"
)

// Kinds that a claim's data travels in.
const (
	pods    = "pods"
	claims  = "persistentvolumeclaims"
	volumes = "persistentvolumes"
)

// SkipVolumes is the volume policy of the initial backup: no volume, whatever
// the pods' own annotations ask for. A policy is looked at before a pod's
// backup.velero.io/backup-volumes (velero internal/volumehelper); without it a
// backup of "objects only" holds data from before the quiesce, and the final
// restore would write that over the exact copy.
func SkipVolumes(o naming.Owner, namespace string) *corev1.ConfigMap {
	return configMap(o, namespace, o.SkipVolumesPolicy(), StepInitialBackup, "policy",
		"version: v1\nvolumePolicies:\n- conditions: {}\n  action:\n    type: skip\n")
}

// InitialBackup is the backup of all objects of the plan's namespaces and of no
// volume data, taken while the application still runs. again counts its
// repetitions, for objects that changed since; they are taken while it stands still.
func InitialBackup(o naming.Owner, p plan.Valid, again int) *velerov1.Backup {
	b := backup(o, p, o.InitialBackupAgain(again), StepInitialBackup, naming.RefInitialBackup)
	b.Spec.IncludedNamespaces = p.SourceNamespaces()
	b.Spec.ExcludedResources = []string{"events", "events.events.k8s.io"}
	b.Spec.DefaultVolumesToFsBackup = ptr.To(false)
	b.Spec.ResourcePolicy = &corev1.TypedLocalObjectReference{Kind: configMapKind, Name: o.SkipVolumesPolicy()}
	return b
}

// StageBackup is the backup of the volumes through the run's stage pods.
// Claims and volumes are drawn in by Velero as what the pods mount.
func StageBackup(o naming.Owner, p plan.Valid) *velerov1.Backup {
	b := backup(o, p, o.StageBackup(), StepStageBackup, naming.RefStageBackup)
	b.Spec.IncludedNamespaces = copiedNamespaces(p)
	b.Spec.IncludedResources = []string{pods, claims, volumes}
	b.Spec.LabelSelector = &metav1.LabelSelector{MatchLabels: StagePodLabels(o)}
	b.Spec.DefaultVolumesToFsBackup = ptr.To(true)
	return b
}

// LiveBackup is the backup of the volumes while the application runs: through
// its own pods where they run, which are not touched, else through stage pods.
// Which volumes, says StagePolicy.
func LiveBackup(o naming.Owner, p plan.Valid) *velerov1.Backup {
	b := backup(o, p, o.StageBackup(), StepStageBackup, naming.RefStageBackup)
	b.Spec.IncludedNamespaces = copiedNamespaces(p)
	b.Spec.IncludedResources = []string{pods, claims, volumes}
	b.Spec.DefaultVolumesToFsBackup = ptr.To(false)
	b.Spec.ResourcePolicy = &corev1.TypedLocalObjectReference{Kind: configMapKind, Name: o.StagePolicy()}
	return b
}

// StagePolicy is the volume policy of a live backup: the volumes of the claims
// that the stage has labelled, and no other of the pods that mount them. The
// first policy that matches counts (velero internal/resourcepolicies).
func StagePolicy(o naming.Owner, namespace string) *corev1.ConfigMap {
	return configMap(o, namespace, o.StagePolicy(), StepStageBackup, "policy",
		"version: v1\nvolumePolicies:\n- conditions:\n    pvcLabels:\n      "+naming.LabelStagedBy+": "+strconv.Quote(o.PlanUID)+
			"\n  action:\n    type: fs-backup\n- conditions: {}\n  action:\n    type: skip\n")
}

// StagePodLabels select the stage pods of a run.
func StagePodLabels(o naming.Owner) map[string]string {
	return o.Labels(StepStagePods)
}

// StageRestore is the restore of the volumes into fresh claims.
func StageRestore(o naming.Owner, p plan.Valid, namespace string) *velerov1.Restore {
	r := restore(o, p, namespace, o.StageRestore(), o.StageBackup(), StepStageRestore, naming.RefStageRestore)
	r.Spec.IncludedResources = []string{pods, claims, volumes}
	r.Spec.RestorePVs = ptr.To(true)
	r.Spec.ResourceModifier = &corev1.TypedLocalObjectReference{Kind: configMapKind, Name: o.StageModifiers()}
	r.Spec.UploaderConfig = &velerov1.UploaderConfigForRestore{WriteSparseFiles: ptr.To(true)}
	return r
}

// FinalRestore is the restore of all objects but the claims and volumes, which
// the stage restore made, and the pods, which their controllers make. from is
// the name of the backup of the objects. barePods says that pods without a
// controller are among them: then pods are restored too. modified says that the
// restore has modifiers (FinalModifiers).
func FinalRestore(o naming.Owner, p plan.Valid, namespace, from string, barePods, modified bool) *velerov1.Restore {
	r := restore(o, p, namespace, o.FinalRestore(), from, StepFinalRestore, naming.RefFinalRestore)
	r.Spec.ExcludedResources = []string{
		claims, volumes,
		// What velero's own CLI leaves out by default (velero pkg/controller/restore_controller.go).
		"nodes", "events", "events.events.k8s.io", "backups.velero.io", "restores.velero.io", "resticrepositories.velero.io",
		"csinodes.storage.k8s.io", "volumeattachments.storage.k8s.io", "backuprepositories.velero.io",
		// What OLM makes of a Subscription: it makes its own, and takes copies for none.
		"clusterserviceversions.operators.coreos.com", "installplans.operators.coreos.com",
	}
	if !barePods {
		r.Spec.ExcludedResources = append(r.Spec.ExcludedResources, pods)
	}
	r.Spec.RestorePVs = ptr.To(false)
	r.Spec.PreserveNodePorts = ptr.To(true)
	if modified {
		r.Spec.ResourceModifier = &corev1.TypedLocalObjectReference{Kind: configMapKind, Name: o.FinalModifiers()}
	}
	return r
}

func backup(o naming.Owner, p plan.Valid, name, step, ref string) *velerov1.Backup {
	spec := p.Plan().Spec
	return &velerov1.Backup{
		ObjectMeta: objectMeta(o, spec.Source.VeleroNamespace, name, step, ref),
		Spec: velerov1.BackupSpec{
			StorageLocation: spec.Storage.Location,
			SnapshotVolumes: ptr.To(false),
		},
	}
}

func restore(o naming.Owner, p plan.Valid, namespace, name, from, step, ref string) *velerov1.Restore {
	return &velerov1.Restore{
		ObjectMeta: objectMeta(o, namespace, name, step, ref),
		Spec:       velerov1.RestoreSpec{BackupName: from, NamespaceMapping: p.NamespaceMapping()},
	}
}

// objectMeta carries our own keys, which we select by, and the reference
// system's beside them.
func objectMeta(o naming.Owner, namespace, name, step, ref string) metav1.ObjectMeta {
	labels := o.Labels(step)
	maps.Copy(labels, map[string]string{
		naming.RefPartOf:         naming.RefPartOfValue,
		naming.RefMigratedByPlan: o.PlanUID,
		naming.RefMigratedByRun:  o.RunUID,
		ref:                      o.RunUID,
	})
	annotations := o.Annotations()
	maps.Copy(annotations, map[string]string{
		naming.RefMigrationType: "final",
		naming.RefPlanName:      o.PlanName,
		naming.RefRunName:       o.RunUID,
	})
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels, Annotations: annotations}
}

func configMap(o naming.Owner, namespace, name, step, key, data string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: o.Labels(step), Annotations: o.Annotations()},
		Data:       map[string]string{key: data},
	}
}

// copiedNamespaces are the source namespaces that hold a volume to copy.
func copiedNamespaces(p plan.Valid) []string {
	var out []string
	for _, v := range p.Copied() {
		if ns := v.Namespace(); !slices.Contains(out, ns) {
			out = append(out, ns)
		}
	}
	return out
}

// modifiers are velero's resource modifiers, version v1
// (velero internal/resourcemodifiers); their conditions' namespaces are the source's.
type modifiers struct {
	Version string         `json:"version"`
	Rules   []modifierRule `json:"resourceModifierRules"`
}

type modifierRule struct {
	Conditions       modifierConditions `json:"conditions"`
	MergePatches     []patchData        `json:"mergePatches,omitempty"`
	StrategicPatches []patchData        `json:"strategicPatches,omitempty"`
	Patches          []jsonPatch        `json:"patches,omitempty"`
}

type modifierConditions struct {
	Namespaces        []string              `json:"namespaces,omitempty"`
	GroupResource     string                `json:"groupResource"`
	ResourceNameRegex string                `json:"resourceNameRegex,omitempty"`
	LabelSelector     *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

type patchData struct {
	PatchData string `json:"patchData"`
}

type jsonPatch struct {
	Operation string `json:"operation"`
	Path      string `json:"path"`
	Value     string `json:"value,omitempty"`
}

func modifierConfigMap(o naming.Owner, namespace, name, step string, rules []modifierRule) (*corev1.ConfigMap, error) {
	body, err := yaml.Marshal(modifiers{Version: "v1", Rules: rules})
	if err != nil {
		return nil, err
	}
	return configMap(o, namespace, name, step, "modifiers", string(body)), nil
}

// exactly is a regular expression that matches one name and no other.
func exactly(name string) string { return "^" + regexp.QuoteMeta(name) + "$" }
