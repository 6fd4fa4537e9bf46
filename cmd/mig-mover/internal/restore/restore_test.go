package restore_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mig-cli/mig/cmd/mig-mover/internal/repository"
	"github.com/mig-cli/mig/cmd/mig-mover/internal/repotest"
	"github.com/mig-cli/mig/cmd/mig-mover/internal/restore"
	"github.com/mig-cli/mig/cmd/mig-mover/internal/volume"
	"github.com/mig-cli/mig/internal/manifest"
)

// sh does to a directory what a user would, with the tools that a user has.
func sh(t *testing.T, dir, script string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", "-euc", script)
	command.Dir = dir
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, output)
	}
}

func scan(t *testing.T, dir string, hash bool) []manifest.Entry {
	t.Helper()
	var entries []manifest.Entry
	if _, err := volume.Scan(t.Context(), dir, volume.ScanOptions{Hash: hash, Parallel: 2}, func(entry volume.Entry) error {
		entries = append(entries, entry.Entry)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return entries
}

func each(entries []manifest.Entry) iter.Seq2[manifest.Entry, error] {
	return func(yield func(manifest.Entry, error) bool) {
		for _, entry := range entries {
			if !yield(entry, nil) {
				return
			}
		}
	}
}

// differences are those between two directories, contents and all.
func differences(t *testing.T, want, have string, ignore ...manifest.Kind) []manifest.Difference {
	t.Helper()
	report, err := manifest.Compare(each(scan(t, want, true)), each(scan(t, have, true)), 20, ignore...)
	if err != nil {
		t.Fatal(err)
	}
	return report.Differences
}

func restoreInto(t *testing.T, opened *repository.Repository, id, dir string, options restore.Options) restore.Result {
	t.Helper()
	taken, err := opened.Snapshot(t.Context(), id, 4)
	if err != nil {
		t.Fatal(err)
	}
	options.Parallel = 3
	result, err := restore.Run(t.Context(), opened, taken, dir, options)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// restoreLast backs the source up and restores that.
func restoreLast(t *testing.T, repo *repotest.Repository, source, dir string, options restore.Options) restore.Result {
	t.Helper()
	id := repo.Snapshot(t, source)
	return restoreInto(t, repo.Open(t), id, dir, options)
}

// base has what volumes have, and what backup tools lose. Times are old, so that a time that was not restored shows.
const base = `
mkdir -p data/deep/er empty other
echo one > data/one; echo two > data/two; echo three > data/deep/three
head -c 300000 /dev/urandom > data/large
printf '' > data/nothing
ln -s one data/link; ln -s /nowhere/at/all data/dangling; ln -s ../.. other/up
echo hard > data/hard; ln data/hard data/hard2; ln data/hard other/hard3
mkfifo data/fifo
truncate -s 10M data/sparse; echo middle | dd of=data/sparse bs=1 seek=5000000 conv=notrunc status=none
echo odd > $'data/a\nb "c" \\ <&> \xe2\x80\xa8'; echo latin > $'data/caf\xe9'; echo latin > $'data/caf\xe8'; mkdir $'other/\xff'; echo in > $'other/\xff/\xfe'
echo setuid > data/setuid; chmod 4755 data/setuid; chmod 1777 empty; chmod 2770 other
setfattr -n user.color -v blue data/one 2>/dev/null || python3 -c 'import os; os.setxattr("data/one","user.color",b"blue"); os.setxattr("data","user.dir",b"\x00\xff")'
[ $UID != 0 ] || { chown -h 1000:1001 data/link; chown 999:999 data/two data/deep; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("data/socket")'; mknod data/device c 1 3; }
find . -depth -exec touch -h -d '2020-02-03T04:05:06.123456789Z' {} +
`

func newSource(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	sh(t, dir, base)
	return dir
}

// copyOf is a directory with all that the other has, down to names of one file and the times of links.
func copyOf(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	sh(t, dir, "cp -a . "+to)
	return to
}

func TestARestoreIsExact(t *testing.T) {
	source, target := newSource(t), t.TempDir()
	repo := repotest.New(t)
	id := repo.Snapshot(t, source)
	opened := repo.Open(t)
	for name, hash := range map[string]bool{"with hashes": true, "without": false} {
		result := restoreInto(t, opened, id, target, restore.Options{Manifest: scan(t, source, hash)})
		if found := differences(t, source, target); len(found) > 0 || result.Disagreements > 0 {
			t.Errorf("%s: differences %+v, result %+v", name, found, result)
		}
		sh(t, target, "rm -r -- *")
	}
}

// What differs after a restore without a manifest is exactly what a snapshot does not have.
func TestWithoutAManifestOnlyWhatKopiaDropsIsMissing(t *testing.T) {
	source, target := newSource(t), t.TempDir()
	repo := repotest.New(t)
	result := restoreLast(t, repo, source, target, restore.Options{})
	for _, found := range differences(t, source, target) {
		dropped := map[manifest.Text]bool{"data/fifo": true, "data/socket": true, "data/device": true}
		switch {
		case found.Kind == manifest.OtherHardLink, found.Kind == manifest.OtherXattr:
		case found.Kind == manifest.Missing && dropped[found.Path]:
		case strings.ContainsRune(string([]rune(string(found.Path))), '\uFFFD'):
		default:
			t.Errorf("%+v", found)
		}
	}
	if result.Disagreements == 0 {
		t.Errorf("nothing was said of what the snapshot lacks: %+v", result)
	}
}

// changes are what happens to a source between two backups.
var changes = map[string]string{
	"nothing":                      ``,
	"content":                      `echo four > data/one`,
	"a flipped byte in the middle": `printf X | dd of=data/large bs=1 seek=150000 conv=notrunc status=none`,
	"a byte more":                  `echo >> data/one`,
	"a file cut off":               `truncate -s 100 data/large`,
	"a file emptied":               `: > data/one`,
	"a new file":                   `echo new > data/new`,
	"a new tree":                   `mkdir -p new/tree; echo new > new/tree/file`,
	"a deleted file":               `rm data/one`,
	"a deleted tree":               `rm -r data`,
	"all deleted":                  `rm -r -- *`,
	"a renamed file":               `mv data/one data/uno`,
	"a renamed directory":          `mv data date`,
	"two files swapped":            `mv data/one x; mv data/two data/one; mv x data/two`,
	"a file becomes a directory":   `rm data/one; mkdir data/one; echo in > data/one/file`,
	"a directory becomes a file":   `rm -r data/deep; echo file > data/deep`,
	"a file becomes a link":        `rm data/one; ln -s two data/one`,
	"a link becomes a file":        `rm data/link; echo file > data/link`,
	"a link becomes a directory":   `rm other/up; mkdir other/up; echo in > other/up/file`,
	"a directory becomes a link":   `mv data/deep data/deeper; ln -s deeper data/deep`,
	"a file becomes a FIFO":        `rm data/one; mkfifo data/one`,
	"a FIFO becomes a file":        `rm data/fifo; echo file > data/fifo`,
	"a link's target":              `ln -sfn two data/link`,
	"a link's time":                `touch -h -d 2021-01-01T00:00:00.000000001Z data/link`,
	"a mode":                       `chmod 600 data/one`,
	"a directory's mode":           `chmod 700 data/deep`,
	"a closed directory":           `chmod 0 data/deep`,
	"a file that none may read":    `chmod 0 data/one`,
	"setuid taken":                 `chmod 755 data/setuid`,
	"a time":                       `touch -d 2021-01-01T00:00:00.000000001Z data/one`,
	"a nanosecond":                 `touch -d 2020-02-03T04:05:06.123456788Z data/one`,
	"a time before 1970":           `touch -d 1960-01-01T00:00:00.000000001Z data/one`,
	"a directory's time":           `touch -d 2021-01-01T00:00:00.000000001Z data/deep`,
	"the volume's time and mode":   `chmod 711 .; touch -d 2021-01-01T00:00:00.000000001Z .`,
	"a new name of a file":         `ln data/one data/one2`,
	"a first name of a file":       `ln data/hard data/ahard`,
	"a name of a file goes":        `rm data/hard2`,
	"the first name goes":          `rm data/hard`,
	"a name becomes a file":        `cp -p data/hard2 x; mv x data/hard2`,
	"a file with names changes":    `echo changed > data/hard`,
	"one name changes alone":       `rm data/hard2; echo changed > data/hard2`,
	"files change names":           `rm data/hard2; ln data/one data/hard2`,
	"a mode of a file with names":  `chmod 640 data/hard3 2>/dev/null || chmod 640 other/hard3`,
	"an attribute":                 `python3 -c 'import os; os.setxattr("data/two","user.new",b"x"); os.setxattr("data/one","user.color",b"red")'`,
	"an attribute goes":            `python3 -c 'import os; os.removexattr("data/one","user.color")'`,
	"an access list":               `python3 -c 'import os,struct; os.setxattr("data/two","system.posix_acl_access",struct.pack("<I",2)+b"".join(struct.pack("<HHI",*e) for e in [(1,6,0xffffffff),(2,4,1234),(4,4,0xffffffff),(16,4,0xffffffff),(32,0,0xffffffff)]))'`,
	"a default access list":        `python3 -c 'import os,struct; os.setxattr("data","system.posix_acl_default",struct.pack("<I",2)+b"".join(struct.pack("<HHI",*e) for e in [(1,7,0xffffffff),(2,7,1234),(4,5,0xffffffff),(16,7,0xffffffff),(32,0,0xffffffff)]))'; echo new > data/new`,
	"a sparse file grows":          `truncate -s 20M data/sparse`,
	"a hole is filled":             `dd if=/dev/urandom of=data/sparse bs=4096 count=2 conv=notrunc status=none`,
	"a name of 255 bytes":          `echo long > $(printf 'x%.0s' {1..255})`,
	"a deep tree":                  `d=. ; for i in {1..60}; do d=$d/directory-$i; done; mkdir -p $d; echo deep > $d/file`,
	"many files":                   `mkdir many; for i in {1..300}; do echo $i > many/$i; done`,
	"what Velero leaves":           `mkdir .velero; echo > .velero/0000-1111`,
	"a directory that is a cache":  `mkdir cache; printf 'Signature: 8a477f597d28d172789f06886806bc55\n' > keep`,
}

// asRoot are changes that others may not make.
var asRoot = map[string]string{
	"an owner":             `chown 1234 data/one`,
	"a group":              `chgrp 1234 data/one`,
	"a link's owner":       `chown -h 1234:1234 data/link`,
	"a directory's owner":  `chown 1234:1234 data/deep`,
	"the volume's owner":   `chown 1234:1234 .`,
	"owner of setuid":      `chown 1234:1234 data/setuid; chmod 4755 data/setuid`,
	"another device":       `rm data/device; mknod data/device b 7 300`,
	"a capability":         `python3 -c 'import os,struct; os.setxattr("data/two","security.capability",struct.pack("<IIIII",0x02000001,1<<10,0,0,0))'; `,
	"capability and owner": `chown 1234 data/two; python3 -c 'import os,struct; os.setxattr("data/two","security.capability",struct.pack("<IIIII",0x02000001,1<<10,0,0,0))'`,
}

func allChanges() map[string]string {
	all := map[string]string{}
	maps.Copy(all, changes)
	if os.Getuid() == 0 {
		maps.Copy(all, asRoot)
	}
	return all
}

// The source changes between two backups, and the volume follows; where nothing differs, nothing is done.
func TestEachChangeIsRestored(t *testing.T) {
	repo, before := repotest.New(t), newSource(t)
	type state struct {
		dir, id string
		entries []manifest.Entry
	}
	take := func(dir string) state { return state{dir, repo.Snapshot(t, dir), scan(t, dir, false)} }
	first, after := take(before), map[string]state{}
	for name, script := range allChanges() {
		source := copyOf(t, before)
		repo.Follow(source, before)
		sh(t, source, script)
		after[name] = take(source)
	}
	opened := repo.Open(t)
	for name, changed := range after {
		t.Run(name, func(t *testing.T) {
			target := t.TempDir()
			restoreInto(t, opened, first.id, target, restore.Options{Manifest: first.entries})
			result := restoreInto(t, opened, changed.id, target, restore.Options{Manifest: changed.entries})
			if found := differences(t, changed.dir, target); len(found) > 0 || result.Disagreements > 0 {
				t.Fatalf("differences %+v, result %+v", found, result)
			}
			again := restoreInto(t, opened, changed.id, target, restore.Options{Manifest: changed.entries})
			if again.FilesWritten+again.Made+again.Linked+again.Removed+again.Changed != 0 {
				t.Errorf("nothing differed, and yet: %+v", again)
			}
		})
	}
}

// What happened to the volume itself is undone: with the same changes, the volume is brought back.
func TestWhatTheVolumeHasBesidesIsUndone(t *testing.T) {
	source := newSource(t)
	repo := repotest.New(t)
	id, entries := repo.Snapshot(t, source), scan(t, source, false)
	opened := repo.Open(t)
	for name, script := range allChanges() {
		t.Run(name, func(t *testing.T) {
			target := t.TempDir()
			restoreInto(t, opened, id, target, restore.Options{Manifest: entries})
			sh(t, target, script)
			result := restoreInto(t, opened, id, target, restore.Options{Manifest: entries})
			if found := differences(t, source, target); len(found) > 0 || result.Disagreements > 0 {
				t.Errorf("differences %+v, result %+v", found, result)
			}
		})
	}
}

// kopia's own incremental restore takes files for equal whose times differ by less than two seconds.
func TestAFileWrittenTwiceWithinTwoSecondsIsRestored(t *testing.T) {
	for name, options := range map[string]restore.Options{"plain": {}, "paranoid": {Paranoid: true}} {
		source, target := t.TempDir(), t.TempDir()
		repo := repotest.New(t)
		sh(t, source, `echo before > file; touch -d 2020-01-01T00:00:00.000000000Z file`)
		restoreLast(t, repo, source, target, options)
		sh(t, source, `echo AFTER_ > file; touch -d 2020-01-01T00:00:00.000000001Z file`)
		restoreLast(t, repo, source, target, options)
		if found := differences(t, source, target); len(found) > 0 {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// kopia's own incremental restore does not look at owner and mode of a file whose size and time are the same.
func TestAFileOfWhichOnlyModeOrOwnerChangedIsRestored(t *testing.T) {
	source, target := t.TempDir(), t.TempDir()
	repo := repotest.New(t)
	sh(t, source, `echo same > mode; echo same > owner`)
	restoreLast(t, repo, source, target, restore.Options{})
	sh(t, source, `chmod 4711 mode; [ $UID != 0 ] || chown 1234:2345 owner`)
	result := restoreLast(t, repo, source, target, restore.Options{})
	if found := differences(t, source, target); len(found) > 0 {
		t.Errorf("%+v", found)
	}
	if result.FilesWritten != 0 || result.FilesKept != 2 {
		t.Errorf("contents were fetched again for a mode and an owner: %+v", result)
	}
}

// Size and time are the same and the content is not: what plain mode cannot see, and what finds it.
func TestAContentThatHidesBehindItsTime(t *testing.T) {
	source, target := newSource(t), t.TempDir()
	repo := repotest.New(t)
	id := repo.Snapshot(t, source)
	hide := `for f in data/one data/hard; do touch -r $f ref; printf X | dd of=$f bs=1 conv=notrunc status=none; touch -r ref $f; done; rm ref`
	opened := repo.Open(t)
	for name, test := range map[string]struct {
		options restore.Options
		found   bool
	}{
		"plain":                {restore.Options{Manifest: scan(t, source, false)}, false},
		"paranoid":             {restore.Options{Manifest: scan(t, source, false), Paranoid: true}, true},
		"hashes":               {restore.Options{Manifest: scan(t, source, true)}, true},
		"paranoid with hashes": {restore.Options{Manifest: scan(t, source, true), Paranoid: true}, true},
	} {
		restoreInto(t, opened, id, target, restore.Options{Manifest: scan(t, source, false)})
		sh(t, target, hide)
		result := restoreInto(t, opened, id, target, test.options)
		found := differences(t, source, target)
		if (len(found) == 0) != test.found {
			t.Errorf("%s: differences %+v, result %+v", name, found, result)
		}
		if test.found && (result.FilesWritten != 2 || result.Linked != 2) {
			t.Errorf("%s: not only what was wrong was written: %+v", name, result)
		}
		sh(t, target, "rm -r -- *")
	}
}

// The backup itself can miss a content that hides behind its time; the source's hashes tell.
func TestAContentThatTheBackupMissedIsTold(t *testing.T) {
	source, target := newSource(t), t.TempDir()
	repo := repotest.New(t)
	repo.Snapshot(t, source)
	sh(t, source, `touch -r data/large ref; printf X | dd of=data/large bs=1 seek=1000 conv=notrunc status=none; touch -r ref data/large; rm ref; touch -d '2020-02-03T04:05:06.123456789Z' .`)
	result := restoreLast(t, repo, source, target, restore.Options{Manifest: scan(t, source, true)})
	if result.Disagreements != 1 || result.First[0].Kind != manifest.OtherContent || result.First[0].Path != "data/large" {
		t.Errorf("got %+v", result)
	}
}

// kopia leaves out directories that are tagged as caches, and what a .kopiaignore names. That is data to its owner.
func TestWhatTheBackupLeftOutIsTold(t *testing.T) {
	source, target := newSource(t), t.TempDir()
	sh(t, source, `mkdir cache; printf 'Signature: 8a477f597d28d172789f06886806bc55\n' > cache/CACHEDIR.TAG; echo data > cache/file; echo ignored > ignored; echo ignored > .kopiaignore`)
	repo := repotest.New(t)
	result := restoreLast(t, repo, source, target, restore.Options{Manifest: scan(t, source, false)})
	var told []string
	for _, difference := range result.First {
		told = append(told, string(difference.Path)+" "+string(difference.Kind))
	}
	if want := []string{"cache/file not-in-snapshot", "ignored not-in-snapshot"}; !containsAll(told, want) {
		t.Errorf("got %q, want %q among them", told, want)
	}
}

func containsAll(list, of []string) bool {
	for _, one := range of {
		if !slices.Contains(list, one) {
			return false
		}
	}
	return true
}

// A symlink of the volume's that leads out of it is not followed, whatever the snapshot has in its place.
func TestNothingOutsideTheVolumeIsTouched(t *testing.T) {
	source, target, outside := t.TempDir(), t.TempDir(), t.TempDir()
	sh(t, source, `mkdir dir; echo in > dir/file; echo in > file; mkdir -p gone`)
	sh(t, outside, `echo out > file; mkdir sub; echo out > sub/file`)
	before := scan(t, outside, true)
	sh(t, target, fmt.Sprintf(`ln -s %[1]s dir; ln -s %[1]s/file file; ln -s %[1]s extra; mkdir away; ln -s %[1]s/sub away/sub`, outside))
	repo := repotest.New(t)
	restoreLast(t, repo, source, target, restore.Options{})
	if found := differences(t, source, target); len(found) > 0 {
		t.Errorf("%+v", found)
	}
	report, err := manifest.Compare(each(before), each(scan(t, outside, true)), 9)
	if err != nil || !report.Equal() {
		t.Errorf("outside: %+v, %v", report, err)
	}
}

func TestLostAndFoundIsLeftAlone(t *testing.T) {
	source, target := t.TempDir(), t.TempDir()
	sh(t, source, `mkdir lost+found sub; echo a > file; mkdir sub/lost+found`)
	sh(t, target, `mkdir -m 700 lost+found; echo found > lost+found/1; mkdir -p sub/lost+found; echo extra > sub/lost+found/2`)
	repo := repotest.New(t)
	restoreLast(t, repo, source, target, restore.Options{Manifest: scan(t, source, false)})
	sh(t, target, `[ "$(cat lost+found/1)" = found ]; [ ! -e sub/lost+found/2 ]; [ "$(cat file)" = a ]`)
}

func TestSparseFilesStaySparse(t *testing.T) {
	source := t.TempDir()
	sh(t, source, `truncate -s 30M hole; echo x | dd of=hole bs=1 seek=20000000 conv=notrunc status=none; dd if=/dev/zero of=full bs=1M count=5 status=none; truncate -s 5000 odd; echo end >> odd`)
	repo := repotest.New(t)
	id := repo.Snapshot(t, source)
	for name, options := range map[string]restore.Options{"plain": {}, "manifest": {Manifest: scan(t, source, false)}} {
		target := t.TempDir()
		restoreInto(t, repo.Open(t), id, target, options)
		if found := differences(t, source, target); len(found) > 0 {
			t.Errorf("%s: %+v", name, found)
		}
		if taken := allocated(t, target, "hole"); taken > 1<<20 {
			t.Errorf("%s: a file with 6 bytes in 30 MB takes %d", name, taken)
		}
		// A database that fills its files with zeros first does so to have the room.
		if taken := allocated(t, target, "full"); name == "manifest" && taken < 5<<20 {
			t.Errorf("%s: 5 MB of written zeros take %d", name, taken)
		}
	}
}

func allocated(t *testing.T, dir, name string) int64 {
	t.Helper()
	var stat unix.Stat_t
	if err := unix.Stat(filepath.Join(dir, name), &stat); err != nil {
		t.Fatal(err)
	}
	return stat.Blocks * 512
}

// interrupted hands out contents until so many reads were made, and then calls.
type interrupted struct {
	restore.Contents
	left atomic.Int64
	call func()
}

func (i *interrupted) Content(ctx context.Context, object string) (io.ReadCloser, error) {
	content, err := i.Contents.Content(ctx, object)
	if err != nil {
		return nil, err
	}
	return interruptedReader{content, i}, nil
}

type interruptedReader struct {
	io.ReadCloser
	by *interrupted
}

func (r interruptedReader) Read(to []byte) (int, error) {
	if r.by.left.Add(-1) == 0 {
		r.by.call()
	}
	return r.ReadCloser.Read(to[:min(len(to), 20000)])
}

// killedAfter names, for the test's own program, after how many reads it is to kill itself; see TestMain.
const killedAfter = "MOVER_TEST_KILLED_AFTER"

// TestMain is the test's program; asked to, it is a mover that is killed in the middle.
func TestMain(m *testing.M) {
	after, err := strconv.Atoi(os.Getenv(killedAfter))
	if err != nil {
		os.Exit(m.Run())
	}
	if err := restoreUntilKilled(after, os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func restoreUntilKilled(after int, repo, id, dir string) error {
	ctx := context.Background()
	storage, err := repository.Storage{Path: repo}.Open(ctx)
	if err != nil {
		return err
	}
	opened, err := repository.Open(ctx, storage, repotest.Password, os.Getenv("TMPDIR"))
	if err != nil {
		return err
	}
	taken, err := opened.Snapshot(ctx, id, 2)
	if err != nil {
		return err
	}
	contents := &interrupted{Contents: opened, call: func() { _ = unix.Kill(os.Getpid(), unix.SIGKILL) }}
	contents.left.Store(int64(after))
	_, err = restore.Run(ctx, contents, taken, dir, restore.Options{Parallel: 2})
	return err
}

// A mover that was killed, again and again and each time further on, ends right when it is left to end.
func TestARestoreThatWasKilledEndsRight(t *testing.T) {
	source, target := newSource(t), t.TempDir()
	repo := repotest.New(t)
	first, entries := repo.Snapshot(t, source), scan(t, source, false)
	restoreInto(t, repo.Open(t), first, target, restore.Options{Manifest: entries})
	sh(t, source, `for f in data/one data/two data/large data/hard; do echo more >> $f; done; rm -r data/deep; mkdir data/new; for i in {1..40}; do head -c 30000 /dev/urandom > data/new/$i; done`)
	id, entries := repo.Snapshot(t, source), scan(t, source, true)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	kills := 0
	for _, after := range []int{1, 2, 5, 20, 60, 100000} {
		command := exec.CommandContext(t.Context(), program, repo.Path, id, target)
		command.Env = append(os.Environ(), fmt.Sprint(killedAfter, "=", after), "TMPDIR="+t.TempDir())
		output, err := command.CombinedOutput()
		if err != nil && command.ProcessState.ExitCode() != -1 {
			t.Fatalf("%v\n%s", err, output)
		}
		if err != nil {
			kills++
		}
	}
	if kills < 3 {
		t.Errorf("it was killed only %d times", kills)
	}
	result := restoreInto(t, repo.Open(t), id, target, restore.Options{Manifest: entries})
	if found := differences(t, source, target); len(found) > 0 || result.Disagreements > 0 {
		t.Errorf("differences %+v, result %+v", found, result)
	}
}

// One that was told to stop says so, and a later one ends right without fetching all again.
func TestARestoreThatWasCancelledEndsRight(t *testing.T) {
	source, target := newSource(t), t.TempDir()
	repo := repotest.New(t)
	id := repo.Snapshot(t, source)
	opened := repo.Open(t)
	for after := int64(1); ; after += 3 {
		ctx, cancel := context.WithCancel(t.Context())
		taken, err := opened.Snapshot(ctx, id, 2)
		if err != nil {
			t.Fatal(err)
		}
		contents := &interrupted{Contents: opened, call: cancel}
		contents.left.Store(after)
		_, err = restore.Run(ctx, contents, taken, target, restore.Options{Parallel: 2, Manifest: scan(t, source, false)})
		cancelled := ctx.Err() != nil
		cancel()
		if err == nil && !cancelled {
			break
		}
		if err != nil && !cancelled {
			t.Fatal(err)
		}
	}
	if found := differences(t, source, target); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}

// An unlucky end of the machine leaves a file whose size is right and whose content is not on the disk. It must not have its time.
func TestAFileHasItsTimeOnlyWhenAllWasWritten(t *testing.T) {
	source, target := t.TempDir(), t.TempDir()
	sh(t, source, `for i in {1..20}; do head -c 50000 /dev/urandom > $i; done; touch -d 2020-01-01T00:00:00Z *`)
	repo := repotest.New(t)
	id := repo.Snapshot(t, source)
	opened := repo.Open(t)
	taken, err := opened.Snapshot(t.Context(), id, 2)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	contents := &interrupted{Contents: opened, call: cancel}
	contents.left.Store(31) // some are written, and nothing was synced
	if _, err := restore.Run(ctx, contents, taken, target, restore.Options{Parallel: 1}); err == nil {
		t.Fatal("it was not cancelled")
	}
	written := 0
	for _, entry := range scan(t, target, false)[1:] {
		written++
		if entry.MTime == time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano() {
			t.Errorf("%s has the source's time, and its content may not be on the disk", entry.Path)
		}
	}
	if written < 2 {
		t.Errorf("only %d files were begun", written)
	}
}

func TestProgressIsTold(t *testing.T) {
	source, target := newSource(t), t.TempDir()
	repo := repotest.New(t)
	id := repo.Snapshot(t, source)
	opened := repo.Open(t)
	tick := make(chan time.Time)
	var told []restore.Progress
	contents := &interrupted{Contents: opened, call: func() {
		tick <- time.Unix(10, 0)
		tick <- time.Unix(11, 0)
		tick <- time.Unix(12, 0) // which is taken when the one before has been told
	}}
	contents.left.Store(10)
	taken, err := opened.Snapshot(t.Context(), id, 2)
	if err != nil {
		t.Fatal(err)
	}
	result, err := restore.Run(t.Context(), contents, taken, target, restore.Options{
		Parallel: 1, Tick: tick, Report: func(progress restore.Progress) { told = append(told, progress) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(told) < 2 || told[0].Phase != "write" || told[0].TotalBytes != result.BytesWritten || told[0].TotalFiles != result.FilesWritten ||
		told[0].Bytes <= 0 || told[0].Rate != 0 || told[1].Rate != told[1].Bytes-told[0].Bytes {
		t.Errorf("got %+v of %+v", told, result)
	}
}

// A repository that breaks in the middle is an error, and no file that is half there passes for whole.
func TestABrokenRepositoryIsAnError(t *testing.T) {
	source, target := t.TempDir(), t.TempDir()
	sh(t, source, `head -c 3000000 /dev/urandom > large; echo small > small`)
	repo := repotest.New(t)
	id := repo.Snapshot(t, source)
	opened := repo.Open(t)
	taken, err := opened.Snapshot(t.Context(), id, 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := restore.Run(t.Context(), short{opened}, taken, target, restore.Options{Parallel: 2}); err == nil || !strings.Contains(err.Error(), "the repository has") {
		t.Errorf("a content that was too short: %v", err)
	}
	result := restoreInto(t, opened, id, target, restore.Options{})
	if found := differences(t, source, target); len(found) > 0 {
		t.Errorf("afterwards: %+v, %+v", found, result)
	}
}

// short cuts contents off, as a stream does that ends too early without saying so.
type short struct{ restore.Contents }

func (s short) Content(ctx context.Context, object string) (io.ReadCloser, error) {
	content, err := s.Contents.Content(ctx, object)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	all, err := io.ReadAll(content)
	return io.NopCloser(bytes.NewReader(all[:len(all)/2])), err
}
