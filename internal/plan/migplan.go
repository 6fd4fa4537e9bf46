package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// migPlan is a MigPlan of mig-controller (migration.openshift.io/v1alpha1), as
// far as a plan can say the same.
type migPlan struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec  json.RawMessage   `json:"spec"`
	Items []json.RawMessage `json:"items"` // of a List
}

type migPlanSpec struct {
	Namespaces        []string        `json:"namespaces"`
	PersistentVolumes []migVolume     `json:"persistentVolumes"`
	SrcMigClusterRef  migRef          `json:"srcMigClusterRef"`
	DestMigClusterRef migRef          `json:"destMigClusterRef"`
	MigStorageRef     migRef          `json:"migStorageRef"`
	Closed            bool            `json:"closed"`
	Hooks             []migHook       `json:"hooks"`
	LabelSelector     json.RawMessage `json:"labelSelector"`
	IncludedResources json.RawMessage `json:"includedResources"`
	LiveMigrate       bool            `json:"liveMigrate"`
	Indirect          bool            `json:"indirectVolumeMigration"`
}

type migRef struct {
	Name string `json:"name"`
}

type migHook struct {
	Reference migRef `json:"reference"`
	Phase     string `json:"phase"`
}

type migVolume struct {
	Name              string `json:"name"`
	Capacity          string `json:"capacity"`
	StorageClass      string `json:"storageClass"`
	CapacityConfirmed bool   `json:"capacityConfirmed"`
	ProposedCapacity  string `json:"proposedCapacity"`
	Supported         struct {
		Actions []Action `json:"actions"`
	} `json:"supported"`
	Selection struct {
		Action       Action `json:"action"`
		StorageClass string `json:"storageClass"`
		AccessMode   string `json:"accessMode"`
		CopyMethod   string `json:"copyMethod"`
		Verify       bool   `json:"verify"`
	} `json:"selection"`
	PVC struct {
		Namespace   string   `json:"namespace"`
		Name        string   `json:"name"`
		AccessModes []string `json:"accessModes"`
		VolumeMode  string   `json:"volumeMode"`
	} `json:"pvc"`
}

// MigPlanKind and MigPlanAPI name what Import reads.
const (
	MigPlanKind = "MigPlan"
	MigPlanAPI  = "migration.openshift.io/v1alpha1"
)

// Import makes a plan of a MigPlan, or of a List with one. Name, uid, clusters
// and storage are the caller's; of name and storage what is empty is taken from
// the MigPlan. What a plan cannot say is told in the notes, one a sentence.
// Errors: *LoadError.
func Import(file string, data []byte, into Plan) (*Plan, []string, error) {
	name, spec, rest, err := readMigPlan(data)
	if err != nil {
		return nil, nil, &LoadError{File: file, Problems: []Problem{{Pos: Position{File: file}, Message: err.Error()}}}
	}
	i := &importer{from: spec, plan: into}
	i.plan.APIVersion, i.plan.Kind = APIVersion, Kind
	i.plan.Metadata.Name = orElse(into.Metadata.Name, name)
	i.plan.Spec.Storage.Location = orElse(into.Spec.Storage.Location, "default")
	i.namespaces()
	for _, v := range spec.PersistentVolumes {
		i.volume(v)
	}
	i.clusters(name)
	i.rest(rest)
	if _, problems := i.plan.Validate(); len(problems) > 0 {
		for k := range problems {
			problems[k].Pos = Position{File: file}
		}
		return nil, nil, &LoadError{File: file, Problems: problems}
	}
	return &i.plan, i.notes, nil
}

var errNoMigPlan = fmt.Errorf("want one %s of %s, as oc get migplan NAME -o yaml prints it", MigPlanKind, MigPlanAPI)

