package step

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/quiesce"
	"github.com/mig-cli/mig/internal/velero"
)

// Drift remembers what the source's objects were like when they were last
// backed up, so that what people and operators change while volumes are copied,
// which may be hours, is not lost. It lives in one process: where that ended in
// between nobody knows any more, and everything is backed up again.
type Drift struct {
	r     Run
	kinds catalog
	seen  *inventory // nil: not known
	again int        // how often this process has asked for another backup
}

// WatchDrift watches the source of a run.
func WatchDrift(r Run) *Drift { return &Drift{r: r, kinds: catalog{of: r.Source.Cluster}} }

// inventory is what the objects of the namespaces were like.
type inventory struct {
	prints map[string]fingerprint // by kind, namespace and name
	unread []string               // kinds that could not be looked at
}

// fingerprint changes when a person would say that the object has changed.
type fingerprint struct {
	uid     string
	version string // with the same one nothing at all has changed
	wish    string // digest of labels, annotations and what was asked for
	status  string // digest of who wrote the status when
	exact   bool   // wish tells every change of what was asked for
}

func (f fingerprint) sameAs(now fingerprint) bool {
	switch {
	case f.uid != now.uid || f.wish != now.wish:
		return false
	case f.version == now.version || f.exact:
		return true
	default: // written to, and what was asked for seems the same: then it must have been the status
		return f.status != now.status
	}
}

// remember looks at the source, before its objects are backed up.
func (d *Drift) remember(ctx context.Context) error {
	seen, err := d.look(ctx)
	d.seen = seen
	return err
}

func (d *Drift) look(ctx context.Context) (*inventory, error) {
	if err := d.kinds.read(); err != nil {
		return nil, err
	}
	inv := &inventory{prints: map[string]fingerprint{}, unread: slices.Clone(d.kinds.holes)}
	for _, ns := range d.r.Plan.SourceNamespaces() {
		found, err := d.kinds.list(ctx, drifts, client.InNamespace(ns))
		if err != nil {
			return nil, fmt.Errorf("on the source: %w", err)
		}
		inv.unread = append(inv.unread, found.unread...)
		for _, it := range found.items {
			if !isMadeAgain(it) {
				inv.prints[it.String()] = printOf(it.meta)
			}
		}
	}
	return inv, d.addWorkloads(ctx, inv)
}

// addWorkloads takes the workloads as they were before the run stopped them:
// that is no change.
func (d *Drift) addWorkloads(ctx context.Context, inv *inventory) error {
	ws, err := workloads(ctx, d.r.Source, d.r.Plan.SourceNamespaces())
	if err != nil {
		return err
	}
	for _, w := range ws {
		if metav1.GetControllerOf(w) != nil {
			continue
		}
		before, err := quiesce.AsBefore(w, d.r.Owner)
		if err != nil {
			return err
		}
		inv.prints[w.String()] = fingerprint{
			uid: string(w.GetUID()), version: w.GetResourceVersion(), exact: true,
			wish: digestOf(before.Object["spec"], before.GetLabels(), own(before.GetAnnotations())),
		}
	}
	return nil
}

// drifts says of which kinds changes matter: not of pods and what tells of them,
// which change all the time and are made again; not of claims, which the stage
// restore makes; not of workloads, which are looked at one by one.
func drifts(k servedKind) bool {
	if !k.namespaced {
		return false
	}
	switch k.Kind {
	case "Pod", "PodMetrics", "Event", "Endpoints", "EndpointSlice", "Lease", "PersistentVolumeClaim", "ControllerRevision":
		return false
	}
	return !slices.ContainsFunc(quiesce.Kinds(), func(w quiesce.Kind) bool { return w.Kind == k.Kind && w.Group == k.Group })
}

// isMadeAgain is what the destination's cluster or the object's owner makes.
func isMadeAgain(it item) bool {
	return isPermanent(it) || isNoise(it) || metav1.GetControllerOf(it.meta) != nil
}

func printOf(m *metav1.PartialObjectMetadata) fingerprint {
	f := fingerprint{uid: string(m.UID), version: m.ResourceVersion, exact: m.Generation != 0}
	var wished, status []metav1.ManagedFieldsEntry
	for _, e := range m.ManagedFields {
		if e.Subresource == "status" {
			status = append(status, e)
		} else {
			wished = append(wished, e)
		}
	}
	if f.exact {
		wished = nil // the generation counts every change of the spec, and no other
	}
	f.wish, f.status = digestOf(m.Generation, wished, m.Labels, own(m.Annotations)), digestOf(status)
	return f
}

// own are an object's annotations without those that controllers keep their
// accounts in, and without mig's.
func own(annotations map[string]string) map[string]string {
	out := map[string]string{} // none are as good as an empty map
	maps.Copy(out, annotations)
	maps.DeleteFunc(out, func(key, _ string) bool {
		switch key {
		case "deployment.kubernetes.io/revision", appsv1.DeprecatedTemplateGeneration, "control-plane.alpha.kubernetes.io/leader":
			return true
		}
		return strings.HasPrefix(key, naming.Prefix)
	})
	return out
}

