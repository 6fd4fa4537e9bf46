package restore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mig-cli/mig/cmd/mig-mover/internal/repository"
	"github.com/mig-cli/mig/cmd/mig-mover/internal/volume"
	"github.com/mig-cli/mig/internal/manifest"
	"github.com/mig-cli/mig/internal/moverlog"
)

// Contents opens the contents of files.
type Contents interface {
	Content(ctx context.Context, object string) (io.ReadCloser, error)
}

// Options say how to restore.
type Options struct {
	// Manifest is the source's, or nil. With its hashes the content of every file is proved.
	Manifest []manifest.Entry
	// Paranoid reads each file that looks unchanged, and compares it with the repository's where there is no hash.
	Paranoid bool
	// Parallel is how many files are read and written at once; at least one.
	Parallel int
	// Report is told at each tick how far the work is, from another goroutine. Both may be nil.
	Report func(Progress)
	Tick   <-chan time.Time
}

// Result is what was done, and what is not as it should be.
type Result = moverlog.Result

// keptDisagreements are enough to see what is wrong, and few enough for a log's line.
const keptDisagreements = 20

// Run makes the directory equal to the snapshot. It may be killed at any time and run again: a file has its time only when its
// content is on the disk, and what has another time is written anew. Its errors are those of the repository, of the disk and
// of the context.
func Run(ctx context.Context, contents Contents, taken *repository.Snapshot, dir string, options Options) (Result, error) {
	target, err := volume.Open(dir)
	if err != nil {
		return Result{}, err
	}
	defer target.Close()
	r := &run{contents: contents, volume: target, options: options}
	stop := r.progress.watch(options.Tick, options.Report)
	defer stop()

	r.progress.enter("scan")
	var have []volume.Entry
	if _, err := volume.Scan(ctx, dir, volume.ScanOptions{}, func(entry volume.Entry) error {
		have = append(have, entry)
		return nil
	}); err != nil {
		return Result{}, err
	}
	wants, disagreements := wanted(taken.Root, options.Manifest)
	for _, disagreement := range disagreements {
		r.disagree(disagreement)
	}
	if options.Manifest == nil && taken.Dropped > 0 {
		r.dropped(taken)
	}
	for _, wish := range wants {
		r.result.Entries++
		if wish.HardLink == "" {
			r.result.Bytes += wish.Size
		}
	}
	err = r.carryOut(ctx, decide(wants, have))
	return r.result, err
}

type run struct {
	contents Contents
	volume   *volume.Volume
	options  Options
	progress progress

	mu     sync.Mutex
	result Result
}

func (r *run) disagree(difference manifest.Difference) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Disagreements++
	if len(r.result.First) < keptDisagreements {
		r.result.First = append(r.result.First, difference)
	}
}

// dropped tells what the backup left out and no manifest brings back; of more than a few, kopia knows only how many.
func (r *run) dropped(taken *repository.Snapshot) {
	for i := range taken.Dropped {
		difference := manifest.Difference{Path: manifest.Root, Kind: notInSnapshot}
		if i < len(taken.DroppedPaths) {
			difference.Path = manifest.Text(taken.DroppedPaths[i])
		}
		r.disagree(difference)
	}
}

func (r *run) carryOut(ctx context.Context, p plan) error {
	r.progress.expect(p.write)
	r.progress.expect(slices.DeleteFunc(slices.Clone(p.check), func(file want) bool { return !r.reads(file) }))
	r.progress.enter("remove")
	if err := r.each(ctx, len(p.remove), func(_ context.Context, i int) error {
		count(&r.result.Removed, true)
		return r.volume.Remove(p.remove[i])
	}); err != nil {
		return err
	}
	for _, path := range p.directories { // parents first, so one after the other
		if err := r.volume.MakeDirectory(path); err != nil {
			return err
		}
		r.result.Made++
	}
	r.progress.enter("check")
	again, err := r.check(ctx, p.check)
	if err != nil {
		return err
	}
	p.write = append(p.write, again...)
	p.links = append(p.links, loosened(p.linked, again)...)
	r.progress.enter("write")
	if err := r.write(ctx, p.write); err != nil {
		return err
	}
	r.progress.enter("attributes")
	if err := r.others(ctx, p); err != nil {
		return err
	}
	for _, directory := range p.finish { // deepest first
		if err := r.finish(directory); err != nil {
			return err
		}
	}
	r.progress.enter("sync")
	return r.volume.Sync()
}