// readMigPlan tells a MigPlan's name and spec.
func readMigPlan(data []byte) (name string, spec migPlanSpec, rest map[string]json.RawMessage, err error) {
	text, err := yaml.YAMLToJSON(unixLines(data))
	if err != nil {
		return "", spec, nil, errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	m := migPlan{}
	_ = json.Unmarshal(text, &m) // what is no object has no kind
	if m.Kind == "List" && len(m.Items) == 1 {
		text, m = m.Items[0], migPlan{}
		_ = json.Unmarshal(text, &m)
	}
	if m.Kind != MigPlanKind || m.APIVersion != MigPlanAPI {
		return "", spec, nil, fmt.Errorf("%w; got kind %q of %q", errNoMigPlan, short(m.Kind), short(m.APIVersion))
	}
	if len(m.Spec) > 0 {
		err = errors.Join(json.Unmarshal(m.Spec, &spec), json.Unmarshal(m.Spec, &rest))
	}
	if err != nil {
		return "", spec, nil, errors.New("spec: " + strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return m.Metadata.Name, spec, rest, nil
}

// importer makes a plan of a MigPlan's spec.
type importer struct {
	from  migPlanSpec
	plan  Plan
	notes []string
}

func (i *importer) note(format string, args ...any) {
	i.notes = append(i.notes, fmt.Sprintf(format, args...))
}

func (i *importer) namespaces() {
	i.plan.Spec.Namespaces = nil
	for _, n := range i.from.Namespaces {
		source, destination, _ := strings.Cut(n, ":")
		if destination == source {
			destination = ""
		}
		i.plan.Spec.Namespaces = append(i.plan.Spec.Namespaces, Namespace{Name: source, Destination: destination})
	}
}

func (i *importer) volume(m migVolume) {
	namespace, _, _ := strings.Cut(m.PVC.Namespace, ":")
	name, renamed, _ := strings.Cut(m.PVC.Name, ":")
	v := Volume{
		Claim: namespace + "/" + name, Volume: m.Name, Capacity: m.Capacity, Used: Unknown, StorageClass: m.StorageClass,
		AccessModes: m.PVC.AccessModes, VolumeMode: m.PVC.VolumeMode, Supported: m.Supported.Actions, Action: m.Selection.Action,
	}
	if !slices.ContainsFunc(i.plan.Spec.Namespaces, func(n Namespace) bool { return n.Name == namespace }) {
		i.note("claim %s was left out: its namespace is not in the MigPlan's namespaces", v.Claim)
		return
	}
	if renamed != "" && renamed != name {
		i.note("claim %s keeps its name: mig does not rename claims yet (the MigPlan: %s)", v.Claim, renamed)
	}
	i.choices(&v, m)
	i.plan.Spec.Volumes = append(i.plan.Spec.Volumes, v)
}

// choices carries over what the MigPlan selects for a volume. What mig cannot do
// yet is left for a person to choose.
func (i *importer) choices(v *Volume, m migVolume) {
	s := m.Selection
	if s.Action == Move {
		v.Action = ""
		i.note("choose an action for claim %s: mig does not move volumes yet", v.Claim)
	}
	if v.Action != Copy {
		return
	}
	switch s.CopyMethod {
	case "", CopyFilesystem:
		v.CopyMethod = s.CopyMethod
	default:
		i.note("claim %s is copied by files: mig has no copy method %s yet", v.Claim, s.CopyMethod)
	}
	v.Destination.StorageClass = s.StorageClass
	if s.AccessMode == "auto" {
		i.note("claim %s keeps its access modes: mig knows no mode auto", v.Claim)
	} else if s.AccessMode != "" {
		v.Destination.AccessModes = []string{s.AccessMode}
	}
	if m.CapacityConfirmed && m.ProposedCapacity != "" && m.ProposedCapacity != m.Capacity && m.ProposedCapacity != "0" {
		v.Destination.Size = m.ProposedCapacity
	}
	if s.Verify {
		i.note("claim %s is not verified file by file: mig does not do that yet", v.Claim)
	}
}

func (i *importer) clusters(name string) {
	s := i.plan.Spec
	i.note("MigCluster %s is taken to be context %s, and %s context %s: be sure that they are",
		orElse(i.from.SrcMigClusterRef.Name, "(none)"), s.Source.Context, orElse(i.from.DestMigClusterRef.Name, "(none)"), s.Destination.Context)
	i.note("MigStorage %s is not carried over: both clusters need a BackupStorageLocation %s with the same bucket",
		orElse(i.from.MigStorageRef.Name, "(none)"), s.Storage.Location)
	if i.from.Closed {
		i.note("MigPlan %s is closed; the new plan is not", name)
	}
}

// rest tells of everything that was not carried over.
func (i *importer) rest(given map[string]json.RawMessage) {
	for _, h := range i.from.Hooks {
		i.note("hook %s (%s) is not carried over: mig runs no hooks yet; run it yourself", h.Reference.Name, h.Phase)
	}
	if isGiven(i.from.LabelSelector) {
		i.note("labelSelector is not carried over: mig migrates whole namespaces, more than the MigPlan did")
	}
	if isGiven(i.from.IncludedResources) {
		i.note("includedResources is not carried over: mig migrates whole namespaces, more than the MigPlan did")
	}
	if i.from.LiveMigrate {
		i.note("liveMigrate is not carried over: mig stops the workloads for the last copy")
	}
	if !i.from.Indirect {
		i.note("volumes are copied through the object store (the MigPlan: from cluster to cluster)")
	}
	known := []string{
		"namespaces", "persistentVolumes", "srcMigClusterRef", "destMigClusterRef", "migStorageRef", "closed", "hooks", "labelSelector",
		"includedResources", "liveMigrate", "indirectVolumeMigration", "indirectImageMigration", "refresh",
	}
	for _, name := range sortedKeys(given) {
		if !slices.Contains(known, name) {
			i.note("spec.%s is not carried over: mig does not know it", name)
		}
	}
}

func isGiven(raw json.RawMessage) bool {
	return len(raw) > 0 && !slices.Contains([]string{"null", "{}", "[]"}, string(bytes.TrimSpace(raw)))
}
