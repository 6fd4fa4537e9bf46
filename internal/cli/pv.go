package cli

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mig-cli/mig/internal/discover"
	"github.com/mig-cli/mig/internal/render"
)

func newPVCommand(f *Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pv",
		Short: "See the plan's volumes and choose what happens to each",
		Long:  "The claims of a plan's namespaces and what happens to each.",
	}
	cmd.AddCommand(
		newPVDiscoverCommand(f, runPVDiscover),
		newPVSetCommand(f, runPVSet),
	)
	return group(cmd)
}

// claimsTable is what a person wants of claims first. On a terminal, what is
// as it should be for all of them is not worth a column.
func claimsTable(rows []discover.Row, width int) render.Table {
	t := render.Table{
		Columns: []string{"CLAIM", "PHASE", "CAPACITY", "USED", "CLASS", "MODES", "ACTION", "NEW CLASS", "STATE", "WHY"},
		Empty:   "No claims in these namespaces.",
	}
	for _, r := range rows {
		t.Rows = append(t.Rows, []string{
			r.Claim, r.Phase, orDash(r.Capacity), orDash(r.Used), orDash(r.StorageClass), orDash(shortModes(r.AccessModes)),
			orWord(r.Action, "choose!"), orDash(r.DestinationClass), orDash(r.State), r.Why,
		})
	}
	if width > 0 {
		return t.Without(map[string]string{"PHASE": "Bound", "STATE": discover.Planned})
	}
	return t
}

// printOutside shows, below the claims, what is not in claims: no plan holds it.
func printOutside(s Streams, outside []discover.Outside) error {
	if len(outside) == 0 {
		return nil
	}
	if _, err := io.WriteString(s.Out, "\nNOT IN CLAIMS\n"); err != nil {
		return err
	}
	return render.Print(s.Out, render.FormatTable, s.outWidth(), nil, func() render.Table { return outsideTable(outside) })
}

func outsideTable(outside []discover.Outside) render.Table {
	t := render.Table{Columns: []string{"WORKLOAD", "VOLUME", "WHERE", "MOUNTED AT", "SIZE", "VERDICT"}}
	for _, o := range outside {
		t.Rows = append(t.Rows, []string{o.Workload, o.Volume, strings.TrimSpace(o.Kind + " " + o.Path), orDash(strings.Join(o.Mounts, ",")), orDash(o.Size), o.Verdict})
	}
	return t
}

// missed are those that somebody may miss.
func missed(outside []discover.Outside) []discover.Outside {
	return slices.DeleteFunc(slices.Clone(outside), func(o discover.Outside) bool { return o.Class != discover.OutsideData })
}

func orDash(s string) string { return orWord(s, "-") }

func orWord(s, word string) string {
	if s == "" {
		return word
	}
	return s
}

// shortModes writes access modes as kubectl does.
func shortModes(modes []string) string {
	short := map[string]string{"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
	out := make([]string, 0, len(modes))
	for _, m := range modes {
		out = append(out, orWord(short[m], m))
	}
	return strings.Join(out, ",")
}
