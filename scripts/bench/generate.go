package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/mig-cli/mig/internal/labtest"
)

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
		if err := generate(ctx, kept, s); err != nil {
			return "", fmt.Errorf("filling a cluster: %w", err)
		}
	}
	copied := filepath.Join(dir, "etcd")
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

// generate fills an etcd with what an API server would have written there. By
// way of an API server it takes ten times as long.
func generate(ctx context.Context, kept string, s size) error {
	began := time.Now()
	fmt.Printf("making a cluster with %s\n", s)
	making := kept + ".making"
	if err := os.RemoveAll(making); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(making), 0o755); err != nil {
		return err
	}
	etcd, err := startEtcd(making)
	if err != nil {
		return err
	}
	g := &generator{size: s, url: etcd.URL.String()}
	if err := errors.Join(g.fill(ctx), etcd.Stop()); err != nil {
		return err
	}
	fmt.Printf("made in %s\n", time.Since(began).Round(100*time.Millisecond))
	return os.Rename(making, kept)
}

// startEtcd starts an etcd alone.
func startEtcd(dir string) (*envtest.Etcd, error) {
	home, err := labtest.Home()
	if err != nil {
		return nil, err
	}
	bin, err := os.MkdirTemp("", "mig-bench-bin-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(bin)
	program := filepath.Join(bin, "etcd") // the lab's one program goes by the name that it is called by
	if err := os.Symlink(filepath.Join(home, "bin", "kubernetes"), program); err != nil {
		return nil, err
	}
	etcd := &envtest.Etcd{Path: program, DataDir: dir, StartTimeout: time.Minute, StopTimeout: time.Minute}
	etcd.Configure().Set("unsafe-no-fsync", "true")
	return etcd, etcd.Start()
}

// generator writes objects into an etcd.
type generator struct {
	size    size
	url     string
	waiting []put
}

// put is an operation in etcd's JSON; its byte slices are base64, as they are there.
type put struct {
	Put struct {
		Key   []byte `json:"key"`
		Value []byte `json:"value"`
	} `json:"requestPut"`
}

// maxPuts is how much etcd takes in one transaction.
const maxPuts = 128

func (g *generator) put(ctx context.Context, key string, value []byte) error {
	var p put
	p.Put.Key, p.Put.Value = []byte("/registry/"+key), value
	if g.waiting = append(g.waiting, p); len(g.waiting) < maxPuts {
		return nil
	}
	return g.flush(ctx)
}

func (g *generator) flush(ctx context.Context) error {
	if len(g.waiting) == 0 {
		return nil
	}
	body, err := json.Marshal(map[string]any{"success": g.waiting})
	if err != nil {
		return err
	}
	g.waiting = nil
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url+"/v3/kv/txn", bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	said, err := io.ReadAll(resp.Body)
	if closeErr := resp.Body.Close(); err == nil {
		err = closeErr
	}
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("etcd: %s: %s", resp.Status, said)
	}
	return err
}

// made gives an object what an API server gives it.
func made(o client.Object, key string) {
	sum := sha256.Sum256([]byte(key))
	id := hex.EncodeToString(sum[:16])
	o.SetUID(types.UID(id[:8] + "-" + id[8:12] + "-" + id[12:16] + "-" + id[16:20] + "-" + id[20:]))
	o.SetCreationTimestamp(metav1.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	o.SetGeneration(1)
	if len(o.GetManagedFields()) == 0 {
		o.SetManagedFields([]metav1.ManagedFieldsEntry{
			{Manager: "helm", Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(managed)}},
		})
	}
}

// store writes a built-in object, in the form in which API servers store those.
func (g *generator) store(ctx context.Context, resource string, o client.Object) error {
	key := resource + "/" + o.GetName()
	if ns := o.GetNamespace(); ns != "" {
		key = resource + "/" + ns + "/" + o.GetName()
	}
	made(o, key)
	gvk, err := apiutil.GVKForObject(o, scheme.Scheme)
	if err != nil {
		return err
	}
	o.GetObjectKind().SetGroupVersionKind(gvk)
	var out bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(o, &out); err != nil {
		return err
	}
	o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return g.put(ctx, key, out.Bytes())
}

