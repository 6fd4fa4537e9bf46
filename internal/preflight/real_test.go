//go:build e2e

package preflight

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/plan"
)

func TestARealPairOnWhichAllIsWellIsReady(t *testing.T) {
	conditions := newBed(t).check()
	for _, c := range conditions {
		wellFounded := c.Category == Required && c.Status == True
		if !wellFounded && c.Type != StorageWritableByBoth {
			t.Errorf("%s %s: %s (%v)", c.Category, c.Type, c.Message, c.Objects)
		}
	}
	if !Ready(conditions) {
		t.Error("not ready")
	}
}

// want is what a broken bed must give. In object and message, APP is the
// application's namespace and VELERO is Velero's.
type want struct {
	kind    string
	object  string
	message string
	blocks  bool
}

// realCase breaks one thing of a bed on which all is well.
type realCase struct {
	name  string
	broke func(*bed)
	want  want
}

const (
	blocks  = true
	informs = false
)

func TestEachThingThatIsWrongOnARealPairIsFound(t *testing.T) {
	for _, c := range slices.Concat(connectionCases(), veleroCases(), locationCases(), namespaceCases(), volumeCases(), classCases(), outsideCases(),
		schedulingCases(), networkCases(), admissionCases(), kindCases()) {
		t.Run(c.name, func(t *testing.T) {
			b := newBed(t)
			c.broke(b)
			conditions := b.check()
			fill := strings.NewReplacer("APP", b.ns, "VELERO", b.src.VeleroNamespace).Replace
			got := one(t, conditions, c.want.kind)
			if !slices.Contains(got.Objects, fill(c.want.object)) || !strings.Contains(got.Message, fill(c.want.message)) || got.Blocks() != c.want.blocks {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
			if got.Category == Required && got.Status == True {
				t.Errorf("%s holds: %s", got.Type, got.Message)
			}
			if Ready(conditions) == c.want.blocks {
				t.Errorf("ready is %t: blocking are %+v", Ready(conditions), Blocking(conditions))
			}
			if got.Blocks() && got.Hint == "" {
				t.Errorf("%s blocks, and nothing is said about what to do", got.Type)
			}
		})
	}
}

func veleroOf(c *cluster.Cluster) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: in(c.VeleroNamespace, "velero")}
}

func agentOf(c *cluster.Cluster) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{ObjectMeta: in(c.VeleroNamespace, "node-agent")}
}

func locationOn(c *cluster.Cluster) *velerov1.BackupStorageLocation {
	return &velerov1.BackupStorageLocation{ObjectMeta: in(c.VeleroNamespace, "default")}
}

// args starts Velero's server with one more argument.
func args(c *cluster.Cluster, b *bed, more ...string) {
	change(b, c, veleroOf(c), func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Args = append(d.Spec.Template.Spec.Containers[0].Args, more...)
	})
}

func connectionCases() []realCase {
	return []realCase{
		{"a token that ends within the hour", func(b *bed) {
			b.src = cluster.Source{Cluster: b.as(b.src.Cluster, "soon", 3600)}
		}, want{CredentialsExpiring, "source", "source (token of context src, until ", blocks}},
		{"a token that ends today", func(b *bed) {
			b.dst = cluster.Destination{Cluster: b.as(b.dst.Cluster, "today", 20*3600)}
		}, want{CredentialsExpiring, "destination", "destination (token of context dst", informs}},
		{"a kubeconfig that does not check certificates", func(b *bed) {
			cfg := rest.CopyConfig(b.src.Config)
			cfg.Insecure, cfg.CAData, cfg.CAFile = true, nil, ""
			b.src = cluster.Source{Cluster: b.with(b.src.Cluster, cfg)}
		}, want{TLSNotVerified, "source", "insecure-skip-tls-verify: source (context src)", informs}},
		{"a Velero whose clock is ahead", func(b *bed) {
			change(b, b.src, locationOn(b.src.Cluster), func(l *velerov1.BackupStorageLocation) {
				l.Status.LastValidationTime = &metav1.Time{Time: time.Now().Add(5 * time.Minute)}
			})
		}, want{ClocksDiffer, "source Velero", "ahead of its API server", informs}},
		{"both contexts are one cluster", func(b *bed) {
			same := b.connect("src", b.dst.VeleroNamespace)
			b.dst = cluster.Destination{Cluster: same}
		}, want{ClustersDistinct, "src", "are one cluster", blocks}},
	}
}

