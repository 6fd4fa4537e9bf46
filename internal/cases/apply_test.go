//go:build e2e

package cases

import (
	"context"
	"fmt"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/labtest"
)

// doAnnotation says what is done to an object when all are there.
const doAnnotation = "given.test/do"

// madeUpPrefix begins the names of provisioners that stand in scenarios for the
// one that the bed has.
const madeUpPrefix = "csi.test/"

// applying makes the objects of one side.
type applying struct {
	p      *place
	c      *cluster.Cluster
	made   []*unstructured.Unstructured
	marked []*unstructured.Unstructured
}

func (a *applying) one(given *unstructured.Unstructured) {
	a.p.t.Helper()
	o := given.DeepCopy()
	status, hasStatus := o.Object["status"]
	delete(o.Object, "status")
	a.realUIDs(o)
	a.realProvisioner(o)
	if !a.create(o) {
		return
	}
	a.made = append(a.made, o)
	if o.GetAnnotations()[doAnnotation] == "delete" {
		a.marked = append(a.marked, o)
	}
	if hasStatus {
		a.p.must(a.setStatus(o, status))
	}
}

// create makes an object; false where it was there already and stays.
func (a *applying) create(o *unstructured.Unstructured) bool {
	a.p.t.Helper()
	what := fmt.Sprintf("%s %s/%s on %s", o.GetKind(), o.GetNamespace(), o.GetName(), a.c.Access.Context)
	there := false
	// A kind may have been made a moment ago.
	a.p.must(labtest.Until(a.p.t.Context(), patience, what, func(ctx context.Context) (labtest.NotYet, error) {
		err := a.c.Create(ctx, o)
		switch {
		case apierrors.IsAlreadyExists(err):
			there = true
			return "", nil
		case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
			a.p.t.Fatalf("%s: %v", what, err)
		case meta.IsNoMatchError(err):
			return labtest.NotYet(err.Error()), nil
		}
		return "", err
	}))
	switch {
	case !there:
		a.p.cleared(a.c, o)
	case o.GetNamespace() == labtest.VeleroNamespace:
		a.replace(o)
	case o.GetKind() != "Namespace" && o.GetName() != "default":
		a.p.t.Fatalf("%s is there already", what)
	}
	return !there
}

// replace puts an object in the place of the bed's own until the test ends.
func (a *applying) replace(o *unstructured.Unstructured) {
	a.p.t.Helper()
	was := &unstructured.Unstructured{}
	was.SetGroupVersionKind(o.GroupVersionKind())
	a.p.must(a.c.Get(a.p.t.Context(), client.ObjectKeyFromObject(o), was))
	put := func(ctx context.Context, o *unstructured.Unstructured) error {
		now := &unstructured.Unstructured{}
		now.SetGroupVersionKind(o.GroupVersionKind())
		if err := a.c.Get(ctx, client.ObjectKeyFromObject(o), now); err != nil {
			return err
		}
		o = o.DeepCopy()
		o.SetResourceVersion(now.GetResourceVersion())
		return a.c.Update(ctx, o)
	}
	a.p.must(put(a.p.t.Context(), o))
	a.p.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(a.p.t.Context()), patience)
		defer cancel()
		if err := put(ctx, was); err != nil {
			a.p.t.Errorf("putting back %s %s: %v", was.GetKind(), was.GetName(), err)
		}
	})
}

func (a *applying) setStatus(o *unstructured.Unstructured, status any) error {
	return labtest.Until(a.p.t.Context(), patience, "status of "+o.GetKind()+" "+o.GetName(), func(ctx context.Context) (labtest.NotYet, error) {
		now := &unstructured.Unstructured{}
		now.SetGroupVersionKind(o.GroupVersionKind())
		if err := a.c.Get(ctx, client.ObjectKeyFromObject(o), now); err != nil {
			return "", err
		}
		now.Object["status"] = status
		err := a.c.Status().Update(ctx, now)
		if apierrors.IsNotFound(err) { // the kind has no status of its own
			err = a.c.Update(ctx, now)
		}
		return "", err
	})
}

