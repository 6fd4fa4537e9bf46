// Package manifest says what is in a volume, entry by entry, and in what two volumes differ.
//
// It is values, a format and a comparison; it knows neither file systems nor backups, so that whoever reads manifests
// need not carry the libraries of whoever makes them.
//
// # Format
//
// A manifest is lines of JSON. The first says the version and whether contents were hashed, the last how much there was and
// the SHA-256 of all bytes before it, so that a manifest that was cut off or altered on its way is not mistaken for a small
// volume:
//
//	{"manifest":1,"hashed":true}
//	{"p":".","t":"d","m":493,"mt":1700000000123456789}
//	{"p":"data","t":"d","m":448,"u":999,"g":999,"mt":1700000000123456789}
//	{"p":"data/a","t":"f","m":384,"u":999,"g":999,"mt":1700000000123456789,"s":5,"c":"LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="}
//	{"p":"data/b","t":"f","m":384,"u":999,"g":999,"mt":1700000000123456789,"s":5,"h":"data/a","c":"LPJN…"}
//	{"end":true,"entries":4,"bytes":5,"digest":"…"}
//
// What is no UTF-8, which names may be, is written {"b":"base64"} instead of a string. Entries are in the order of
// [ComparePaths]. The whole may be compressed, and written as text for a log: see [Encoding].
package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Version is that of the format. A reader refuses any other.
const Version = 1

// Root is the path of the volume's own directory, the first entry of each manifest.
const Root = "."

// Type is what kind of thing an entry is.
type Type string

// The types of entries.
const (
	File        Type = "f"
	Directory   Type = "d"
	Symlink     Type = "l"
	FIFO        Type = "p"
	Socket      Type = "s"
	CharDevice  Type = "c"
	BlockDevice Type = "b"
)

func (t Type) known() bool {
	switch t {
	case File, Directory, Symlink, FIFO, Socket, CharDevice, BlockDevice:
		return true
	}
	return false
}

// Text is a string of any bytes but NUL, as names, targets of links and names of attributes are.
type Text string

type encodedText struct {
	Bytes []byte `json:"b"`
}

// MarshalJSON writes a string, or an object with the bytes in base64 where a string of JSON would lose them.
func (t Text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(encodedText{[]byte(t)})
}

// UnmarshalJSON reads either form.
func (t *Text) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte("{")) {
		var encoded encodedText
		err := json.Unmarshal(data, &encoded)
		*t = Text(encoded.Bytes)
		return err
	}
	var plain string
	err := json.Unmarshal(data, &plain)
	*t = Text(plain)
	return err
}

// Xattr is an extended attribute.
type Xattr struct {
	Name  Text   `json:"n"`
	Value []byte `json:"v"`
}

// Entry is one thing in a volume.
type Entry struct {
	// Path is relative to the volume, with slashes; that of the volume itself is [Root].
	Path Text `json:"p"`
	Type Type `json:"t"`
	// Mode has the permissions, setuid, setgid and sticky: the lower 12 bits of stat's. That of a symlink means nothing and is 0.
	Mode uint32 `json:"m"`
	UID  uint32 `json:"u,omitempty"`
	GID  uint32 `json:"g,omitempty"`
	// MTime is nanoseconds since 1970.
	MTime int64 `json:"mt"`
	// Size is a file's, in bytes; all others have none, since a directory's is its file system's business.
	Size int64 `json:"s,omitempty"`
	// Sparse says that a file takes less room than its size. It is not compared: file systems count differently.
	Sparse bool `json:"sp,omitempty"`
	// Target is a symlink's.
	Target Text `json:"l,omitempty"`
	// HardLink is, for a file of several names, the first of them in the manifest's order. The first itself has none.
	HardLink Text `json:"h,omitempty"`
	// Device is a device's number, as Linux has it in stat's rdev.
	Device uint64 `json:"d,omitempty"`
	// Xattrs are sorted by name.
	Xattrs []Xattr `json:"x,omitempty"`
	// Hash is the SHA-256 of a file's content; none if contents were not read.
	Hash []byte `json:"c,omitempty"`
	// Changed says that the file was written to while it was read, so that the entry is no moment's state.
	Changed bool `json:"changed,omitempty"`
}

// ComparePaths orders paths as a walk does that takes each directory's names by their bytes: what is in a directory follows
// it at once, also where another name goes on with a byte below the slash.
func ComparePaths(a, b string) int {
	if a == b {
		return 0
	}
	if a == Root {
		return -1
	}
	if b == Root {
		return 1
	}
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return int(orderOf(a[i])) - int(orderOf(b[i]))
		}
	}
	return len(a) - len(b)
}

func orderOf(c byte) byte {
	if c == '/' {
		return 0 // which no name has
	}
	return c
}

// ValidName says if a name can be that of a directory's entry.
func ValidName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00")
}

// ValidPath says if a path is one inside of a volume, or the volume's.
func ValidPath(path string) bool {
	if path == Root {
		return true
	}
	for name := range strings.SplitSeq(path, "/") {
		if !ValidName(name) {
			return false
		}
	}
	return true
}

func (e Entry) check() error {
	switch {
	case !ValidPath(string(e.Path)):
		return errors.New("no path inside of a volume")
	case !e.Type.known():
		return fmt.Errorf("unknown type %q", e.Type)
	case e.Path == Root && e.Type != Directory:
		return errors.New("a volume is a directory")
	case e.Mode&^0o7777 != 0:
		return fmt.Errorf("mode %o has more than 12 bits", e.Mode)
	case e.Size < 0 || e.Type != File && e.Size != 0:
		return fmt.Errorf("size %d", e.Size)
	case e.Type != Symlink && e.Target != "" || strings.Contains(string(e.Target), "\x00"):
		return errors.New("no target that a link can have")
	case e.Type != File && e.HardLink != "":
		return errors.New("hard link that is no file")
	case e.HardLink != "" && (!ValidPath(string(e.HardLink)) || ComparePaths(string(e.HardLink), string(e.Path)) >= 0):
		return errors.New("hard link to nothing before it")
	case e.Type != File && len(e.Hash) != 0 || len(e.Hash) != 0 && len(e.Hash) != hashSize:
		return errors.New("hash that is none of a file's content")
	case !slices.IsSortedFunc(e.Xattrs, func(a, b Xattr) int { return strings.Compare(string(a.Name), string(b.Name)) }):
		return errors.New("extended attributes are not in order")
	}
	return nil
}
