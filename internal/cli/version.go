package cli

import (
	"context"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/mig-cli/mig/internal/render"
	"github.com/mig-cli/mig/internal/version"
)

type versionOptions struct {
	showOptions

	streams Streams
}

func newVersionCommand(f *Factory, run func(context.Context, *versionOptions) error) *cobra.Command {
	o := &versionOptions{streams: f.Streams}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Say which mig this is",
		Long: `Says the version of mig and what it was built from. No cluster is asked.

EXIT STATUS
  0 said · 2 wrong command line`,
		Example: `  mig version
  mig version -o json`,
		Args: maxArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(f, cmd); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	o.addTo(cmd)
	return cmd
}

// build is what version prints.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Date     string `json:"date,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func runVersion(_ context.Context, o *versionOptions) error {
	b := build{
		Version: version.String(), Commit: version.Commit, Date: version.Date,
		Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	if o.output != string(render.FormatTable) {
		return render.Print(o.streams.Out, render.Format(o.output), 0, b, nil)
	}
	line := "mig " + b.Version
	if b.Commit != "" {
		line += " (" + b.Commit[:min(len(b.Commit), 12)] + ", " + b.Date + ")"
	}
	_, err := fmt.Fprintln(o.streams.Out, line+" "+b.Go+" "+b.Platform)
	return err
}