func (a *applying) deleteMarked() {
	a.p.t.Helper()
	for _, o := range a.marked {
		a.p.must(client.IgnoreNotFound(a.c.Delete(a.p.t.Context(), o)))
	}
}

// isMadeUp says of a uid whether it is one digit again and again, which stands
// for a real one.
func isMadeUp(uid string) bool {
	digits := strings.ReplaceAll(uid, "-", "")
	return digits != "" && strings.Trim(digits, digits[:1]) == ""
}

func hasMadeUpUID(o *unstructured.Unstructured) bool {
	uid, _, _ := unstructured.NestedString(o.Object, "spec", "claimRef", "uid")
	return isMadeUp(uid)
}

// realUIDs puts the uids of what was made before in the place of made-up ones.
func (a *applying) realUIDs(o *unstructured.Unstructured) {
	owners := o.GetOwnerReferences()
	for i := range owners {
		if uid := a.uidOf(owners[i].Kind, o.GetNamespace(), owners[i].Name); isMadeUp(string(owners[i].UID)) && uid != "" {
			owners[i].UID = uid
		}
	}
	if len(owners) > 0 {
		o.SetOwnerReferences(owners)
	}
	ref, ok, _ := unstructured.NestedStringMap(o.Object, "spec", "claimRef")
	if uid := a.uidOf("PersistentVolumeClaim", ref["namespace"], ref["name"]); ok && hasMadeUpUID(o) && uid != "" {
		_ = unstructured.SetNestedField(o.Object, string(uid), "spec", "claimRef", "uid")
	}
}

func (a *applying) uidOf(kind, namespace, name string) types.UID {
	for _, o := range a.made {
		if o.GetKind() == kind && o.GetName() == name && (o.GetNamespace() == namespace || o.GetNamespace() == "") {
			return o.GetUID()
		}
	}
	return ""
}

// realProvisioner puts the bed's provisioner in the place of a made-up one, with
// volumes that are as large as they say: one that a case fills would fill this
// machine. The API bed's hands take any.
func (a *applying) realProvisioner(o *unstructured.Unstructured) {
	a.p.t.Helper()
	if o.GetKind() != "StorageClass" || !isStandIn(o.Object["provisioner"]) {
		return
	}
	var classes storagev1.StorageClassList
	a.p.must(a.c.List(a.p.t.Context(), &classes))
	for _, class := range classes.Items {
		if !isStandIn(class.Provisioner) && class.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" {
			o.Object["provisioner"], o.Object["parameters"] = class.Provisioner, map[string]any{"sized": "true"}
		}
	}
}

func isStandIn(provisioner any) bool {
	name, ok := provisioner.(string)
	return ok && strings.HasPrefix(name, madeUpPrefix)
}

// allGone waits until namespaces are gone, for the next scenario may have some
// of the same names.
func (p *place) allGone(c *cluster.Cluster, namespaces []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.t.Context()), patience)
	defer cancel()
	if err := labtest.RemoveNamespaces(ctx, c, namespaces...); err != nil {
		p.t.Error(err)
	}
}

// asUser lets mig come to both clusters as somebody else.
func (p *place) asUser(name string) {
	p.t.Helper()
	config, err := clientcmd.LoadFromFile(p.lab.Kubeconfig)
	p.must(err)
	for _, user := range config.AuthInfos {
		user.Impersonate = name
	}
	lab := *p.lab
	lab.Kubeconfig = p.file("kubeconfig-" + name)
	p.must(clientcmd.WriteToFile(*config, lab.Kubeconfig))
	p.lab = &lab
}

// nested is a text within an object, empty where there is none.
func nested(o *unstructured.Unstructured, fields ...string) string {
	text, _, _ := unstructured.NestedString(o.Object, fields...)
	return text
}
