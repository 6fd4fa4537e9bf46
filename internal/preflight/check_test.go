package preflight

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mig-cli/mig/internal/discover"
	"github.com/mig-cli/mig/internal/plan"
)

// world is a plan and two clusters on which nothing is wrong; tests break one
// thing of it.
type world struct {
	plan plan.Plan
	src  discover.SourceFacts
	dst  discover.DestinationFacts
}

func newWorld() *world {
	location := discover.Location{Name: "default", Phase: "Available", Provider: "aws", Bucket: "b", Prefix: "p", AccessMode: "ReadWrite"}
	velero := func(node string) discover.Velero {
		return discover.Velero{
			Namespace: "velero", Exists: true, RepoCredentials: "same",
			Server:    discover.Deployment{Found: true, Version: "v1.18.3", Wanted: 1, Ready: 1},
			NodeAgent: discover.NodeAgent{Found: true, Wanted: 1, Ready: 1, HostPods: "/var/lib/kubelet/pods", Nodes: []discover.AgentNode{{Node: node, Pod: "node-agent-x", Ready: true}}},
			Locations: []discover.Location{location},
		}
	}
	w := &world{plan: plan.Plan{APIVersion: plan.APIVersion, Kind: plan.Kind, Metadata: plan.Metadata{Name: "shop", UID: "5f0c3d9e"}, Spec: plan.Spec{
		Source: plan.Cluster{Context: "src"}, Destination: plan.Cluster{Context: "dst"}, Storage: plan.Storage{Location: "default"},
		Namespaces:     []plan.Namespace{{Name: "shop", Destination: "shop-prod"}},
		Volumes:        []plan.Volume{{Claim: "shop/data-db-0", StorageClass: "gp2", Action: plan.Copy, Used: "3Gi"}, {Claim: "shop/cache", Action: plan.Skip}},
		StorageClasses: map[string]string{"gp2": "fast"},
	}}}
	w.src.Facts = discover.Facts{
		Context: "src", Server: "https://src", Reach: discover.Reached, Version: "v1.34.4", UID: "uid-s", Velero: velero("node-1"),
		Namespaces: []discover.Namespace{{Name: "shop", Phase: "Active"}}, Rights: []discover.Right{{Verb: "get", Resource: "pods", Namespace: "shop", Allowed: true}},
		StorageClasses: []discover.StorageClass{{Name: "gp2"}},
	}
	w.src.Claims = []discover.Claim{
		{
			Namespace: "shop", Name: "data-db-0", Phase: "Bound", VolumeMode: "Filesystem", Backend: "csi", Capacity: "10Gi", Requested: "10Gi", AccessModes: []string{"ReadWriteOnce"}, StorageClass: "gp2",
			MountedBy: []discover.Mounter{{Pod: "db-0", Phase: "Running", Node: "node-1"}},
		},
		{Namespace: "shop", Name: "cache", Phase: "Bound", VolumeMode: "Filesystem", Backend: "csi"},
	}
	w.src.Pods = []discover.Pod{{Namespace: "shop", Name: "db-0", Phase: "Running", Node: "node-1", Controller: "StatefulSet/db"}}
	w.src.Workloads = []discover.Workload{{Kind: "StatefulSet", Namespace: "shop", Name: "db", Replicas: 1}}
	w.dst.Facts = discover.Facts{
		Context: "dst", Server: "https://dst", Reach: discover.Reached, Version: "v1.34.4", UID: "uid-d", Velero: velero("node-2"),
		StorageClasses: []discover.StorageClass{{Name: "fast", Default: true}},
	}
	return w
}

func (w *world) check(t *testing.T) []Condition {
	t.Helper()
	v, problems := w.plan.Validate()
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return Check(v, w.src, w.dst)
}

