package event

// Reason is a row of the table of what Events tell, for whoever reads them.
type Reason struct {
	Name   string // as in the Event; <Step> stands for the name of a step
	Kind   string // Normal or Warning
	About  string // what it regards → what it is related to
	Action string
	Means  string
	Do     string // what a person does; empty: nothing
}

// What Events are about.
const (
	aboutRun      = "run record → plan record"
	aboutStep     = "run record → the step's object"
	aboutWorkload = "the workload → run record"
	aboutClaim    = "the claim → run record"
	aboutObject   = "the object → run record"
)

// What their action is.
const (
	actionKind = "the kind of run"
	actionStep = "the step"
)

// Reasons are all reasons of a run's Events, but for the types of the warnings
// of a plan's validation, which are told under their own names.
func Reasons() []Reason {
	return []Reason{
		{"PlanCreated", "Normal", aboutStep, actionKind, "the clusters have their first record of the plan", ""},
		{"Started", "Normal", aboutRun, actionKind, "a run has begun: of what, from where to where, by whom", ""},
		{"Resumed", "Normal", aboutRun, actionKind, "another process has taken the run up where it was", ""},
		{"Completed", "Normal", aboutRun, actionKind, "the run came to its end", "look whether something is LeftOut"},
		{"RolledBack", "Normal", aboutRun, actionKind, "the destination is clean of the plan and the source runs as before", ""},
		{"PlanClosed", "Normal", aboutRun, actionKind, "nothing of the plan's runs is left but records and what was migrated", ""},
		{"Interrupted", "Warning", aboutRun, actionKind, "the run was stopped; its text says what is down", "run the same command again, or mig rollback"},
		{"MigrationFailed", "Warning", aboutRun, actionKind, "the run failed; its text says why and what is down", "settle that and run the same command again, or mig rollback"},
		{"Ready", "Normal", aboutStep, actionKind, "the plan can run; what has changed since the last look is told", ""},
		{"NotReady", "Warning", aboutStep, actionKind, "the plan cannot run; what has changed since the last look is told", "mig plan validate says what to do about each"},
		{"ValidationFailed", "Warning", aboutStep, actionKind, "whether the plan can run is not known: what could not be looked at on which cluster, and why", "see to that cluster, or to our rights there, and run the same command again"},
		{"VeleroReady", "Normal", aboutStep, actionKind, "Velero's server runs on both clusters: which versions, how many pods", ""},
		{"VeleroNotReady", "Warning", aboutStep, actionKind, "Velero's server does not run on one of the clusters", "see to the Deployment velero in its namespace; mig plan validate says more"},
		{"StorageClassListUpdated", "Normal", aboutStep, actionKind, "the destination has other storage classes than the plan's last run knew: which came and went", "mig pv discover, if a claim is to have one of the new"},
		{"PvsDiscovered", "Normal", aboutStep, actionKind, "how many claims are copied and how many skipped", ""},
		{"VolumeSkipped", "Normal", aboutClaim, actionKind, "the plan leaves the claim's data behind", "mig pv set, if it is to come along"},
		{"<Step>", "Normal", aboutStep, actionStep, "the step came to its end: Step 7 of 22 completed in 12s, with its facts", ""},
		{"<Step>TakingTooLong", "Warning", aboutStep, actionStep, "nothing has moved for the step's limit; it tells what is waited for and why", "settle what it names; the run goes on waiting until the step's limit"},
		{"<Step>Blocked", "Warning", aboutStep, actionStep, "a person must decide; the step has changed nothing", "settle what it names and run the same command again"},
		{"<Step>Failed", "Warning", aboutStep, actionStep, "the step will not come to its end; it tells the cluster's reason", "settle what it names and run the same command again, or mig rollback"},
		{"Quiescing", "Normal", aboutWorkload, actionStep, "the workload is asked to stop, and what was there before is written on it", ""},
		{"Quiesced", "Normal", aboutWorkload, actionStep, "no pod of it is left", ""},
		{"StillRunning", "Warning", aboutObject, actionStep, "it runs on; nothing that it mounts is copied", "stop it, if it must not run on both sides"},
		{"SourceScaledUp", "Warning", aboutWorkload, actionStep, "somebody started it while it was to stand still: the copy is not trusted", "find out who does, pause that, and run the same command again"},
		{"Unquiesced", "Normal", aboutWorkload, actionStep, "the workload is asked to be as it was before", ""},
		{"WorkloadReady", "Normal", aboutWorkload, actionStep, "as ready on the destination as it was on the source", ""},
		{"VolumeBackupStarted", "Normal", aboutClaim, actionStep, "Velero reads the claim's data; a volume that is quickly through has only VolumeBackedUp", ""},
		{"VolumeBackupFailed", "Warning", aboutClaim, actionStep, "Velero could not read the claim's data; it tells Velero's message", "settle what it names and run the same command again"},
		{"VolumeBackedUp", "Normal", aboutClaim, actionStep, "the claim's data is in the object store: bytes, changed bytes, time", ""},
		{"VolumeRestoreStarted", "Normal", aboutClaim, actionStep, "the claim's data is being written, by Velero or mig-mover; a volume that is quickly through has only VolumeRestored", ""},
		{"VolumeRestoreFailed", "Warning", aboutClaim, actionStep, "the claim's data could not be written; it tells the message of Velero or mig-mover", "settle what it names and run the same command again, or mig rollback"},
		{"VolumeRestored", "Normal", aboutClaim, actionStep, "the claim's data is on the destination; by mig-mover: how much of it was written now, and how many files kept and removed", ""},
		{"MoverUnusable", "Warning", aboutStep, actionStep, "mig-mover's image or the store cannot be used: Velero restores the volumes as a whole at the cutover", "see to what it names before the cutover, or allow for a longer one"},
		{"VolumeVerified", "Normal", aboutClaim, actionStep, "every file of the claim was read on both sides and is equal: entries, bytes, time", ""},
		{"SourceChanged", "Normal", aboutStep, actionStep, "objects were changed on the source since they were backed up, and are backed up again", ""},
		{"LeftOut", "Warning", aboutObject, actionStep, "the plan covers it and the destination lacks it: the run ends in exit 3", "bring it there, or take all back with mig rollback"},
		{"LeftInPlace", "Warning", aboutObject, actionStep, "a rollback does not delete it: it was there before, or is others'", "delete it yourself, if it is to go"},
		{"ChangedSinceRestore", "Warning", aboutObject, actionStep, "a rollback deletes what somebody has changed on the destination since", "look whether the change is needed on the source"},
		{"SourceUnreachable", "Warning", aboutStep, actionStep, "the source does not answer; what happens meanwhile is told when it does", "see to its API server or the way to it; a run waits for two minutes, and is then taken up by the same command"},
		{"SourceUnreachableRecovered", "Normal", aboutStep, actionStep, "the source answers again", ""},
		{"DestinationUnreachable", "Warning", aboutStep, actionStep, "the destination does not answer; what happens meanwhile is told when it does", "see to its API server or the way to it; a run waits for two minutes, and is then taken up by the same command"},
		{"DestinationUnreachableRecovered", "Normal", aboutStep, actionStep, "the destination answers again", ""},
		{"StorageLocationUnavailable", "Warning", aboutStep, actionStep, "Velero cannot use the plan's storage location while a step waits; it tells Velero's reason", "see to the object store and its credentials; the run goes on by itself"},
		{"StorageLocationUnavailableRecovered", "Normal", aboutStep, actionStep, "the storage location is Available again", ""},
		{"NodeAgentMissing", "Warning", aboutStep, actionStep, "node-agent is gone, or not ready on all its nodes, while a step waits", "see to the DaemonSet node-agent in Velero's namespace; the run goes on by itself"},
		{"NodeAgentMissingRecovered", "Normal", aboutStep, actionStep, "node-agent is ready on all its nodes again", ""},
		{"VeleroWorkLeft", "Warning", aboutStep, actionStep, "Velero did not end what was cancelled", "see whether Velero's server runs"},
	}
}