// with is a cluster asked in another way.
func (b *bed) with(c *cluster.Cluster, cfg *rest.Config) *cluster.Cluster {
	b.t.Helper()
	out, err := cluster.New(cfg, c.Access, c.VeleroNamespace)
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

// as is a cluster asked with the token of an account that may do everything.
func (b *bed) as(c *cluster.Cluster, name string, seconds int64) *cluster.Cluster {
	b.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: in(c.VeleroNamespace, name)}
	b.create(c, account, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: c.VeleroNamespace + "-" + name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: account.Namespace, Name: name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	})
	return b.with(c, b.token(c, account, seconds))
}

// token is the configuration of an account's token.
func (b *bed) token(c *cluster.Cluster, account *corev1.ServiceAccount, seconds int64) *rest.Config {
	b.t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if err := c.SubResource("token").Create(b.t.Context(), account, request); err != nil {
		b.t.Fatal(err)
	}
	cfg := rest.AnonymousClientConfig(c.Config)
	cfg.BearerToken = request.Status.Token
	return cfg
}

func veleroCases() []realCase {
	return []realCase{
		{
			"a Velero in other namespaces alone", func(b *bed) { b.remove(b.dst, veleroOf(b.dst.Cluster)) },
			want{DestinationVeleroReady, "velero-1", "no Velero in namespace VELERO", blocks},
		},
		{"a Velero that is not ready", func(b *bed) {
			change(b, b.src, veleroOf(b.src.Cluster), func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 0 })
		}, want{SourceVeleroReady, "VELERO/velero", "is not ready", blocks}},
		{
			"a Velero from before copies could be stopped", func(b *bed) {
				image(b, b.src.Cluster, "velero/velero:v1.15.2")
				image(b, b.dst.Cluster, "velero/velero:v1.15.2")
			},
			want{VeleroTooOld, "source", "source (v1.15.2)", blocks},
		},
		{
			"a Velero newer than any that was tested", func(b *bed) {
				image(b, b.src.Cluster, "velero/velero:v1.99.0")
				image(b, b.dst.Cluster, "velero/velero:v1.99.0")
			},
			want{VeleroUntested, "destination", "destination (v1.99.0)", informs},
		},
		{
			"a destination one version newer", func(b *bed) { image(b, b.src.Cluster, "velero/velero:v1.17.2") },
			want{VeleroVersionsDiffer, "source", "source (v1.17.2), destination (v1.18.3)", informs},
		},
		{
			"a destination one version older", func(b *bed) { image(b, b.dst.Cluster, "velero/velero:v1.17.2") },
			want{VeleroVersionsDiffer, "destination", "may not read", blocks},
		},
		{
			"a Velero image by digest", func(b *bed) { image(b, b.dst.Cluster, "velero/velero@sha256:aa") },
			want{VeleroVersionUnknown, "destination", "velero/velero@sha256:aa", informs},
		},
		{"a node-agent that was not upgraded", func(b *bed) {
			change(b, b.dst, agentOf(b.dst.Cluster), func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.Containers[0].Image = "velero/velero:v1.16.0" })
		}, want{NodeAgentVersionDiffers, "destination", "server v1.18.3, node-agent v1.16.0", informs}},
		{
			"a flag on one side only", func(b *bed) { args(b.src.Cluster, b, "--features=EnableAPIGroupVersions,EnableCSI") },
			want{VeleroFeaturesDiffer, "source", "for one side only: source (EnableAPIGroupVersions)", informs},
		},
		{"restic", func(b *bed) {
			change(b, b.src, veleroOf(b.src.Cluster), func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Containers[0].Args = []string{"server", "--uploader-type", "restic"}
			})
		}, want{UploaderUnsupported, "source", "restic", blocks}},
		{
			"a server that makes no backups", func(b *bed) { args(b.src.Cluster, b, "--restore-only") },
			want{VeleroRestoreOnly, "VELERO/velero", "makes no backups", blocks},
		},
		{"OADP", func(b *bed) {
			change(b, b.dst, veleroOf(b.dst.Cluster), func(d *appsv1.Deployment) { d.Labels["openshift.io/oadp"] = "True" })
		}, want{OADPManaged, "destination", "DataProtectionApplication", informs}},
		{
			"backups that expire within the hour", func(b *bed) { args(b.src.Cluster, b, "--default-backup-ttl=1h") },
			want{BackupsExpireSoon, "source", "source (1h0m0s)", informs},
		},
		{
			"a class map of somebody else", func(b *bed) { b.create(b.dst, classMapOf(b, "theirs")) },
			want{ClassMapsOfOthers, "VELERO/theirs", "VELERO/theirs; it is left alone", informs},
		},
		{
			"two class maps", func(b *bed) { b.create(b.dst, classMapOf(b, "theirs"), classMapOf(b, "ours")) },
			want{ClassMapsOfOthers, "VELERO/ours", "restores no claim at all", blocks},
		},
		{"a mig-controller", func(b *bed) {
			d := veleroOf(b.src.Cluster)
			if err := b.src.Get(b.t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
				b.t.Fatal(err)
			}
			b.create(b.src, &appsv1.Deployment{ObjectMeta: in(d.Namespace, "migration-controller"), Spec: d.Spec})
		}, want{MigControllerAlive, "VELERO/migration-controller on the source", "stop the same workloads", informs}},
		{"a restore of somebody else", func(b *bed) {
			b.create(b.dst, &velerov1.Restore{ObjectMeta: in(b.dst.VeleroNamespace, "foreign"), Spec: velerov1.RestoreSpec{BackupName: "b"}, Status: velerov1.RestoreStatus{Phase: velerov1.RestorePhaseInProgress}})
		}, want{VeleroBusy, "Restore foreign on the destination", "InProgress since ", informs}},
		{"a backup of somebody else", func(b *bed) {
			b.create(b.src, &velerov1.Backup{ObjectMeta: in(b.src.VeleroNamespace, "nightly")})
		}, want{VeleroBusy, "Backup nightly on the source", "New since ", informs}},
		{"a node-agent that does not see the pods' volumes", func(b *bed) {
			change(b, b.src, agentOf(b.src.Cluster), func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.Containers[0].VolumeMounts = nil })
		}, want{NodeAgentHostPath, "VELERO/node-agent on the source", "nothing is mounted at /host_pods", blocks}},
		{"no node-agent on the volume's node", func(b *bed) {
			b.create(b.src, b.pod(b.ns, "extra", "node-2", &metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "x", UID: "1", Controller: ptr.To(true)}, "data"))
		}, want{NodeAgentMissing, "APP/data", "APP/data (pod extra on node-2)", blocks}},
		{"a local volume on a node without node-agent", func(b *bed) {
			b.volume("local", func(pv *corev1.PersistentVolume, _ *corev1.PersistentVolumeClaim) { onNode(pv, "node-3") })
			b.copies("local", "")
		}, want{NodeAgentMissing, "APP/local", "APP/local (its volume is on node-3)", blocks}},
		{"a node of the destination without node-agent", func(b *bed) {
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: b.ns + "-node"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
			b.shared(b.dst, n)
		}, want{NodeAgentNotEverywhere, "APP-node", "without a ready node-agent", informs}},
	}
}

