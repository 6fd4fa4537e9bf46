package command

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/mig-cli/mig/cmd/mig-mover/internal/repository"
	"github.com/mig-cli/mig/cmd/mig-mover/internal/restore"
	"github.com/mig-cli/mig/internal/manifest"
	"github.com/mig-cli/mig/internal/moverlog"
)

const restoreHelp = `Makes the volume equal to a snapshot: fetches what differs, removes what is too much, and puts owners, modes and times right.

A file that is there is taken to have the right content if it has the snapshot's size, time (to the nanosecond), owner and mode;
if only owner or mode differ, its content is compared. A content that changed behind all of these is found with a manifest that
has hashes, or with --paranoid, which read each file. Of the two only hashes tell where the backup itself has missed a change.

Without --manifest, what kopia does not keep is not restored: hard links become copies, FIFOs, sockets and devices are missing,
extended attributes are left as they are, and names that are no UTF-8 are altered. The snapshot says when it left something out.

The volume must be in no one's use. The command may be killed and run again.

Secrets come from files and the environment: the repository's password from --password-file, the keys of the bucket from the
file in AWS_SHARED_CREDENTIALS_FILE, from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or from the machine's role.

On the standard output there is a line of JSON each second ("type":"progress") and a last one ("type":"summary").

`

type restoreFlags struct {
	snapshot, root, manifest, passwordFile, work, summary string
	empty, paranoid                                       bool
	parallel                                              int
	storage                                               repository.Storage
}

func parseRestore(args []string, streams Streams) (restoreFlags, error) {
	var f restoreFlags
	flags := flag.NewFlagSet("restore", flag.ContinueOnError)
	flags.StringVar(&f.snapshot, "snapshot", "", "`ID` of the snapshot, as a PodVolumeBackup names it")
	flags.BoolVar(&f.empty, "empty", false, "instead of a snapshot: remove all, as of a volume that held nothing, of which Velero takes none")
	flags.StringVar(&f.root, "root", "", "`directory` of the volume; a pattern as of a shell's is taken if exactly one directory matches")
	flags.StringVar(&f.summary, "summary", "", "also write the last line, and it alone, to this `file`: what a kubelet keeps of a container that has ended")
	flags.StringVar(&f.manifest, "manifest", "", "`file` with the manifest of the source, in any encoding")
	flags.BoolVar(&f.paranoid, "paranoid", false, "read each file that looks unchanged and compare its content")
	flags.IntVar(&f.parallel, "parallel", 4, "how many files are read and written at once")
	flags.StringVar(&f.passwordFile, "password-file", "", "`file` with the repository's password")
	flags.StringVar(&f.work, "work", "", "`directory` for caches (up to 600 MB), which is not the volume; the system's for temporary files by default")
	flags.StringVar(&f.storage.Path, "path", "", "`directory` of a repository that is not in S3")
	flags.StringVar(&f.storage.Bucket, "bucket", "", "`name` of the bucket")
	flags.StringVar(&f.storage.Prefix, "prefix", "", "`prefix` of the repository in the bucket: that of Velero's location, kopia/ and the namespace, with a slash at the end")
	flags.StringVar(&f.storage.URL, "s3-url", "", "`URL` of the object store; Amazon's by default")
	flags.StringVar(&f.storage.Region, "region", "", "the bucket's region")
	flags.StringVar(&f.storage.Profile, "profile", "", "profile in the file with keys")
	flags.StringVar(&f.storage.CAFile, "ca-file", "", "`file` with certificates that the object store is known by")
	flags.BoolVar(&f.storage.SkipVerify, "insecure-skip-tls-verify", false, "do not check the object store's certificate")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), restoreHelp)
		flags.PrintDefaults()
	}
	if err := parse(flags, args, 0, streams); err != nil {
		return f, err
	}
	switch {
	case f.empty && f.snapshot == "" && f.root != "" && f.parallel > 0:
	case f.empty:
		return f, wrong(streams, "restore", "--empty takes --root and no --snapshot")
	case f.snapshot == "" || f.root == "" || f.passwordFile == "":
		return f, wrong(streams, "restore", "--snapshot, --root and --password-file are needed")
	case (f.storage.Path == "") == (f.storage.Bucket == ""):
		return f, wrong(streams, "restore", "either --bucket or --path is needed")
	case f.parallel < 1:
		return f, wrong(streams, "restore", "--parallel must be 1 or more")
	}
	return f, nil
}

