package record

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/naming"
)

// Store keeps the records of one plan's runs.
type Store struct {
	// DestinationMayBeAway lets a run go on whose replica cannot be written:
	// what runs on the source alone must not wait for the destination. The
	// trouble is kept, see Journal.ReplicaTrouble.
	DestinationMayBeAway bool

	src   cluster.Source
	dst   cluster.Destination
	owner naming.Owner
}

// New makes a store. It dials nothing. The owner's run is that of Create; it
// may be empty for what only reads.
func New(src cluster.Source, dst cluster.Destination, owner naming.Owner) *Store {
	return &Store{src: src, dst: dst, owner: owner}
}

// Create writes the record of a new run on both clusters and returns its
// journal. The run's plan, uid and kind, who, host and version, steps and
// findings are the caller's; the rest is set here.
func (s *Store) Create(ctx context.Context, r Run) (*Journal, error) {
	r.Schema, r.State, r.Attempts, r.Process = Schema, Running, 1, rand.Text()
	r.hideFindings()
	j := s.journal(r, nil, nil)
	if err := j.create(ctx); err != nil {
		return nil, err
	}
	return j, nil
}

// Resume takes a run over from whoever drove it. The caller holds the run's
// lease. r tells who takes it: its Who, Host and Version are written down.
// Errors: *NewerError, *BrokenError.
func (s *Store) Resume(ctx context.Context, r Run) (*Journal, error) {
	owner := s.ownerOf(r.UID)
	h, cm, err := readHead(ctx, s.src.Cluster, owner.RunRecord())
	if err != nil {
		return nil, err
	}
	content, err := readParts(ctx, s.src.Cluster, h.Parts)
	if err != nil {
		return nil, err
	}
	stored, err := unpack(h, cm.Data[keyPlan], content)
	if err != nil {
		return nil, &BrokenError{Name: nameOf(cm), Err: err}
	}
	stored.Who, stored.Host, stored.Version = r.Who, r.Host, r.Version
	j := s.journal(stored, h.Parts, content)
	if err := j.takeOver(ctx, cm); err != nil {
		return nil, err
	}
	return j, nil
}

// Latest is the plan's last run, whole; ErrNoRun where there is none.
func (s *Store) Latest(ctx context.Context) (*Run, error) {
	runs, err := s.List(ctx)
	if err != nil {
		return nil, err
	}
	if len(runs) == 0 {
		return nil, ErrNoRun
	}
	return s.Load(ctx, runs[0].UID)
}

// Load reads one run, whole. Errors: ErrNoRun, *NewerError, *BrokenError.
func (s *Store) Load(ctx context.Context, runUID string) (*Run, error) {
	return Read(ctx, s.src.Cluster, s.ownerOf(runUID))
}

// List are the plan's runs as their heads tell them, the newest first. What
// did not fit a head is left out; Load has it.
func (s *Store) List(ctx context.Context) ([]Run, error) {
	return List(ctx, s.src.Cluster, s.ownerOf(""))
}

// List are the runs of which a cluster has a record, the newest first: of one
// plan, or of all where the owner names none. Each is as its head tells it.
func List(ctx context.Context, c *cluster.Cluster, owner naming.Owner) ([]Run, error) {
	runs, broken, err := Heads(ctx, c, owner)
	if err == nil && len(broken) > 0 {
		err = broken[0] // who goes on from these runs must not miss one
	}
	return runs, err
}

// Heads is List for who only reads: a record that cannot be read hides no
// other. broken says of each such which it is, and why.
func Heads(ctx context.Context, c *cluster.Cluster, owner naming.Owner) (runs []Run, broken []error, err error) {
	var found corev1.ConfigMapList
	err = c.List(ctx, &found, client.InNamespace(c.VeleroNamespace), client.MatchingLabelsSelector{Selector: owner.Records(naming.RecordRun)})
	if err != nil {
		return nil, nil, fmt.Errorf("list the run records in namespace %s: %w", c.VeleroNamespace, err)
	}
	runs = make([]Run, 0, len(found.Items))
	for i := range found.Items {
		h, err := decodeHead(&found.Items[i])
		if err != nil {
			broken = append(broken, err)
			continue
		}
		h.Plan.YAML = found.Items[i].Data[keyPlan]
		h.hide()
		runs = append(runs, h.Run)
	}
	slices.SortFunc(runs, func(a, b Run) int { return b.Started.Compare(a.Started) })
	return runs, broken, nil
}

