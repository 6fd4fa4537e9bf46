package host

import (
	"slices"
	"testing"
)

const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:5CEF 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0000000000000000 100 0 0 10 0
   1: 0100007F:5CEF 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0000000000000000 100 0 0 10 0
   2: 0B001FAC:192B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1 0000000000000000 100 0 0 10 0
`

func TestListeningInodes(t *testing.T) {
	for port, want := range map[string][]string{"23791": {"4711"}, "6443": {"4713"}, "1": nil} {
		if got := listeningInodes(table, port); !slices.Equal(got, want) {
			t.Errorf("port %s: got %v, want %v", port, got, want)
		}
	}
}

func TestParseSocketAddress(t *testing.T) {
	for text, want := range map[string]string{"0B001FAC:192B": "172.31.0.11:6443", "00000000000000000000000001000000:0050": "[::1]:80"} {
		if got, ok := parseSocketAddress(text); !ok || got.String() != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	if _, ok := parseSocketAddress("nonsense"); ok {
		t.Error("nonsense was read as an address")
	}
}

func TestMountsBelow(t *testing.T) {
	const mountinfo = `20 1 254:0 / / rw shared:1 - ext4 /dev/vda rw
21 20 0:5 / /lab/run rw shared:2 - tmpfs lab rw
22 21 0:6 / /lab/run/a\040b rw - tmpfs lab rw
23 20 0:7 / /lab/runner rw - tmpfs x rw
`
	if got, want := mountsBelow(mountinfo, "/lab/run"), []string{"/lab/run/a b", "/lab/run"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q: the innermost first, and not a neighbour", got, want)
	}
}

func TestMissingPackages(t *testing.T) {
	got := missingPackages([]tool{{"/no/such/a", "deb"}, {"/no/such/b", "deb"}, {"/no/such/c", "other"}, {"/", "x"}})
	if want := []string{"deb", "other", "x"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