func image(b *bed, c *cluster.Cluster, image string) {
	change(b, c, veleroOf(c), func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = image })
	change(b, c, agentOf(c), func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.Containers[0].Image = image })
}

func classMapOf(b *bed, name string) *corev1.ConfigMap {
	m := &corev1.ConfigMap{ObjectMeta: in(b.dst.VeleroNamespace, name), Data: map[string]string{"bronze": "silver"}}
	m.Labels = map[string]string{"velero.io/plugin-config": "", "velero.io/change-storage-class": "RestoreItemAction"}
	return m
}

func onNode(pv *corev1.PersistentVolume, node string) {
	pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/mnt/disk"}}
	pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
	}}}}
}

// copies puts another claim into the plan.
func (b *bed) copies(claim, size string) {
	b.plan.Spec.Volumes = append(b.plan.Spec.Volumes, plan.Volume{
		Claim: b.ns + "/" + claim, StorageClass: b.ns + "-from", Used: "100Mi", Action: plan.Copy, Destination: plan.VolumeDestination{Size: size},
	})
}

func locationCases() []realCase {
	changed := func(with func(*velerov1.BackupStorageLocation)) func(*bed) {
		return func(b *bed) { change(b, b.dst, locationOn(b.dst.Cluster), with) }
	}
	secret := func(data map[string]string) func(*bed) {
		return func(b *bed) {
			change(b, b.src, &corev1.Secret{ObjectMeta: in(b.src.VeleroNamespace, "cloud-credentials")}, func(s *corev1.Secret) { s.Data, s.StringData = nil, data })
		}
	}
	return []realCase{
		{
			"no location", func(b *bed) { b.remove(b.dst, locationOn(b.dst.Cluster)) },
			want{DestinationStorageAvailable, "VELERO/default", "no BackupStorageLocation VELERO/default", blocks},
		},
		{
			"a location that cannot be reached", changed(func(l *velerov1.BackupStorageLocation) {
				l.Status.Phase, l.Status.Message = "Unavailable", "access denied"
			}),
			want{DestinationStorageAvailable, "VELERO/default", "is Unavailable: access denied", blocks},
		},
		{
			"a location that no server watches", changed(func(l *velerov1.BackupStorageLocation) { l.Status = velerov1.BackupStorageLocationStatus{} }),
			want{DestinationStorageAvailable, "VELERO/default", "was not looked at by Velero yet", blocks},
		},
		{"a location that was last looked at an hour ago", changed(func(l *velerov1.BackupStorageLocation) {
			l.Status.LastValidationTime = &metav1.Time{Time: time.Now().Add(-time.Hour)}
		}), want{DestinationStorageAvailable, "VELERO/default", "was last looked at by Velero at ", blocks}},
		{
			"a location that nobody looks at", changed(func(l *velerov1.BackupStorageLocation) { l.Spec.ValidationFrequency = &metav1.Duration{} }),
			want{StorageNotWatched, "destination", "validationFrequency: 0s", informs},
		},
		{
			"another prefix", changed(func(l *velerov1.BackupStorageLocation) { l.Spec.ObjectStorage.Prefix = "q" }),
			want{StorageShared, "default", "aws bucket b prefix q region r on the destination", blocks},
		},
		{
			"a store that only one side trusts", changed(func(l *velerov1.BackupStorageLocation) { l.Spec.ObjectStorage.CACert = []byte("x") }),
			want{StorageTrustDiffers, "VELERO/default", "(of the source, ", blocks},
		},
		{"a source that may only read", func(b *bed) {
			change(b, b.src, locationOn(b.src.Cluster), func(l *velerov1.BackupStorageLocation) { l.Spec.AccessMode = "ReadOnly" })
		}, want{SourceStorageReadOnly, "default", "refuses to back up", blocks}},
		{
			"a destination that may only read", changed(func(l *velerov1.BackupStorageLocation) { l.Spec.AccessMode = "ReadOnly" }),
			want{DestinationStorageReadOnly, "default", "must still be able to write", informs},
		},
		{
			"a provider without its plugin", changed(func(l *velerov1.BackupStorageLocation) { l.Spec.Provider, l.Status.Phase = "gcp", "Unavailable" }),
			want{ProviderPluginMissing, "destination", "destination (provider gcp)", blocks},
		},
		{"a location whose Secret is missing", changed(func(l *velerov1.BackupStorageLocation) {
			l.Spec.Credential = &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "other"}, Key: "cloud"}
		}), want{StorageCredentialsBroken, "destination", "Secret VELERO/other is missing", blocks}},
		{
			"empty credentials", secret(map[string]string{"cloud": "\n"}),
			want{StorageCredentialsBroken, "source", "Secret VELERO/cloud-credentials is empty under the key cloud", blocks},
		},
		{
			"credentials under another key", secret(map[string]string{"aws": "[default]"}),
			want{StorageCredentialsBroken, "source", "has no key cloud", blocks},
		},
		{
			"credentials that are no such thing", secret(map[string]string{"cloud": "very-secret"}),
			want{StorageCredentialsBroken, "source", "is no AWS credentials file", blocks},
		},
		{
			"credentials without the secret half", secret(map[string]string{"cloud": "[default]\naws_access_key_id=very-secret\n"}),
			want{StorageCredentialsBroken, "source", "has no aws_secret_access_key", blocks},
		},
		{"another repository password", func(b *bed) {
			change(b, b.dst, &corev1.Secret{ObjectMeta: in(b.dst.VeleroNamespace, "velero-repo-credentials")}, func(s *corev1.Secret) { s.StringData = map[string]string{"repository-password": "another"} })
		}, want{RepositoryPasswordShared, "VELERO/velero-repo-credentials", "could not read the volumes", blocks}},
	}
}

