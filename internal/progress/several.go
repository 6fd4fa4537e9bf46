package progress

import (
	"fmt"
	"strings"
)

// Several names things in at most limit bytes: as many as fit are named whole,
// the rest is counted. Of the first there is always something.
func Several(names []string, between string, limit int) string {
	whole := strings.Join(names, between)
	if len(whole) <= limit || len(names) == 0 {
		return whole
	}
	named, length := 0, 0
	for i, n := range names {
		length += len(n)
		if length+len(more(len(names)-i-1)) > limit {
			break
		}
		length += len(between)
		named++
	}
	rest := more(len(names) - max(named, 1))
	if named == 0 {
		return Cut(names[0], limit-len(rest)) + rest
	}
	return strings.Join(names[:named], between) + rest
}

// Each is Several for texts that are worth more as a beginning than as a count:
// no more than most are told, each in its share of the bytes.
func Each(texts []string, between string, most, limit int) string {
	told := texts[:min(len(texts), most)]
	rest := ""
	if n := len(texts) - len(told); n > 0 {
		rest = between + "and " + thousands(n) + " more"
	}
	if len(told) == 0 {
		return ""
	}
	room := limit - len(rest) - (len(told)-1)*len(between)
	short := make([]string, 0, len(told))
	for i, t := range told { // what one leaves over, the next ones have
		t = Cut(t, room/(len(told)-i))
		room -= len(t)
		short = append(short, t)
	}
	return strings.Join(short, between) + rest
}

func more(n int) string {
	if n == 0 {
		return ""
	}
	return " and " + thousands(n) + " more"
}

func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Fitting is a note that knows how to say itself in fewer bytes than its text
// has, by shortening what is in it.
type Fitting interface {
	Note
	Fit(limit int) string
}

// Within is a note's text in at most limit bytes. Only the end of what others
// said is ever cut off: notes are made to fit, or know how to.
func Within(n Note, limit int) string {
	text := n.Text()
	if f, ok := n.(Fitting); ok && len(text) > limit {
		text = f.Fit(limit)
	}
	return Cut(text, limit)
}
