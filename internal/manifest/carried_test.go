package manifest

import (
	"bytes"
	"slices"
	"testing"
)

func summaryOf(t *testing.T, entries ...Entry) Summary {
	t.Helper()
	w, err := NewWriter(&bytes.Buffer{}, Gzip, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := w.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	s, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTheDigestOfWhatIsCarriedDiffersOnlyInWhatACopyCanKeep(t *testing.T) {
	base := []Entry{
		{Path: Root, Type: Directory, Mode: 0o755, MTime: 5},
		{Path: "a", Type: File, Mode: 0o600, MTime: 7, Size: 3, Hash: make([]byte, hashSize)},
		{Path: "l", Type: Symlink, Target: "a", MTime: 9},
		{Path: "p", Type: FIFO, Mode: 0o600},
	}
	was := summaryOf(t, base...)
	for name, c := range map[string]struct {
		change func([]Entry) []Entry
		lost   bool // by a copy by files
		time   bool // and no more than a time
	}{
		"a directory's time":    {func(e []Entry) []Entry { e[0].MTime++; return e }, true, true},
		"a link's time":         {func(e []Entry) []Entry { e[2].MTime++; return e }, true, true},
		"a hole":                {func(e []Entry) []Entry { e[1].Sparse = true; return e }, true, true},
		"a pipe":                {func(e []Entry) []Entry { return e[:3] }, true, false},
		"an extended attribute": {func(e []Entry) []Entry { e[1].Xattrs = []Xattr{{Name: "user.x"}}; return e }, true, false},
		"a flipped bit":         {func(e []Entry) []Entry { e[1].Hash = bytes.Repeat([]byte{1}, hashSize); return e }, false, false},
		"a file's time":         {func(e []Entry) []Entry { e[1].MTime++; return e }, false, false},
		"a mode":                {func(e []Entry) []Entry { e[0].Mode = 0o700; return e }, false, false},
		"an owner":              {func(e []Entry) []Entry { e[1].UID = 1000; return e }, false, false},
		"a link's target":       {func(e []Entry) []Entry { e[2].Target = "b"; return e }, false, false},
		"a file too many": {func(e []Entry) []Entry {
			return append(e[:3:3], Entry{Path: "m", Type: File, Mode: 0o600})
		}, false, false},
		"a file less": {func(e []Entry) []Entry { return append(e[:1:1], e[2:]...) }, false, false},
	} {
		now := summaryOf(t, c.change(slices.Clone(base))...)
		if bytes.Equal(was.Digest, now.Digest) {
			t.Errorf("%s: the whole digest does not see it", name)
		}
		if bytes.Equal(was.Carried, now.Carried) != c.lost {
			t.Errorf("%s: the digest of what is carried differs: %t", name, c.lost)
		}
		if bytes.Equal(was.Timeless, now.Timeless) != c.time {
			t.Errorf("%s: the digest without times differs: %t", name, c.time)
		}
	}
}