// End writes the end of a run that this process does not drive: a rollback
// says of the runs that it took back that they are. Whoever still drives the
// run meets an *EndedError at its next step. A run that already ended so is
// left as it is.
func (s *Store) End(ctx context.Context, runUID string, state State, message string, by Run) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		r, err := s.Load(ctx, runUID)
		if err != nil || r.State == state {
			return err
		}
		j, err := s.Resume(ctx, by.as(runUID))
		if err != nil {
			return err
		}
		return j.Finish(ctx, state, message)
	})
}

// as is the run with another uid.
func (r Run) as(uid string) Run {
	r.UID = uid
	return r
}

func (s *Store) ownerOf(runUID string) naming.Owner {
	o := s.owner
	o.RunUID = runUID
	return o
}

// Read is one run, whole, as one cluster tells it: any of the two will do.
// Errors: ErrNoRun, *NewerError, *BrokenError.
func Read(ctx context.Context, c *cluster.Cluster, owner naming.Owner) (*Run, error) {
	h, cm, err := readHead(ctx, c, owner.RunRecord())
	if err != nil {
		return nil, err
	}
	content, err := readParts(ctx, c, h.Parts)
	if err != nil {
		return nil, err
	}
	r, err := unpack(h, cm.Data[keyPlan], content)
	if err != nil {
		return nil, &BrokenError{Name: nameOf(cm), Err: err}
	}
	r.hide()
	return &r, nil
}

func readHead(ctx context.Context, c *cluster.Cluster, name string) (head, *corev1.ConfigMap, error) {
	var cm corev1.ConfigMap
	err := c.Get(ctx, client.ObjectKey{Namespace: c.VeleroNamespace, Name: name}, &cm)
	if apierrors.IsNotFound(err) {
		return head{}, nil, fmt.Errorf("run record %s/%s: %w", c.VeleroNamespace, name, ErrNoRun)
	}
	if err != nil {
		return head{}, nil, fmt.Errorf("run record %s/%s: %w", c.VeleroNamespace, name, err)
	}
	h, err := decodeHead(&cm)
	return h, &cm, err
}

// decodeHead reads run.json, its format first: what a newer mig wrote may mean
// something else.
func decodeHead(cm *corev1.ConfigMap) (head, error) {
	var format struct {
		Schema  int    `json:"schema"`
		Version string `json:"version"`
	}
	text := []byte(cm.Data[keyRun])
	if err := json.Unmarshal(text, &format); err != nil {
		return head{}, &BrokenError{Name: nameOf(cm), Err: fmt.Errorf("%s: %w", keyRun, err)}
	}
	if format.Schema > Schema {
		return head{}, &NewerError{Name: nameOf(cm), Schema: format.Schema, Version: format.Version}
	}
	var h head
	if err := json.Unmarshal(text, &h); err != nil {
		return head{}, &BrokenError{Name: nameOf(cm), Err: fmt.Errorf("%s: %w", keyRun, err)}
	}
	return h, nil
}

// readParts reads what the parts hold, by name. A part that is gone is left
// out; whoever needs it says so.
func readParts(ctx context.Context, c *cluster.Cluster, parts []part) (map[string][]byte, error) {
	content := map[string][]byte{}
	for _, p := range parts {
		var cm corev1.ConfigMap
		err := c.Get(ctx, client.ObjectKey{Namespace: c.VeleroNamespace, Name: p.Name}, &cm)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("part %s/%s of a run record: %w", c.VeleroNamespace, p.Name, err)
		}
		content[p.Name] = cm.BinaryData[keyPart]
	}
	return content, nil
}

func nameOf(cm *corev1.ConfigMap) string { return cm.Namespace + "/" + cm.Name }

// errGone is a record that was deleted while its run was at it.
var errGone = errors.New("the run record is gone; without it nothing can be resumed or taken back, so the run stops")
