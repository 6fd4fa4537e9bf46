// Package restore makes a volume equal to a snapshot, changing no more than it has to.
//
// What has to be is decided before anything is changed, by functions of values: [wanted] says what the volume shall hold, [decide] what
// is to be done about what it holds. The rest does it.
package restore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mig-cli/mig/cmd/mig-mover/internal/repository"
	"github.com/mig-cli/mig/cmd/mig-mover/internal/volume"
	"github.com/mig-cli/mig/internal/manifest"
)

// want is one entry that the volume shall have.
type want struct {
	manifest.Entry
	// object is a file's content in the repository; without one the file is empty.
	object string
	// doubtful says that the file that is there may be another.
	doubtful bool
}

// errSeen ends a walk at the first entry, which is the volume itself.
var errSeen = errors.New("seen")

// Nothing is the snapshot of a volume that holds nothing. The volume's own owner, mode and time stay as they are: nobody has
// written down what they were.
func Nothing(ctx context.Context, dir string) (*repository.Snapshot, error) {
	root := &repository.Node{}
	_, err := volume.Scan(ctx, dir, volume.ScanOptions{}, func(entry volume.Entry) error {
		root.Entry = entry.Entry
		return errSeen
	})
	if !errors.Is(err, errSeen) {
		return nil, err
	}
	return &repository.Snapshot{Source: "nothing", Root: root}, nil
}

// Kinds of disagreement between a snapshot and a manifest, besides those in which two entries can differ.
const (
	notInSnapshot manifest.Kind = "not-in-snapshot"
	notInManifest manifest.Kind = "not-in-manifest"
	uncertainName manifest.Kind = "name"
)

// wanted is what the volume shall hold, in the manifest's order, and in what snapshot and manifest do not agree. Where they
// disagree on what both know of, the snapshot is followed, since it has the contents. What a snapshot cannot hold is the
// manifest's: names that are no UTF-8, hard links, FIFOs, sockets, devices, extended attributes, whether a file is sparse, and
// hashes. Entries may be nil, which is no manifest.
func wanted(root *repository.Node, entries []manifest.Entry) ([]want, []manifest.Difference) {
	m := merger{known: entries != nil, children: map[manifest.Text][]manifest.Entry{}}
	var top *manifest.Entry
	for i, entry := range entries {
		if entry.Path == manifest.Root {
			top = &entries[i]
			continue
		}
		parent := parentOf(entry.Path)
		m.children[parent] = append(m.children[parent], entry)
	}
	m.both(root, manifest.Root, top)
	slices.SortFunc(m.wants, func(a, b want) int { return manifest.ComparePaths(string(a.Path), string(b.Path)) })
	m.dropDoubles()
	m.dropLooseLinks()
	slices.SortStableFunc(m.disagreements, func(a, b manifest.Difference) int {
		return manifest.ComparePaths(string(a.Path), string(b.Path))
	})
	return m.wants, m.disagreements
}

type merger struct {
	known         bool // whether there is a manifest
	children      map[manifest.Text][]manifest.Entry
	wants         []want
	disagreements []manifest.Difference
}

func (m *merger) disagree(path manifest.Text, kind manifest.Kind, inManifest string) {
	m.disagreements = append(m.disagreements, manifest.Difference{Path: path, Kind: kind, Want: inManifest})
}

// both takes an entry that the snapshot has, and the manifest unless it is nil there.
func (m *merger) both(node *repository.Node, path manifest.Text, entry *manifest.Entry) {
	wish := want{Entry: node.Entry, object: node.Object}
	wish.Path = path
	wish.Sparse = !m.known
	switch {
	case entry == nil && m.known:
		m.disagree(path, notInManifest, "")
		wish.Sparse = true
	case entry == nil:
	case entry.Type != node.Type:
		m.disagreements = append(m.disagreements, manifest.Differences(*entry, wish.Entry)...)
	default:
		wish.HardLink, wish.Xattrs, wish.Sparse = entry.HardLink, entry.Xattrs, entry.Sparse
		wish.Device, wish.Hash = entry.Device, entry.Hash
		differences := manifest.Differences(*entry, wish.Entry)
		m.disagreements = append(m.disagreements, differences...)
		if len(differences) > 0 {
			wish.Hash = nil // it is that of another state of the file
		}
	}
	m.wants = append(m.wants, wish)
	if node.Type == manifest.Directory {
		m.directory(node.Children, path)
	}
}

