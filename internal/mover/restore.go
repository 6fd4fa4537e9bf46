package mover

import (
	"bufio"
	"io"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/mig-cli/mig/internal/moverlog"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/velero"
)

// Wish is what a volume is to be made equal to.
type Wish struct {
	Snapshot   string // of kopia; empty: the volume held nothing
	Repository velero.Repository
}

// Where the pod finds what it needs.
const (
	workDir     = "/work"
	passwordDir = "/repository"
	keysDir     = "/keys"
	caDir       = "/authority"
	secretFile  = "content"
)

// RestorePod makes a volume equal to a snapshot, through the mount of the pod
// that has it, with the keys that Velero has beside it: none of them leaves
// Velero's namespace. attempt counts from 1.
func RestorePod(o naming.Owner, namespace, image string, v Volume, agent velero.NodeAgent, w Wish, attempt int) *corev1.Pod {
	p := pod(o, StepRestore, namespace, o.RestorePod(v.Claim), image, v.Pod.Spec.NodeName, agent)
	p.Annotations[naming.AnnClaim], p.Annotations[naming.AnnAttempt] = v.Claim, strconv.Itoa(attempt)
	args := []string{"restore", "--root", path(v), "--summary", summaryFile}
	seesVolumes(p, agent, false)
	c := &p.Spec.Containers[0]
	if w.Snapshot == "" {
		c.Args = append(args, "--empty")
		return p
	}
	p.Spec.ServiceAccountName = agent.ServiceAccount // whose identity may be the key to the bucket
	c.Env = agent.Proxies
	c.Args = append(append(args, "--snapshot", w.Snapshot, "--work", workDir), storageArgs(w.Repository)...)
	mounts(p, corev1.VolumeMount{MountPath: workDir}, corev1.Volume{Name: "work", VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: ptr.To(resource.MustParse("2Gi"))},
	}})
	mountSecret(p, "repository", passwordDir, w.Repository.Password)
	if k := w.Repository.Keys; k != nil {
		mountSecret(p, "keys", keysDir, *k)
		c.Env = append(c.Env, corev1.EnvVar{Name: "AWS_SHARED_CREDENTIALS_FILE", Value: keysDir + "/" + secretFile})
	}
	mountAuthority(p, w.Repository)
	return p
}

func storageArgs(r velero.Repository) []string {
	args := []string{"--password-file", passwordDir + "/" + secretFile, "--bucket", r.Bucket, "--prefix", r.Prefix}
	for _, a := range [][2]string{{"--s3-url", r.URL}, {"--region", r.Region}, {"--profile", r.Profile}} {
		if a[1] != "" {
			args = append(args, a[0], a[1])
		}
	}
	if r.SkipVerify {
		args = append(args, "--insecure-skip-tls-verify")
	}
	if len(r.CA) > 0 || r.CAFrom != nil {
		args = append(args, "--ca-file", caDir+"/"+secretFile)
	}
	return args
}

func mountSecret(p *corev1.Pod, name, dir string, from corev1.SecretKeySelector) {
	mounts(p, corev1.VolumeMount{MountPath: dir, ReadOnly: true}, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: from.Name, Items: []corev1.KeyToPath{{Key: from.Key, Path: secretFile}}},
	}})
}

// mountAuthority gives the pod the certificates that the location says: they
// are no secret, and on the pod itself they need no object of their own.
func mountAuthority(p *corev1.Pod, r velero.Repository) {
	switch {
	case r.CAFrom != nil:
		mountSecret(p, "authority", caDir, *r.CAFrom)
	case len(r.CA) > 0:
		p.Annotations[naming.AnnAuthority] = string(r.CA)
		mounts(p, corev1.VolumeMount{MountPath: caDir, ReadOnly: true}, corev1.Volume{Name: "authority", VolumeSource: corev1.VolumeSource{
			DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{{
				Path: secretFile, FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + naming.AnnAuthority + "']"},
			}}},
		}})
	}
}

// Attempt is the how manieth pod of its claim it is.
func Attempt(p *corev1.Pod) int {
	n, err := strconv.Atoi(p.Annotations[naming.AnnAttempt])
	if err != nil {
		return 1
	}
	return n
}

// Restored reads what a pod that has ended did. Errors: how it failed.
func Restored(p *corev1.Pod) (moverlog.Summary, error) {
	ended, err := endOf(p, exitDone, exitDiffers)
	if err != nil {
		return moverlog.Summary{}, err
	}
	return moverlog.ReadSummary(ended.Message)
}

// Progress reads from the end of a log how far the restore is; false: it has
// not said yet.
func Progress(log io.Reader) (last moverlog.Progress, ok bool) {
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		if p, is := moverlog.ReadProgress(lines.Bytes()); is {
			last, ok = p, true
		}
	}
	return last, ok
}

// Probed is nil where a probe that has ended ran the image.
func Probed(p *corev1.Pod) error {
	_, err := endOf(p, exitDone)
	return err
}

// Lacks names the first things that a restored volume lacks because they are not
// in the backup, and how many there are.
func Lacks(s moverlog.Summary) string {
	return named(s.First, s.Disagreements)
}
