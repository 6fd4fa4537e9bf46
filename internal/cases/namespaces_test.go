//go:build e2e

package cases

import (
	"testing"
)

func TestADestinationNamespaceThatIsBeingDeletedIsNamedWithWhatHoldsIt(t *testing.T) {
	p := open(t, scenario{"A01", "namespace-state", api})
	lock := configMap("teahouse", "deed")
	lock.Finalizers = []string{"notary.example/sealed"}
	p.given(p.dst(), namespace("teahouse"), lock)
	p.deleted(p.dst(), lock)
	p.deleted(p.dst(), namespace("teahouse"))
	p.given(p.src(), namespace("teahouse"), configMap("teahouse", "menu"), deployment("teahouse", "host"))

	p.planned("teahouse")
	v := p.validated()
	p.wantBlocked(v, "NamespaceTerminating", "teahouse on the destination")
	p.exits(blocked, "migrate")
}
