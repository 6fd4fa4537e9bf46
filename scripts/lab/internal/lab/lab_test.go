package lab

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/mig-cli/mig/scripts/lab/internal/cluster"
)

func TestUpNeverWantsLessThanBefore(t *testing.T) {
	tests := map[string]struct{ before, now, want Want }{
		"more parts": {
			Want{Parts: ControlPlane, Clusters: []string{"src"}},
			Want{Parts: Velero, Clusters: []string{"dst", "src"}},
			Want{Parts: Velero, Clusters: []string{"src", "dst"}},
		},
		"fewer parts": {
			Want{Parts: Velero, Clusters: []string{"src", "dst"}},
			Want{Parts: Nodes, Clusters: []string{"dst"}},
			Want{Parts: Velero, Clusters: []string{"src", "dst"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := merge(test.before, test.now); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestParseParts(t *testing.T) {
	for _, parts := range []Parts{ControlPlane, Nodes, Velero} {
		if got, err := ParseParts(parts.String()); got != parts || err != nil {
			t.Errorf("%s: got %v, %v", parts, got, err)
		}
	}
	if _, err := ParseParts("all"); err == nil || !strings.Contains(err.Error(), "control-plane, nodes, velero") {
		t.Errorf("got %v, want an error with the names", err)
	}
}

func TestStatus(t *testing.T) {
	up := Status{Parts: []cluster.Part{{Name: "src etcd", Up: true, PID: 7}, {Name: "src API", Up: true}}, Daemons: 3 << 20, Containers: 1 << 20}
	if !up.IsUp() {
		t.Error("all parts are up and the lab is not")
	}
	var got bytes.Buffer
	if err := up.Print(&got); err != nil {
		t.Fatal(err)
	}
	const want = "PART      STATE  PID\nsrc etcd  up     7\nsrc API   up     \nmemory: 4 MiB (3 daemons, 1 containers)\n"
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
	if (Status{}).IsUp() || (Status{Parts: []cluster.Part{{Up: true}, {}}}).IsUp() {
		t.Error("up without parts, or with one that is down")
	}
}
