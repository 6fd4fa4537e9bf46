package render

import (
	"encoding/xml"
	"io"
	"strings"
	"time"
)

// Tests are a run as a CI shows test results.
type Tests struct {
	Name  string // mig migrate shop
	Began time.Time
	Cases []TestCase
	Said  string // beside the cases
}

// TestCase is one step, or one thing that should have been and is not.
type TestCase struct {
	Name    string
	Took    time.Duration
	Skipped string // why; empty: it was not
	Failed  string // why; empty: it has not
}

// The file's elements, as its readers have agreed on: there is no standard, and
// what they all read is little.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     float64     `xml:"time,attr"`
		At       string      `xml:"timestamp,attr"`
		Cases    []junitCase `xml:"testcase"`
		Out      string      `xml:"system-out,omitempty"`
	}
	junitCase struct {
		Name    string    `xml:"name,attr"`
		Class   string    `xml:"classname,attr"`
		Time    float64   `xml:"time,attr"`
		Failure *junitWhy `xml:"failure"`
		Skipped *junitWhy `xml:"skipped"`
	}
	junitWhy struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes tests as a JUnit file.
func (t Tests) JUnit(w io.Writer) error {
	s := junitSuite{Name: t.Name, Tests: len(t.Cases), At: t.Began.UTC().Format("2006-01-02T15:04:05"), Out: printable(t.Said)}
	for _, c := range t.Cases {
		one := junitCase{Name: printable(c.Name), Class: t.Name, Time: c.Took.Seconds()}
		s.Time += one.Time
		if c.Failed != "" {
			s.Failures++
			one.Failure = why(c.Failed)
		}
		if c.Skipped != "" {
			s.Skipped++
			one.Skipped = why(c.Skipped)
		}
		s.Cases = append(s.Cases, one)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(junitSuites{Suites: []junitSuite{s}}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func why(text string) *junitWhy {
	text = printable(text)
	first, _, _ := strings.Cut(text, "\n")
	return &junitWhy{Message: first, Text: text}
}

// printable leaves out what XML cannot hold.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0xFFFE || r == 0xFFFF {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}
