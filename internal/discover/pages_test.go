package discover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/plan"
)

func TestListsComeInPagesAndStartAgainWhenTheyExpire(t *testing.T) {
	pages := map[string][]string{"": {"a", "b"}, "2": {"c"}}
	get := func(_ context.Context, opts ...client.ListOption) ([]string, metav1.ListMeta, error) {
		o := (&client.ListOptions{}).ApplyOptions(opts)
		switch {
		case o.Limit == 0:
			return []string{"a", "b", "c", "d"}, metav1.ListMeta{}, nil
		case o.Continue == "2" && pages["2"] == nil:
			return nil, metav1.ListMeta{}, apierrors.NewResourceExpired("too old")
		case o.Continue == "":
			return pages[""], metav1.ListMeta{Continue: "2"}, nil
		default:
			return pages["2"], metav1.ListMeta{}, nil
		}
	}
	got, err := all(t.Context(), get)
	if err != nil || !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("got %v, %v", got, err)
	}
	pages["2"] = nil
	got, err = all(t.Context(), get)
	if err != nil || !slices.Equal(got, []string{"a", "b", "c", "d"}) {
		t.Errorf("after an expired page: got %v, %v", got, err)
	}
}

// shelf is a kind whose objects, namespace/name, come in pages, and which
// counts what it is asked.
type shelf struct {
	objects []string
	closed  bool // for who asks for all namespaces at once

	mu            sync.Mutex
	pages, single int // of the cluster, of a namespace
}

func (s *shelf) get(_ context.Context, opts ...client.ListOption) ([]string, metav1.ListMeta, error) {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.Namespace != "" {
		s.single++
		return slices.DeleteFunc(slices.Clone(s.objects), func(k string) bool { return namespaceIn(k) != o.Namespace }), metav1.ListMeta{}, nil
	}
	s.pages++
	if s.closed {
		return nil, metav1.ListMeta{}, apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("no"))
	}
	from, _ := strconv.Atoi(o.Continue)
	rest := s.objects[from:]
	if len(rest) <= pageSize {
		return slices.Clone(rest), metav1.ListMeta{}, nil
	}
	at := metav1.ListMeta{Continue: strconv.Itoa(from + pageSize), RemainingItemCount: ptr.To(int64(len(rest) - pageSize))}
	return slices.Clone(rest[:pageSize]), at, nil
}

func namespaceIn(key string) string { ns, _, _ := strings.Cut(key, "/"); return ns }

func TestNamespacesAreListedInTheWayThatCostsLess(t *testing.T) {
	for name, c := range map[string]struct {
		wanted, others, objects int // namespaces, namespaces, objects in each
		closed                  bool
		pages, single           int
	}{
		"few, whatever else there is":    {wanted: 5, others: 995, objects: 20, pages: 0, single: 5},
		"many of a small cluster":        {wanted: 40, others: 0, objects: 2, pages: 1, single: 0},
		"most of a large cluster":        {wanted: 900, others: 100, objects: 20, pages: 40, single: 0},
		"some of a large cluster":        {wanted: 100, others: 900, objects: 20, pages: 1, single: 100},
		"many where not all may be seen": {wanted: 40, others: 0, objects: 2, closed: true, pages: 1, single: 40},
	} {
		t.Run(name, func(t *testing.T) {
			s := &shelf{closed: c.closed}
			var names, want []string
			for i := range c.wanted + c.others {
				ns := fmt.Sprintf("ns-%04d", (i*7919)%(c.wanted+c.others))
				for o := range c.objects {
					s.objects = append(s.objects, fmt.Sprintf("%s/%d", ns, o))
				}
				if i < c.wanted {
					names = append(names, ns)
					want = append(want, s.objects[len(s.objects)-c.objects:]...)
				}
			}
			slices.Sort(s.objects)
			got, err := inNamespaces(t.Context(), names, namespaceIn, s.get)
			if err != nil || len(got) != len(want) || !slices.Equal(namespacesOf(got), names) {
				t.Errorf("got %d objects, %v; want %d, in the order of the namespaces", len(got), err, len(want))
			}
			if s.pages != c.pages || s.single != c.single {
				t.Errorf("asked for %d pages and %d namespaces, want %d and %d", s.pages, s.single, c.pages, c.single)
			}
		})
	}
}

func namespacesOf(keys []string) []string {
	var out []string
	for _, k := range keys {
		out = append(out, namespaceIn(k))
	}
	return slices.Compact(out)
}

func TestFewNamespacesDoNotPayForTheOthers(t *testing.T) {
	var mu sync.Mutex
	asked := map[string]bool{}
	funcs := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if (&client.ListOptions{}).ApplyOptions(opts).Namespace == "" {
			mu.Lock()
			asked[fmt.Sprintf("%T", list)] = true
			mu.Unlock()
		}
		return c.List(ctx, list, opts...)
	}}
	src := cluster.Source{Cluster: newCluster(t, "src", funcs, namespace("shop"), namespace("other"),
		claim("shop", "data", "gp2", "pv-1"), claim("other", "data", "gp2", "pv-2"), csiVolume("pv-1"), csiVolume("pv-2"))}
	dst := cluster.Destination{Cluster: newCluster(t, "dst", interceptor.Funcs{})}
	p, err := Propose(t.Context(), src, dst, Wish{Namespaces: []plan.Namespace{{Name: "shop"}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Claims) != 1 || p.Claims[0].Backend != "csi" {
		t.Errorf("got %+v, want the one claim with its volume", p.Claims)
	}
	for _, list := range []string{"*v1.NamespaceList", "*v1.PersistentVolumeList", "*v1.PersistentVolumeClaimList", "*v1.PodList"} {
		if asked[list] {
			t.Errorf("%s was asked for in all of the cluster", list)
		}
	}
}

func csiVolume(name string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d"}},
	}}
}
