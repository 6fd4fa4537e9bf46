package manifest

import (
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
)

const hashSize = sha256.Size

// Encoding is how a manifest's lines are written down. A [Reader] sees which it is.
type Encoding string

// The encodings of a manifest.
const (
	Plain Encoding = "plain"
	Gzip  Encoding = "gzip"
	// Base64 is [Gzip] as text in lines of 4,096 characters, which a container runtime logs whole.
	Base64 Encoding = "base64"
)

type header struct {
	Manifest int  `json:"manifest"`
	Hashed   bool `json:"hashed"`
}

// Summary is what a manifest's last line says.
type Summary struct {
	End     bool  `json:"end"`
	Entries int64 `json:"entries"`
	// Bytes are the sizes of all files, each content counted once.
	Bytes int64 `json:"bytes"`
	// Changed are the entries that were written to or went away while they were read.
	Changed int64 `json:"changed,omitempty"`
	// Carried is the SHA-256 of the entries as [Entry.Carried] has them: equal where two volumes differ in nothing that a
	// copy by files carries.
	Carried []byte `json:"carried,omitempty"`
	// Timeless is the SHA-256 of the entries without the times of directories and links, which such a copy never carries.
	Timeless []byte `json:"timeless,omitempty"`
	// Digest is the SHA-256 of all bytes before this line.
	Digest []byte `json:"digest"`
}

func (s *Summary) add(entry Entry) {
	s.Entries++
	if entry.HardLink == "" {
		s.Bytes += entry.Size
	}
	if entry.Changed {
		s.Changed++
	}
}

// Writer writes a manifest.
type Writer struct {
	to     io.Writer
	close  []func() error
	digest hash.Hash
	// Of the entries as two less exact comparisons see them.
	carried, timeless hash.Hash
	last              string
	summary           Summary
}

// NewWriter begins a manifest. Its errors are those of the writer below, or an unknown encoding.
func NewWriter(to io.Writer, encoding Encoding, hashed bool) (*Writer, error) {
	w := &Writer{digest: sha256.New(), carried: sha256.New(), timeless: sha256.New()}
	switch encoding {
	case Plain:
	case Gzip, Base64:
		if encoding == Base64 {
			lines := &lineWriter{to: to}
			text := base64.NewEncoder(base64.StdEncoding, lines)
			w.close = append(w.close, text.Close, lines.end)
			to = text
		}
		packed := gzip.NewWriter(to)
		w.close = append([]func() error{packed.Close}, w.close...)
		to = packed
	default:
		return nil, fmt.Errorf("unknown encoding %q: plain, gzip or base64", encoding)
	}
	buffer := bufio.NewWriterSize(to, 1<<16)
	w.close = append([]func() error{buffer.Flush}, w.close...)
	w.to = buffer
	return w, w.line(header{Manifest: Version, Hashed: hashed})
}

// Add writes the next entry; entries come in the order of [ComparePaths].
func (w *Writer) Add(entry Entry) error {
	if err := entry.check(); err != nil {
		return fmt.Errorf("%q: %w", string(entry.Path), err)
	}
	if w.summary.Entries > 0 && ComparePaths(w.last, string(entry.Path)) >= 0 {
		return fmt.Errorf("%q comes after %q", string(entry.Path), w.last)
	}
	w.last = string(entry.Path)
	w.summary.add(entry)
	if err := json.NewEncoder(w.timeless).Encode(entry.Timeless()); err != nil {
		return err
	}
	if carried, is := entry.Carried(); is {
		if err := json.NewEncoder(w.carried).Encode(carried); err != nil {
			return err
		}
	}
	return w.line(entry)
}

// Gone counts an entry that went away before it could be read.
func (w *Writer) Gone() { w.summary.Changed++ }

// Close writes the last line and what is left. It does not close the writer below.
func (w *Writer) Close() (Summary, error) {
	w.summary.End, w.summary.Digest = true, w.digest.Sum(nil)
	w.summary.Carried, w.summary.Timeless = w.carried.Sum(nil), w.timeless.Sum(nil)
	err := w.line(w.summary)
	for _, end := range w.close {
		err = errors.Join(err, end())
	}
	return w.summary, err
}

func (w *Writer) line(value any) error {
	content, err := json.Marshal(value)
	if err != nil {
		return err
	}
	content = append(content, '\n')
	w.digest.Write(content)
	_, err = w.to.Write(content)
	return err
}

// lineWriter breaks what is written into lines.
type lineWriter struct {
	to     io.Writer
	column int
}

const lineLength = 4096

func (l *lineWriter) Write(content []byte) (int, error) {
	for written := 0; written < len(content); {
		part := content[written:min(len(content), written+lineLength-l.column)]
		if _, err := l.to.Write(part); err != nil {
			return written, err
		}
		written += len(part)
		if l.column += len(part); l.column == lineLength {
			if err := l.end(); err != nil {
				return written, err
			}
		}
	}
	return len(content), nil
}

func (l *lineWriter) end() error {
	if l.column == 0 {
		return nil
	}
	l.column = 0
	_, err := l.to.Write([]byte("\n"))
	return err
}
