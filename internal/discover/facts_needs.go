package discover

import (
	"slices"
	"strconv"
)

// PodNeeds is what the pods of a workload ask of their cluster, as its template
// says; of a pod that no template made, the pod itself.
type PodNeeds struct {
	Workload      string            `json:"workload"` // Kind/namespace/name
	Namespace     string            `json:"namespace"`
	Pods          int64             `json:"pods,omitempty"` // that it wants now; 0 too for one on every node
	NodeSelector  map[string]string `json:"nodeSelector,omitempty"`
	Nodes         []NodeTerm        `json:"nodes,omitempty"`          // required affinity: any one of them
	Preferred     []NodeTerm        `json:"preferredNodes,omitempty"` // no more than a wish
	Tolerations   []Toleration      `json:"tolerations,omitempty"`
	PriorityClass string            `json:"priorityClass,omitempty"`
	RuntimeClass  string            `json:"runtimeClass,omitempty"`
	Containers    []Resources       `json:"containers,omitempty"`
}

// Resources is what one container asks for: resource -> quantity.
type Resources struct {
	Requests map[string]string `json:"requests,omitempty"`
	Limits   map[string]string `json:"limits,omitempty"`
}

// NodeTerm is a set of rules for nodes, all of which must hold.
type NodeTerm []NodeRule

// NodeRule is one rule for nodes.
type NodeRule struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"` // In, NotIn, Exists, DoesNotExist, Gt, Lt
	Values   []string `json:"values,omitempty"`
	OfField  bool     `json:"ofField,omitempty"` // the key is a field of the node: metadata.name
}

// Taint keeps pods from a node that do not tolerate it.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

// Toleration lets pods on nodes in spite of a taint.
type Toleration struct {
	Key    string `json:"key,omitempty"` // empty: any
	Value  string `json:"value,omitempty"`
	Exists bool   `json:"exists,omitempty"` // whatever the taint's value is
	Effect string `json:"effect,omitempty"` // empty: any
}

// Tolerates says whether a taint is tolerated.
func (t Toleration) Tolerates(taint Taint) bool {
	return (t.Effect == "" || t.Effect == taint.Effect) && (t.Key == taint.Key || (t.Key == "" && t.Exists)) && (t.Exists || t.Value == taint.Value)
}

// Fits says whether a node is as the rules want it. A term without rules fits
// none, as the scheduler has it.
func (t NodeTerm) Fits(n Node) bool {
	return len(t) > 0 && !slices.ContainsFunc(t, func(r NodeRule) bool { return !r.fits(n) })
}

func (r NodeRule) fits(n Node) bool {
	value, there := n.Labels[r.Key]
	if r.OfField {
		value, there = n.Name, r.Key == "metadata.name"
	}
	switch r.Operator {
	case "In":
		return there && slices.Contains(r.Values, value)
	case "NotIn":
		return !there || !slices.Contains(r.Values, value)
	case "Exists":
		return there
	case "DoesNotExist":
		return !there
	case "Gt", "Lt":
		return there && len(r.Values) == 1 && isBeyond(value, r.Values[0], r.Operator == "Gt")
	default:
		return false
	}
}

func isBeyond(value, bound string, above bool) bool {
	v, err := strconv.Atoi(value)
	b, boundErr := strconv.Atoi(bound)
	if err != nil || boundErr != nil {
		return false
	}
	return (above && v > b) || (!above && v < b)
}

// PriorityClass is one class of pods' priority.
type PriorityClass struct {
	Name  string `json:"name"`
	Value int32  `json:"value"`
}

// RuntimeClass is one class of container runtimes.
type RuntimeClass struct {
	Name    string `json:"name"`
	Handler string `json:"handler"`
}

// Service is one Service, with what of it only one Service of a cluster can have.
type Service struct {
	Namespace string  `json:"namespace"`
	Name      string  `json:"name"`
	NodePorts []int32 `json:"nodePorts"`
	Stays     bool    `json:"stays,omitempty"` // is labelled to be in no backup of Velero's
}

// Key is namespace/name.
func (s Service) Key() string { return s.Namespace + "/" + s.Name }

// LimitRange is one rule of a LimitRange for containers or pods.
type LimitRange struct {
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	Type      string            `json:"type"` // Container, Pod
	Min       map[string]string `json:"min,omitempty"`
	Max       map[string]string `json:"max,omitempty"`
	Ratio     map[string]string `json:"maxLimitRequestRatio,omitempty"`
}

// Key is namespace/name.
func (r LimitRange) Key() string { return r.Namespace + "/" + r.Name }

// Webhook is one that must answer before the cluster makes an object of the
// plan's, and whose server is not there.
type Webhook struct {
	Configuration string   `json:"configuration"` // ValidatingWebhookConfiguration/NAME
	Name          string   `json:"name"`
	Service       string   `json:"service"` // namespace/name
	Why           string   `json:"why"`     // it does not answer
	Objects       []string `json:"objects"` // of the source, which it would be asked about
}

// Kind is a kind of objects in namespaces that a cluster serves.
type Kind struct {
	Group     string
	Kind      string
	Resource  string
	Versions  []string // served
	Preferred string   // in which Velero backs it up
}

// Unserved is a kind of which the source's namespaces hold objects, and which
// the destination does not serve as they are backed up.
type Unserved struct {
	Kind    string   `json:"kind"`              // Kind.group
	Version string   `json:"version"`           // in which they are backed up
	Others  []string `json:"others,omitempty"`  // versions that the source serves besides
	There   []string `json:"there,omitempty"`   // versions that the destination serves; none: it does not know the kind
	Defined bool     `json:"defined,omitempty"` // by a CustomResourceDefinition, which goes along
	Objects []string `json:"objects"`           // namespace/name
}

// Subscription is one of the Operator Lifecycle Manager.
type Subscription struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Package   string `json:"package"`
	Catalog   string `json:"catalog"` // namespace/name of its CatalogSource
	// There: the destination has that CatalogSource.
	There bool `json:"there,omitempty"`
}

// Key is namespace/name.
func (s Subscription) Key() string { return s.Namespace + "/" + s.Name }
