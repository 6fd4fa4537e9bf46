package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/render"
)

// Markdown is the summary for the page of a CI job: how it went, what is not as
// it should be, and what can be done next, before any detail.
func (s runSummary) markdown(f failure) string {
	var out strings.Builder
	fmt.Fprintf(&out, "### mig %s %s: %s\n\n", s.Run, render.MarkdownText(s.Plan), s.Result)
	paragraph := func(text string) {
		if text != "" {
			out.WriteString(render.MarkdownText(text) + "\n\n")
		}
	}
	if f.Code == exitDone {
		paragraph(s.Message)
	}
	if s.Result != "incomplete" { // what was left out is listed below
		paragraph(strings.ReplaceAll(f.Message, "\n", "; "))
	}
	paragraph(f.Hint)
	out.WriteString(s.factsTable().Markdown() + "\n")
	list := func(title string, items []string) {
		if len(items) == 0 {
			return
		}
		fmt.Fprintf(&out, "#### %s\n\n", title)
		for _, item := range items {
			out.WriteString("- " + render.MarkdownText(item) + "\n")
		}
		out.WriteString("\n")
	}
	list("Left out", s.LeftOut)
	list("Warnings", s.Warnings)
	if len(s.Steps) > 0 {
		out.WriteString("#### Steps\n\n" + s.stepsTable().Markdown() + "\n")
	}
	return out.String()
}

func (s runSummary) factsTable() render.Table {
	t := render.Table{Columns: []string{"What", ""}}
	add := func(what, is string) {
		if is != "" && is != "-" {
			t.Rows = append(t.Rows, []string{what, is})
		}
	}
	duration := func(seconds float64) string { return took(time.Duration(seconds * float64(time.Second))) }
	add("Took", duration(s.Seconds))
	add("Source was down", duration(s.SourceDownSeconds))
	if len(s.Volumes) > 0 {
		var total int64
		for _, v := range s.Volumes {
			total += v.Done
		}
		add("Volumes", fmt.Sprintf("%d, %s", len(s.Volumes), render.Size(total)))
	}
	add("Run", s.UID)
	add("Record", s.Record)
	return t
}

func (s runSummary) stepsTable() render.Table {
	t := render.Table{Columns: []string{"", "Step", "State", "Took", ""}}
	for _, step := range s.Steps {
		name := strings.TrimSpace(step.Run + " " + step.Step)
		t.Rows = append(t.Rows, []string{
			fmt.Sprint(step.Number), name, string(step.State), took(time.Duration(step.Seconds * float64(time.Second))), step.Message,
		})
	}
	return t
}

// tests are the run as test results: each step is a test, and so is each thing
// that was left out.
func (s runSummary) tests(f failure, began time.Time) render.Tests {
	t := render.Tests{Name: fmt.Sprintf("mig %s %s", s.Run, s.Plan), Began: began, Said: strings.Join(s.Warnings, "\n")}
	told := false
	for _, step := range s.Steps {
		c := render.TestCase{Name: strings.TrimSpace(step.Run + " " + step.Step), Took: time.Duration(step.Seconds * float64(time.Second))}
		switch step.State {
		case progress.Failed, progress.Blocked:
			c.Failed, told = fmt.Sprintf("%s: %s\n%s\n%s", step.State, step.Message, f.Message, f.Hint), true
		case progress.Skipped:
			c.Skipped = step.Message
		}
		t.Cases = append(t.Cases, c)
	}
	for _, left := range s.LeftOut {
		t.Cases, told = append(t.Cases, render.TestCase{Name: "nothing is left out", Failed: left}), true
	}
	if f.Code != exitDone && !told { // refused, locked, interrupted: no step has failed
		t.Cases = append(t.Cases, render.TestCase{Name: "the run comes to its end", Failed: f.Message + "\n" + f.Hint})
	}
	return t
}

// openJUnit makes the file before anything is done: one that cannot be written
// is said in time, and a process that is killed leaves no results of another's.
func (o *runOptions) openJUnit() error {
	if o.junit == "" {
		return nil
	}
	file, err := os.Create(o.junit)
	if err != nil {
		return &usageError{Err: fmt.Errorf("the JUnit file: %w", err), Hint: "name a file that can be written with --junit"}
	}
	return file.Close()
}

func (o *runOptions) writeJUnit(t render.Tests) {
	if o.junit == "" {
		return
	}
	file, err := os.Create(o.junit)
	if err == nil {
		err = errors.Join(t.JUnit(file), file.Close())
	}
	if err != nil { // what was moved is moved all the same
		_, _ = fmt.Fprintf(o.streams.ErrOut, "mig: warning: the JUnit file: %v\n", err)
	}
}
