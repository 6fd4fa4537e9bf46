package preflight

import (
	"fmt"
	"slices"

	"github.com/mig-cli/mig/internal/discover"
)

// Conditions of the network.
const (
	NodePortTaken   = "NodePortTaken"   // a port of every node, which another Service has
	NodePortUnusual = "NodePortUnusual" // the destination may not have such ports to give
)

func networkChecks() []check { return []check{portsTaken, portsUnusual} }

// portsTaken finds node ports that the final restore would ask for, as it keeps
// those of the source, and that Services of others on the destination have.
func portsTaken(l look) []Condition {
	owner := map[int32]discover.Service{}
	for _, s := range l.dst.Services {
		for _, port := range s.NodePorts {
			owner[port] = s
		}
	}
	var names []string
	for _, s := range l.goingAlong() {
		var taken []string
		for _, port := range s.NodePorts {
			has, ok := owner[port]
			if ok && (has.Namespace != l.plan.DestinationNamespace(s.Namespace) || has.Name != s.Name) {
				taken = append(taken, fmt.Sprintf("%d is %s's", port, has.Key()))
			}
		}
		if len(taken) > 0 {
			names = append(names, fmt.Sprintf("Service/%s (%s)", s.Key(), few(taken)))
		}
	}
	return risk(NodePortTaken, "PortAllocated", names, "node ports that another Service of the destination has: %s: the Service could not be made there",
		fmt.Sprintf("give one of the two another port: kubectl edit service NAME; or leave it behind, with the label velero.io/exclude-from-backup=true, and make it on %s yourself", l.dst.Context))
}

// goingAlong are the source's Services that are backed up.
func (l look) goingAlong() []discover.Service {
	return slices.DeleteFunc(slices.Clone(l.src.Services), func(s discover.Service) bool { return s.Stays })
}

// The range that API servers give node ports of where nobody says otherwise.
const firstNodePort, lastNodePort = 30000, 32767

// portsUnusual tells of node ports outside of the usual range. No cluster says
// what its range is; one that has such a port already has a wider one.
func portsUnusual(l look) []Condition {
	unusual := func(port int32) bool { return port < firstNodePort || port > lastNodePort }
	if slices.ContainsFunc(l.dst.Services, func(s discover.Service) bool { return slices.ContainsFunc(s.NodePorts, unusual) }) {
		return nil
	}
	var names []string
	for _, s := range l.goingAlong() {
		for _, port := range s.NodePorts {
			if unusual(port) {
				names = append(names, fmt.Sprintf("Service/%s (%d)", s.Key(), port))
			}
		}
	}
	return found(Warn, NodePortUnusual, "OutsideDefaultRange", names, fmt.Sprintf("node ports outside of %d-%d, where the destination gives none unless it was told to: %%s", firstNodePort, lastNodePort),
		"see the API server's --service-node-port-range on the destination, or give the Service another port")
}
