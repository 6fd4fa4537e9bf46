package restore

import (
	"path"

	"github.com/mig-cli/mig/cmd/mig-mover/internal/volume"
	"github.com/mig-cli/mig/internal/manifest"
)

// plan is what is to be done to a volume, in the order in which it is done.
type plan struct {
	// remove are the topmost of what is not wanted, or is wanted as something else.
	remove []manifest.Text
	// directories are to be made, parents first.
	directories []manifest.Text
	// write are files whose content is to be fetched. Those that are there are removed first.
	write []want
	// check are files that are there and look as wanted; their contents are compared if asked for, and they are given what
	// attributes they lack.
	check []want
	// make are symlinks and special files that are not there.
	make []want
	// links are further names of files that are wanted, to be made after those.
	links []want
	// linked are further names that are as wanted, unless their file has to be written after all.
	linked []want
	// attributes are what is there and is no file, and may lack some; directories are apart because they come last.
	attributes []want
	// finish are all directories, deepest first.
	finish []want
}

// decide compares what is wanted with what is there. A file is taken to have the wanted content if it has the wanted size and
// time, to the nanosecond, and shares its inode with no other name but the wanted ones. If its owner or mode is another, it may be
// another file that was moved to this name, as those that came out of one archive have one time: then its content is looked at.
func decide(wants []want, have []volume.Entry) plan {
	there := make(map[manifest.Text]volume.Entry, len(have))
	for _, entry := range have {
		there[entry.Path] = entry
	}
	files := newInodes(wants, have)
	var p plan
	p.remove = unwanted(wants, have)
	written := map[manifest.Text]bool{}
	for _, wish := range wants {
		entry, exists := there[wish.Path]
		exists = exists && entry.Type == wish.Type
		switch wish.Type {
		case manifest.Directory:
			if !exists {
				p.directories = append(p.directories, wish.Path)
			}
			p.finish = append(p.finish, wish)
		case manifest.File:
			p.file(wish, entry, exists, files, written)
		default:
			switch {
			case !exists:
				p.make = append(p.make, wish)
			case entry.Target != wish.Target || entry.Device != wish.Device:
				p.remove = append(p.remove, wish.Path)
				p.make = append(p.make, wish)
			default:
				p.attributes = append(p.attributes, wish)
			}
		}
	}
	for i, j := 0, len(p.finish)-1; i < j; i, j = i+1, j-1 {
		p.finish[i], p.finish[j] = p.finish[j], p.finish[i]
	}
	return p
}

// file decides about a file. The first name of several comes before the others, which is the manifest's order.
func (p *plan) file(wish want, entry volume.Entry, exists bool, files inodes, written map[manifest.Text]bool) {
	if wish.HardLink != "" {
		first := files.of[wish.HardLink]
		if !exists || written[wish.HardLink] || entry.Inode != first {
			p.links = append(p.links, wish)
		} else {
			p.linked = append(p.linked, wish)
		}
		return
	}
	if exists && entry.Size == wish.Size && entry.MTime == wish.MTime && files.asWanted(wish.Path, entry) {
		wish.doubtful = entry.Mode != wish.Mode || entry.UID != wish.UID || entry.GID != wish.GID
		p.check = append(p.check, wish)
		return
	}
	written[wish.Path] = true
	p.write = append(p.write, wish)
}

// unwanted are the topmost paths of what is to go: what is below them goes with them.
func unwanted(wants []want, have []volume.Entry) []manifest.Text {
	types := make(map[manifest.Text]manifest.Type, len(wants))
	for _, wish := range wants {
		types[wish.Path] = wish.Type
	}
	var remove []manifest.Text
	gone := map[manifest.Text]bool{}
	for _, entry := range have { // parents come before what is in them
		if entry.Path != manifest.Root && gone[parentOf(entry.Path)] {
			gone[entry.Path] = true
			continue
		}
		if wanted, there := types[entry.Path]; !there || wanted != entry.Type {
			gone[entry.Path] = true
			remove = append(remove, entry.Path)
		}
	}
	return remove
}

// inodes are the files on the disk by their inodes.
type inodes struct {
	of     map[manifest.Text]volume.Inode   // by path
	names  map[volume.Inode][]manifest.Text // all names in the volume of those that have several
	groups map[manifest.Text]manifest.Text  // the first name, by each name that is wanted for a file
}

func newInodes(wants []want, have []volume.Entry) inodes {
	files := inodes{map[manifest.Text]volume.Inode{}, map[volume.Inode][]manifest.Text{}, map[manifest.Text]manifest.Text{}}
	for _, entry := range have {
		if entry.Type != manifest.File {
			continue
		}
		files.of[entry.Path] = entry.Inode
		if entry.Links > 1 {
			files.names[entry.Inode] = append(files.names[entry.Inode], entry.Path)
		}
	}
	for _, wish := range wants {
		if wish.Type == manifest.File {
			files.groups[wish.Path] = wish.Path
			if wish.HardLink != "" {
				files.groups[wish.Path] = wish.HardLink
			}
		}
	}
	return files
}

// asWanted says if what would be done to the file at the path is done to no file that shall be another: all other names of its
// inode are in the volume, and are to be names of it or to go.
func (f inodes) asWanted(path manifest.Text, entry volume.Entry) bool {
	if entry.Links <= 1 {
		return true
	}
	names := f.names[entry.Inode]
	if uint64(len(names)) != entry.Links {
		return false
	}
	for _, name := range names {
		if group, wanted := f.groups[name]; wanted && group != path {
			return false
		}
	}
	return true
}

func parentOf(file manifest.Text) manifest.Text { return manifest.Text(path.Dir(string(file))) }

func baseOf(file manifest.Text) manifest.Text { return manifest.Text(path.Base(string(file))) }
