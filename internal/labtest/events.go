package labtest

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/naming"
)

// Event is one Event of mig's, as kubectl would show it.
type Event struct {
	Time      time.Time
	Type      string // Normal | Warning
	Reason    string
	Regarding string // Kind namespace/name
	Text      string
}

// Events are what the plan's runs have told on a cluster, in order of their
// times. A cluster keeps them for an hour.
func Events(ctx context.Context, c *cluster.Cluster, planUID string) ([]Event, error) {
	records, err := recordNames(ctx, c, planUID)
	if err != nil {
		return nil, err
	}
	var list eventsv1.EventList
	if err := c.List(ctx, &list); err != nil {
		return nil, err
	}
	var out []Event
	for _, e := range list.Items {
		if records[e.Regarding.Name] || e.Related != nil && records[e.Related.Name] {
			out = append(out, Event{
				Time: e.EventTime.Time, Type: e.Type, Reason: e.Reason, Text: e.Note,
				Regarding: e.Regarding.Kind + " " + e.Regarding.Namespace + "/" + e.Regarding.Name,
			})
		}
	}
	slices.SortStableFunc(out, func(a, b Event) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Reason, b.Reason))
	})
	return out, nil
}

// recordNames are the records of the plan and of its runs: every Event of mig's
// regards one of them or is related to one.
func recordNames(ctx context.Context, c *cluster.Cluster, planUID string) (map[string]bool, error) {
	var list corev1.ConfigMapList
	err := c.List(ctx, &list, client.InNamespace(c.VeleroNamespace), client.MatchingLabels{naming.LabelPlan: planUID}, client.HasLabels{naming.LabelRecord})
	names := map[string]bool{}
	for _, m := range list.Items {
		names[m.Name] = true
	}
	return names, err
}

// Reasons are the events' reasons, in order.
func Reasons(events []Event) []string {
	out := make([]string, 0, len(events))
	for _, e := range events {
		out = append(out, e.Reason)
	}
	return out
}

// WaitForEvent waits until the plan's runs have told something on a cluster.
func WaitForEvent(ctx context.Context, c *cluster.Cluster, planUID, reason string, limit time.Duration) error {
	return Until(ctx, limit, "Event "+reason+" on "+c.Access.Context, func(ctx context.Context) (NotYet, error) {
		events, err := Events(ctx, c, planUID)
		if err != nil {
			return "", err
		}
		if reasons := Reasons(events); !slices.Contains(reasons, reason) {
			if len(reasons) == 0 {
				return "nothing told yet", nil
			}
			return NotYet("the last was " + reasons[len(reasons)-1]), nil
		}
		return "", nil
	})
}