// reads says if a file that seems to be as wanted is read nevertheless.
func (r *run) reads(file want) bool { return r.options.Paranoid || file.doubtful || len(file.Hash) > 0 }

// loosened are the names of files that are written after all, and so become other files.
func loosened(linked, written []want) []want {
	anew := map[manifest.Text]bool{}
	for _, wish := range written {
		anew[wish.Path] = true
	}
	var loose []want
	for _, wish := range linked {
		if anew[wish.HardLink] {
			loose = append(loose, wish)
		}
	}
	return loose
}

// check looks at files that seem to be as wanted, and returns those whose contents are not.
func (r *run) check(ctx context.Context, files []want) (wrong []want, err error) {
	var mu sync.Mutex
	err = r.each(ctx, len(files), func(ctx context.Context, i int) error {
		same, err := r.sameContent(ctx, files[i])
		if err != nil {
			return err
		}
		if !same {
			mu.Lock()
			defer mu.Unlock()
			wrong = append(wrong, files[i])
			r.progress.expect(files[i : i+1])
			return nil
		}
		count(&r.result.FilesKept, true)
		changed, err := r.volume.SetAttributes(files[i].Entry, r.options.Manifest != nil)
		count(&r.result.Changed, changed)
		return err
	})
	return wrong, err
}

// sameContent trusts size and time where nothing asks for more.
func (r *run) sameContent(ctx context.Context, file want) (bool, error) {
	if !r.reads(file) {
		return true, nil
	}
	count(&r.result.FilesRead, true)
	defer r.progress.files.Add(1)
	disk, err := r.volume.Read(file.Path)
	if err != nil {
		return false, err
	}
	defer disk.Close()
	have := r.metered(ctx, disk)
	if len(file.Hash) > 0 {
		sum := sha256.New()
		_, err := io.Copy(sum, have)
		return bytes.Equal(sum.Sum(nil), file.Hash), err
	}
	content, err := r.open(ctx, file)
	if err != nil {
		return false, err
	}
	defer content.Close()
	same, err := equal(have, content)
	if err != nil {
		return false, fmt.Errorf("compare %q: %w", string(file.Path), err)
	}
	return same, nil
}

func (r *run) open(ctx context.Context, file want) (io.ReadCloser, error) {
	if file.object == "" {
		return io.NopCloser(bytes.NewReader(nil)), nil
	}
	content, err := r.contents.Content(ctx, file.object)
	if err != nil {
		return nil, fmt.Errorf("content of %q: %w", string(file.Path), err)
	}
	return content, nil
}

// equal compares two contents to their ends.
func equal(a, b io.Reader) (bool, error) {
	const size = 1 << 18
	left, right := make([]byte, size), make([]byte, size)
	for {
		leftCount, leftErr := io.ReadFull(a, left)
		rightCount, rightErr := io.ReadFull(b, right)
		if !bytes.Equal(left[:leftCount], right[:rightCount]) {
			return false, errors.Join(unlessEnd(leftErr), unlessEnd(rightErr))
		}
		if leftErr != nil || rightErr != nil {
			return true, errors.Join(unlessEnd(leftErr), unlessEnd(rightErr))
		}
	}
}

func unlessEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// write writes files anew, and gives each its time once its content is on the disk.
func (r *run) write(ctx context.Context, files []want) error {
	seal := sealer{volume: r.volume}
	err := r.each(ctx, len(files), func(ctx context.Context, i int) error {
		if err := r.writeFile(ctx, files[i]); err != nil {
			return err
		}
		r.progress.files.Add(1)
		return seal.add(files[i])
	})
	if err != nil {
		return err
	}
	return seal.all()
}

