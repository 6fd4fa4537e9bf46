package velero

import (
	"fmt"
	"path"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
)

// Repository is where kopia keeps what Velero copied of a namespace's volumes,
// and where the keys to it are: in Secrets beside Velero, which mig never reads.
type Repository struct {
	Bucket, Prefix, Region, URL, Profile string
	SkipVerify                           bool
	CA                                   []byte                    // PEM; beside those that the system trusts
	CAFrom                               *corev1.SecretKeySelector // instead of CA
	Keys                                 *corev1.SecretKeySelector // nil: the node's or the service account's own identity
	Password                             corev1.SecretKeySelector
}

// RepositoryOf reads from a storage location where the repository of a namespace
// is, as Velero's servers do (velero pkg/repository/provider/unified_repo.go and
// pkg/repository/keys). Errors: it is not in S3, which is all that mig-mover reads.
func RepositoryOf(l *velerov1.BackupStorageLocation, agent NodeAgent, namespace string) (Repository, error) {
	if l.Spec.Provider != "aws" && l.Spec.Provider != "velero.io/aws" {
		return Repository{}, fmt.Errorf("storage location %s is of provider %s, and mig-mover reads S3 only", l.Name, l.Spec.Provider)
	}
	if l.Spec.ObjectStorage == nil {
		return Repository{}, fmt.Errorf("storage location %s names no bucket", l.Name)
	}
	config := l.Spec.Config
	out := Repository{
		Bucket: l.Spec.ObjectStorage.Bucket, Prefix: path.Join(l.Spec.ObjectStorage.Prefix, "kopia", namespace) + "/",
		Region: config["region"], URL: config["s3Url"], Profile: config["profile"],
		SkipVerify: config["insecureSkipTLSVerify"] == "true",
		CA:         l.Spec.ObjectStorage.CACert, CAFrom: l.Spec.ObjectStorage.CACertRef,
		Keys:     agent.Keys,
		Password: secretKey("velero-repo-credentials", "repository-password"),
	}
	if l.Spec.Credential != nil {
		out.Keys = l.Spec.Credential
	}
	return out, nil
}

func secretKey(name, key string) corev1.SecretKeySelector {
	return corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key}
}
