package velero

import (
	"strings"
	"testing"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestTheRepositoryIsWhereVeleroHasIt(t *testing.T) {
	own := secretKey("own-keys", "file")
	agent := NodeAgent{Keys: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "cloud-credentials"}, Key: "cloud"}}
	location := func(change func(*velerov1.BackupStorageLocation)) *velerov1.BackupStorageLocation {
		l := &velerov1.BackupStorageLocation{}
		l.Name, l.Spec.Provider = "default", "velero.io/aws"
		l.Spec.ObjectStorage = &velerov1.ObjectStorageLocation{Bucket: "mig"}
		l.Spec.Config = map[string]string{"region": "minio", "s3Url": "https://store:9000", "insecureSkipTLSVerify": "true", "profile": "x"}
		if change != nil {
			change(l)
		}
		return l
	}
	got, err := RepositoryOf(location(nil), agent, "shop")
	if err != nil || got.Bucket != "mig" || got.Prefix != "kopia/shop/" || got.Region != "minio" || got.URL != "https://store:9000" || !got.SkipVerify || got.Profile != "x" ||
		got.Keys.Name != "cloud-credentials" || got.Password.Name != "velero-repo-credentials" {
		t.Errorf("got %+v, %v", got, err)
	}
	got, err = RepositoryOf(location(func(l *velerov1.BackupStorageLocation) {
		l.Spec.Provider, l.Spec.Credential, l.Spec.ObjectStorage.Prefix = "aws", &own, "/teams/a/"
	}), agent, "shop")
	if err != nil || got.Prefix != "/teams/a/kopia/shop/" || got.Keys.Name != "own-keys" {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err = RepositoryOf(location(func(l *velerov1.BackupStorageLocation) { l.Spec.Provider = "velero.io/gcp" }), agent, "shop"); err == nil || !strings.Contains(err.Error(), "velero.io/gcp") {
		t.Errorf("got %v", err)
	}
}

func TestKeysProxiesAndIdentityAreTheNodeAgents(t *testing.T) {
	ds := &appsv1.DaemonSet{}
	ds.Spec.Template.Spec = corev1.PodSpec{
		ServiceAccountName: "velero", ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}},
		Containers: []corev1.Container{{Env: []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: "http://proxy"}, {Name: "VELERO_NAMESPACE", Value: "velero"}}}},
		Volumes:    []corev1.Volume{{Name: "cloud-credentials", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "cloud-credentials"}}}},
	}
	got := NodeAgentOf(ds)
	if got.ServiceAccount != "velero" || len(got.PullSecrets) != 1 || len(got.Proxies) != 1 || got.Keys == nil || got.Keys.Name != "cloud-credentials" || got.Keys.Key != "cloud" {
		t.Errorf("got %+v", got)
	}
}
