package manifest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
)

func hashOf(content string) []byte {
	sum := sha256.Sum256([]byte(content))
	return sum[:]
}

// sample has one of everything that the format can say.
func sample() []Entry {
	return []Entry{
		{Path: ".", Type: Directory, Mode: 0o755, MTime: 1700000000123456789},
		{Path: "a", Type: Directory, Mode: 0o1777, UID: 999, GID: 999, MTime: -1},
		{Path: "a/b", Type: File, Mode: 0o4755, Size: 5, Hash: hashOf("hello"), MTime: 5},
		{Path: "a/c", Type: File, Mode: 0o4755, Size: 5, Hash: hashOf("hello"), MTime: 5, HardLink: "a/b"},
		{Path: "a/\xff\xfe", Type: File, Sparse: true, Size: 1 << 40, Changed: true},
		{Path: "a\nb <&> \u2028", Type: File, Xattrs: []Xattr{{Name: "user.a", Value: []byte{0, 1, 255}}, {Name: "user.\xff"}}},
		{Path: "a-b", Type: Symlink, Target: "../\xffnowhere"},
		{Path: "f", Type: FIFO, Mode: 0o600},
		{Path: "n", Type: CharDevice, Device: 259},
	}
}

func write(t *testing.T, encoding Encoding, entries ...Entry) []byte {
	t.Helper()
	var to bytes.Buffer
	writer, err := NewWriter(&to, encoding, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if err := writer.Add(entry); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return to.Bytes()
}

func TestAManifestSurvivesEachEncoding(t *testing.T) {
	for _, encoding := range []Encoding{Plain, Gzip, Base64} {
		got, reader, err := ReadAll(bytes.NewReader(write(t, encoding, sample()...)))
		if err != nil {
			t.Fatalf("%s: %v", encoding, err)
		}
		if gotText, wantText := text(t, got), text(t, sample()); gotText != wantText {
			t.Errorf("%s: got\n%s\nwant\n%s", encoding, gotText, wantText)
		}
		if !slices.EqualFunc(got, sample(), func(a, b Entry) bool { return a.Path == b.Path && a.Target == b.Target }) {
			t.Errorf("%s: bytes of names or targets were lost: %v", encoding, got)
		}
		if summary := reader.Summary(); !reader.Hashed || summary.Entries != 9 || summary.Bytes != 5+1<<40 || summary.Changed != 1 {
			t.Errorf("%s: hashed %v, summary %+v", encoding, reader.Hashed, summary)
		}
	}
}

func text(t *testing.T, value any) string {
	t.Helper()
	content, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestBase64IsInLinesThatALogHolds(t *testing.T) {
	for line := range strings.Lines(string(write(t, Base64, sample()...))) {
		if len(line) > lineLength+1 || !strings.HasSuffix(line, "\n") {
			t.Errorf("a line of %d characters", len(line))
		}
	}
}

func TestEqualVolumesHaveEqualManifests(t *testing.T) {
	if !bytes.Equal(write(t, Plain, sample()...), write(t, Plain, sample()...)) {
		t.Error("two manifests of the same entries differ")
	}
}

func TestAManifestThatIsCutOffIsNotASmallVolume(t *testing.T) {
	whole := write(t, Plain, sample()...)
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n')
	for length := range last + 1 {
		if _, _, err := ReadAll(bytes.NewReader(whole[:length])); err == nil {
			t.Fatalf("%d of %d bytes were taken for a whole manifest", length, len(whole))
		}
	}
	packed := write(t, Gzip, sample()...)
	for length := range len(packed) {
		if _, _, err := ReadAll(bytes.NewReader(packed[:length])); err == nil {
			t.Fatalf("%d of %d compressed bytes were taken for a whole manifest", length, len(packed))
		}
	}
	if _, _, err := ReadAll(bytes.NewReader(whole[:last+1])); !errors.Is(err, ErrCutOff) {
		t.Errorf("without its last line: got %v, want %v", err, ErrCutOff)
	}
}

func TestAnAlteredManifestIsRefused(t *testing.T) {
	whole := string(write(t, Plain, sample()...))
	for name, altered := range map[string]string{
		"another mode":      strings.Replace(whole, `"m":493`, `"m":492`, 1),
		"a line less":       whole[:strings.Index(whole, `{"p":"f"`)] + whole[strings.Index(whole, `{"p":"n"`):],
		"two lines swapped": swapLines(whole, 2, 3),
		"a line after":      whole + "{}\n",
		"an unknown field":  strings.Replace(whole, `"t":"f"`, `"t":"f","z":1`, 1),
		"another version":   strings.Replace(whole, `"manifest":1`, `"manifest":2`, 1),
		"a path outside":    strings.Replace(whole, `"p":"f"`, `"p":"../f"`, 1),
		"no first line":     whole[strings.Index(whole, "\n")+1:],
	} {
		if altered == whole {
			t.Fatalf("%s: nothing was altered", name)
		}
		if _, _, err := ReadAll(strings.NewReader(altered)); err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
}

func swapLines(whole string, a, b int) string {
	lines := strings.SplitAfter(whole, "\n")
	lines[a], lines[b] = lines[b], lines[a]
	return strings.Join(lines, "")
}

func TestAWriterTakesOnlyWhatAReaderWould(t *testing.T) {
	for name, entries := range map[string][]Entry{
		"out of order":            {{Path: "b", Type: FIFO}, {Path: "a", Type: FIFO}},
		"twice":                   {{Path: "b", Type: FIFO}, {Path: "b", Type: FIFO}},
		"absolute":                {{Path: "/b", Type: FIFO}},
		"upwards":                 {{Path: "a/../b", Type: FIFO}},
		"no type":                 {{Path: "b"}},
		"a volume that is a file": {{Path: ".", Type: File}},
		"a hard link onwards":     {{Path: "b", Type: File, HardLink: "c"}},
		"a directory with a size": {{Path: "b", Type: Directory, Size: 4096}},
		"half a hash":             {{Path: "b", Type: File, Hash: []byte{1}}},
	} {
		writer, err := NewWriter(&bytes.Buffer{}, Plain, true)
		for _, entry := range entries {
			if err == nil {
				err = writer.Add(entry)
			}
		}
		if err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
}

func TestPathsAreInTheOrderOfAWalk(t *testing.T) {
	want := []string{".", "-", "a", "a/b", "a/b/c", "a/z", "a-", "a.b", "aa", "b", "\xff"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, ComparePaths)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func all(entries ...Entry) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for _, entry := range entries {
			if !yield(entry, nil) {
				return
			}
		}
	}
}

func TestCompareNamesWhatDiffers(t *testing.T) {
	base := Entry{Path: "f", Type: File, Size: 5, Mode: 0o644, MTime: 1, Hash: hashOf("hello"), Xattrs: []Xattr{{Name: "user.a"}}}
	changed := func(change func(*Entry)) Entry {
		entry := base
		change(&entry)
		return entry
	}
	for name, test := range map[string]struct {
		want, have []Entry
		kinds      []Kind
	}{
		"nothing":                  {[]Entry{base}, []Entry{base}, nil},
		"allocation":               {[]Entry{base}, []Entry{changed(func(e *Entry) { e.Sparse = true })}, nil},
		"nothing on either side":   {nil, nil, nil},
		"a missing file":           {[]Entry{base}, nil, []Kind{Missing}},
		"an extra file":            {nil, []Entry{base}, []Kind{Extra}},
		"missing and extra":        {[]Entry{base}, []Entry{{Path: "a", Type: FIFO}, {Path: "g", Type: FIFO}}, []Kind{Extra, Missing, Extra}},
		"a file that is a FIFO":    {[]Entry{base}, []Entry{{Path: "f", Type: FIFO}}, []Kind{OtherType}},
		"a byte more":              {[]Entry{base}, []Entry{changed(func(e *Entry) { e.Size++ })}, []Kind{OtherSize}},
		"a flipped byte":           {[]Entry{base}, []Entry{changed(func(e *Entry) { e.Hash = hashOf("hellp") })}, []Kind{OtherContent}},
		"a flipped byte, no hash":  {[]Entry{base}, []Entry{changed(func(e *Entry) { e.Hash = nil })}, nil},
		"a mode":                   {[]Entry{base}, []Entry{changed(func(e *Entry) { e.Mode = 0o600 })}, []Kind{OtherMode}},
		"a user":                   {[]Entry{base}, []Entry{changed(func(e *Entry) { e.UID = 1 })}, []Kind{OtherOwner}},
		"a group":                  {[]Entry{base}, []Entry{changed(func(e *Entry) { e.GID = 1 })}, []Kind{OtherOwner}},
		"a nanosecond":             {[]Entry{base}, []Entry{changed(func(e *Entry) { e.MTime++ })}, []Kind{OtherTime}},
		"a directory's nanosecond": {[]Entry{{Path: "d", Type: Directory}}, []Entry{{Path: "d", Type: Directory, MTime: 1}}, []Kind{OtherDirTime}},
		"a link's nanosecond":      {[]Entry{{Path: "d", Type: Symlink}}, []Entry{{Path: "d", Type: Symlink, MTime: 1}}, []Kind{OtherLinkTime}},
		"a target":                 {[]Entry{{Path: "d", Type: Symlink, Target: "a"}}, []Entry{{Path: "d", Type: Symlink, Target: "b"}}, []Kind{OtherTarget}},
		"a hard link undone":       {[]Entry{changed(func(e *Entry) { e.HardLink = "a" })}, []Entry{base}, []Kind{OtherHardLink}},
		"a device":                 {[]Entry{{Path: "d", Type: CharDevice}}, []Entry{{Path: "d", Type: CharDevice, Device: 1}}, []Kind{OtherDevice}},
		"an attribute's value":     {[]Entry{base}, []Entry{changed(func(e *Entry) { e.Xattrs = []Xattr{{Name: "user.a", Value: []byte{0}}} })}, []Kind{OtherXattr}},
		"an attribute more":        {[]Entry{base}, []Entry{changed(func(e *Entry) { e.Xattrs = []Xattr{{Name: "user.a"}, {Name: "user.b"}} })}, []Kind{OtherXattr}},
	} {
		report, err := Compare(all(test.want...), all(test.have...), 10)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var kinds []Kind
		for _, difference := range report.Differences {
			kinds = append(kinds, difference.Kind)
		}
		if !slices.Equal(kinds, test.kinds) || report.Equal() != (len(test.kinds) == 0) {
			t.Errorf("%s: got %q, equal %v, want %q", name, kinds, report.Equal(), test.kinds)
		}
	}
}

func TestCompareKeepsTheFirstAndCountsAll(t *testing.T) {
	report, err := Compare(all(sample()...), all(sample()[0]), 2, OtherMode)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Differences) != 2 || report.Differences[0].Path != "a" || report.Counts[Missing] != 8 || report.Entries != 9 {
		t.Errorf("got %+v", report)
	}
	if report, err = Compare(all(sample()...), all(sample()[0]), 2, Missing); err != nil || !report.Equal() {
		t.Errorf("what was to be ignored was not: %+v, %v", report, err)
	}
}

func TestCompareFailsWhereReadingFails(t *testing.T) {
	broken := func(yield func(Entry, error) bool) {
		if yield(sample()[0], nil) {
			yield(Entry{}, ErrCutOff)
		}
	}
	for name, pair := range map[string][2]iter.Seq2[Entry, error]{
		"source":      {broken, all(sample()...)},
		"destination": {all(sample()...), broken},
	} {
		if _, err := Compare(pair[0], pair[1], 1); !errors.Is(err, ErrCutOff) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Whatever is read without an error can be written and read again as the same; nothing makes the reader panic.
func FuzzReader(f *testing.F) {
	add := func(entries ...Entry) {
		for _, encoding := range []Encoding{Plain, Gzip, Base64} {
			var to bytes.Buffer
			writer, err := NewWriter(&to, encoding, true)
			for _, entry := range entries {
				err = errors.Join(err, writer.Add(entry))
			}
			if _, closeErr := writer.Close(); err != nil || closeErr != nil {
				f.Fatal(err, closeErr)
			}
			f.Add(to.Bytes())
		}
	}
	add(sample()...)
	add()
	f.Add([]byte(`{"manifest":1}` + "\n" + `{"p":{"b":"/w=="},"t":"f"}` + "\n" + `{"end":true}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		entries, reader, err := ReadAll(bytes.NewReader(content))
		if err != nil {
			return
		}
		again, _, err := ReadAll(bytes.NewReader(write(t, Plain, entries...)))
		if err != nil {
			t.Fatalf("what was read (%d entries) cannot be written and read: %v", reader.Summary().Entries, err)
		}
		if text(t, again) != text(t, entries) {
			t.Errorf("got\n%s\nwant\n%s", text(t, again), text(t, entries))
		}
	})
}
