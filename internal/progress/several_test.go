package progress

import (
	"fmt"
	"strings"
	"testing"
)

func numbered(n int, text string) []string {
	out := make([]string, 0, n)
	for i := range n {
		out = append(out, fmt.Sprint(text, i))
	}
	return out
}

func TestSeveralNamesAsManyAsFitAndCountsTheRest(t *testing.T) {
	for _, c := range []struct {
		names []string
		limit int
		want  string
	}{
		{nil, 10, ""},
		{[]string{"a", "b", "c"}, 7, "a, b, c"},
		{[]string{"aaaaaa", "bbbbbb", "cccccc"}, 19, "aaaaaa and 2 more"},
		{numbered(5000, "c"), 40, "c0, c1, c2, c3, c4, c5 and 4,994 more"},
		{[]string{strings.Repeat("x", 300), "y"}, 30, strings.Repeat("x", 16) + "… and 1 more"},
	} {
		got := Several(c.names, ", ", c.limit)
		if got != c.want || len(got) > c.limit {
			t.Errorf("%d names in %d bytes: %q", len(c.names), c.limit, got)
		}
	}
}

func TestEachTellsTheBeginningOfAFewTexts(t *testing.T) {
	long := strings.Repeat("z", 100)
	for _, c := range []struct {
		texts []string
		want  string
	}{
		{nil, ""},
		{[]string{"short"}, "short"},
		{[]string{long}, strings.Repeat("z", 57) + "…"},
		{[]string{"short", long}, "short; " + strings.Repeat("z", 50) + "…"},
		{[]string{"a", "b", "c", "d"}, "a; b; c; and 1 more"},
		{numbered(5000, long), ""},
	} {
		got := Each(c.texts, "; ", 3, 60)
		if len(got) > 60 || c.want != "" && got != c.want {
			t.Errorf("got %q (%d bytes)\nwant %q", got, len(got), c.want)
		}
	}
	if got := Each(numbered(5000, long), "; ", 3, 60); !strings.HasSuffix(got, "; and 4,997 more") {
		t.Errorf("got %q", got)
	}
}