func runRestore(ctx context.Context, args []string, streams Streams) (err error) {
	f, err := parseRestore(args, streams)
	if err != nil {
		return unlessHelp(err)
	}
	began := time.Now()
	options := restore.Options{Paranoid: f.paranoid, Parallel: f.parallel}
	proved := "time"
	if f.manifest != "" {
		var hashed bool
		if options.Manifest, hashed, err = readManifest(f.manifest); err != nil {
			return err
		}
		if hashed {
			proved = "content"
		}
	}
	if f.paranoid {
		proved = "content"
	}
	dir, err := one(f.root)
	if err != nil {
		return err
	}
	taken, contents, done, err := takenOf(ctx, f, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	second := time.NewTicker(time.Second)
	defer second.Stop()
	lines := json.NewEncoder(streams.Out)
	options.Tick = second.C
	// A line that cannot be written is no reason to leave a volume half done.
	options.Report = func(progress restore.Progress) {
		_ = lines.Encode(moverlog.Line{Type: moverlog.TypeProgress, Progress: progress})
	}
	result, err := restore.Run(ctx, contents, taken, dir, options)
	if err != nil {
		return err
	}
	summary := moverlog.Summary{
		Type: moverlog.TypeSummary, Snapshot: f.snapshot, Source: taken.Source, Taken: taken.Taken.UTC(),
		Proved: proved, Seconds: time.Since(began).Seconds(), Result: result,
	}
	if err := tellSummary(lines, f.summary, summary); err != nil {
		return err
	}
	if result.Disagreements > 0 {
		return errDiffers
	}
	return nil
}

// kept is what a kubelet keeps of a container that has ended, and a little less.
const kept = 4000

func tellSummary(lines *json.Encoder, file string, summary moverlog.Summary) error {
	if err := lines.Encode(summary); err != nil || file == "" {
		return err
	}
	line, err := summary.Within(kept)
	if err != nil {
		return err
	}
	return os.WriteFile(file, line, 0o644) //nolint:gosec // others are to read it
}

// takenOf is what the volume shall hold, and where its contents are.
func takenOf(ctx context.Context, f restoreFlags, dir string) (taken *repository.Snapshot, contents restore.Contents, done func() error, err error) {
	if f.empty {
		taken, err := restore.Nothing(ctx, dir)
		return taken, nil, func() error { return nil }, err
	}
	work, err := os.MkdirTemp(f.work, "mig-mover-")
	if err != nil {
		return nil, nil, nil, err
	}
	clean := func() error { return os.RemoveAll(work) }
	opened, err := openRepository(ctx, f, work)
	if err != nil {
		return nil, nil, nil, errors.Join(err, clean())
	}
	done = func() error { return errors.Join(opened.Close(context.WithoutCancel(ctx)), clean()) }
	taken, err = opened.Snapshot(ctx, f.snapshot, 4*f.parallel) // small reads, which wait for the network
	if err != nil {
		return nil, nil, nil, errors.Join(err, done())
	}
	return taken, opened, done, nil
}

func openRepository(ctx context.Context, f restoreFlags, work string) (*repository.Repository, error) {
	password, err := repository.ReadPassword(f.passwordFile)
	if err != nil {
		return nil, err
	}
	storage, err := f.storage.Open(ctx)
	if err != nil {
		return nil, err
	}
	opened, err := repository.Open(ctx, storage, password, work)
	debug.FreeOSMemory() // deriving the key from the password has taken more than the restore will
	return opened, err
}

func readManifest(name string) (entries []manifest.Entry, hashed bool, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, false, err
	}
	defer file.Close()
	entries, reader, err := manifest.ReadAll(file)
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", name, err)
	}
	return entries, reader.Hashed, nil
}
