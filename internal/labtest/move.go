package labtest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mig-cli/mig/internal/naming"
)

// Proof is one thing that must be true, in words that end "It is proved that …".
type Proof struct {
	What string
	// Prove says how much was looked at, or what is not so.
	Prove func(context.Context) (string, error)
}

// Move is the shop's way from a namespace of the source to one of the
// destination and back, with what must be remembered to prove it.
type Move struct {
	lab     *Lab
	planUID string
	from    Shop
	to      Shop

	objects  Objects             // of the source, before
	files    map[string]Manifest // of the source, before
	restored chan restored
	dump     Dump // of the source's files, after the cutover
}

// restored is the database's volume on the destination, before it ran there.
type restored struct {
	files Manifest
	err   error
}

// Remember looks at the source before anything is done to it.
func (l *Lab) Remember(ctx context.Context, planUID, source, destination string) (*Move, error) {
	m := &Move{
		lab: l, planUID: planUID, restored: make(chan restored, 1),
		from: l.ShopIn(l.Source.Cluster, source), to: l.ShopIn(l.Destination.Cluster, destination),
	}
	var err error
	if m.objects, err = ObjectsOf(ctx, l.Source.Cluster, source); err != nil {
		return nil, err
	}
	// The database writes while it is read; only the other claims stand still.
	m.files = map[string]Manifest{}
	for _, claim := range []string{FilesClaim, ArchiveClaim} {
		dir, err := VolumeDir(ctx, l.Source.Cluster, source, claim)
		if err != nil {
			return nil, err
		}
		files, err := Files(dir)
		if err != nil {
			return nil, err
		}
		m.files[claim] = files.Without(ShopWriting.Appends[claim])
	}
	return m, nil
}

// Watch looks, beside the run that is about to start, at the database's volume
// on the destination in the moment between its restore and the database's start.
func (m *Move) Watch(ctx context.Context, limit time.Duration) {
	go func() {
		files, err := m.lab.RestoredFiles(ctx, m.planUID, m.to.namespace, DatabaseClaim, limit)
		m.restored <- restored{files, err}
	}()
}

// Moved is what must be true after the cutover.
func (m *Move) Moved() []Proof {
	return []Proof{
		{"the database's volume was restored file by file as the source holds it: names, content, owners, modes, times", m.restoredEqual},
		{"so were the other volumes, odd files and all, and Velero left nothing in any", m.stillEqual},
		{"nothing written just before the quiesce was lost to the user's own backup annotation", m.appended},
		{"the database answers on the destination, and its client writes", m.answers},
		{"pg_dump is equal to that of the source's files, but for what the client has written since", m.dumpEqual},
		{"ConfigMap, Secret, Services, workloads and CronJob on the destination are as they were on the source", m.objectsEqual},
		{"the source is quiesced: all at zero, CronJob suspended, no pod, every claim Bound", m.quiesced},
		{"the source's data is untouched", m.untouched},
	}
}

// TakenBack is what must be true after the rollback.
func (m *Move) TakenBack() []Proof {
	return []Proof{
		{"nothing of it is left on the destination but the backups", m.goneFromDestination},
		{"every object of the source is as it was before", m.objectsAsBefore},
		{"the database answers on the source, and its client writes", m.answersAgain},
		{"no row is lost on the source, and no file was touched", m.nothingLost},
	}
}