// writeFile does not write beside the old file and rename: nobody reads the volume meanwhile, and there may be room for one only.
func (r *run) writeFile(ctx context.Context, file want) error {
	if err := r.volume.Remove(file.Path); err != nil {
		return err
	}
	content, err := r.open(ctx, file)
	if err != nil {
		return err
	}
	defer content.Close()
	disk, err := r.volume.Create(file.Path)
	if err != nil {
		return err
	}
	sum := sha256.New()
	from := r.metered(ctx, content)
	if len(file.Hash) > 0 {
		from = io.TeeReader(from, sum)
	}
	size, err := volume.WriteContent(disk, from, file.Sparse)
	if err = errors.Join(err, disk.Close()); err != nil {
		return fmt.Errorf("write %q: %w", string(file.Path), err)
	}
	if size != file.Size {
		return fmt.Errorf("write %q: the repository has %d bytes of it, and it was %d", string(file.Path), size, file.Size)
	}
	if _, err := r.volume.SetAttributes(file.Entry, r.options.Manifest != nil); err != nil {
		return err
	}
	count(&r.result.FilesWritten, true)
	atomic.AddInt64(&r.result.BytesWritten, size)
	if len(file.Hash) > 0 && !bytes.Equal(sum.Sum(nil), file.Hash) {
		r.disagree(manifest.Difference{
			Path: file.Path, Kind: manifest.OtherContent, Want: fmt.Sprintf("%x", file.Hash), Have: fmt.Sprintf("%x", sum.Sum(nil)),
		})
	}
	return nil
}

// others makes and mends what is neither file nor directory, and the further names of files.
func (r *run) others(ctx context.Context, p plan) error {
	if err := r.each(ctx, len(p.make), func(_ context.Context, i int) error {
		wish := p.make[i]
		count(&r.result.Made, true)
		if wish.Type == manifest.Symlink {
			return r.volume.MakeSymlink(wish.Path, wish.Target)
		}
		return r.volume.MakeSpecial(wish.Entry)
	}); err != nil {
		return err
	}
	if err := r.each(ctx, len(p.make)+len(p.attributes), func(_ context.Context, i int) error {
		if i < len(p.make) {
			_, err := r.mend(p.make[i])
			return err
		}
		changed, err := r.mend(p.attributes[i-len(p.make)])
		count(&r.result.Changed, changed)
		return err
	}); err != nil {
		return err
	}
	return r.each(ctx, len(p.links), func(_ context.Context, i int) error {
		count(&r.result.Linked, true)
		if err := r.volume.Remove(p.links[i].Path); err != nil {
			return err
		}
		return r.volume.MakeLink(p.links[i].HardLink, p.links[i].Path)
	})
}

func (r *run) mend(wish want) (changed bool, err error) {
	changed, err = r.volume.SetAttributes(wish.Entry, r.options.Manifest != nil)
	if err != nil {
		return changed, err
	}
	late, err := r.volume.SetTime(wish.Path, wish.MTime)
	return changed || late, err
}

func (r *run) finish(directory want) error {
	changed, err := r.mend(directory)
	count(&r.result.Changed, changed)
	return err
}

// each calls for all numbers below count, several at once, until one fails or the context ends.
func (r *run) each(ctx context.Context, count int, call func(ctx context.Context, i int) error) error {
	group, all := errgroup.WithContext(ctx)
	group.SetLimit(max(r.options.Parallel, 1))
	for i := range count {
		if all.Err() != nil {
			break
		}
		group.Go(func() error {
			if err := all.Err(); err != nil {
				return err
			}
			return call(all, i)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

func count(counter *int64, when bool) {
	if when {
		atomic.AddInt64(counter, 1)
	}
}

// sealer gives files their times after what was written is on the disk. It does so for many files at once, because each look
// after the disk takes long, and not for all at the end, because what has no time yet is written again after a kill.
type sealer struct {
	volume  *volume.Volume
	mu      sync.Mutex
	pending []want
	bytes   int64
}

const (
	sealBytes = 1 << 30
	sealFiles = 4096
)

func (s *sealer) add(file want) error {
	s.mu.Lock()
	s.pending = append(s.pending, file)
	s.bytes += file.Size
	full := s.bytes >= sealBytes || len(s.pending) >= sealFiles
	s.mu.Unlock()
	if !full {
		return nil
	}
	return s.all()
}

func (s *sealer) all() error {
	s.mu.Lock()
	files := s.pending
	s.pending, s.bytes = nil, 0
	s.mu.Unlock()
	if len(files) == 0 {
		return nil
	}
	if err := s.volume.Sync(); err != nil {
		return err
	}
	for _, file := range files {
		if _, err := s.volume.SetTime(file.Path, file.MTime); err != nil {
			return err
		}
	}
	return nil
}