func namespaceCases() []realCase {
	return []realCase{
		{
			"a namespace that is not there", func(b *bed) {
				b.plan.Spec.Namespaces = append(b.plan.Spec.Namespaces, plan.Namespace{Name: b.ns + "-none"})
			},
			want{NamespacesFound, "APP-none", "not on the source (context src): APP-none", blocks},
		},
		{"a destination that is being deleted", func(b *bed) {
			b.create(b.dst, namespaced(b.ns), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.ns, Name: "ledger", Finalizers: []string{"example.com/lock"}}})
			b.remove(b.dst, &corev1.ConfigMap{ObjectMeta: in(b.ns, "ledger")})
			b.remove(b.dst, namespaced(b.ns))
		}, want{NamespaceTerminating, "APP on the destination", "held by ConfigMap/ledger with finalizer example.com/lock", blocks}},
		{
			"a source that is being deleted", func(b *bed) { b.remove(b.src, namespaced(b.ns)) },
			want{NamespaceTerminating, "APP on the source", "APP on the source (since ", blocks},
		},
		{"an object that is there already", func(b *bed) {
			b.create(b.dst, namespaced(b.ns), &corev1.ConfigMap{ObjectMeta: in(b.ns, "settings")})
			b.create(b.src, &corev1.ConfigMap{ObjectMeta: in(b.ns, "settings")})
		}, want{DestinationOccupied, "ConfigMap/APP/settings", "leave them as they are", blocks}},
		{"an object whose namesake on the source stays there", func(b *bed) {
			b.create(b.dst, namespaced(b.ns), &rbacv1.Role{ObjectMeta: in(b.ns, "mig")})
			stays := &rbacv1.Role{ObjectMeta: in(b.ns, "mig")}
			stays.Labels = map[string]string{"velero.io/exclude-from-backup": "true"}
			b.create(b.src, stays)
		}, want{DestinationInUse, "APP", "APP (1)", informs}},
		{
			"objects of somebody else", func(b *bed) { b.create(b.dst, namespaced(b.ns), &corev1.ConfigMap{ObjectMeta: in(b.ns, "theirs")}) },
			want{DestinationInUse, "APP", "APP (1)", informs},
		},
		{"other labels", func(b *bed) {
			there := namespaced(b.ns)
			there.Labels = map[string]string{"team": "red"}
			b.create(b.dst, there)
			change(b, b.src, namespaced(b.ns), func(n *corev1.Namespace) {
				n.Labels["team"], n.Annotations = "blue", map[string]string{"example.com/owner": "kitchen"}
			})
		}, want{NamespaceDiffers, "APP", "label team is red, on the source blue, annotation example.com/owner=kitchen is missing", informs}},
		{"other users", func(b *bed) {
			there := namespaced(b.ns)
			there.Annotations = map[string]string{"openshift.io/sa.scc.uid-range": "1000700000/10000"}
			b.create(b.dst, there)
			change(b, b.src, namespaced(b.ns), func(n *corev1.Namespace) {
				n.Annotations = map[string]string{"openshift.io/sa.scc.uid-range": "1000650000/10000"}
			})
		}, want{UIDRangesDiffer, "APP", "uid-range is 1000700000/10000, on the source 1000650000/10000", informs}},
		{"restricted Pod Security", func(b *bed) {
			change(b, b.src, namespaced(b.ns), func(n *corev1.Namespace) { n.Labels[enforceLabel] = "restricted" })
		}, want{PodSecurityRestricted, "APP", "must run as root", blocks}},
		{"stricter Pod Security", func(b *bed) {
			there := namespaced(b.ns)
			there.Labels = map[string]string{enforceLabel: "baseline"}
			b.create(b.dst, there)
		}, want{PodSecurityDiffers, "APP", "APP (baseline)", informs}},
		{"a rule that refuses the namespace", func(b *bed) {
			b.policy("object.metadata.name != '" + b.ns + "' || has(object.metadata.labels.team)")
		}, want{NamespaceRefused, "APP", "team is missing", blocks}},
		{
			"another plan that runs", func(b *bed) { b.create(b.src, recordOf(b, b.src.Cluster, "Running")) },
			want{PlanConflict, "plan other", "plan other (migrate r1 of 2031-02-03 04:05 UTC is Running; namespaces APP)", blocks},
		},
		{
			"another plan that has failed", func(b *bed) { b.create(b.dst, recordOf(b, b.dst.Cluster, "Failed")) },
			want{PlanConflict, "plan other", "is Failed", blocks},
		},
		{
			"another plan that is through", func(b *bed) { b.create(b.src, recordOf(b, b.src.Cluster, "Completed")) },
			want{MigratedBefore, "plan other", "is Completed", informs},
		},
	}
}

