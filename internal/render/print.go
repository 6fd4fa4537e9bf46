package render

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"sigs.k8s.io/yaml"
)

// Format is how an object is printed.
type Format string

// The formats. JSON and YAML hold all of the object; the table what a person
// wants first.
const (
	FormatTable Format = "table"
	FormatJSON  Format = "json"
	FormatYAML  Format = "yaml"
	// FormatMarkdown is the table for a page, such as the summary of a CI job.
	FormatMarkdown Format = "markdown"
)

// Formats are those of every command that shows something.
func Formats() []string { return []string{string(FormatTable), string(FormatJSON), string(FormatYAML)} }

// Table is an object made for eyes.
type Table struct {
	Columns []string
	Rows    [][]string
	Empty   string // said in place of a table without rows
}

// narrowestText is the width of the last column below which it gets lines of
// its own.
const narrowestText = 32

// gap is what stands between two columns, as in kubectl's tables.
const gap = "   "

// Print writes an object in a format: table makes the table of it, of at most
// width columns; with width 0, where a script may read, no line is broken.
func Print(w io.Writer, f Format, width int, object any, table func() Table) error {
	switch f {
	case FormatJSON:
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(object)
	case FormatYAML:
		out, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		_, err = w.Write(out)
		return err
	case FormatMarkdown:
		_, err := io.WriteString(w, table().Markdown())
		return err
	case FormatTable:
		return table().Write(w, width)
	default:
		return fmt.Errorf("no output format %q; there are: %s", f, strings.Join(append(Formats(), string(FormatMarkdown)), ", "))
	}
}

// Markdown is the table as GitHub and GitLab show it.
func (t Table) Markdown() string {
	if len(t.Rows) == 0 {
		if t.Empty == "" {
			return ""
		}
		return MarkdownText(t.Empty) + "\n"
	}
	var out strings.Builder
	line := func(cells []string) {
		for _, c := range cells {
			out.WriteString("| " + MarkdownText(c) + " ")
		}
		out.WriteString("|\n")
	}
	line(t.Columns)
	out.WriteString(strings.Repeat("| --- ", len(t.Columns)) + "|\n")
	for _, row := range t.Rows {
		line(row)
	}
	return out.String()
}

// MarkdownText is a text that a page shows as it is: names of objects and what
// clusters say must not become markup, links or another cell.
func MarkdownText(s string) string {
	return markup.Replace(strings.Join(strings.Fields(s), " "))
}

var markup = strings.NewReplacer( //nolint:gochecknoglobals // a constant table
	`\`, `\\`, "|", `\|`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "#", `\#`, "~", `\~`, "@", "&#64;",
)

// Without is the table without those columns that say the same word in every
// row: what is so everywhere need not take room on a terminal.
func (t Table) Without(words map[string]string) Table {
	out := t
	for column, word := range words {
		i := slices.Index(out.Columns, column)
		if i < 0 || slices.ContainsFunc(out.Rows, func(row []string) bool { return row[i] != word }) {
			continue
		}
		without := func(cells []string) []string { return slices.Delete(slices.Clone(cells), i, i+1) }
		rows := make([][]string, 0, len(out.Rows))
		for _, row := range out.Rows {
			rows = append(rows, without(row))
		}
		out.Columns, out.Rows = without(out.Columns), rows
	}
	return out
}

// Write prints the table. Where it is wider than width, its last column wraps,
// and where the others alone are wider, each row becomes a block of lines.
// Names are never cut.
func (t Table) Write(w io.Writer, width int) error {
	if len(t.Rows) == 0 {
		if t.Empty == "" {
			return nil
		}
		_, err := fmt.Fprintln(w, t.Empty)
		return err
	}
	widths := t.widths()
	var out strings.Builder
	if total(widths[:len(widths)-1])+len(gap)*(len(widths)-2) > width && width > 0 {
		t.writeBlocks(&out, width)
		_, err := io.WriteString(w, out.String())
		return err
	}
	for _, row := range append([][]string{t.Columns}, t.Rows...) {
		writeRow(&out, row, widths, width)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func (t Table) widths() []int {
	widths := make([]int, len(t.Columns))
	for _, row := range append([][]string{t.Columns}, t.Rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], ansi.StringWidth(cell))
		}
	}
	return widths
}

func total(widths []int) int {
	sum := 0
	for _, w := range widths {
		sum += w
	}
	return sum
}

// writeBlocks writes each cell on a line of its own, behind its column's name.
func (t Table) writeBlocks(out *strings.Builder, width int) {
	names := 0
	for _, c := range t.Columns {
		names = max(names, ansi.StringWidth(c))
	}
	for i, row := range t.Rows {
		if i > 0 {
			out.WriteString("\n")
		}
		for j, cell := range row {
			writeRow(out, []string{t.Columns[j], cell}, []int{names, 0}, max(width, names+len(gap)+narrowestText))
		}
	}
}

func writeRow(out *strings.Builder, row []string, widths []int, width int) {
	last := len(row) - 1
	var line strings.Builder
	for i, cell := range row[:last] {
		line.WriteString(pad(cell, widths[i]) + gap)
	}
	head := line.String()
	indent := ansi.StringWidth(head)
	room := width - indent
	switch {
	case width == 0 || ansi.StringWidth(row[last]) <= room:
		out.WriteString(strings.TrimRight(head+row[last], " ") + "\n")
		return
	case room < narrowestText && widths[last] > room && width > narrowestText:
		out.WriteString(strings.TrimRight(head, " ") + "\n")
		head, indent, room = "    ", 4, width-4
	}
	for i, part := range wrap(row[last], room) {
		if i > 0 {
			head = strings.Repeat(" ", indent)
		}
		out.WriteString(strings.TrimRight(head+part, " ") + "\n")
	}
}

// wrap breaks a text between words into lines of at most width columns. A word
// is never cut or broken at its hyphens: it may be a command or a name to copy.
func wrap(s string, width int) []string {
	var lines []string
	for i, word := range strings.Fields(s) {
		last := len(lines) - 1
		if i > 0 && ansi.StringWidth(lines[last])+1+ansi.StringWidth(word) <= width {
			lines[last] += " " + word
			continue
		}
		lines = append(lines, word)
	}
	return lines
}
