package velero

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Finding is one line of what a backup or a restore says it could not do.
type Finding struct {
	Namespace string // on the destination; empty: of the cluster or of Velero itself
	Message   string
}

func (f Finding) String() string {
	if f.Namespace == "" {
		return f.Message
	}
	return f.Namespace + ": " + f.Message
}

// Results are the warnings and errors of a backup or a restore, one by one.
type Results struct {
	Warnings []Finding
	Errors   []Finding
}

// maxResults bounds what is read of a results file, unpacked.
const maxResults = 64 << 20

// ParseResults reads a results file as Velero stores it: gzipped JSON of
// warnings and errors by origin (velero pkg/util/results).
func ParseResults(r io.Reader) (Results, error) {
	zr, err := gzip.NewReader(r)
	if err != nil {
		return Results{}, fmt.Errorf("results: %w", err)
	}
	var raw map[string]struct {
		Velero     []string            `json:"velero"`
		Cluster    []string            `json:"cluster"`
		Namespaces map[string][]string `json:"namespaces"`
	}
	if err := json.NewDecoder(io.LimitReader(zr, maxResults)).Decode(&raw); err != nil {
		return Results{}, fmt.Errorf("results: %w", err)
	}
	list := func(key string) []Finding {
		var out []Finding
		for _, m := range slices.Concat(raw[key].Velero, raw[key].Cluster) {
			out = append(out, Finding{Message: m})
		}
		for ns, messages := range raw[key].Namespaces {
			for _, m := range messages {
				out = append(out, Finding{Namespace: ns, Message: m})
			}
		}
		slices.SortFunc(out, func(a, b Finding) int { return strings.Compare(a.String(), b.String()) })
		return out
	}
	return Results{Warnings: list("warnings"), Errors: list("errors")}, nil
}

// noise are ConfigMaps that every cluster makes in every namespace by itself:
// that they are there already is no loss.
var noise = []string{"kube-root-ca.crt", "openshift-service-ca.crt"} //nolint:gochecknoglobals // a constant list

// Losses are the warnings that may hide a loss: all but the noise.
func (r Results) Losses() []Finding {
	return slices.DeleteFunc(slices.Clone(r.Warnings), isNoise)
}

func isNoise(f Finding) bool {
	return slices.ContainsFunc(noise, func(name string) bool { return strings.Contains(f.Message, name) })
}
