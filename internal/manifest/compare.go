package manifest

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"time"
)

// Kind is in what an entry differs.
type Kind string

// The kinds of differences. The times of directories and of links have kinds of their own, because backup tools keep those
// of files and lose these.
const (
	Missing       Kind = "missing" // the source has it and the destination has not
	Extra         Kind = "extra"   // the destination has it and the source has not
	OtherType     Kind = "type"
	OtherSize     Kind = "size"
	OtherContent  Kind = "content"
	OtherMode     Kind = "mode"
	OtherOwner    Kind = "owner"
	OtherTime     Kind = "mtime"
	OtherDirTime  Kind = "dir-mtime"
	OtherLinkTime Kind = "link-mtime"
	OtherTarget   Kind = "target"
	OtherHardLink Kind = "hardlink"
	OtherDevice   Kind = "device"
	OtherXattr    Kind = "xattr"
)

// Kinds are all of them.
func Kinds() []Kind {
	return []Kind{
		Missing, Extra, OtherType, OtherSize, OtherContent, OtherMode, OtherOwner, OtherTime, OtherDirTime, OtherLinkTime,
		OtherTarget, OtherHardLink, OtherDevice, OtherXattr,
	}
}

// Difference is one way in which one entry differs.
type Difference struct {
	Path Text `json:"path"`
	Kind Kind `json:"kind"`
	// Want is the source's, Have the destination's, in words; empty where there is nothing to say.
	Want string `json:"want,omitempty"`
	Have string `json:"have,omitempty"`
}

// Report is what a comparison found.
type Report struct {
	// Differences are the first, as many as were asked for.
	Differences []Difference
	// Counts are all, by kind.
	Counts map[Kind]int64
	// Entries are those that at least one side has.
	Entries int64
	// Contents are the files whose contents both sides had hashed.
	Contents int64
}

// Equal says if nothing differs.
func (r Report) Equal() bool { return len(r.Counts) == 0 }

// Compare compares two manifests' entries, and keeps the first limit differences. Kinds to ignore are neither kept nor
// counted. Its errors are those of reading.
func Compare(want, have iter.Seq2[Entry, error], limit int, ignore ...Kind) (Report, error) {
	report := Report{Counts: map[Kind]int64{}}
	found := func(differences ...Difference) {
		for _, difference := range differences {
			if slices.Contains(ignore, difference.Kind) {
				continue
			}
			report.Counts[difference.Kind]++
			if len(report.Differences) < limit {
				report.Differences = append(report.Differences, difference)
			}
		}
	}
	nextWant, stopWant := iter.Pull2(want)
	defer stopWant()
	nextHave, stopHave := iter.Pull2(have)
	defer stopHave()
	wanted, wantErr, wantMore := nextWant()
	had, haveErr, haveMore := nextHave()
	for wantMore || haveMore {
		if wantErr != nil {
			return Report{}, fmt.Errorf("manifest of the source: %w", wantErr)
		}
		if haveErr != nil {
			return Report{}, fmt.Errorf("manifest of the destination: %w", haveErr)
		}
		report.Entries++
		order := 0
		switch {
		case !haveMore:
			order = -1
		case !wantMore:
			order = 1
		default:
			order = ComparePaths(string(wanted.Path), string(had.Path))
		}
		switch {
		case order < 0:
			found(Difference{Path: wanted.Path, Kind: Missing, Want: typeName(wanted.Type)})
		case order > 0:
			found(Difference{Path: had.Path, Kind: Extra, Have: typeName(had.Type)})
		default:
			if len(wanted.Hash) > 0 && len(had.Hash) > 0 {
				report.Contents++
			}
			found(Differences(wanted, had)...)
		}
		if order <= 0 {
			wanted, wantErr, wantMore = nextWant()
		}
		if order >= 0 {
			had, haveErr, haveMore = nextHave()
		}
	}
	return report, nil
}

// Differences are those of two entries of one path. Contents are compared where both have a hash.
func Differences(want, have Entry) []Difference {
	if want.Type != have.Type {
		return []Difference{{Path: want.Path, Kind: OtherType, Want: typeName(want.Type), Have: typeName(have.Type)}}
	}
	var differences []Difference
	differ := func(kind Kind, want1, have1 string) {
		differences = append(differences, Difference{Path: want.Path, Kind: kind, Want: want1, Have: have1})
	}
	if want.Size != have.Size {
		differ(OtherSize, fmt.Sprint(want.Size), fmt.Sprint(have.Size))
	} else if len(want.Hash) > 0 && len(have.Hash) > 0 && !bytes.Equal(want.Hash, have.Hash) {
		differ(OtherContent, fmt.Sprintf("%x", want.Hash), fmt.Sprintf("%x", have.Hash))
	}
	if want.Mode != have.Mode {
		differ(OtherMode, fmt.Sprintf("%04o", want.Mode), fmt.Sprintf("%04o", have.Mode))
	}
	if want.UID != have.UID || want.GID != have.GID {
		differ(OtherOwner, fmt.Sprintf("%d:%d", want.UID, want.GID), fmt.Sprintf("%d:%d", have.UID, have.GID))
	}
	if want.MTime != have.MTime {
		differ(timeKind(want.Type), timeText(want.MTime), timeText(have.MTime))
	}
	if want.Target != have.Target {
		differ(OtherTarget, fmt.Sprintf("%q", string(want.Target)), fmt.Sprintf("%q", string(have.Target)))
	}
	if want.HardLink != have.HardLink {
		differ(OtherHardLink, fmt.Sprintf("%q", string(want.HardLink)), fmt.Sprintf("%q", string(have.HardLink)))
	}
	if want.Device != have.Device {
		differ(OtherDevice, fmt.Sprint(want.Device), fmt.Sprint(have.Device))
	}
	for _, name := range differentXattrs(want.Xattrs, have.Xattrs) {
		differ(OtherXattr, name, "")
	}
	return differences
}

func timeKind(t Type) Kind {
	switch t {
	case Directory:
		return OtherDirTime
	case Symlink:
		return OtherLinkTime
	default:
		return OtherTime
	}
}

func timeText(nanoseconds int64) string {
	return time.Unix(0, nanoseconds).UTC().Format(time.RFC3339Nano)
}

// differentXattrs are the names of those that only one side has, or the other with another value.
func differentXattrs(want, have []Xattr) []string {
	values := func(attributes []Xattr) map[Text][]byte {
		byName := map[Text][]byte{}
		for _, attribute := range attributes {
			byName[attribute.Name] = attribute.Value
		}
		return byName
	}
	wanted, had := values(want), values(have)
	var names []string
	for name, value := range wanted {
		if other, there := had[name]; !there || !bytes.Equal(value, other) {
			names = append(names, string(name))
		}
	}
	for name := range had {
		if _, there := wanted[name]; !there {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return names
}

func typeName(t Type) string {
	switch t {
	case File:
		return "file"
	case Directory:
		return "directory"
	case Symlink:
		return "symlink"
	case FIFO:
		return "fifo"
	case Socket:
		return "socket"
	case CharDevice:
		return "character device"
	case BlockDevice:
		return "block device"
	default:
		return string(t)
	}
}
