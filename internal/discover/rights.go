package discover

// Right is one thing that mig must be allowed to do on a cluster.
type Right struct {
	Verb      string `json:"verb"`
	Group     string `json:"group"` // "" is the core group
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"` // empty: cluster-wide
	Why       string `json:"why"`
	Allowed   bool   `json:"allowed"`
}
