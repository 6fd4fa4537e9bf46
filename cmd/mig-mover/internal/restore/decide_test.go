package restore

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mig-cli/mig/cmd/mig-mover/internal/repository"
	"github.com/mig-cli/mig/cmd/mig-mover/internal/volume"
	"github.com/mig-cli/mig/internal/manifest"
)

func wantFile(path, hardLink string) want {
	return want{Entry: manifest.Entry{Path: manifest.Text(path), Type: manifest.File, Size: 1, MTime: 1, HardLink: manifest.Text(hardLink)}}
}

func haveFile(path string, inode, links uint64) volume.Entry {
	return volume.Entry{
		Entry: manifest.Entry{Path: manifest.Text(path), Type: manifest.File, Size: 1, MTime: 1},
		Inode: volume.Inode{Number: inode}, Links: links,
	}
}

func TestDecideAboutFilesWithNames(t *testing.T) {
	for name, test := range map[string]struct {
		wants []want
		have  []volume.Entry
		do    string
	}{
		"as wanted":                     {[]want{wantFile("a", ""), wantFile("b", "a")}, []volume.Entry{haveFile("a", 1, 2), haveFile("b", 1, 2)}, "check a"},
		"two files that shall be one":   {[]want{wantFile("a", ""), wantFile("b", "a")}, []volume.Entry{haveFile("a", 1, 1), haveFile("b", 2, 1)}, "check a, link b"},
		"one file that shall be two":    {[]want{wantFile("a", ""), wantFile("b", "")}, []volume.Entry{haveFile("a", 1, 2), haveFile("b", 1, 2)}, "write a, write b"},
		"a further name that is to go":  {[]want{wantFile("a", "")}, []volume.Entry{haveFile("a", 1, 2), haveFile("b", 1, 2)}, "remove b, check a"},
		"a name outside of the volume":  {[]want{wantFile("a", "")}, []volume.Entry{haveFile("a", 1, 2)}, "write a"},
		"the first name is not there":   {[]want{wantFile("a", ""), wantFile("b", "a")}, []volume.Entry{haveFile("b", 1, 1)}, "write a, link b"},
		"a name more":                   {[]want{wantFile("a", ""), wantFile("b", "a"), wantFile("c", "a")}, []volume.Entry{haveFile("a", 1, 2), haveFile("c", 1, 2)}, "check a, link b"},
		"names of two files, exchanged": {[]want{wantFile("a", ""), wantFile("b", ""), wantFile("c", "a"), wantFile("d", "b")}, []volume.Entry{haveFile("a", 1, 2), haveFile("b", 2, 2), haveFile("c", 2, 2), haveFile("d", 1, 2)}, "write a, write b, link c, link d"},
	} {
		p := decide(test.wants, test.have)
		var do []string
		for _, path := range p.remove {
			do = append(do, "remove "+string(path))
		}
		for verb, files := range map[string][]want{"check": p.check, "write": p.write, "link": p.links} {
			for _, file := range files {
				do = append(do, verb+" "+string(file.Path))
			}
		}
		wanted := strings.Split(test.do, ", ")
		slices.Sort(do)
		slices.Sort(wanted)
		if !slices.Equal(do, wanted) {
			t.Errorf("%s: got %q, want %q", name, do, wanted)
		}
	}
}

func TestOnlyTheTopmostIsRemoved(t *testing.T) {
	dir := func(path manifest.Text) volume.Entry {
		return volume.Entry{Entry: manifest.Entry{Path: path, Type: manifest.Directory}}
	}
	have := []volume.Entry{dir("."), dir("a"), dir("a/b"), haveFile("a/b/c", 1, 1), haveFile("a-", 2, 1), dir("d"), haveFile("d/e", 3, 1)}
	wants := []want{{Entry: dir(".").Entry}, wantFile("d", ""), wantFile("a-", "")}
	if got := unwanted(wants, have); !slices.Equal(got, []manifest.Text{"a", "d"}) {
		t.Errorf("got %q", got)
	}
}

// Names that are no UTF-8 have become one in the snapshot, and the manifest knows which is which.
func TestPairNamesThatJSONMadeEqual(t *testing.T) {
	node := func(name string, time int64, object string) *repository.Node {
		return &repository.Node{Entry: manifest.Entry{Path: manifest.Text(name), Type: manifest.File, MTime: time}, Object: object}
	}
	entry := func(name string, time int64, hash string) manifest.Entry {
		return manifest.Entry{Path: manifest.Text(name), Type: manifest.File, MTime: time, Hash: []byte(hash)}
	}
	for name, test := range map[string]struct {
		nodes     []*repository.Node
		entries   []manifest.Entry
		pairs     string
		uncertain int
	}{
		"plain names":                     {[]*repository.Node{node("a", 1, "x"), node("b", 2, "y")}, []manifest.Entry{entry("b", 2, ""), entry("a", 1, "")}, `x="a" y="b"`, 0},
		"no manifest":                     {[]*repository.Node{node("a", 1, "x")}, nil, `x=`, 0},
		"no manifest and an altered name": {[]*repository.Node{node("a\uFFFD", 1, "x")}, nil, `x=`, 1},
		"no manifest and one name twice":  {[]*repository.Node{node("a\uFFFD", 1, "x"), node("a\uFFFD", 1, "y")}, nil, `x=`, 1},
		"one odd name":                    {[]*repository.Node{node("a\uFFFD", 1, "x")}, []manifest.Entry{entry("a\xff", 9, "")}, `x="a\xff"`, 0},
		"two, known by their times":       {[]*repository.Node{node("a\uFFFD", 1, "x"), node("a\uFFFD", 2, "y")}, []manifest.Entry{entry("a\xfe", 2, ""), entry("a\xff", 1, "")}, `x="a\xff" y="a\xfe"`, 0},
		"two that look alike":             {[]*repository.Node{node("a\uFFFD", 1, "x"), node("a\uFFFD", 1, "y")}, []manifest.Entry{entry("a\xfe", 1, ""), entry("a\xff", 1, "")}, `x="a\xfe" y="a\xff"`, 1},
		"two that are alike":              {[]*repository.Node{node("a\uFFFD", 1, "x"), node("a\uFFFD", 1, "x")}, []manifest.Entry{entry("a\xfe", 1, ""), entry("a\xff", 1, "")}, `x="a\xfe" x="a\xff"`, 0},
		"one is really called so":         {[]*repository.Node{node("a\uFFFD", 1, "x"), node("a\uFFFD", 2, "y")}, []manifest.Entry{entry("a\xff", 2, ""), entry("a\uFFFD", 9, "")}, "x=\"a\uFFFD\" y=\"a\\xff\"", 0},
		"each byte for itself":            {[]*repository.Node{node("\uFFFD\uFFFD", 1, "x")}, []manifest.Entry{entry("\xff\xfe", 1, "")}, `x="\xff\xfe"`, 0},
		"only in the manifest":            {nil, []manifest.Entry{entry("a", 1, "")}, `="a"`, 0},
	} {
		pairs, uncertain := pair(test.nodes, test.entries)
		var got []string
		for _, p := range pairs {
			text := "="
			if p.node != nil {
				text = p.node.Object + "="
			}
			if p.entry != nil {
				text += fmt.Sprintf("%q", string(p.entry.Path))
			}
			got = append(got, text)
		}
		if strings.Join(got, " ") != test.pairs || len(uncertain) != test.uncertain {
			t.Errorf("%s: got %s, %q uncertain", name, strings.Join(got, " "), uncertain)
		}
	}
}