func (g *generator) fill(ctx context.Context) error {
	for _, part := range []func(context.Context) error{g.kinds, g.namespaces, g.objects, g.flush} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (g *generator) kinds(ctx context.Context) error {
	for i := range g.size.Kinds {
		d := definition(i)
		key := "apiextensions.k8s.io/customresourcedefinitions/" + d.Name
		made(d, key)
		value, err := json.Marshal(d)
		if err != nil {
			return err
		}
		if err := g.put(ctx, key, value); err != nil {
			return err
		}
	}
	return nil
}

func (g *generator) namespaces(ctx context.Context) error {
	if err := g.store(ctx, "storageclasses", storageClass()); err != nil {
		return err
	}
	for i := range g.size.Namespaces {
		if err := g.store(ctx, "namespaces", namespaceOf(i)); err != nil {
			return err
		}
		if err := g.namespace(ctx, namespaceName(i)); err != nil {
			return err
		}
	}
	return nil
}

// namespace fills one namespace.
func (g *generator) namespace(ctx context.Context, name string) error {
	db, deployment := database(name, g.size.Claims), web(name, g.size.Pods-g.size.Claims)
	var objects []stored
	add := func(resource string, o client.Object) { objects = append(objects, stored{resource, o}) }
	for _, app := range []string{"db", "web"} {
		add("configmaps", config(name, app))
		add("services/specs", service(name, app))
	}
	add("statefulsets", db)
	add("deployments", deployment)
	if err := g.storeAll(ctx, objects); err != nil {
		return err
	}
	replicas := webReplicas(deployment)
	if err := g.store(ctx, "replicasets", replicas); err != nil {
		return err
	}
	for i := range g.size.Claims {
		if err := g.bound(ctx, claim(name, i)); err != nil {
			return err
		}
	}
	return g.pods(ctx, name, db, replicas)
}

// stored is an object and where it goes.
type stored struct {
	resource string
	object   client.Object
}

func (g *generator) storeAll(ctx context.Context, objects []stored) error {
	for _, o := range objects {
		if err := g.store(ctx, o.resource, o.object); err != nil {
			return err
		}
	}
	return nil
}

func (g *generator) pods(ctx context.Context, namespace string, db *appsv1.StatefulSet, replicas *appsv1.ReplicaSet) error {
	for i := range g.size.Pods {
		p := pod(namespace, i, g.size.Claims, db, replicas)
		p.Spec.NodeName = fmt.Sprintf("node-%02d", i)
		running(p)
		if err := g.store(ctx, "pods", p); err != nil {
			return err
		}
	}
	return nil
}

// bound makes a claim and its volume that have found each other.
func (g *generator) bound(ctx context.Context, c *corev1.PersistentVolumeClaim) error {
	c.Status.Phase, c.Status.Capacity, c.Status.AccessModes = corev1.ClaimBound, capacity(), c.Spec.AccessModes
	if err := g.store(ctx, "persistentvolumeclaims", c); err != nil {
		return err
	}
	v := volume(c)
	v.Status.Phase = corev1.VolumeBound
	return g.store(ctx, "persistentvolumes", v)
}

// objects spreads those of the custom kinds over the namespaces of the large
// cluster, and makes those whose namespace there is.
func (g *generator) objects(ctx context.Context) error {
	s := g.size
	for n := range s.Objects {
		kind, i := n%s.Kinds, (n/s.Kinds*7+n)%s.Of
		if i >= s.Namespaces {
			continue
		}
		o := thing(namespaceName(i), kind, n)
		key := groupOf(kind) + "/" + pluralOf(kind) + "/" + o.GetNamespace() + "/" + o.GetName()
		made(o, key)
		value, err := o.MarshalJSON()
		if err != nil {
			return err
		}
		if err := g.put(ctx, key, value); err != nil {
			return err
		}
	}
	return nil
}
