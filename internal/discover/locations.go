package discover

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/velero"
)

func listLocations(ctx context.Context, c client.Client, namespace string) ([]Location, error) {
	var list velerov1.BackupStorageLocationList
	err := c.List(ctx, &list, client.InNamespace(namespace))
	if isNoSuchAPI(err) {
		return nil, nil // told by MissingAPIs
	}
	out := each(list.Items, locationOf)
	slices.SortFunc(out, func(a, b Location) int { return cmp.Compare(a.Name, b.Name) })
	return out, err
}

func locationOf(l *velerov1.BackupStorageLocation) Location {
	out := Location{
		Name: l.Name, Phase: string(l.Status.Phase), Message: progress.Redact(l.Status.Message), Provider: l.Spec.Provider,
		AccessMode: string(l.Spec.AccessMode), Default: l.Spec.Default, Config: l.Spec.Config,
	}
	if l.Spec.ObjectStorage != nil {
		out.Bucket, out.Prefix = l.Spec.ObjectStorage.Bucket, l.Spec.ObjectStorage.Prefix
		out.Authority = len(l.Spec.ObjectStorage.CACert) > 0 || l.Spec.ObjectStorage.CACertRef != nil
	}
	if t := l.Status.LastValidationTime; t != nil {
		out.LastValidated = t.UTC()
	}
	if f := l.Spec.ValidationFrequency; f != nil {
		every := f.Duration
		out.ValidatedEvery = &every
	}
	if s := l.Spec.Credential; s != nil {
		out.Secret = &CredentialSecret{Name: s.Name, Key: s.Key, Own: true}
	}
	return out
}

// lookAtCredentials looks into the Secrets that the locations name, or that the
// installation has for those that name none. Nothing of what they hold is kept.
func lookAtCredentials(ctx context.Context, c client.Client, v *Velero) error {
	flaws := map[string]string{}
	for i := range v.Locations {
		l := &v.Locations[i]
		if l.Secret == nil && v.Server.Credentials {
			l.Secret = &CredentialSecret{Name: defaultSecret, Key: defaultKey}
		}
		if l.Secret == nil {
			continue // the node's or the service account's own identity
		}
		key := strings.Join([]string{l.Secret.Name, l.Secret.Key, l.Provider}, "/")
		if _, known := flaws[key]; !known {
			flaw, err := credentialFlaw(ctx, c, v.Namespace, *l.Secret, l.Provider)
			if err != nil {
				return err
			}
			flaws[key] = flaw
		}
		l.Secret.Flaw = flaws[key]
	}
	return nil
}

func credentialFlaw(ctx context.Context, c client.Client, namespace string, s CredentialSecret, provider string) (string, error) {
	var secret corev1.Secret
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: s.Name}, &secret)
	if apierrors.IsNotFound(err) {
		return "is missing", nil
	}
	if err != nil {
		return "", err
	}
	content, ok := secret.Data[s.Key]
	switch {
	case !ok:
		return "has no key " + s.Key, nil
	case strings.TrimSpace(string(content)) == "":
		return "is empty under the key " + s.Key, nil
	default:
		return malformed(provider, content), nil
	}
}

// malformed says what credentials of a provider lack, never what they hold.
// Providers whose form is not known are believed.
func malformed(provider string, content []byte) string {
	text := string(content)
	lacks := func(what string, anyOf ...string) string {
		for _, word := range anyOf {
			if strings.Contains(text, word) {
				return ""
			}
		}
		return "has no " + what
	}
	switch strings.TrimPrefix(provider, "velero.io/") {
	case "aws":
		if !strings.Contains(text, "[") {
			return "is no AWS credentials file: it has no [profile]"
		}
		return cmp.Or(
			lacks("aws_access_key_id", "aws_access_key_id", "role_arn", "credential_process", "sso_"),
			lacks("aws_secret_access_key", "aws_secret_access_key", "role_arn", "credential_process", "sso_"),
		)
	case "gcp":
		var key struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(content, &key) != nil || key.Type == "" {
			return "is no Google credentials file: it is not JSON with a type"
		}
		return ""
	case "azure":
		return lacks("AZURE_… setting", "AZURE_")
	default:
		return ""
	}
}