func recordOf(b *bed, c *cluster.Cluster, state string) *corev1.ConfigMap {
	owner := naming.Owner{PlanName: "other", PlanUID: "uid-of-another"}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.VeleroNamespace, Name: owner.PlanRecord(), Labels: owner.RecordLabels(naming.RecordPlan)},
		Data: map[string]string{"plan.json": fmt.Sprintf(`{"name":"other","uid":%q,"namespaces":[{"source":%q,"destination":"elsewhere"}],
			"lastRun":{"uid":"r1","kind":"migrate","state":%q,"started":"2031-02-03T04:05:06Z"}}`, owner.PlanUID, b.ns, state)},
	}
}

func volumeCases() []realCase {
	return []realCase{
		{
			"no action", func(b *bed) { b.plan.Spec.Volumes[0].Action = "" },
			want{ActionsChosen, "APP/data", "select an action for APP/data", blocks},
		},
		{
			"a new claim", func(b *bed) { b.volume("new", nil) },
			want{ClaimNotInPlan, "APP/new", "nothing says what happens", blocks},
		},
		{
			"a claim that is gone", func(b *bed) { b.copies("gone", "") },
			want{ClaimVanished, "APP/gone", "not on the source: APP/gone", blocks},
		},
		{"a pending claim", func(b *bed) {
			change(b, b.src, &corev1.PersistentVolumeClaim{ObjectMeta: in(b.ns, "data")}, func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending })
		}, want{ClaimNotBound, "APP/data", "APP/data (Pending)", blocks}},
		{"a claim that is being deleted", func(b *bed) {
			change(b, b.src, &corev1.PersistentVolumeClaim{ObjectMeta: in(b.ns, "data")}, func(c *corev1.PersistentVolumeClaim) { c.Finalizers = []string{"kubernetes.io/pvc-protection"} })
			b.remove(b.src, &corev1.PersistentVolumeClaim{ObjectMeta: in(b.ns, "data")})
		}, want{ClaimTerminating, "APP/data", "being deleted on the source", blocks}},
		{"a block volume", func(b *bed) {
			b.volume("raw", func(pv *corev1.PersistentVolume, pvc *corev1.PersistentVolumeClaim) {
				pv.Spec.VolumeMode, pvc.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock), ptr.To(corev1.PersistentVolumeBlock)
			})
			b.copies("raw", "")
		}, want{BlockVolume, "APP/raw", "cannot read: APP/raw", blocks}},
		{"a hostPath volume behind a claim", func(b *bed) {
			b.volume("host", func(pv *corev1.PersistentVolume, _ *corev1.PersistentVolumeClaim) {
				pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/srv/a"}}
			})
			b.copies("host", "")
		}, want{HostPathVolume, "APP/host", "leaves out: APP/host", blocks}},
		{"a claim that may only be read", func(b *bed) {
			modes := []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
			b.volume("lib", func(pv *corev1.PersistentVolume, pvc *corev1.PersistentVolumeClaim) {
				pv.Spec.AccessModes, pvc.Spec.AccessModes = modes, modes
			})
			b.copies("lib", "")
		}, want{ReadOnlyClaim, "APP/lib", "could not be written", blocks}},
		{
			"less room than data", func(b *bed) { b.plan.Spec.Volumes[0].Destination.Size, b.plan.Spec.Volumes[0].Used = "500Mi", "490Mi" },
			want{SizeTooSmall, "APP/data", "APP/data (500Mi for 490Mi in use)", blocks},
		},
		{
			"less room, and nobody knows for what", func(b *bed) {
				b.plan.Spec.Volumes[0].Destination.Size, b.plan.Spec.Volumes[0].Used = "500Mi", plan.Unknown
			},
			want{SizeTooSmall, "APP/data", "how much is used is not known", blocks},
		},
		{
			"nobody knows how much is in there", func(b *bed) { b.plan.Spec.Volumes[0].Used = plan.Unknown },
			want{UsedUnknown, "APP/data", "is unknown", informs},
		},
		{"a volume that was made by hand", func(b *bed) {
			b.volume("maps", func(pv *corev1.PersistentVolume, _ *corev1.PersistentVolumeClaim) {
				pv.Annotations, pv.Spec.PersistentVolumeSource = nil, corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "192.0.2.1", Path: "/exports/maps"}}
			})
			b.copies("maps", "")
		}, want{StaticVolume, "APP/maps", "APP/maps (nfs 192.0.2.1:/exports/maps)", informs}},
		{"a free volume that fits", func(b *bed) {
			b.create(b.dst, &corev1.PersistentVolume{
				ObjectMeta: metav1.ObjectMeta{Name: b.ns + "-stranger"},
				Spec: corev1.PersistentVolumeSpec{
					Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}, StorageClassName: b.ns + "-to",
					AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteMany},
					PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "192.0.2.1", Path: "/exports/theirs"}},
				},
				Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable},
			})
		}, want{FreeVolumeFits, "APP/data", "APP/data (PersistentVolume APP-stranger, 2Gi)", blocks}},
		{"a quota without room", func(b *bed) {
			hard := corev1.ResourceList{"requests.storage": resource.MustParse("1Gi")}
			b.create(b.dst, namespaced(b.ns), &corev1.ResourceQuota{
				ObjectMeta: in(b.ns, "cap"), Spec: corev1.ResourceQuotaSpec{Hard: hard},
				Status: corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{"requests.storage": resource.MustParse("512Mi")}},
			})
		}, want{QuotaTooSmall, "APP/cap", "requests.storage: 512Mi used of 1Gi, 1Gi more needed", blocks}},
		{"storage without room", func(b *bed) {
			b.create(b.dst, &storagev1.CSIStorageCapacity{ObjectMeta: in(b.dst.VeleroNamespace, "zone-a"), StorageClassName: b.ns + "-to", Capacity: ptr.To(resource.MustParse("100Mi"))})
		}, want{CapacityTooSmall, "APP/data", "APP/data (1Gi, class APP-to has 100Mi)", informs}},
	}
}

