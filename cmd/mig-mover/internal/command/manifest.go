package command

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mig-cli/mig/cmd/mig-mover/internal/volume"
	"github.com/mig-cli/mig/internal/manifest"
)

func runManifest(ctx context.Context, args []string, streams Streams) error {
	flags := flag.NewFlagSet("manifest", flag.ContinueOnError)
	root := flags.String("root", "", "`directory` of the volume; a pattern as of a shell's is taken if exactly one directory matches")
	hash := flags.Bool("hash", false, "also read all contents and write down their SHA-256")
	encoding := flags.String("encoding", string(manifest.Plain), "plain, gzip, or base64 for logs")
	out := flags.String("out", "-", "`file` to write to; - is the standard output")
	parallel := flags.Int("parallel", 4, "how many files are read at once")
	summary := flags.String("summary", "", "also write the last line, and it alone, to this `file`: what a kubelet keeps of a container that has ended")
	if err := parse(flags, args, 0, streams); err != nil {
		return unlessHelp(err)
	}
	if *root == "" {
		return wrong(streams, "manifest", "--root is missing")
	}
	if !slices.Contains([]manifest.Encoding{manifest.Plain, manifest.Gzip, manifest.Base64}, manifest.Encoding(*encoding)) {
		return wrong(streams, "manifest", "--encoding %s: plain, gzip or base64", *encoding)
	}
	dir, err := one(*root)
	if err != nil {
		return err
	}
	to, done, err := output(*out, streams)
	if err != nil {
		return err
	}
	last, err := writeManifest(ctx, to, dir, manifest.Encoding(*encoding), volume.ScanOptions{Hash: *hash, Parallel: *parallel})
	if err := errors.Join(err, done()); err != nil || *summary == "" {
		return err
	}
	line, err := json.Marshal(last)
	if err != nil {
		return err
	}
	return os.WriteFile(*summary, line, 0o644) //nolint:gosec // others are to read it
}

// one is the one directory that a pattern matches, or that it names as it is.
func one(pattern string) (string, error) {
	if _, err := os.Lstat(pattern); err == nil {
		return pattern, nil
	}
	found, err := filepath.Glob(pattern)
	if err != nil {
		return "", fmt.Errorf("%s: %w", pattern, err)
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%s: %d directories match, want one", pattern, len(found))
	}
	return found[0], nil
}

func writeManifest(ctx context.Context, to io.Writer, root string, encoding manifest.Encoding, options volume.ScanOptions) (manifest.Summary, error) {
	writer, err := manifest.NewWriter(to, encoding, options.Hash)
	if err != nil {
		return manifest.Summary{}, err
	}
	gone, err := volume.Scan(ctx, root, options, func(entry volume.Entry) error { return writer.Add(entry.Entry) })
	if err != nil {
		return manifest.Summary{}, err // and no last line, by which a reader knows
	}
	for range gone {
		writer.Gone()
	}
	return writer.Close()
}

// output is a file or the standard output. A manifest that is not whole has no last line.
func output(name string, streams Streams) (to io.Writer, done func() error, err error) {
	if name == "-" {
		return streams.Out, func() error { return nil }, nil
	}
	file, err := os.Create(name)
	if err != nil {
		return nil, nil, err
	}
	return file, file.Close, nil
}

type comparison struct {
	Type     string                  `json:"type"` // summary
	Equal    bool                    `json:"equal"`
	Entries  int64                   `json:"entries"`
	Contents int64                   `json:"contentsCompared"`
	Counts   map[manifest.Kind]int64 `json:"differences"`
}

type difference struct {
	Type string `json:"type"` // difference
	manifest.Difference
}

func runCompare(args []string, streams Streams) error {
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	limit := flags.Int("limit", 100, "how many differences are told; all are counted")
	ignore := flags.String("ignore", "", "`kinds` of differences that do not count, with commas")
	if err := parse(flags, args, 2, streams); err != nil {
		return unlessHelp(err)
	}
	kinds, err := parseKinds(*ignore)
	if err != nil {
		return wrong(streams, "compare", "--ignore: %v", err)
	}
	want, wanted, err := openManifest(flags.Arg(0))
	if err != nil {
		return err
	}
	defer wanted.Close()
	have, had, err := openManifest(flags.Arg(1))
	if err != nil {
		return err
	}
	defer had.Close()
	report, err := manifest.Compare(want.Entries(), have.Entries(), *limit, kinds...)
	if err != nil {
		return err
	}
	lines := json.NewEncoder(streams.Out)
	for _, found := range report.Differences {
		if err := lines.Encode(difference{"difference", found}); err != nil {
			return err
		}
	}
	if err := lines.Encode(comparison{"summary", report.Equal(), report.Entries, report.Contents, report.Counts}); err != nil {
		return err
	}
	if !report.Equal() {
		return errDiffers
	}
	return nil
}

func parseKinds(list string) ([]manifest.Kind, error) {
	var kinds []manifest.Kind
	for name := range strings.SplitSeq(list, ",") {
		if name == "" {
			continue
		}
		if !slices.Contains(manifest.Kinds(), manifest.Kind(name)) {
			return nil, fmt.Errorf("%q is none of %q", name, manifest.Kinds())
		}
		kinds = append(kinds, manifest.Kind(name))
	}
	return kinds, nil
}

func openManifest(name string) (*manifest.Reader, io.Closer, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	reader, err := manifest.NewReader(file)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", name, err), file.Close())
	}
	return reader, file, nil
}

func unlessHelp(err error) error {
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	return err
}
