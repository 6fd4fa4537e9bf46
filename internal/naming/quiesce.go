package naming

// Annotations on a workload that mig has stopped. With the reference system's
// preQuiesce keys, which hold what was there before, they are all that is needed
// to bring it back: they are written in the same patch as the change.
const (
	AnnQuiesceState = Prefix + "quiesce"          // protected | stopped | starting, see package quiesce
	AnnQuiescePlan  = Prefix + "quiesce-plan-uid" // whose it is: a live mig-controller writes the preQuiesce keys too
	AnnQuiesceRun   = Prefix + "quiesce-run-uid"
	// AnnQuiesceReady is how ready the workload was before: ready/wanted pods.
	AnnQuiesceReady = Prefix + "pre-quiesce-ready"
	// AnnQuiesceWhenScaled is the StatefulSet's persistentVolumeClaimRetentionPolicy.whenScaled from before.
	AnnQuiesceWhenScaled = Prefix + "pre-quiesce-when-scaled"
	// AnnQuiesceKept holds, as JSON, the preQuiesce annotations that somebody else had put there before.
	AnnQuiesceKept = Prefix + "pre-quiesce-annotations"
)

// NodeSelectorQuiesced is the node label that no node has: a DaemonSet that
// asks for it runs nowhere.
const NodeSelectorQuiesced = Prefix + "quiesced"