func (m *merger) directory(nodes []*repository.Node, path manifest.Text) {
	pairs, uncertain := pair(nodes, m.children[path])
	for _, name := range uncertain {
		m.disagree(join(path, name), uncertainName, "")
	}
	for _, p := range pairs {
		switch {
		case path == manifest.Root && p.node != nil && p.node.Type == manifest.Directory && p.node.Path == volume.LostFound:
			// Each file system has its own.
		case p.node == nil:
			m.onlyInManifest(*p.entry)
		case p.entry == nil:
			m.both(p.node, join(path, baseOf(p.node.Path)), nil)
		default:
			m.both(p.node, p.entry.Path, p.entry)
		}
	}
}

// onlyInManifest takes what the snapshot could not hold, or what can be made without it.
func (m *merger) onlyInManifest(entry manifest.Entry) {
	switch {
	case entry.Type == manifest.FIFO || entry.Type == manifest.Socket || entry.Type == manifest.CharDevice || entry.Type == manifest.BlockDevice:
	case entry.Type == manifest.File && entry.Size > 0:
		m.disagree(entry.Path, notInSnapshot, "")
		return
	default:
		m.disagree(entry.Path, notInSnapshot, "")
	}
	m.wants = append(m.wants, want{Entry: entry})
	for _, child := range m.children[entry.Path] {
		m.onlyInManifest(child)
	}
}

// dropDoubles leaves one of several that have come to one name.
func (m *merger) dropDoubles() {
	m.wants = slices.CompactFunc(m.wants, func(a, b want) bool {
		if a.Path == b.Path {
			m.disagree(a.Path, uncertainName, "")
		}
		return a.Path == b.Path
	})
}

// dropLooseLinks makes files of names whose first name is not wanted, or is another content: the snapshot has each name's.
func (m *merger) dropLooseLinks() {
	files := map[manifest.Text]want{}
	for _, wish := range m.wants {
		if wish.Type == manifest.File {
			files[wish.Path] = wish
		}
	}
	for i := range m.wants {
		wish := &m.wants[i]
		if wish.HardLink == "" {
			continue
		}
		first, there := files[wish.HardLink]
		if there && first.HardLink == "" && oneInode(first, *wish) {
			continue
		}
		m.disagree(wish.Path, manifest.OtherHardLink, fmt.Sprintf("%q", string(wish.HardLink)))
		wish.HardLink = ""
	}
}

func oneInode(a, b want) bool {
	return a.object == b.object && a.Size == b.Size && a.MTime == b.MTime && a.Mode == b.Mode && a.UID == b.UID && a.GID == b.GID
}

// paired is one directory's entry as the snapshot and as the manifest have it; one of the two may be nil.
type paired struct {
	node  *repository.Node
	entry *manifest.Entry
}

