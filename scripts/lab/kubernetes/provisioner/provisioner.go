// Package provisioner makes PersistentVolumes of type local out of directories of this machine, for one cluster whose
// nodes are all on it. Not of type hostPath, which Velero's file-system backup refuses.
//
// It uses client-go alone: the usual library for provisioners would raise the versions of golang.org/x, grpc and
// prometheus in this module, and so rebuild all of Kubernetes at others than it was released with.
package provisioner

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
)

const (
	annotationProvisioner   = "volume.kubernetes.io/storage-provisioner" // the controller-manager asks us by it
	annotationSelectedNode  = "volume.kubernetes.io/selected-node"       // the scheduler's choice for a claim that waited
	annotationProvisionedBy = "pv.kubernetes.io/provisioned-by"

	// parameterSized is the StorageClass parameter for volumes that end at the claim's size.
	parameterSized = "sized"

	syncTimeout = 30 * time.Second
)

// Main runs the provisioner with the command line's arguments and returns the exit code.
func Main(args []string) int {
	flags := flag.NewFlagSet("provisioner", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "`file` with access to the cluster")
	name := flags.String("name", "", "the `provisioner` that StorageClasses name")
	base := flags.String("base", "", "`directory` for the volumes")
	node := flags.String("node", "", "`node` of the volumes that are made before a pod wants them")
	_ = flags.Parse(args)

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err == nil {
		err = run(ctx, kubernetes.NewForConfigOrDie(config), provisioner{name: *name, node: *node, store: store{base: *base}})
	}
	if err != nil {
		log.Print(err)
		return 1
	}
	return 0
}

type provisioner struct {
	client  kubernetes.Interface
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister

	name  string
	node  string
	store store
}

// item is a claim or a volume to look at: volumes have no namespace.
type item struct{ namespace, name string }

func run(ctx context.Context, client kubernetes.Interface, p provisioner) error {
	factory := informers.NewSharedInformerFactory(client, 0)
	claims, volumes := factory.Core().V1().PersistentVolumeClaims(), factory.Core().V1().PersistentVolumes()
	p.client, p.claims, p.volumes = client, claims.Lister(), volumes.Lister()

	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[item]())
	context.AfterFunc(ctx, queue.ShutDown)
	enqueue := func(object any) {
		if meta, ok := object.(metav1.Object); ok {
			queue.Add(item{meta.GetNamespace(), meta.GetName()})
		}
	}
	for _, informer := range []cache.SharedIndexInformer{claims.Informer(), volumes.Informer()} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: enqueue, UpdateFunc: func(_, now any) { enqueue(now) }})
		if err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	for {
		next, down := queue.Get()
		if down {
			return nil
		}
		if err := p.sync(ctx, next); err != nil {
			log.Printf("%s/%s: %v", next.namespace, next.name, err)
			queue.AddRateLimited(next)
		} else {
			queue.Forget(next)
		}
		queue.Done(next)
	}
}

func (p provisioner) sync(ctx context.Context, next item) error {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	if next.namespace == "" {
		volume, err := p.volumes.Get(next.name)
		if err != nil {
			return ignoreNotFound(err)
		}
		return p.syncVolume(ctx, volume)
	}
	claim, err := p.claims.PersistentVolumeClaims(next.namespace).Get(next.name)
	if err != nil {
		return ignoreNotFound(err)
	}
	return p.syncClaim(ctx, claim)
}

// syncClaim makes the volume that a claim of ours waits for.
func (p provisioner) syncClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if claim.Annotations[annotationProvisioner] != p.name || claim.Spec.VolumeName != "" || claim.DeletionTimestamp != nil {
		return nil
	}
	class, err := p.client.StorageV1().StorageClasses().Get(ctx, *claim.Spec.StorageClassName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	node := chooseNode(claim, class, p.node)
	if node == "" {
		return nil
	}
	if mode := claim.Spec.VolumeMode; mode != nil && *mode == corev1.PersistentVolumeBlock {
		return fmt.Errorf("volumeMode Block is not to be had from %s", p.name)
	}
	name := "pvc-" + string(claim.UID)
	var path string
	if isSized(class) {
		path, err = p.store.makeSized(ctx, node, name, claim.Spec.Resources.Requests.Storage().Value())
	} else {
		path, err = p.store.make(node, name)
	}
	if err != nil {
		return err
	}
	_, err = p.client.CoreV1().PersistentVolumes().Create(ctx, p.buildVolume(name, path, node, claim, class), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// chooseNode returns the node for a claim's volume, or nothing while the scheduler has not chosen. Volumes that no pod
// waits for are all on one node, since a pod that mounts two of them could otherwise not run anywhere.
func chooseNode(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, unscheduled string) string {
	if node := claim.Annotations[annotationSelectedNode]; node != "" {
		return node
	}
	if mode := class.VolumeBindingMode; mode != nil && *mode == storagev1.VolumeBindingWaitForFirstConsumer {
		return ""
	}
	return unscheduled
}

func isSized(class *storagev1.StorageClass) bool { return class.Parameters[parameterSized] == "true" }

func (p provisioner) buildVolume(name, path, node string, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) *corev1.PersistentVolume {
	reclaim, mode := corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeFilesystem
	if class.ReclaimPolicy != nil {
		reclaim = *class.ReclaimPolicy
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{annotationProvisionedBy: p.name}},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName:              class.Name,
			PersistentVolumeReclaimPolicy: reclaim,
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    &mode,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: *claim.Spec.Resources.Requests.Storage()},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}},
			// With uid and resourceVersion: a claim of that name that is made later is another claim.
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name,
				UID: claim.UID, ResourceVersion: claim.ResourceVersion,
			},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
			}}}},
		},
	}
}

// syncVolume removes a volume of ours whose claim is gone, and mounts again a sized one that something unmounted.
func (p provisioner) syncVolume(ctx context.Context, volume *corev1.PersistentVolume) error {
	if volume.Annotations[annotationProvisionedBy] != p.name || volume.Spec.Local == nil || !p.store.holds(volume.Spec.Local.Path) {
		return nil
	}
	if volume.Status.Phase != corev1.VolumeReleased {
		return p.store.mount(ctx, volume.Spec.Local.Path)
	}
	if volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		return nil
	}
	if err := p.store.remove(volume.Spec.Local.Path); err != nil {
		return err
	}
	return ignoreNotFound(p.client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{}))
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