func TestAllIsWellAndThePlanIsReady(t *testing.T) {
	conditions := newWorld().check(t)
	if blocking := Blocking(conditions); len(blocking) > 0 || !Ready(conditions) {
		t.Fatalf("blocked by %+v", blocking)
	}
	var got []string
	for _, c := range conditions {
		got = append(got, c.Type)
		if c.Message == "" || c.Reason == "" || strings.Contains(c.Message, "%!") {
			t.Errorf("%s: reason %q, message %q", c.Type, c.Reason, c.Message)
		}
	}
	want := []string{
		SourceReachable, DestinationReachable, ClustersDistinct, SourceRights, DestinationRights, SourceVeleroReady, DestinationVeleroReady,
		SourceNodeAgentReady, DestinationNodeAgentReady, SourceStorageAvailable, DestinationStorageAvailable, StorageShared, StorageWritableByBoth,
		RepositoryPasswordShared, NamespacesFound, ActionsChosen, VolumeSkipped, ReadyType,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// noon is when the clusters were looked at.
var noon = time.Date(2031, 2, 3, 12, 0, 0, 0, time.UTC)

// finding is what a broken world must give: one condition, among the others.
type finding struct {
	kind    string
	status  Status
	reason  string
	object  string // one of its objects
	message string // a part of it
	blocks  bool
}

func TestEachThingThatIsWrongIsFound(t *testing.T) {
	const blocks = true
	for name, c := range map[string]struct {
		change func(*world)
		want   finding
	}{
		"the source does not answer": {
			func(w *world) { w.src.Reach, w.src.Error = discover.Unreachable, "connection refused" },
			finding{SourceReachable, False, "Unreachable", "src", "source cluster (context src, https://src): no answer: connection refused", blocks},
		},
		"the destination refuses our credentials": {
			func(w *world) { w.dst.Reach, w.dst.Error = discover.Denied, "Unauthorized" },
			finding{DestinationReachable, False, "CredentialsRefused", "dst", "refuses our credentials", blocks},
		},
		"the destination is a web page": {
			func(w *world) { w.dst.Reach, w.dst.Error = discover.NotKubernetes, "<html>" },
			finding{DestinationReachable, False, "NotKubernetes", "dst", "not a Kubernetes API", blocks},
		},
		"the source's certificate is not trusted": {
			func(w *world) { w.src.Reach, w.src.Error = discover.Untrusted, "x509" },
			finding{SourceReachable, False, "CertificateNotTrusted", "src", "not trusted", blocks},
		},
		"both are one cluster under two names": {
			func(w *world) { w.dst.UID = w.src.UID },
			finding{ClustersDistinct, False, "OneCluster", "dst", "contexts src and dst are one cluster", blocks},
		},
		"it cannot be told whether they are two": {
			func(w *world) { w.dst.UID = "" },
			finding{ClustersDistinct, Unknown, "IdentityUnknown", "src", "cannot be read", blocks},
		},
		"a right is missing on the source": {
			func(w *world) { w.src.Rights[0].Allowed, w.src.Rights[0].Why = false, "find writers" },
			finding{SourceRights, False, "RightsMissing", "get pods in shop", "on the source (context src) we may not: get pods in shop (find writers)", blocks},
		},
		"Events cannot be made": {
			func(w *world) {
				w.dst.Rights = append(w.dst.Rights, discover.Right{Verb: "create", Group: "events.k8s.io", Resource: "events", Namespace: "shop", Optional: true})
			},
			finding{EventsRefused, True, "RightsMissing", "shop of the destination", "is told by the run's record alone", false},
		},
		"what we may do is not told": {
			func(w *world) { w.dst.Gaps = []discover.Gap{{Part: discover.PartRights, Error: "x"}} },
			finding{DestinationRights, Unknown, "RightsUnknown", "dst", "does not say", blocks},
		},
		"no Velero": {
			func(w *world) { w.src.Velero.Server = discover.Deployment{} },
			finding{SourceVeleroReady, False, "VeleroMissing", "velero", "no Velero in namespace velero of the source", blocks},
		},
		"Velero in another namespace": {
			func(w *world) {
				w.dst.Velero.Server, w.dst.Velero.Elsewhere = discover.Deployment{}, []string{"openshift-adp"}
			},
			finding{DestinationVeleroReady, False, "VeleroElsewhere", "openshift-adp", "there is one in openshift-adp", blocks},
		},
		"Velero that is not ready": {
			func(w *world) { w.dst.Velero.Server.Ready = 0 },
			finding{DestinationVeleroReady, False, "VeleroNotReady", "velero/velero", "not ready (0 of 1 pods)", blocks},
		},
		"Velero without its APIs": {
			func(w *world) { w.dst.Velero.MissingAPIs = []string{"podvolumerestores"} },
			finding{DestinationVeleroReady, False, "VeleroAPIsMissing", "podvolumerestores", "lacks APIs", blocks},
		},
		"no node-agent": {
			func(w *world) { w.dst.Velero.NodeAgent = discover.NodeAgent{} },
			finding{DestinationNodeAgentReady, False, "NodeAgentMissing", "velero/node-agent", "cannot copy volumes", blocks},
		},
		"node-agent that is ready nowhere": {
			func(w *world) { w.src.Velero.NodeAgent.Ready = 0 },
			finding{SourceNodeAgentReady, False, "NodeAgentNotReady", "velero/node-agent", "ready on no node (of 1)", blocks},
		},
		"no node-agent on the node of a copied volume": {
			func(w *world) { w.src.Claims[0].MountedBy[0].Node = "node-9" },
			finding{NodeAgentMissing, True, "NoReadyNodeAgent", "shop/data-db-0", "shop/data-db-0 (pod db-0 on node-9)", blocks},
		},
		"no storage location": {
			func(w *world) { w.dst.Velero.Locations[0].Name = "other" },
			finding{DestinationStorageAvailable, False, "LocationMissing", "velero/default", "no BackupStorageLocation velero/default of the destination", blocks},
		},
		"a storage location that is Unavailable": {
			func(w *world) {
				w.src.Velero.Locations[0].Phase, w.src.Velero.Locations[0].Message = "Unavailable", "access denied"
			},
			finding{SourceStorageAvailable, False, "LocationUnavailable", "velero/default", "Unavailable: access denied", blocks},
		},
		"a storage location that Velero has not looked at": {
			func(w *world) { w.src.Velero.Locations[0].Phase = "" },
			finding{SourceStorageAvailable, Unknown, "LocationNotValidated", "velero/default", "not looked at", blocks},
		},
		"another bucket": {
			func(w *world) { w.dst.Velero.Locations[0].Bucket = "c" },
			finding{StorageShared, False, "LocationsDiffer", "default", "aws bucket b prefix p on the source and aws bucket c prefix p on the destination", blocks},
		},
		"another prefix": {
			func(w *world) { w.dst.Velero.Locations[0].Prefix = "" },
			finding{StorageShared, False, "LocationsDiffer", "default", "nothing would arrive", blocks},
		},
		"a store whose authority the destination is not told": {
			func(w *world) { w.src.Velero.Locations[0].Authority = true },
			finding{StorageTrustDiffers, True, "AuthorityMissing", "velero/default", "velero/default (of the destination, context dst) is not told", blocks},
		},
		"a store whose authority the source is not told": {
			func(w *world) { w.dst.Velero.Locations[0].Authority = true },
			finding{StorageTrustDiffers, True, "AuthorityMissing", "velero/default", "(of the source, context src) is not told", blocks},
		},
		"a source that may only read": {
			func(w *world) { w.src.Velero.Locations[0].AccessMode = "ReadOnly" },
			finding{SourceStorageReadOnly, True, "ReadOnly", "default", "refuses to back up", blocks},
		},
		"a destination that may only read": {
			func(w *world) { w.dst.Velero.Locations[0].AccessMode = "ReadOnly" },
			finding{DestinationStorageReadOnly, True, "ReadOnly", "default", "logs of restores", !blocks},
		},
		"another repository password": {
			func(w *world) { w.dst.Velero.RepoCredentials = "other" },
			finding{RepositoryPasswordShared, False, "PasswordsDiffer", "velero/velero-repo-credentials", "could not read the volumes", blocks},
		},
		"no repository password": {
			func(w *world) { w.dst.Velero.RepoCredentials = "" },
			finding{RepositoryPasswordShared, Unknown, "PasswordMissing", "velero/velero-repo-credentials", "cannot be told", blocks},
		},
		"two versions of Velero": {
			func(w *world) { w.src.Velero.Server.Version = "v1.17.2" },
			finding{VeleroVersionsDiffer, True, "DestinationNewer", "destination", "source (v1.17.2), destination (v1.18.3)", !blocks},
		},
		"a destination whose Velero is older": {
			func(w *world) { w.dst.Velero.Server.Version = "v1.17.2" },
			finding{VeleroVersionsDiffer, True, "VersionsDiffer", "destination", "may not read", blocks},
		},
		"a destination whose Velero is much newer": {
			func(w *world) { w.src.Velero.Server.Version = "v1.17.2"; w.dst.Velero.Server.Version = "v1.19.0" },
			finding{VeleroVersionsDiffer, True, "VersionsDiffer", "destination", "may not read", blocks},
		},
		"an old Velero": {
			func(w *world) { w.src.Velero.Server.Version, w.dst.Velero.Server.Version = "v1.9.7", "v1.9.7" },
			finding{VeleroTooOld, True, "BelowOldest", "source", "source (v1.9.7), destination (v1.9.7)", blocks},
		},
		"a namespace that is not there": {
			func(w *world) { w.src.Namespaces = nil },
			finding{NamespacesFound, False, "NamespaceMissing", "shop", "not on the source (context src): shop", blocks},
		},
		"a namespace that is being deleted on the source": {
			func(w *world) { w.src.Namespaces[0].Phase = "Terminating" },
			finding{NamespaceTerminating, True, "Terminating", "shop on the source", "being deleted: shop on the source", blocks},
		},
		"a namespace that is being deleted on the destination": {
			func(w *world) { w.dst.Namespaces = []discover.Namespace{{Name: "shop-prod", Phase: "Terminating"}} },
			finding{NamespaceTerminating, True, "Terminating", "shop-prod on the destination", "shop-prod on the destination", blocks},
		},
		"an object that is on the destination already": {
			func(w *world) {
				w.dst.Objects = []discover.Object{{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: "shop-prod", Name: "db"}}
				w.src.Objects = []discover.Object{{APIVersion: "apps/v1beta1", Kind: "StatefulSet", Namespace: "shop", Name: "db"}}
			},
			finding{DestinationOccupied, True, "ObjectsExist", "StatefulSet/shop-prod/db", "leave them as they are and say Completed", blocks},
		},
		"an object of the same name in a namespace that is not the plan's": {
			func(w *world) {
				w.dst.Objects = []discover.Object{{APIVersion: "v1", Kind: "Service", Namespace: "shop-prod", Name: "web"}}
				w.src.Objects = []discover.Object{{APIVersion: "v1", Kind: "Service", Namespace: "shop-prod", Name: "web"}}
			},
			finding{DestinationInUse, True, "NotEmpty", "shop-prod", "shop-prod (1)", !blocks},
		},
		"restricted Pod Security where volumes are restored": {
			func(w *world) {
				w.dst.Namespaces = []discover.Namespace{{Name: "shop-prod", Phase: "Active", Labels: map[string]string{enforceLabel: "restricted"}}}
			},
			finding{PodSecurityRestricted, True, "RestrictedEnforced", "shop-prod", "must run as root", blocks},
		},
		"restricted Pod Security that a new namespace brings along": {
			func(w *world) { w.src.Namespaces[0].Labels = map[string]string{enforceLabel: "restricted"} },
			finding{PodSecurityRestricted, True, "RestrictedEnforced", "shop-prod", "must run as root", blocks},
		},
		"Pod Security that is stricter on the destination": {
			func(w *world) {
				w.dst.Namespaces = []discover.Namespace{{Name: "shop-prod", Phase: "Active", Labels: map[string]string{enforceLabel: "baseline"}}}
			},
			finding{PodSecurityDiffers, True, "StricterOnDestination", "shop-prod", "shop-prod (baseline)", !blocks},
		},
		"an action not chosen": {
			func(w *world) { w.plan.Spec.Volumes[0].Action = "" },
			finding{ActionsChosen, False, "ActionNotChosen", "shop/data-db-0", "select an action for shop/data-db-0", blocks},
		},
		"a claim that the plan does not know": {
			func(w *world) { w.plan.Spec.Volumes = w.plan.Spec.Volumes[:1] },
			finding{ClaimNotInPlan, True, "ClaimNotInPlan", "shop/cache", "nothing says what happens to the data", blocks},
		},
		"a claim that is gone": {
			func(w *world) { w.src.Claims = w.src.Claims[1:] },
			finding{ClaimVanished, True, "ClaimVanished", "shop/data-db-0", "not on the source: shop/data-db-0", blocks},
		},
		"a claim without a volume": {
			func(w *world) { w.src.Claims[0].Phase = "Pending" },
			finding{ClaimNotBound, True, "NotBound", "shop/data-db-0", "shop/data-db-0 (Pending)", blocks},
		},
		"a claim that is being deleted": {
			func(w *world) { w.src.Claims[0].Terminating = true },
			finding{ClaimTerminating, True, "BeingDeleted", "shop/data-db-0", "being deleted", blocks},
		},
		"a block volume": {
			func(w *world) { w.src.Claims[0].VolumeMode = "Block" },
			finding{BlockVolume, True, "BlockMode", "shop/data-db-0", "cannot read: shop/data-db-0", blocks},
		},
		"a hostPath volume": {
			func(w *world) { w.src.Claims[0].Backend = "hostPath" },
			finding{HostPathVolume, True, "HostPath", "shop/data-db-0", "leaves out: shop/data-db-0", blocks},
		},
		"a storage class that the destination lacks": {
			func(w *world) { w.plan.Spec.StorageClasses = nil },
			finding{StorageClassMissing, True, "StorageClassMissing", "shop/data-db-0", "shop/data-db-0 (class gp2)", blocks},
		},
		"no storage class and no default": {
			func(w *world) {
				w.plan.Spec.Volumes[0].StorageClass, w.dst.StorageClasses[0].Default = "", false
			},
			finding{StorageClassUnset, True, "NoDefaultClass", "shop/data-db-0", "no default of the destination", blocks},
		},
		"a smaller volume": {
			func(w *world) {
				w.plan.Spec.Volumes[0].Used, w.plan.Spec.Volumes[0].Destination.Size = "unknown", "9Gi"
			},
			finding{SizeTooSmall, True, "SmallerThanSource", "shop/data-db-0", "(9Gi, was 10Gi)", blocks},
		},
		"a pod without a controller": {
			func(w *world) { w.src.Pods[0].Controller = "" },
			finding{BarePods, True, "NoController", "shop/db-0", "pods without a controller: shop/db-0", blocks},
		},
		"a running Job": {
			func(w *world) {
				w.src.Workloads = append(w.src.Workloads, discover.Workload{Kind: "Job", Namespace: "shop", Name: "report", Active: 1})
			},
			finding{JobsRunning, True, "JobsRunning", "Job/shop/report", "start again from their beginning", blocks},
		},
		"data on a node": {
			func(w *world) {
				w.src.Outside = []discover.Outside{{Workload: "Deployment/shop/web", Volume: "d", Kind: "hostPath", Path: "/var/data", Mounts: []string{"/data"}, Class: discover.OutsideData}}
			},
			finding{HostPathData, True, "HostPathMounted", "Deployment/shop/web", "Deployment/shop/web (hostPath /var/data at /data)", blocks},
		},
		"a workload of an operator": {
			func(w *world) { w.src.Workloads[0].Controller = "Postgres/db" },
			finding{OwnedWorkloads, True, "OwnedByOperator", "StatefulSet/shop/db", "StatefulSet/shop/db (owned by Postgres/db)", blocks},
		},
		"a workload that GitOps applies": {
			func(w *world) { w.src.Workloads[0].GitOps = "Flux" },
			finding{GitOpsWorkloads, True, "AppliedAgainAndAgain", "StatefulSet/shop/db", "(Flux)", blocks},
		},
		"an autoscaler": {
			func(w *world) {
				w.src.Workloads = append(w.src.Workloads, discover.Workload{Kind: "HorizontalPodAutoscaler", Namespace: "shop", Name: "web", Scales: "Deployment/web"})
			},
			finding{AutoscaledWorkload, True, "Autoscaled", "shop/web", "scales Deployment/web", !blocks},
		},
		"the user's own marks for Velero": {
			func(w *world) { w.src.Pods[0].BackupVolumes = []string{"data"} },
			finding{OwnBackupMarks, True, "BackupVolumesAnnotation", "shop/db-0", "the plan alone decides", !blocks},
		},
		"a workload that stays up and mounts a copied volume": {
			func(w *world) { w.plan.Spec.Quiesce.Except = []string{"StatefulSet/shop/db"} },
			finding{ExceptMountsVolume, True, "ExceptMountsVolume", "StatefulSet/shop/db", "pod db-0 mounts data-db-0", blocks},
		},
		"a Deployment that stays up, seen by its ReplicaSet": {
			func(w *world) {
				w.plan.Spec.Quiesce.Except, w.src.Pods[0].Controller = []string{"Deployment/shop/db"}, "ReplicaSet/db-5d4f"
			},
			finding{ExceptMountsVolume, True, "ExceptMountsVolume", "Deployment/shop/db", "pod db-0", blocks},
		},
		"no quiesce": {
			func(w *world) { no := false; w.plan.Spec.Quiesce.Enabled = &no },
			finding{QuiesceDisabled, True, "DisabledByPlan", "spec.quiesce.enabled", "writes while its volumes are copied", blocks},
		},
		"a node label that no node of the destination has": {
			func(w *world) {
				w.dst.Nodes = []discover.Node{{Name: "n1", Labels: map[string]string{"disk": "slow"}}, {Name: "n2"}}
				w.src.PodNeeds = []discover.PodNeeds{{Workload: "Deployment/shop/web", Namespace: "shop", Pods: 2, NodeSelector: map[string]string{"disk": "fast"}}}
			},
			finding{NodesUnfit, True, "NoNodeMatches", "Deployment/shop/web", "Deployment/shop/web (disk=fast: 0 of 2 nodes match)", blocks},
		},
		"a required affinity to a zone that the destination does not have": {
			func(w *world) {
				w.dst.Nodes = []discover.Node{{Name: "n1", Labels: map[string]string{"zone": "b"}}}
				w.src.PodNeeds = []discover.PodNeeds{{Workload: "StatefulSet/shop/db", Namespace: "shop", Pods: 1, Nodes: []discover.NodeTerm{
					{{Key: "zone", Operator: "In", Values: []string{"a", "c"}}}, {{Key: "metadata.name", OfField: true, Operator: "In", Values: []string{"n9"}}},
				}}}
			},
			finding{NodesUnfit, True, "NoNodeMatches", "StatefulSet/shop/db", "(zone In a|c or metadata.name In n9: 0 of 1 nodes match)", blocks},
		},
		"taints on all nodes that would do": {
			func(w *world) {
				w.dst.Nodes = []discover.Node{{Name: "n1", Taints: []discover.Taint{{Key: "team", Value: "red", Effect: "NoSchedule"}}}}
				w.src.PodNeeds = []discover.PodNeeds{{
					Workload: "Deployment/shop/web", Namespace: "shop", Pods: 1, Tolerations: []discover.Toleration{{Key: "team", Value: "blue", Effect: "NoSchedule"}},
				}}
			},
			finding{NodesUnfit, True, "NoNodeMatches", "Deployment/shop/web", "taints of none of 1 nodes: team=red:NoSchedule", blocks},
		},
		"a node label that is missing for a workload that is scaled to zero": {
			func(w *world) {
				w.dst.Nodes = []discover.Node{{Name: "n1"}}
				w.src.PodNeeds = []discover.PodNeeds{{Workload: "Deployment/shop/web", Namespace: "shop", NodeSelector: map[string]string{"disk": "fast"}}}
			},
			finding{NodesUnfitLater, True, "NoNodeMatches", "Deployment/shop/web", "at the moment none is wanted", !blocks},
		},
		"a wish for nodes that nobody grants": {
			func(w *world) {
				w.dst.Nodes = []discover.Node{{Name: "n1"}}
				w.src.PodNeeds = []discover.PodNeeds{{Workload: "Deployment/shop/web", Namespace: "shop", Pods: 1, Preferred: []discover.NodeTerm{{{Key: "gpu", Operator: "Exists"}}}}}
			},
			finding{PreferredNodesGone, True, "NoNodeMatches", "Deployment/shop/web", "(gpu Exists)", !blocks},
		},
		"a priority class that the destination does not have": {
			func(w *world) {
				w.src.PriorityClasses = []discover.PriorityClass{{Name: "gold", Value: 700}}
				w.src.PodNeeds = []discover.PodNeeds{
					{Workload: "CronJob/shop/bill", Namespace: "shop", PriorityClass: "gold"},
					{Workload: "Deployment/shop/web", Namespace: "shop", PriorityClass: "gold"},
					{Workload: "DaemonSet/shop/log", Namespace: "shop", PriorityClass: "system-node-critical"},
				}
			},
			finding{PriorityClassMissing, True, "NotOnDestination", "PriorityClass gold", "PriorityClass gold (value 700 on the source; used by CronJob/shop/bill, Deployment/shop/web)", blocks},
		},
		"a priority class of another value": {
			func(w *world) {
				w.src.PriorityClasses, w.dst.PriorityClasses = []discover.PriorityClass{{Name: "gold", Value: 700}}, []discover.PriorityClass{{Name: "gold", Value: 5}}
				w.src.PodNeeds = []discover.PodNeeds{{Workload: "Deployment/shop/web", Namespace: "shop", PriorityClass: "gold"}}
			},
			finding{PriorityDiffers, True, "ValuesDiffer", "PriorityClass gold", "(700 on the source, 5 on the destination; used by Deployment/shop/web)", !blocks},
		},
		"a runtime class that the destination does not have": {
			func(w *world) {
				w.src.RuntimeClasses = []discover.RuntimeClass{{Name: "cage", Handler: "kata"}}
				w.src.PodNeeds = []discover.PodNeeds{{Workload: "Deployment/shop/web", Namespace: "shop", RuntimeClass: "cage"}}
			},
			finding{RuntimeClassMissing, True, "NotOnDestination", "RuntimeClass cage", "handler kata on the source; used by Deployment/shop/web", blocks},
		},
		"a runtime class of another handler": {
			func(w *world) {
				w.src.RuntimeClasses, w.dst.RuntimeClasses = []discover.RuntimeClass{{Name: "cage", Handler: "kata"}}, []discover.RuntimeClass{{Name: "cage", Handler: "runc"}}
				w.src.PodNeeds = []discover.PodNeeds{{Workload: "Deployment/shop/web", Namespace: "shop", RuntimeClass: "cage"}}
			},
			finding{RuntimeDiffers, True, "HandlersDiffer", "RuntimeClass cage", "handler kata on the source, runc on the destination", !blocks},
		},
		"a node port that another Service has": {
			func(w *world) {
				w.src.Services = []discover.Service{{Namespace: "shop", Name: "web", NodePorts: []int32{30100, 30200}}}
				w.dst.Services = []discover.Service{{Namespace: "else", Name: "door", NodePorts: []int32{30200}}, {Namespace: "shop-prod", Name: "web", NodePorts: []int32{30100}}}
			},
			finding{NodePortTaken, True, "PortAllocated", "Service/shop/web", "Service/shop/web (30200 is else/door's)", blocks},
		},
		"a node port outside of the usual range": {
			func(w *world) {
				w.src.Services = []discover.Service{{Namespace: "shop", Name: "web", NodePorts: []int32{8080}}}
			},
			finding{NodePortUnusual, True, "OutsideDefaultRange", "Service/shop/web", "Service/shop/web (8080)", !blocks},
		},
		"limits of the source that helper pods are below": {
			func(w *world) {
				w.src.LimitRanges = []discover.LimitRange{{Namespace: "shop", Name: "lim", Type: "Container", Min: map[string]string{"cpu": "50m"}, Max: map[string]string{"memory": "1Gi"}}}
			},
			finding{HelpersRefused, True, "LimitRangeExceeded", "LimitRange/shop/lim of the source", "(cpu: request 10m, minimum 50m)", blocks},
		},
		"limits of the destination by the ratio": {
			func(w *world) {
				w.dst.LimitRanges = []discover.LimitRange{{Namespace: "shop-prod", Name: "lim", Type: "Pod", Ratio: map[string]string{"cpu": "4", "memory": "2"}}}
			},
			finding{HelpersRefused, True, "LimitRangeExceeded", "LimitRange/shop-prod/lim of the destination", "(cpu: limit 100m is more than 4 times request 10m)", blocks},
		},
		"a quota that is used up while the application runs": {
			func(w *world) {
				w.src.Quotas = []discover.Quota{{Namespace: "shop", Name: "cap", Hard: map[string]string{"pods": "3"}, Used: map[string]string{"pods": "3"}}}
			},
			finding{HelpersCrowded, True, "QuotaUsedUp", "ResourceQuota/shop/cap", "(pods: 3/3 used, 1 more needed)", !blocks},
		},
		"a quota with room for no helper pod at all": {
			func(w *world) {
				w.src.Quotas = []discover.Quota{{Namespace: "shop", Name: "cap", Hard: map[string]string{"limits.memory": "50Mi"}}}
			},
			finding{PodQuotaTooSmall, True, "QuotaExceeded", "ResourceQuota/shop/cap of the source", "limits.memory: 64Mi needed, 50Mi is all there is", blocks},
		},
		"a quota of the destination with no room for the application": {
			func(w *world) {
				w.dst.Quotas = []discover.Quota{{Namespace: "shop-prod", Name: "cap", Hard: map[string]string{"requests.cpu": "4"}, Used: map[string]string{"requests.cpu": "1"}}}
				w.src.PodNeeds = []discover.PodNeeds{{Workload: "Deployment/shop/web", Namespace: "shop", Pods: 3, Containers: []discover.Resources{
					{Requests: map[string]string{"cpu": "1"}}, {Limits: map[string]string{"cpu": "500m"}},
				}}}
			},
			finding{PodQuotaTooSmall, True, "QuotaExceeded", "ResourceQuota/shop-prod/cap of the destination", "(for the application: requests.cpu: 1/4 used, 4500m more needed)", blocks},
		},
		"limits of the destination that the application exceeds": {
			func(w *world) {
				w.dst.LimitRanges = []discover.LimitRange{{Namespace: "shop-prod", Name: "lim", Type: "Container", Max: map[string]string{"memory": "2Gi"}}}
				w.src.PodNeeds = []discover.PodNeeds{{Workload: "Deployment/shop/web", Namespace: "shop", Pods: 1, Containers: []discover.Resources{{Limits: map[string]string{"memory": "3Gi"}}}}}
			},
			finding{PodsRefused, True, "LimitRangeExceeded", "Deployment/shop/web", "(LimitRange shop-prod/lim, memory: limit 3Gi, maximum 2Gi)", blocks},
		},
		"a webhook whose server is gone": {
			func(w *world) {
				w.dst.Webhooks = []discover.Webhook{{
					Configuration: "ValidatingWebhookConfiguration/guard", Name: "a.guard.test", Service: "gone/guard", Why: "there is no such Service", Objects: []string{"Service/shop/web", "Service/shop/db"},
				}}
			},
			finding{
				WebhookDown, True, "NoAnswer", "ValidatingWebhookConfiguration/guard",
				"(webhook a.guard.test, failurePolicy Fail, service gone/guard: there is no such Service; it is asked about Service/shop/web, Service/shop/db)", blocks,
			},
		},
		"objects of a version that the destination no longer serves": {
			func(w *world) {
				w.src.Unserved = []discover.Unserved{{Kind: "Lamp.light.test", Version: "v1beta1", Others: []string{"v1alpha1"}, There: []string{"v2", "v1"}, Objects: []string{"shop/hall"}}}
			},
			finding{VersionNotServed, True, "NoSuchVersion", "Lamp.light.test", "Lamp.light.test (v1beta1, v1alpha1 on the source, v2, v1 on the destination; both serve none; objects: shop/hall)", blocks},
		},
		"objects of a kind that only the source's API server has": {
			func(w *world) {
				w.src.Unserved = []discover.Unserved{{Kind: "Lamp.light.test", Version: "v1", Objects: []string{"shop/hall"}}}
			},
			finding{KindNotServed, True, "NoSuchKind", "Lamp.light.test", "Lamp.light.test (v1; objects: shop/hall)", blocks},
		},
		"objects of a kind whose definition goes along": {
			func(w *world) {
				w.src.Unserved = []discover.Unserved{{Kind: "Lamp.light.test", Version: "v1", Defined: true, Objects: []string{"shop/hall"}}}
			},
			finding{DefinitionsGoAlong, True, "DefinitionInBackup", "Lamp.light.test", "who acts on them must be installed there", !blocks},
		},
		"a subscription without its catalog": {
			func(w *world) {
				w.src.Subscriptions = []discover.Subscription{{Namespace: "shop", Name: "till", Package: "till", Catalog: "market/own"}}
			},
			finding{CatalogMissing, True, "NoSuchCatalog", "Subscription/shop/till", "(package till of CatalogSource market/own)", blocks},
		},
		"a subscription with its catalog": {
			func(w *world) {
				w.src.Subscriptions = []discover.Subscription{{Namespace: "shop", Name: "till", Package: "till", Catalog: "market/own", There: true}}
			},
			finding{SubscriptionsGoAlong, True, "InstalledAgain", "Subscription/shop/till", "installed anew", !blocks},
		},
		"what OLM makes by itself": {
			func(w *world) { w.src.Generated = []string{"ClusterServiceVersion/shop/till.v2"} },
			finding{GeneratedByOLM, True, "MadeAgain", "ClusterServiceVersion/shop/till.v2", "they are left out", !blocks},
		},
		"a part that could not be read": {
			func(w *world) {
				w.src.Gaps = []discover.Gap{{Part: discover.PartPods, Denied: true, Error: "100% forbidden"}}
			},
			finding{LookIncomplete, True, "Denied", "source pods", "cannot be looked at: source pods (context src): 100% forbidden", blocks},
		},
		"a certificate that ends tomorrow": {
			func(w *world) {
				w.dst.Access = discover.Access{Now: noon, CertificateUntil: noon.Add(24 * time.Hour)}
			},
			finding{CertificateExpiring, True, "EndSoon", "destination", "destination (https://dst, until 2031-02-04 12:00 UTC)", !blocks},
		},
		"clocks that are minutes apart": {
			func(w *world) {
				w.src.Access, w.dst.Access = discover.Access{Now: noon, Ahead: -time.Minute}, discover.Access{Now: noon, Ahead: 4 * time.Minute}
			},
			finding{ClocksDiffer, True, "Skewed", "destination", "destination (5m0s ahead of the source)", !blocks},
		},
		"a node-agent that SELinux stops": {
			func(w *world) { w.src.OpenShift = true },
			finding{NodeAgentUnprivileged, True, "NotPrivileged", "velero/node-agent on the source", "SELinux", !blocks},
		},
		"a volume that is full": {
			func(w *world) { w.src.Claims[0].UsedBytes, w.src.Claims[0].SizeBytes = 10<<30-1<<20, 10<<30 },
			finding{VolumeFull, True, "NoRoomLeft", "shop/data-db-0", "shop/data-db-0 (99% of 10Gi; write size: 12Gi)", !blocks},
		},
		"something optional that could not be read": {
			func(w *world) {
				w.src.Gaps = []discover.Gap{{Part: discover.PartNodes, Denied: true, Error: "no", Optional: true}}
			},
			finding{LookPartial, True, "CannotBeRead", "source nodes", "source nodes (context src): no", !blocks},
		},
		"an aggregated API that is down": {
			func(w *world) {
				w.src.Gaps = []discover.Gap{{Part: discover.PartAPIs, Error: "x", Objects: []string{"broken.test/v1", "metrics.k8s.io/v1beta1"}}}
			},
			finding{APIsDown, True, "NoAnswer", "APIService v1.broken.test of the source", "its kinds cannot be seen", blocks},
		},
		"metrics that are down": {
			func(w *world) {
				w.dst.Gaps = []discover.Gap{{Part: discover.PartAPIs, Error: "x", Objects: []string{"metrics.k8s.io/v1beta1"}}}
			},
			finding{MetricsDown, True, "NoAnswer", "APIService v1beta1.metrics.k8s.io of the destination", "nothing that is migrated", !blocks},
		},
		"kinds that could not be listed": {
			func(w *world) { w.dst.Gaps = []discover.Gap{{Part: discover.PartObjects, Error: "x"}} },
			finding{ObjectsUnlisted, True, "CannotBeRead", "destination objects", "cannot be looked at", !blocks},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			c.change(w)
			conditions := w.check(t)
			if Ready(conditions) == c.want.blocks {
				t.Errorf("ready is %t: blocking are %+v", Ready(conditions), Blocking(conditions))
			}
			last := conditions[len(conditions)-1]
			if last.Type != ReadyType || (last.Status == True) == c.want.blocks {
				t.Errorf("the last condition is %+v", last)
			}
			got := one(t, conditions, c.want.kind)
			if got.Status != c.want.status || got.Reason != c.want.reason || !slices.Contains(got.Objects, c.want.object) ||
				!strings.Contains(got.Message, c.want.message) || got.Blocks() != c.want.blocks {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func one(t *testing.T, conditions []Condition, kind string) Condition {
	t.Helper()
	for _, c := range conditions {
		if c.Type == kind {
			return c
		}
	}
	t.Fatalf("no condition %s among %+v", kind, conditions)
	return Condition{}
}

func TestARiskBlocksUntilEachOfItsObjectsIsAccepted(t *testing.T) {
	w := newWorld()
	w.src.Pods = append(w.src.Pods, discover.Pod{Namespace: "shop", Name: "a", Phase: "Running"}, discover.Pod{Namespace: "shop", Name: "b", Phase: "Running"})
	for _, c := range []struct {
		accepted []string
		ready    bool
	}{
		{nil, false},
		{[]string{"shop/a"}, false},
		{[]string{"shop/a", "shop/b"}, true},
		{[]string{"*"}, true},
	} {
		w.plan.Spec.Accept = nil
		for _, o := range c.accepted {
			w.plan.Spec.Accept = append(w.plan.Spec.Accept, plan.Accept{Type: BarePods, Object: o, Why: "seen"})
		}
		conditions := w.check(t)
		if got := one(t, conditions, BarePods); Ready(conditions) != c.ready || got.Accepted != c.ready {
			t.Errorf("accepting %v: ready is %t, want %t: %+v", c.accepted, Ready(conditions), c.ready, got)
		}
	}
}

func TestOnlyARunThatIsSaidToRunIsLeftToTheLock(t *testing.T) {
	for state, want := range map[string]bool{"Running": true, "Failed": false, "Interrupted": false} {
		w := newWorld()
		w.src.Plans = []discover.OtherPlan{{Name: "other", UID: "uid-of-another", Namespaces: []string{"shop"}, State: state}}
		if got := one(t, w.check(t), PlanConflict); got.IsHeld() != want || !got.Blocks() {
			t.Errorf("%s: got %+v, left to the lock: want %t", state, got, want)
		}
	}
}

func TestWhatCannotBeSeenIsNotTakenForGone(t *testing.T) {
	w := newWorld()
	w.src.Claims, w.src.Gaps = nil, []discover.Gap{{Part: discover.PartClaims, Error: "timeout"}}
	conditions := w.check(t)
	for _, c := range conditions {
		if c.Type == ClaimVanished {
			t.Errorf("claims that could not be listed are told to have vanished: %+v", c)
		}
	}
	if Ready(conditions) {
		t.Error("ready although the claims could not be listed")
	}
}

func TestWhatIsMissingForOneReasonIsToldTogether(t *testing.T) {
	w := newWorld()
	w.src.Gaps = []discover.Gap{
		{Part: discover.PartClaims, Denied: true, Error: "claims: forbidden"},
		{Part: discover.PartVelero, Error: "lost"},
		{Part: discover.PartWorkloads, Denied: true, Error: "jobs: forbidden"},
		{Part: discover.PartWorkloads, Denied: true, Error: "pods: forbidden"},
	}
	var got []string
	for _, c := range w.check(t) {
		if c.Type == LookIncomplete {
			got = append(got, c.Message)
		}
	}
	want := []string{
		"cannot be looked at: source claims, source workloads (context src): claims: forbidden (and 2 more)",
		"cannot be looked at: source Velero (context src): lost",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestUnreachableClustersGiveNoFurtherFindings(t *testing.T) {
	w := newWorld()
	w.src = discover.SourceFacts{Facts: discover.Facts{Context: "src", Reach: discover.Unreachable, Error: "x"}}
	w.dst = discover.DestinationFacts{Facts: discover.Facts{Context: "dst", Reach: discover.Unreachable, Error: "x"}}
	var got []string
	for _, c := range Blocking(w.check(t)) {
		got = append(got, c.Type)
	}
	if want := []string{SourceReachable, DestinationReachable}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAClusterWithoutVeleroIsToldOnce(t *testing.T) {
	w := newWorld()
	w.dst.Velero = discover.Velero{Namespace: "velero"}
	var got []string
	for _, c := range Blocking(w.check(t)) {
		got = append(got, c.Type)
	}
	if want := []string{DestinationVeleroReady}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAPlanWithoutVolumesNeedsNoNodeAgent(t *testing.T) {
	w := newWorld()
	w.plan.Spec.Volumes, w.src.Claims = nil, nil
	w.src.Velero.NodeAgent, w.dst.Velero.NodeAgent = discover.NodeAgent{}, discover.NodeAgent{}
	if conditions := w.check(t); !Ready(conditions) {
		t.Errorf("blocked by %+v", Blocking(conditions))
	}
}

// The pods of mig-mover are in Velero's namespace, and what mounts the volume is admitted anywhere.
func TestRestrictedPodSecurityIsNoObstacleWhereMigMoverRestores(t *testing.T) {
	w := newWorld()
	w.plan.Spec.HelperImage = "registry.test/mig-mover:1"
	w.dst.Namespaces = []discover.Namespace{{Name: "shop-prod", Phase: "Active", Labels: map[string]string{enforceLabel: restricted}}}
	if conditions := w.check(t); !Ready(conditions) {
		t.Errorf("blocked by %+v", Blocking(conditions))
	}
}

func TestWhatThisPlansRunsMadeDoesNotOccupyTheDestination(t *testing.T) {
	w := newWorld()
	w.dst.Objects = []discover.Object{
		{APIVersion: "v1", Kind: "Service", Namespace: "shop-prod", Name: "web", OfPlan: "5f0c3d9e"},
		{APIVersion: "v1", Kind: "Pod", Namespace: "shop-prod", Name: "web-1", Owned: true},
	}
	w.src.Objects = []discover.Object{{APIVersion: "v1", Kind: "Service", Namespace: "shop", Name: "web"}, {APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web-1"}}
	if conditions := w.check(t); !Ready(conditions) {
		t.Errorf("blocked by %+v", Blocking(conditions))
	}
}

func TestLongListsNameTenAndCountTheRest(t *testing.T) {
	w := newWorld()
	for range 12 {
		w.src.Pods = append(w.src.Pods, discover.Pod{Namespace: "shop", Name: "p" + string(rune('a'+len(w.src.Pods))), Phase: "Running"})
	}
	c := one(t, w.check(t), BarePods)
	if len(c.Objects) != 12 || !strings.Contains(c.Message, "shop/pk and 2 more") {
		t.Errorf("got %d objects, message %q", len(c.Objects), c.Message)
	}
}

func TestMissingRightsAreGivenAsRolesToApply(t *testing.T) {
	got := Roles([]discover.Right{
		{Verb: "get", Resource: "namespaces"},
		{Verb: "list", Resource: "namespaces"},
		{Verb: "patch", Group: "apps", Resource: "deployments", Namespace: "shop"},
	})
	want := `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: mig}
rules:
- {apiGroups: [""], resources: ["namespaces"], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: mig, namespace: shop, labels: {velero.io/exclude-from-backup: "true"}}
rules:
- {apiGroups: ["apps"], resources: ["deployments"], verbs: [patch]}
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAThousandNamespacesAreJudged(t *testing.T) {
	w := newWorld()
	for i := range 5000 {
		ns := fmt.Sprintf("ns-%d", i/5)
		if i%5 == 0 {
			w.plan.Spec.Namespaces = append(w.plan.Spec.Namespaces, plan.Namespace{Name: ns})
			w.src.Namespaces = append(w.src.Namespaces, discover.Namespace{Name: ns, Phase: "Active"})
		}
		c := discover.Claim{Namespace: ns, Name: fmt.Sprintf("data-%d", i%5), Phase: "Bound", StorageClass: "gp2"}
		w.src.Claims = append(w.src.Claims, c)
		w.plan.Spec.Volumes = append(w.plan.Spec.Volumes, plan.Volume{Claim: c.Key(), StorageClass: "gp2", Action: plan.Copy})
	}
	if conditions := w.check(t); !Ready(conditions) {
		t.Errorf("blocked by %+v", Blocking(conditions))
	}
}