// pair finds which of a snapshot's entries are which of a manifest's. Names of a snapshot have lost their bytes that are no
// UTF-8, so several may be one; then what else is known of them decides. It names those of which nobody can be sure.
func pair(nodes []*repository.Node, entries []manifest.Entry) (pairs []paired, uncertain []manifest.Text) {
	byName := map[manifest.Text][]*repository.Node{}
	var order []manifest.Text
	for _, node := range nodes {
		name := baseOf(node.Path)
		if byName[name] == nil {
			order = append(order, name)
		}
		byName[name] = append(byName[name], node)
	}
	candidates := map[manifest.Text][]*manifest.Entry{}
	for i := range entries {
		name := mangled(baseOf(entries[i].Path))
		candidates[name] = append(candidates[name], &entries[i])
	}
	for _, name := range order {
		found := byName[name]
		if entries == nil && (mangledAway(name) || len(found) > 1) {
			uncertain = append(uncertain, name)
		}
		of := candidates[name]
		delete(candidates, name)
		matched, doubtful := match(found, of)
		pairs = append(pairs, matched...)
		for _, entry := range doubtful {
			uncertain = append(uncertain, baseOf(entry.Path))
		}
	}
	for i := range entries { // in their order, for messages that are the same each time
		for _, entry := range candidates[mangled(baseOf(entries[i].Path))] {
			if entry == &entries[i] {
				pairs = append(pairs, paired{entry: entry})
			}
		}
	}
	return pairs, uncertain
}

// match pairs entries whose names are all one in the snapshot. A single one on each side needs nothing else; of several, those
// that are alike are paired, and it is doubtful which is which where more than one would do.
func match(nodes []*repository.Node, entries []*manifest.Entry) (pairs []paired, doubtful []*manifest.Entry) {
	if len(nodes) == 1 && len(entries) == 1 {
		return []paired{{nodes[0], entries[0]}}, nil
	}
	left := slices.Clone(entries)
	for _, node := range nodes {
		alike := slices.DeleteFunc(slices.Clone(left), func(entry *manifest.Entry) bool { return !similar(node, entry) })
		if len(alike) == 0 { // another state of what has the very name, if that is there
			alike = slices.DeleteFunc(slices.Clone(left), func(entry *manifest.Entry) bool { return baseOf(entry.Path) != baseOf(node.Path) })
		}
		if len(alike) == 0 {
			pairs = append(pairs, paired{node: node})
			continue
		}
		if len(alike) > 1 && !bothHashed(alike) && !oneContent(nodes) {
			doubtful = append(doubtful, alike[0])
		}
		pairs = append(pairs, paired{node, alike[0]})
		left = slices.DeleteFunc(left, func(entry *manifest.Entry) bool { return entry == alike[0] })
	}
	for _, entry := range left {
		pairs = append(pairs, paired{entry: entry})
	}
	return onlyOneUnnamed(pairs), doubtful
}

// onlyOneUnnamed leaves out all but the first of what no manifest tells apart: a directory has each name once.
func onlyOneUnnamed(pairs []paired) []paired {
	unnamed := 0
	return slices.DeleteFunc(pairs, func(p paired) bool {
		if p.entry == nil {
			unnamed++
		}
		return p.entry == nil && unnamed > 1
	})
}

func similar(node *repository.Node, entry *manifest.Entry) bool {
	return node.Type == entry.Type && node.Size == entry.Size && node.MTime == entry.MTime && node.Target == entry.Target &&
		node.Mode == entry.Mode && node.UID == entry.UID && node.GID == entry.GID
}

// oneContent says that a wrong pairing would change nothing.
func oneContent(nodes []*repository.Node) bool {
	return !slices.ContainsFunc(nodes, func(node *repository.Node) bool {
		return node.Type == manifest.Directory || node.Object != nodes[0].Object || node.Target != nodes[0].Target
	})
}

// bothHashed says that a wrong pairing would show as a wrong content.
func bothHashed(entries []*manifest.Entry) bool {
	return !slices.ContainsFunc(entries, func(entry *manifest.Entry) bool { return len(entry.Hash) == 0 })
}

// mangled is what a name becomes in a snapshot, which is written as JSON: each byte that is no UTF-8 is U+FFFD.
func mangled(name manifest.Text) manifest.Text { return manifest.Text([]rune(string(name))) }

func mangledAway(name manifest.Text) bool {
	return slices.Contains([]rune(string(name)), '\uFFFD')
}

func join(dir, name manifest.Text) manifest.Text {
	if dir == manifest.Root {
		return name
	}
	return dir + "/" + name
}