// digestRepository keeps of the repository's password only what tells whether
// two clusters have the same.
func digestRepository(ctx context.Context, c client.Client, namespace string) (string, error) {
	var s corev1.Secret
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: repoSecret}, &s); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	password := s.Data[repoSecretKey]
	if len(password) == 0 {
		return "", nil
	}
	sum := sha256.Sum256(password)
	return hex.EncodeToString(sum[:]), nil
}

// The label by which Velero finds the ConfigMap of a plugin, and its built-in
// plugin for storage classes.
const (
	pluginConfig = "velero.io/plugin-config"
	classMap     = "velero.io/change-storage-class"
)

// listClassMaps are the ConfigMaps with which others map storage classes, in
// every restore of the cluster.
func listClassMaps(ctx context.Context, c client.Client, namespace string) ([]string, error) {
	var list corev1.ConfigMapList
	err := c.List(ctx, &list, client.InNamespace(namespace), client.HasLabels{pluginConfig, classMap})
	out := each(list.Items, func(m *corev1.ConfigMap) string { return m.Namespace + "/" + m.Name })
	slices.Sort(out)
	return out, err
}

// The Deployment of the reference system's controller, and where its operator
// puts it.
const (
	migController = "migration-controller"
	migNamespace  = "openshift-migration"
)

// findMigControllers looks for live controllers of the reference system where
// they are put, and beside our Velero. No right to look is no finding.
func findMigControllers(ctx context.Context, c client.Client, namespace string) []string {
	var out []string
	for _, ns := range slices.Compact([]string{migNamespace, namespace}) {
		d, err := getServer(ctx, c, ns, migController)
		if err == nil && d.Found && d.Wanted > 0 {
			out = append(out, ns+"/"+migController)
		}
	}
	return out
}

// unfinishedBackups are the backups that Velero still has to do or does.
func unfinishedBackups(ctx context.Context, c client.Client, namespace string) ([]Work, error) {
	out, err := all(ctx, func(ctx context.Context, opts ...client.ListOption) ([]Work, metav1.ListMeta, error) {
		var list velerov1.BackupList
		err := c.List(ctx, &list, opts...)
		return each(list.Items, func(b *velerov1.Backup) Work {
			if velero.BackupOutcome(b) != velero.Running {
				return Work{}
			}
			return work("Backup", b, string(b.Status.Phase), b.Status.StartTimestamp)
		}), list.ListMeta, err
	}, client.InNamespace(namespace))
	return unfinished(out, err)
}

// unfinishedRestores are the restores that Velero still has to do or does: it
// does one at a time.
func unfinishedRestores(ctx context.Context, c client.Client, namespace string) ([]Work, error) {
	out, err := all(ctx, func(ctx context.Context, opts ...client.ListOption) ([]Work, metav1.ListMeta, error) {
		var list velerov1.RestoreList
		err := c.List(ctx, &list, opts...)
		return each(list.Items, func(r *velerov1.Restore) Work {
			if velero.RestoreOutcome(r) != velero.Running {
				return Work{}
			}
			return work("Restore", r, string(r.Status.Phase), r.Status.StartTimestamp)
		}), list.ListMeta, err
	}, client.InNamespace(namespace))
	return unfinished(out, err)
}

func unfinished(all []Work, err error) ([]Work, error) {
	if isNoSuchAPI(err) {
		return nil, nil // told by MissingAPIs
	}
	all = slices.DeleteFunc(all, func(w Work) bool { return w.Name == "" })
	slices.SortStableFunc(all, func(a, b Work) int { return a.Since.Compare(b.Since) })
	return all, err
}

func work(kind string, o client.Object, phase string, started *metav1.Time) Work {
	w := Work{Kind: kind, Name: o.GetName(), Phase: cmp.Or(phase, "New"), Since: o.GetCreationTimestamp().UTC(), OfPlan: naming.OfPlanUID(o.GetLabels())}
	if started != nil {
		w.Since = started.UTC()
	}
	return w
}