func digestOf(parts ...any) string {
	raw, _ := json.Marshal(parts) // values read from JSON
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// since says what has changed since the objects were last backed up, one line
// an object; known is false where more may have.
func (d *Drift) since(ctx context.Context) (changes []string, known bool, err error) {
	if d.seen == nil {
		return nil, false, nil
	}
	now, err := d.look(ctx)
	if err != nil {
		return nil, false, err
	}
	return compare(d.seen.prints, now.prints), len(d.seen.unread) == 0 && len(now.unread) == 0, nil
}

func compare(before, now map[string]fingerprint) []string {
	var out []string
	for id, was := range before {
		is, there := now[id]
		switch {
		case !there:
			out = append(out, id+" was deleted")
		case !was.sameAs(is):
			out = append(out, id+" was changed")
		}
	}
	for id := range now {
		if _, there := before[id]; !there {
			out = append(out, id+" is new")
		}
	}
	slices.Sort(out)
	return out
}

// remembering looks at the objects before it has them backed up.
type remembering struct {
	ensure

	drift *Drift
}

func (s *remembering) Act(ctx context.Context) error {
	if err := s.drift.remember(ctx); err != nil {
		return err
	}
	return s.ensure.Act(ctx)
}

// objectsBackup is the newest of the run's backups of the objects: the initial
// one or one of its repetitions.
type objectsBackup struct {
	again int
	*velerov1.Backup
}

func (b objectsBackup) name(r Run) string { return r.Owner.InitialBackupAgain(b.again) }

func (r Run) objectsBackup(ctx context.Context) (objectsBackup, error) {
	newest, err := r.backup(ctx, r.Owner.InitialBackup())
	if err != nil {
		return objectsBackup{}, err
	}
	for n := 1; ; n++ {
		next, err := r.backup(ctx, r.Owner.InitialBackupAgain(n))
		if apierrors.IsNotFound(err) {
			return objectsBackup{n - 1, newest}, nil
		}
		if err != nil {
			return objectsBackup{}, err
		}
		newest = next
	}
}

// undone are the patches that make of what was stopped when it was backed up
// what it was before. In the first backup nothing was.
func (r Run) undone(ctx context.Context, from objectsBackup) ([]velero.Undo, error) {
	if from.again == 0 {
		return nil, nil
	}
	ws, err := workloads(ctx, r.Source, r.Plan.SourceNamespaces())
	if err != nil {
		return nil, err
	}
	var out []velero.Undo
	for _, w := range ws {
		patch, err := quiesce.Undo(w, r.Owner)
		if err != nil {
			return nil, err
		}
		if patch != nil {
			out = append(out, velero.Undo{GroupResource: groupResource(w), Namespace: w.GetNamespace(), Name: w.GetName(), Patch: string(patch)})
		}
	}
	return out, nil
}

// groupResource is how velero's modifiers name the kind. All kinds that are
// stopped make their plural with an s.
func groupResource(w quiesce.Workload) string {
	plural := strings.ToLower(w.GetKind()) + "s"
	if group := w.GroupVersionKind().Group; group != "" {
		return plural + "." + group
	}
	return plural
}

// StepInitialBackupCurrent is the name of the step EnsureInitialBackupCurrent.
const StepInitialBackupCurrent = "EnsureInitialBackupCurrent"

// rounds bounds how often objects are backed up again: who changes them faster
// than that will not stop.
const rounds = 3

// EnsureInitialBackupCurrent has the objects backed up again while some have
// changed since they were.
func EnsureInitialBackupCurrent(r Run, drift *Drift) pipeline.Step { return current{r, drift} }

type current struct {
	r     Run
	drift *Drift
}

func (s current) Name() string { return StepInitialBackupCurrent }

func (s current) Next(ctx context.Context) (pipeline.Decision, error) {
	b, err := s.r.objectsBackup(ctx)
	if err != nil {
		return pipeline.Decision{}, err
	}
	volumes, err := s.r.volumesIn(ctx, b.Backup)
	if err != nil {
		return pipeline.Decision{}, err
	}
	if d := decideInitialBackup(b.Backup, volumes, s.Name()); d.Verdict != pipeline.Done {
		return d, nil
	}
	changes, known, err := s.drift.since(ctx)
	if err != nil {
		return pipeline.Decision{}, err
	}
	return decideCurrent(b.Backup, changes, known, s.drift.again), nil
}

func decideCurrent(b *velerov1.Backup, changes []string, known bool, again int) pipeline.Decision {
	on := backupRef(progress.OnSource, b)
	note := backupNote{Step: StepInitialBackupCurrent, On: on, list: list{Say: "the source's objects are as they are in Velero backup " + b.Name}}
	var facts []progress.Note
	switch {
	case len(changes) == 0 && (known || again > 0): // once more is all that can be done about what may not be read
		return pipeline.Decision{Verdict: pipeline.Done, Note: note}
	case again >= rounds:
		d := pipeline.Decision{Verdict: pipeline.Done, Note: note}
		for _, c := range changes {
			d.Warnings = append(d.Warnings, LeftOut{What: "since the objects were last backed up, " + c, On: on})
		}
		return d
	case len(changes) > 0:
		note.Say = "backing all objects up again: " + few(changes)
		facts = []progress.Note{backupNote{Step: "SourceChanged", On: on, list: list{Say: "backing all objects up again: ", Names: changes, Between: "; "}}}
	default:
		note.Say = "backing all objects up again: it is not known whether any has changed since Velero backup " + b.Name
	}
	return pipeline.Decision{Verdict: pipeline.Act, Note: note, Facts: facts}
}

// Act asks for the next backup, unless one is on its way.
func (s current) Act(ctx context.Context) error {
	b, err := s.r.objectsBackup(ctx)
	if err != nil || velero.BackupOutcome(b.Backup) != velero.Succeeded {
		return err
	}
	if err := s.drift.remember(ctx); err != nil {
		return err
	}
	s.drift.again++
	next := velero.InitialBackup(s.r.Owner, s.r.Plan, b.again+1)
	return client.IgnoreAlreadyExists(s.r.Source.Create(ctx, next))
}