func (m *Move) restoredEqual(ctx context.Context) (string, error) {
	var seen restored
	select {
	case seen = <-m.restored:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if seen.err != nil {
		return "", seen.err
	}
	dir, err := VolumeDir(ctx, m.lab.Source.Cluster, m.from.namespace, DatabaseClaim)
	if err != nil {
		return "", err
	}
	source, err := Files(dir)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d files, %d MB", len(source), source.Bytes()>>20), source.SameAs(seen.files)
}

func (m *Move) stillEqual(ctx context.Context) (string, error) {
	count, err := m.lab.Arrived(ctx, m.from.namespace, m.to.namespace, ShopWriting)
	return fmt.Sprintf("%d files", count), err
}

func (m *Move) appended(ctx context.Context) (string, error) {
	return "", m.lab.GoesOn(ctx, m.from.namespace, m.to.namespace, ShopWriting)
}

func (m *Move) answers(ctx context.Context) (string, error) {
	if err := m.to.Writes(ctx, patience); err != nil {
		return "", err
	}
	nodes, err := Nodes(ctx, m.lab.Source.Cluster)
	if err != nil {
		return "", err
	}
	down, err := m.to.Downtime(ctx, nodes)
	return fmt.Sprintf("between its last row there and its first here: %s", down.Round(100*time.Millisecond)), err
}

func (m *Move) dumpEqual(ctx context.Context) (string, error) {
	nodes, err := Nodes(ctx, m.lab.Source.Cluster)
	if err != nil {
		return "", err
	}
	dump, err := m.lab.DumpOfCopy(ctx, m.from.namespace, DatabaseClaim)
	if err != nil {
		return "", err
	}
	var strange int
	if m.dump, strange = dump.WrittenOn(nodes); strange > 0 {
		return "", fmt.Errorf("%d rows on the source were written elsewhere", strange)
	}
	now, err := m.to.Database().Dump(ctx)
	if err != nil {
		return "", err
	}
	here, since := now.WrittenOn(nodes)
	return fmt.Sprintf("%d lines; %d rows since", len(m.dump), since), m.dump.SameAs(here)
}

// objectsEqual compares what people wrote into the objects. What the cluster
// adds (addresses, defaults that differ by version) may differ.
func (m *Move) objectsEqual(ctx context.Context) (string, error) {
	now, err := ObjectsOf(ctx, m.lab.Destination.Cluster, m.to.namespace)
	if err != nil {
		return "", err
	}
	var bad []string
	count := 0
	for key, was := range m.objects {
		fields := written(was)
		if fields == nil {
			continue
		}
		count++
		there := strings.Replace(key, " "+m.from.namespace+"/", " "+m.to.namespace+"/", 1)
		is, ok := now[there]
		if !ok {
			bad = append(bad, there+" is not there")
			continue
		}
		for path, want := range fields {
			got, _, _ := unstructured.NestedFieldNoCopy(is, strings.Split(path, "/")...)
			if !reflect.DeepEqual(want, got) {
				bad = append(bad, there+": "+firstDifference(path, want, got))
			}
		}
	}
	return fmt.Sprintf("%d objects", count), listed("objects differ", bad)
}

// written are the fields that people wrote into an object, by their paths; nil
// for kinds that clusters make by themselves.
func written(o map[string]any) map[string]any {
	paths := map[string][]string{
		"ConfigMap":   {"data"},
		"Secret":      {"data", "type"},
		"Service":     {"spec/selector", "spec/ports"},
		"Deployment":  {"spec"},
		"StatefulSet": {"spec/replicas", "spec/template", "spec/serviceName"},
		"CronJob":     {"spec"},
	}
	u := unstructured.Unstructured{Object: o}
	if u.GetName() == "kube-root-ca.crt" || paths[u.GetKind()] == nil {
		return nil
	}
	out := map[string]any{}
	for _, path := range paths[u.GetKind()] {
		if v, ok, _ := unstructured.NestedFieldNoCopy(o, strings.Split(path, "/")...); ok {
			out[path] = v
		}
	}
	return out
}

func (m *Move) quiesced(ctx context.Context) (string, error) {
	return "", Quiesced(ctx, m.lab.Source.Cluster, m.from.namespace)
}

func (m *Move) untouched(ctx context.Context) (string, error) {
	count := 0
	for claim, was := range m.files {
		dir, err := VolumeDir(ctx, m.lab.Source.Cluster, m.from.namespace, claim)
		if err != nil {
			return "", err
		}
		is, err := Files(dir)
		if err != nil {
			return "", err
		}
		count += len(was)
		if err := was.SameAs(is.Without(ShopWriting.Appends[claim])); err != nil {
			return "", fmt.Errorf("claim %s: %w", claim, err)
		}
	}
	return fmt.Sprintf("%d files", count), nil
}

func (m *Move) goneFromDestination(ctx context.Context) (string, error) {
	return "", m.lab.GoneFromDestination(ctx, m.planUID, m.to.namespace)
}

// GoneFromDestination says what of a plan's runs is still on the destination
// after a rollback; nil: nothing but the backups, which are hours of copying,
// and the records.
func (l *Lab) GoneFromDestination(ctx context.Context, planUID string, namespaces ...string) error {
	c := l.Destination.Cluster
	return Until(ctx, time.Minute, "the destination is as before", func(ctx context.Context) (NotYet, error) {
		left, err := ObjectsOf(ctx, c, namespaces...)
		if err != nil {
			return "", err
		}
		if len(left) > 0 {
			return NotYet((Objects{}).SameAs(left).Error()), nil
		}
		made, err := MadeByMig(ctx, c, planUID)
		made = slices.DeleteFunc(made, func(key string) bool {
			return strings.HasPrefix(key, "Backup.velero.io ") || strings.HasPrefix(key, "PodVolumeBackup.velero.io ")
		})
		if len(made) > 0 {
			return NotYet(strings.Join(made, ", ")), err
		}
		return "", err
	})
}

// audit is what mig leaves on namespaces and claims of the source for good, and
// the cluster's own count of a DaemonSet's templates.
func audit() []string {
	return []string{naming.AnnMigratedTo, naming.AnnMigratedAt, naming.AnnRunUID, appsv1.DeprecatedTemplateGeneration}
}

func (m *Move) objectsAsBefore(ctx context.Context) (string, error) {
	return fmt.Sprintf("%d objects", len(m.objects)), m.lab.SourceAsBefore(ctx, m.objects, m.from.namespace)
}

// SourceAsBefore says which objects of a namespace of the source are not as
// they were; nil: all are, but for the marks that stay for audit.
func (l *Lab) SourceAsBefore(ctx context.Context, before Objects, namespaces ...string) error {
	now, err := ObjectsOf(ctx, l.Source.Cluster, namespaces...)
	if err != nil {
		return err
	}
	return before.Without(audit()...).SameAs(now.Without(audit()...))
}

func (m *Move) answersAgain(ctx context.Context) (string, error) {
	if err := m.lab.WorkloadsReady(ctx, m.lab.Source.Cluster, m.from.namespace, patience); err != nil {
		return "", err
	}
	return "", m.from.Writes(ctx, patience)
}

func (m *Move) nothingLost(ctx context.Context) (string, error) {
	now, err := m.from.Database().Dump(ctx)
	if err != nil {
		return "", err
	}
	// New rows come after the old ones, so what was there must still be, in order.
	if err := m.dump.contained(now); err != nil {
		return "", err
	}
	return m.untouched(ctx)
}

// contained says whether all lines of the dump are in another, in order.
func (d Dump) contained(in Dump) error {
	next := 0
	for _, line := range in {
		if next < len(d) && d[next] == line {
			next++
		}
	}
	if next < len(d) {
		return fmt.Errorf("pg_dump: line %d of %d is not there any more: %q", next+1, len(d), d[next])
	}
	return nil
}

// StepTime is how long a step of a run took.
type StepTime struct {
	Reason string
	Took   string
}

// StepTimes are the steps that Events tell the end of, with the times that they say.
func StepTimes(events []Event) []StepTime {
	var out []StepTime
	for _, e := range events {
		_, rest, ok := strings.Cut(e.Text, " completed in ")
		if !ok || !strings.HasPrefix(e.Text, "Step ") {
			continue
		}
		took, _, _ := strings.Cut(rest, ":")
		out = append(out, StepTime{e.Reason, took})
	}
	return out
}
