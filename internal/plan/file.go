package plan

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Write puts the plan into a file, whole or not at all. With overwrite unset
// an existing file is an error (os.ErrExist).
func Write(path string, p *Plan, overwrite bool) error {
	return WriteText(path, Marshal(p), overwrite)
}

// WriteText is Write of a text.
func WriteText(path string, text []byte, overwrite bool) error {
	const everybodyReads = 0o644
	tmp, err := beside(path, text, everybodyReads)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp) }() // after a rename there is nothing left to remove
	if overwrite {
		if err := os.Rename(tmp, path); err != nil {
			return fmt.Errorf("plan file %s: %w", path, err)
		}
		return nil
	}
	// A link fails where a rename would replace.
	if err := os.Link(tmp, path); err != nil {
		if os.IsExist(err) {
			return fmt.Errorf("plan file %s: %w", path, os.ErrExist)
		}
		return fmt.Errorf("plan file %s: %w", path, err)
	}
	return nil
}

// ChangedError is a file that somebody else has changed since it was read.
type ChangedError struct{ File string }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("plan file %s was changed by somebody else meanwhile and was left as it is", e.File)
}

// Replace puts another text into a plan file, whole or not at all, and keeps
// its mode and a link to it. A file that no longer holds what was read is a
// *ChangedError and stays as it is.
func Replace(path string, was, text []byte) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("plan file %s: %w", path, bare(err))
	}
	info, err := os.Stat(real)
	if err != nil {
		return fmt.Errorf("plan file %s: %w", path, bare(err))
	}
	tmp, err := beside(real, text, info.Mode().Perm())
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp) }() // after the rename there is nothing left to remove
	now, err := read(real)
	if err != nil {
		return fmt.Errorf("plan file %s: %w", path, bare(err))
	}
	if !bytes.Equal(now, was) {
		return &ChangedError{File: path}
	}
	if err := os.Rename(tmp, real); err != nil {
		return fmt.Errorf("plan file %s: %w", path, err)
	}
	return nil
}

// beside writes a text into a new file beside another, so that a full disk or
// a kill leaves the old one whole.
func beside(path string, text []byte, mode fs.FileMode) (string, error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".mig-*")
	if err != nil {
		return "", fmt.Errorf("plan file %s: %w", path, bare(err))
	}
	_, err = tmp.Write(text)
	if err == nil {
		err = tmp.Chmod(mode)
	}
	if err == nil {
		err = tmp.Sync()
	}
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
		return "", fmt.Errorf("plan file %s: %w", path, bare(err))
	}
	return tmp.Name(), nil
}

// File is a plan file that is about to be edited: what was read of it, and the
// plan that it holds.
type File struct {
	Path  string
	Text  []byte
	Plan  *Plan // as it is written
	Valid Valid // with its defaults
}

// Open reads a plan file in order to edit it. Errors: *LoadError with
// everything that is wrong.
func Open(path string) (*File, error) {
	text, err := read(path)
	if err != nil {
		return nil, &LoadError{File: path, Err: err}
	}
	p, err := Parse(path, text)
	if err != nil {
		return nil, err
	}
	v, problems := p.Validate()
	if len(problems) > 0 {
		return nil, &LoadError{File: path, Problems: problems}
	}
	return &File{Path: path, Text: text, Plan: p, Valid: v}, nil
}

// Edited is the file's text, brought to say what want says; see Edit.
func (f *File) Edited(want *Plan) ([]byte, error) { return Edit(f.Path, f.Text, want) }

// Save writes another text into the file, unless somebody else has changed it
// since it was read. Errors: *ChangedError.
func (f *File) Save(text []byte) error {
	if bytes.Equal(f.Text, text) {
		return nil
	}
	return Replace(f.Path, f.Text, text)
}
