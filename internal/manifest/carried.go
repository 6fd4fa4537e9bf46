package manifest

import "iter"

// Timeless is an entry without what no copy by Velero's file-system backup keeps and few miss: the times of directories
// and of links, and whether a file has holes.
func (e Entry) Timeless() Entry {
	if e.Type == Directory || e.Type == Symlink {
		e.MTime = 0
	}
	e.Sparse = false
	return e
}

// Carried is an entry without all that such a copy loses: it makes files of their own of hard links, and drops extended
// attributes. False where it carries nothing of the entry: pipes, sockets and devices.
func (e Entry) Carried() (Entry, bool) {
	switch e.Type {
	case FIFO, Socket, CharDevice, BlockDevice:
		return Entry{}, false
	case File, Directory, Symlink:
	}
	e = e.Timeless()
	e.HardLink, e.Xattrs = "", nil
	return e, true
}

// Carried are a manifest's entries as [Entry.Carried] has them.
func Carried(entries iter.Seq2[Entry, error]) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for entry, err := range entries {
			if err == nil {
				var is bool
				if entry, is = entry.Carried(); !is {
					continue
				}
			}
			if !yield(entry, err) {
				return
			}
		}
	}
}
