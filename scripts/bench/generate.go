package main

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/apitest"
	"github.com/mig-cli/mig/internal/cluster"
)

// writers is how many objects are made at once.
const writers = 32

func portOf(n int) intstr.IntOrString { return intstr.FromInt(n) }

//go:embed content.go generate.go
var sources embed.FS

// data is etcd's directory of a cluster of a size: a copy, for what a run
// writes, of one that is made once and kept as long as its generator is the
// same.
func data(ctx context.Context, dir string, s size) (string, error) {
	kept, err := keptData(s)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(kept); err != nil {
		if err := generate(ctx, dir, kept, s); err != nil {
			return "", err
		}
	}
	copied := filepath.Join(dir, "etcd-"+filepath.Base(kept))
	return copied, exec.CommandContext(ctx, "cp", "-r", "--reflink=auto", kept, copied).Run()
}

// keptData is where the data of a size is kept, whether it is there or not.
func keptData(s size) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%+v", s)
	for _, name := range []string{"content.go", "generate.go"} {
		source, err := sources.ReadFile(name)
		if err != nil {
			return "", err
		}
		sum.Write(source)
	}
	return filepath.Join(cache, "mig-lab", "bench", hex.EncodeToString(sum.Sum(nil))[:16]), nil
}

func generate(ctx context.Context, dir, kept string, s size) error {
	began := time.Now()
	fmt.Printf("making a cluster with %s\n", s)
	making := kept + ".making"
	if err := os.RemoveAll(making); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(making), 0o755); err != nil {
		return err
	}
	p, err := apitest.Start(filepath.Join(dir, "making"), apitest.Options{SourceData: making})
	if err != nil {
		return err
	}
	err = (&generator{size: s, c: p.Source.Cluster}).fill(ctx)
	if stopErr := p.Stop(); err == nil {
		err = stopErr
	}
	if err != nil {
		return err
	}
	fmt.Printf("made in %s\n", time.Since(began).Round(time.Second))
	return os.Rename(making, kept)
}

// generator fills a cluster.
type generator struct {
	size size
	c    *cluster.Cluster
}

func (g *generator) fill(ctx context.Context) error {
	for _, part := range []struct {
		what string
		make func(context.Context) error
	}{{"kinds", g.kinds}, {"namespaces with pods and claims", g.namespaces}, {"objects of the kinds", g.objects}} {
		began := time.Now()
		if err := part.make(ctx); err != nil {
			return fmt.Errorf("%s: %w", part.what, err)
		}
		fmt.Printf("  %s: %s\n", part.what, time.Since(began).Round(100*time.Millisecond))
	}
	return nil
}

// times does something n times, by many at once.
func times(ctx context.Context, n int, do func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// kinds makes the kinds and waits until all are served.
func (g *generator) kinds(ctx context.Context) error {
	scheme := cluster.Scheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return err
	}
	c, err := client.New(rest.CopyConfig(g.c.Config), client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	err = times(ctx, g.size.Kinds, func(ctx context.Context, i int) error { return c.Create(ctx, definition(i)) })
	if err != nil {
		return err
	}
	for {
		var list apiextensionsv1.CustomResourceDefinitionList
		if err := c.List(ctx, &list); err != nil {
			return err
		}
		if !slices.ContainsFunc(list.Items, isNotServed) {
			return nil
		}
		time.Sleep(time.Second)
	}
}

func isNotServed(d apiextensionsv1.CustomResourceDefinition) bool {
	return !slices.ContainsFunc(d.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}

func (g *generator) namespaces(ctx context.Context) error {
	if err := g.c.Create(ctx, storageClass()); err != nil {
		return err
	}
	return times(ctx, g.size.Namespaces, func(ctx context.Context, i int) error {
		if err := g.c.Create(ctx, namespaceOf(i)); err != nil {
			return err
		}
		return g.namespace(ctx, namespaceName(i))
	})
}

// namespace fills one namespace.
func (g *generator) namespace(ctx context.Context, name string) error {
	db, deployment := database(name, g.size.Claims), web(name, g.size.Pods-g.size.Claims)
	for _, o := range []client.Object{config(name, "db"), config(name, "web"), service(name, "db"), service(name, "web"), db, deployment} {
		if err := g.c.Create(ctx, o); err != nil {
			return err
		}
	}
	replicas := webReplicas(deployment)
	if err := g.c.Create(ctx, replicas); err != nil {
		return err
	}
	for i := range g.size.Claims {
		if err := g.bound(ctx, claim(name, i)); err != nil {
			return err
		}
	}
	for i := range g.size.Pods {
		p := pod(name, i, g.size.Claims, db, replicas)
		p.Spec.NodeName = fmt.Sprintf("node-%02d", i)
		if err := g.c.Create(ctx, p); err != nil {
			return err
		}
		running(p)
		if err := g.c.Status().Update(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// bound makes a claim and its volume, as if they had found each other.
func (g *generator) bound(ctx context.Context, c *corev1.PersistentVolumeClaim) error {
	if err := g.c.Create(ctx, c); err != nil {
		return err
	}
	v := volume(c)
	if err := g.c.Create(ctx, v); err != nil {
		return err
	}
	v.Status.Phase = corev1.VolumeBound
	if err := g.c.Status().Update(ctx, v); err != nil {
		return err
	}
	c.Status.Phase, c.Status.Capacity, c.Status.AccessModes = corev1.ClaimBound, capacity(), c.Spec.AccessModes
	return g.c.Status().Update(ctx, c)
}

// objects spreads those of the custom kinds over the namespaces of the large
// cluster, and makes those whose namespace there is.
func (g *generator) objects(ctx context.Context) error {
	s := g.size
	return times(ctx, s.Objects, func(ctx context.Context, n int) error {
		kind, i := n%s.Kinds, (n/s.Kinds*7+n)%s.Of
		if i >= s.Namespaces {
			return nil
		}
		path, body := thing(namespaceName(i), kind, n)
		for { // a kind that is established is served by then, or a moment later
			err := g.c.Discovery.RESTClient().Post().AbsPath(path).Body([]byte(body)).SetHeader("Content-Type", "application/json").Do(ctx).Error()
			if !apierrors.IsNotFound(err) {
				return err
			}
			time.Sleep(200 * time.Millisecond)
		}
	})
}
