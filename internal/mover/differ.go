package mover

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/mig-cli/mig/internal/manifest"
	"github.com/mig-cli/mig/internal/progress"
)

// Verdict is what two summaries of a volume say.
type Verdict int

// The verdicts.
const (
	Differs Verdict = iota // in something that a copy by files must carry
	Lossy                  // in something that such a copy drops
	Same                   // in nothing but the times of directories and links, if at all
)

// Judge compares what was found on both sides.
func Judge(src, dst manifest.Summary) Verdict {
	switch {
	case bytes.Equal(src.Timeless, dst.Timeless):
		return Same
	case bytes.Equal(src.Carried, dst.Carried):
		return Lossy
	default:
		return Differs
	}
}

// told is how many differences are named one by one, each in so many bytes: a
// path alone can have 4,096.
const (
	told      = 5
	lineBytes = 110
)

// Name names the first differences between two manifests, and how many there
// are: those that matter for the verdict. Errors: those of reading.
func Name(v Verdict, src, dst io.Reader) (string, error) {
	want, err := manifest.NewReader(src)
	if err != nil {
		return "", fmt.Errorf("manifest of the source: %w", err)
	}
	have, err := manifest.NewReader(dst)
	if err != nil {
		return "", fmt.Errorf("manifest of the destination: %w", err)
	}
	a, b := want.Entries(), have.Entries()
	if v == Differs {
		a, b = manifest.Carried(a), manifest.Carried(b)
	}
	report, err := manifest.Compare(a, b, told, manifest.OtherDirTime, manifest.OtherLinkTime)
	if err != nil {
		return "", err
	}
	var all int64
	for _, n := range report.Counts {
		all += n
	}
	return named(report.Differences, all), nil
}

// named names the first of so many differences.
func named(first []manifest.Difference, all int64) string {
	lines := make([]string, 0, told)
	for _, d := range first[:min(told, len(first))] {
		lines = append(lines, progress.Cut(line(d), lineBytes))
	}
	text := strings.Join(lines, "; ")
	switch more := all - int64(len(lines)); {
	case len(lines) == 0:
		return fmt.Sprintf("%d entries", all)
	case more > 0:
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

func line(d manifest.Difference) string {
	switch d.Kind {
	case manifest.Missing:
		return fmt.Sprintf("%q is missing (%s)", string(d.Path), d.Want)
	case manifest.Extra:
		return fmt.Sprintf("%q is there and not on the source (%s)", string(d.Path), d.Have)
	case manifest.OtherContent:
		return fmt.Sprintf("%q has another content", string(d.Path))
	case "not-in-snapshot":
		return fmt.Sprintf("%q", string(d.Path))
	case manifest.OtherXattr:
		return fmt.Sprintf("%q has not its attribute %s", string(d.Path), d.Want)
	default:
		return fmt.Sprintf("%q: %s is %s, on the source %s", string(d.Path), d.Kind, orNone(d.Have), orNone(d.Want))
	}
}

func orNone(s string) string {
	if s == "" || s == `""` {
		return "none"
	}
	return s
}
