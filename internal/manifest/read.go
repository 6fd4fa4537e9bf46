package manifest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
)

// ErrCutOff is what a manifest ends with that has no last line.
var ErrCutOff = errors.New("the manifest is cut off: it has no last line")

// maxLine is far above what names and extended attributes that Linux can hold take.
const maxLine = 32 << 20

// Reader reads a manifest, whatever its encoding. It trusts nothing that it reads.
type Reader struct {
	// Hashed says that the files' contents were read.
	Hashed bool

	lines   *bufio.Scanner
	digest  hash.Hash
	summary Summary
}

// NewReader reads a manifest's first line.
func NewReader(from io.Reader) (*Reader, error) {
	from, err := decoded(from)
	if err != nil {
		return nil, err
	}
	r := &Reader{lines: bufio.NewScanner(from), digest: sha256.New()}
	r.lines.Buffer(make([]byte, 1<<16), maxLine)
	var first header
	line, err := r.line()
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(line, &first); err != nil || first.Manifest == 0 {
		return nil, errors.New("this is no manifest: its first line does not say so")
	}
	if first.Manifest != Version {
		return nil, fmt.Errorf("the manifest has version %d of the format, and this program reads version %d", first.Manifest, Version)
	}
	r.Hashed = first.Hashed
	r.took(line)
	return r, nil
}

func decoded(from io.Reader) (io.Reader, error) {
	buffer := bufio.NewReaderSize(from, 1<<16)
	start, err := buffer.Peek(2)
	if errors.Is(err, io.EOF) {
		return nil, ErrCutOff
	}
	if err != nil {
		return nil, err
	}
	switch {
	case start[0] == '{':
		return buffer, nil
	case bytes.Equal(start, []byte{0x1f, 0x8b}):
		return gzip.NewReader(buffer)
	default:
		return gzip.NewReader(base64.NewDecoder(base64.StdEncoding, buffer))
	}
}

func (r *Reader) line() ([]byte, error) {
	if r.lines.Scan() {
		return r.lines.Bytes(), nil
	}
	if err := r.lines.Err(); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	return nil, ErrCutOff
}

func (r *Reader) took(line []byte) {
	r.digest.Write(line)
	r.digest.Write([]byte("\n"))
}

// Entries reads the manifest to its end, once. The last pair has an error, [ErrCutOff] among them, unless the manifest was
// whole: what came before it is then not to be trusted either.
func (r *Reader) Entries() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		last := ""
		for {
			line, err := r.line()
			if err != nil {
				yield(Entry{}, err)
				return
			}
			if bytes.HasPrefix(line, []byte(`{"end"`)) {
				if err := r.end(line); err != nil {
					yield(Entry{}, err)
				}
				return
			}
			entry, err := parse(line)
			if err == nil && r.summary.Entries > 0 && ComparePaths(last, string(entry.Path)) >= 0 {
				err = fmt.Errorf("%q comes after %q", string(entry.Path), last)
			}
			if err != nil {
				yield(Entry{}, fmt.Errorf("entry %d of the manifest: %w", r.summary.Entries+1, err))
				return
			}
			last = string(entry.Path)
			r.summary.add(entry)
			r.took(line)
			if !yield(entry, nil) {
				return
			}
		}
	}
}

// Summary is the last line's, after [Reader.Entries] has come to its end without an error.
func (r *Reader) Summary() Summary { return r.summary }

func parse(line []byte) (Entry, error) {
	var entry Entry
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields() // a field that is not understood would not be compared either
	if err := decoder.Decode(&entry); err != nil {
		return Entry{}, err
	}
	return entry, entry.check()
}

func (r *Reader) end(line []byte) error {
	var said Summary
	if err := json.Unmarshal(line, &said); err != nil {
		return fmt.Errorf("last line of the manifest: %w", err)
	}
	if !bytes.Equal(said.Digest, r.digest.Sum(nil)) || said.Entries != r.summary.Entries || said.Bytes != r.summary.Bytes {
		return errors.New("the manifest is not as it was written: its digest differs")
	}
	r.summary = said
	if r.lines.Scan() {
		return errors.New("the manifest goes on after its last line")
	}
	return r.lines.Err()
}

// ReadAll reads all entries of a manifest into memory, some 300 bytes each.
func ReadAll(from io.Reader) ([]Entry, *Reader, error) {
	reader, err := NewReader(from)
	if err != nil {
		return nil, nil, err
	}
	var entries []Entry
	for entry, err := range reader.Entries() {
		if err != nil {
			return nil, nil, err
		}
		entries = append(entries, entry)
	}
	return entries, reader, nil
}
