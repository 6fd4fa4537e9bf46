// Package naming makes and reads every name, label and annotation that mig
// puts on objects of a cluster. It is the only place that knows them, so that
// what one part writes another cannot look for under another key.
// It knows no client and no plan file.
package naming

import (
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Prefix is the domain of mig's own keys: what mig selects by.
const Prefix = "mig-cli.github.io/"

// Labels of mig's own: every object that mig makes, or asks Velero to make,
// carries them.
const (
	LabelPlan      = Prefix + "plan-uid"
	LabelRun       = Prefix + "run-uid"
	LabelStep      = Prefix + "step"
	LabelCreatedBy = Prefix + "created-by"
	LabelRecord    = Prefix + "record"    // plan | run: the ConfigMaps of the records
	LabelStagedBy  = Prefix + "staged-by" // on a claim while a stage copies it: the plan's uid
)

// CreatedBy is the value of LabelCreatedBy.
const CreatedBy = "mig"

// Annotations of mig's own.
const (
	AnnClaim        = Prefix + "claim"         // on a pod of mig's: the claims that it is there for, namespace/name on the source, with commas
	AnnAttempt      = Prefix + "attempt"       // on a pod of mig's that was made again: the how manieth it is
	AnnAuthority    = Prefix + "authority"     // on a pod of mig's: certificates that the object store is known by
	AnnFilledBy     = Prefix + "filled-by"     // on a claim of the destination: the run whose mig-mover last wrote into its volume
	AnnPlanName     = Prefix + "plan-name"     // names may be longer than a label
	AnnMigratedTo   = Prefix + "migrated-to"   // left for audit on the source's namespaces and claims
	AnnMigratedFrom = Prefix + "migrated-from" // left for audit on the destination's
	AnnMigratedAt   = Prefix + "migrated-at"
	AnnRunUID       = Prefix + "run-uid"
	AnnPlanUID      = Prefix + "plan-uid"
)

// Keys of the reference system, written beside ours where the meaning is the
// same, so that its readers and Velero plugins understand our objects. Never
// selected by: a live mig-controller may own objects with the same keys.
const (
	RefPartOf             = "app.kubernetes.io/part-of"
	RefPartOfValue        = "openshift-migration"
	RefMigratedByPlan     = "migration.openshift.io/migrated-by-migplan"
	RefMigratedByRun      = "migration.openshift.io/migrated-by-migmigration"
	RefInitialBackup      = "migration-initial-backup"
	RefStageBackup        = "migration-stage-backup"
	RefStageRestore       = "migration-stage-restore"
	RefFinalRestore       = "migration-final-restore"
	RefMigrationType      = "migration.openshift.io/migmigration-type"
	RefPlanName           = "migration.openshift.io/migplan-name"
	RefRunName            = "migration.openshift.io/migmigration-name"
	RefStagePod           = "migration.openshift.io/is-stage-pod"
	RefPreQuiesceReplicas = "migration.openshift.io/preQuiesceReplicas"
	RefPreQuiescePaused   = "migration.openshift.io/preQuiescePaused"
	RefPreQuiesceSuspend  = "migration.openshift.io/preQuiesceSuspend"
	RefPreQuiesceSelector = "migration.openshift.io/preQuiesceNodeSelector"
)

// PodSecurity is the label of a namespace that says which pods it admits
// (k8s.io/pod-security-admission), and PodSecurityRestricted its strictest level.
const (
	PodSecurity           = "pod-security.kubernetes.io/enforce"
	PodSecurityRestricted = "restricted"
)

// Keys of Velero that mig reads or writes.
const (
	VeleroBackupName  = "velero.io/backup-name"
	VeleroBackupUID   = "velero.io/backup-uid"
	VeleroRestoreName = "velero.io/restore-name"
	VeleroStorage     = "velero.io/storage-location"
	VeleroExclude     = "velero.io/exclude-from-backup" // "true" on an object keeps it out of every backup
)

// Owner says on whose behalf an object is made: the plan and one run of it.
type Owner struct {
	PlanName string // of the plan file; only ever an annotation
	PlanUID  string
	RunUID   string // empty for what belongs to the plan and outlives its runs
}

// Labels are the labels of an object that a step of the run makes.
func (o Owner) Labels(step string) map[string]string {
	l := map[string]string{LabelCreatedBy: CreatedBy, LabelPlan: o.PlanUID}
	if o.RunUID != "" {
		l[LabelRun] = o.RunUID
	}
	if step != "" {
		l[LabelStep] = step
	}
	return l
}

// Annotations are the annotations of an object that mig makes.
func (o Owner) Annotations() map[string]string {
	return map[string]string{AnnPlanName: o.PlanName}
}

// OfPlan selects everything that any run of the plan made.
func (o Owner) OfPlan() labels.Selector {
	return labels.SelectorFromSet(labels.Set{LabelCreatedBy: CreatedBy, LabelPlan: o.PlanUID})
}

// OfRun selects everything that this run made.
func (o Owner) OfRun() labels.Selector {
	return labels.SelectorFromSet(labels.Set{LabelCreatedBy: CreatedBy, LabelPlan: o.PlanUID, LabelRun: o.RunUID})
}

// ClaimOf reads from a pod of mig's which claim it is there for, namespace/name
// on the source.
func ClaimOf(pod metav1.Object) string { return pod.GetAnnotations()[AnnClaim] }

// ClaimsOf reads the same of a pod that is there for several, in the order of
// its volumes.
func ClaimsOf(pod metav1.Object) []string {
	if ClaimOf(pod) == "" {
		return nil
	}
	return strings.Split(ClaimOf(pod), ",")
}

// ForClaims is the value of AnnClaim for several: neither part of a claim's name
// can hold a comma.
func ForClaims(claims ...string) string { return strings.Join(claims, ",") }

// OfPlanUID reads the plan's uid from an object's labels; empty where mig did
// not make the object.
func OfPlanUID(l map[string]string) string {
	if l[LabelCreatedBy] != CreatedBy {
		return ""
	}
	return l[LabelPlan]
}

// InitialBackup is the name of the run's backup of all objects. Velero uses a
// name of at most 63 characters as it is as the value of its labels and hashes
// a longer one (velero pkg/label/label.go), so ours all stay below.
func (o Owner) InitialBackup() string { return o.object("initial") }

// InitialBackupAgain is the name of the n-th repetition of the initial backup,
// for objects that changed since; 0 is the initial backup itself.
func (o Owner) InitialBackupAgain(n int) string {
	if n == 0 {
		return o.InitialBackup()
	}
	return o.InitialBackup() + "-" + strconv.Itoa(n)
}

// StageBackup is the name of the run's backup of the volumes.
func (o Owner) StageBackup() string { return o.object("stage") }

// StageRestore is the name of the run's restore of the volumes.
func (o Owner) StageRestore() string { return o.object("stage") }

// FinalRestore is the name of the run's restore of all objects.
func (o Owner) FinalRestore() string { return o.object("final") }

// SkipVolumesPolicy is the name of the ConfigMap with the volume policy of the
// initial backup.
func (o Owner) SkipVolumesPolicy() string { return o.object("skip-volumes") }

// StagePolicy is the name of the ConfigMap with the volume policy of a stage.
func (o Owner) StagePolicy() string { return o.object("stage-policy") }

// StageModifiers is the name of the ConfigMap with the resource modifiers of
// the stage restore.
func (o Owner) StageModifiers() string { return o.object("stage-modifiers") }

// FinalModifiers is the name of the ConfigMap with the resource modifiers of
// the final restore.
func (o Owner) FinalModifiers() string { return o.object("final-modifiers") }

// PlanRecord is the name of the plan's record, a ConfigMap in Velero's
// namespace.
func (o Owner) PlanRecord() string { return "mig-plan-" + shorten(o.PlanUID, 40) }

// RunRecord is the name of the run's record.
func (o Owner) RunRecord() string { return o.object("run") }

func (o Owner) object(what string) string {
	return "mig-" + shorten(o.PlanName, 28) + "-" + o.RunUID + "-" + what
}

// StagePod is the name of the pod that mounts a claim for Velero when no pod
// of the application does. The same claim has the same name in every run:
// kopia finds the parent of a snapshot by namespace, pod name and claim
// (velero pkg/podvolume/util.go), and without a parent everything is read again.
func StagePod(namespace, claim string) string {
	return "mig-stage-" + shorten(claim, 30) + "-" + strings.ToLower(hash(namespace + "/" + claim)[:8])
}

// VerifyPod is the name of the pod that reads a claim's volume, on either side.
func (o Owner) VerifyPod(claim string) string {
	return "mig-verify-" + o.RunUID + "-" + strings.ToLower(hash(claim)[:10])
}

// RestorePod is the name of the pod that restores a claim's volume.
func (o Owner) RestorePod(claim string) string {
	return "mig-restore-" + o.RunUID + "-" + strings.ToLower(hash(claim)[:10])
}

// ProbePod is the name of the pod that sees whether an image runs on a node.
func (o Owner) ProbePod(node string) string {
	return "mig-probe-" + o.RunUID + "-" + strings.ToLower(hash(node)[:10])
}

// NewRunUID makes a run's uid of its start: ten characters of a-z and 2-7,
// enough that two runs of one plan never meet. random is any unpredictable text.
func NewRunUID(random string) string { return strings.ToLower(hash(random)[:10]) }

// shorten keeps a name within n characters, unique by a digest where it is cut,
// and with dots made dashes, so that it is also a DNS label.
func shorten(name string, n int) string {
	flat := strings.ReplaceAll(name, ".", "-")
	if len(flat) <= n {
		return flat
	}
	return strings.TrimRight(flat[:n-7], "-") + "-" + strings.ToLower(hash(name)[:6])
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:])
}
