package discover

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
)

// What the kubelets may cost: used bytes are good to know, not worth waiting for.
const (
	kubeletTimeout = 5 * time.Second  // for one
	usageTimeout   = 15 * time.Second // for all
)

// summary is what of a kubelet's /stats/summary is of interest.
type summary struct {
	Pods []struct {
		Pod struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"podRef"`
		Volumes []struct {
			Name  string `json:"name"`
			Claim *struct {
				Name      string `json:"name"`
				Namespace string `json:"namespace"`
			} `json:"pvcRef"`
			Used     *int64 `json:"usedBytes"`
			Capacity *int64 `json:"capacityBytes"`
		} `json:"volume"`
	} `json:"pods"`
}

// usage is how full a volume is.
type usage struct{ used, size int64 }

// lookAtUsage asks the kubelets on whose nodes the claims are mounted how full
// they are, through the API server's proxy. It needs the right get nodes/proxy,
// which is a mighty one, and asks for it first: who has it not is not told so
// by every node. What cannot be had stays unknown.
func lookAtUsage(ctx context.Context, c *cluster.Cluster, s *SourceFacts) error {
	nodes := mountingNodes(s.Claims)
	if len(nodes) == 0 {
		return nil
	}
	allowed, err := isAllowed(ctx, c, Right{Verb: "get", Resource: "nodes", Subresource: "proxy"})
	if err != nil || !allowed {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, usageTimeout)
	defer cancel()
	claims, err := askKubelets(ctx, c, nodes)
	for i := range s.Claims {
		s.Claims[i].setUsage(claims[s.Claims[i].Key()])
	}
	return err
}

func mountingNodes(claims []Claim) []string {
	var out []string
	for _, c := range claims {
		for _, m := range c.Running() {
			out = append(out, m.Node)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// setUsage believes a kubelet only where the file system that it measured is
// the volume's own: for directories of a node or of an NFS server it tells how
// full the disk below is.
func (c *Claim) setUsage(u usage) {
	capacity, err := resource.ParseQuantity(c.Capacity)
	if err != nil || u.size <= 0 || u.size > capacity.Value()+capacity.Value()/10 {
		return
	}
	c.UsedBytes, c.SizeBytes = u.used, u.size
}

// askKubelets asks each; after three that did not answer the others are not
// asked any more.
func askKubelets(ctx context.Context, c *cluster.Cluster, nodes []string) (map[string]usage, error) {
	const enough = 3
	var mu sync.Mutex
	var errs []error
	out := map[string]usage{}
	var group errgroup.Group
	group.SetLimit(inParallel)
	for _, node := range nodes {
		group.Go(func() error {
			mu.Lock()
			stop := len(errs) >= enough
			mu.Unlock()
			if stop {
				return nil
			}
			got, err := askKubelet(ctx, c, node)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
				return nil
			}
			got.into(out)
			return nil
		})
	}
	_ = group.Wait() // errors are gathered, so that the others are asked
	return out, errors.Join(errs...)
}

func askKubelet(ctx context.Context, c *cluster.Cluster, node string) (summary, error) {
	ctx, cancel := context.WithTimeout(ctx, kubeletTimeout)
	defer cancel()
	var s summary
	body, err := c.Discovery.RESTClient().Get().AbsPath("/api/v1/nodes", node, "proxy/stats/summary").DoRaw(ctx)
	if err != nil {
		return s, client.IgnoreNotFound(err) // a node that is gone, or a kubelet without figures
	}
	return s, json.Unmarshal(body, &s)
}

func (s summary) into(claims map[string]usage) {
	for _, p := range s.Pods {
		for _, v := range p.Volumes {
			if v.Claim != nil && v.Used != nil && v.Capacity != nil {
				claims[v.Claim.Namespace+"/"+v.Claim.Name] = usage{*v.Used, *v.Capacity}
			}
		}
	}
}
