package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/naming"
)

// keyOfPlan is the key of a plan record's data that mig reads.
const keyOfPlan = "plan.json"

// PlanRecord is what the clusters remember of a plan.
type PlanRecord struct {
	Schema     int         `json:"schema"`
	Name       string      `json:"name"`
	UID        string      `json:"uid"`
	Namespaces []Namespace `json:"namespaces,omitempty"`
	LastRun    LastRun     `json:"lastRun"`
}

// LastRun is the plan's newest run in short.
type LastRun struct {
	UID     string    `json:"uid"`
	Kind    string    `json:"kind"`
	State   State     `json:"state"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
}

// LoadPlan reads a plan's record on a cluster; ErrNoRun where there is none.
func LoadPlan(ctx context.Context, c *cluster.Cluster, owner naming.Owner) (*PlanRecord, error) {
	key := client.ObjectKey{Namespace: c.VeleroNamespace, Name: owner.PlanRecord()}
	var cm corev1.ConfigMap
	if err := c.Get(ctx, key, &cm); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("plan record %s: %w", key, ErrNoRun)
		}
		return nil, fmt.Errorf("plan record %s: %w", key, err)
	}
	var p PlanRecord
	if err := json.Unmarshal([]byte(cm.Data[keyOfPlan]), &p); err != nil {
		return nil, &BrokenError{Name: nameOf(&cm), Err: err}
	}
	if p.Schema > Schema {
		return nil, &NewerError{Name: nameOf(&cm), Schema: p.Schema, Version: "unknown"}
	}
	return &p, nil
}

// writePlan brings the plan's record up to date on both clusters.
func (j *Journal) writePlan(ctx context.Context) error {
	err := j.source.putPlan(ctx, j.run)
	if err != nil || j.replica == nil || time.Now().Before(j.again) {
		return err
	}
	if err = j.replica.putPlan(ctx, j.run); err != nil && j.store.DestinationMayBeAway {
		j.trouble, err = errors.Join(j.trouble, err), nil
	}
	return err
}

func (k *copyOn) putPlan(ctx context.Context, r Run) error {
	next, err := buildPlan(k.owner, k.c.VeleroNamespace, r)
	if err != nil {
		return err
	}
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error { return k.putPlanOnce(ctx, r, next) })
	if err != nil {
		return fmt.Errorf("plan record %s: %w", nameOf(next), err)
	}
	return nil
}

func (k *copyOn) putPlanOnce(ctx context.Context, r Run, next *corev1.ConfigMap) error {
	var found corev1.ConfigMap
	err := k.c.Get(ctx, client.ObjectKeyFromObject(next), &found)
	if apierrors.IsNotFound(err) {
		return k.c.Create(ctx, next.DeepCopy())
	}
	if err != nil {
		return err
	}
	var p PlanRecord
	if json.Unmarshal([]byte(found.Data[keyOfPlan]), &p) == nil && p.LastRun.Started.After(r.Started) {
		return nil // an older run that is ended afterwards is not the last one
	}
	return k.c.Update(ctx, over(&found, next))
}

func buildPlan(o naming.Owner, namespace string, r Run) (*corev1.ConfigMap, error) {
	p := PlanRecord{
		Schema: Schema, Name: r.Plan.Name, UID: r.Plan.UID, Namespaces: r.Plan.Namespaces,
		LastRun: LastRun{UID: r.UID, Kind: r.Kind, State: r.State, Started: r.Started, Ended: r.Ended},
	}
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Plan:        %s (%s)\nNamespaces:  %s\n", p.Name, p.UID, namespacesLine(p.Namespaces))
	fmt.Fprintf(&b, "Last run:    %s %s, %s, started %s\nIts record:  %s\n", r.Kind, r.UID, r.State, stamp(r.Started), o.RunRecord())
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: o.PlanRecord(), Namespace: namespace,
			Labels: o.RecordLabels(naming.RecordPlan), Annotations: o.Annotations(),
		},
		Data: map[string]string{"status": b.String(), keyOfPlan: string(text)},
	}, nil
}