// classCases give the destination another class.
func classCases() []realCase {
	class := func(with func(*storagev1.StorageClass)) func(*bed) {
		return func(b *bed) {
			b.create(b.dst, b.class("odd", with))
			b.plan.Spec.StorageClasses[b.ns+"-from"] = b.ns + "-odd"
		}
	}
	return []realCase{
		{
			"a class that is not there", func(b *bed) { b.plan.Spec.StorageClasses = nil },
			want{StorageClassMissing, "APP/data", "APP/data (class APP-from)", blocks},
		},
		{"no class and no default", func(b *bed) {
			b.volume("plain", func(pv *corev1.PersistentVolume, pvc *corev1.PersistentVolumeClaim) {
				pv.Spec.StorageClassName, pvc.Spec.StorageClassName = "", ptr.To("")
			})
			b.plan.Spec.Volumes = append(b.plan.Spec.Volumes, plan.Volume{Claim: b.ns + "/plain", Used: "1Mi", Action: plan.Copy})
		}, want{StorageClassUnset, "APP/plain", "no storage class is set for APP/plain", blocks}},
		{"disks of one node for a volume of many", func(b *bed) {
			class(func(c *storagev1.StorageClass) { c.Provisioner = "ebs.csi.aws.com" })(b)
			b.plan.Spec.Volumes[0].Destination.AccessModes = []string{"ReadWriteMany"}
		}, want{AccessModesUnfit, "APP/data", "ReadWriteMany by class APP-odd of ebs.csi.aws.com", blocks}},
		{"a class of another zone", func(b *bed) {
			class(func(c *storagev1.StorageClass) {
				c.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: corev1.LabelTopologyZone, Values: []string{"zone-z"}}}}}
			})(b)
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: b.ns + "-node", Labels: map[string]string{corev1.LabelTopologyZone: "zone-a"}}}
			b.shared(b.dst, n)
		}, want{ClassUnreachable, "APP/data", "APP/data (class APP-odd)", blocks}},
		{"a template's class that is not there", func(b *bed) {
			labels := map[string]string{"app": "q"}
			claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: corev1.PersistentVolumeClaimSpec{
				StorageClassName: ptr.To("fast-here"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			}}
			b.create(b.src, &appsv1.StatefulSet{ObjectMeta: in(b.ns, "q"), Spec: appsv1.StatefulSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels}, ServiceName: "q", Replicas: ptr.To(int32(0)), VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claim},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}},
			}})
		}, want{TemplateClassGone, "StatefulSet/APP/q", "StatefulSet/APP/q (class fast-here)", informs}},
		{"volumes that can grow no more", func(b *bed) {
			change(b, b.src, b.class("from", nil), func(c *storagev1.StorageClass) { c.AllowVolumeExpansion = ptr.To(true) })
		}, want{ExpansionLost, "APP/data", "class APP-from → APP-to", informs}},
		{"volumes that are kept no more", func(b *bed) {
			retain := b.class("kept", func(c *storagev1.StorageClass) { c.ReclaimPolicy = ptr.To(corev1.PersistentVolumeReclaimRetain) })
			b.create(b.src, retain)
			b.volume("kept", func(pv *corev1.PersistentVolume, pvc *corev1.PersistentVolumeClaim) {
				pv.Spec.StorageClassName, pvc.Spec.StorageClassName = retain.Name, &retain.Name
			})
			b.copies("kept", "")
		}, want{ReclaimDiffers, "APP/kept", "class APP-kept → APP-to", informs}},
	}
}

func outsideCases() []realCase {
	deployment := func(mount string, image string, source corev1.VolumeSource) func(*bed) {
		return func(b *bed) {
			labels := map[string]string{"app": "paint"}
			b.create(b.src, &appsv1.Deployment{ObjectMeta: in(b.ns, "paint"), Spec: appsv1.DeploymentSpec{
				Replicas: ptr.To(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "c", Image: cmp.Or(image, "example.com/app:1"), VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: mount}}}},
					Volumes:    []corev1.Volume{{Name: "v", VolumeSource: source}},
				}},
			}})
		}
	}
	hostPath := func(path string) corev1.VolumeSource {
		return corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}
	}
	return []realCase{
		{
			"data on a node, of a workload that is scaled to zero", deployment("/hosted", "", hostPath("/srv/studio")),
			want{HostPathData, "Deployment/APP/paint", "hostPath /srv/studio at /hosted", blocks},
		},
		{
			"the node's own clock", deployment("/clock", "", hostPath("/etc/localtime")),
			want{NodePaths, "Deployment/APP/paint", "hostPath /etc/localtime at /clock", informs},
		},
		{
			"a database in an emptyDir", deployment("/var/lib/postgresql/data", "docker.io/postgres:17", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}),
			want{EmptyDirData, "Deployment/APP/paint", "emptyDir v at /var/lib/postgresql/data", blocks},
		},
		{
			"scratch space", deployment("/scratch", "", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}),
			want{ScratchVolumes, "Deployment/APP/paint", "emptyDir v at /scratch", informs},
		},
	}
}
