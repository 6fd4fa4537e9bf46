package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/mig-cli/mig/internal/config"
	"github.com/mig-cli/mig/internal/progress"
	"github.com/mig-cli/mig/internal/version"
)

// logs are what a command tells those who look for a fault: what -v shows and
// what --log-file keeps. Both are redacted.
type logs struct {
	*slog.Logger
	file   *os.File
	hushed atomic.Bool // the terminal is the live view's
}

// noLogs are those of a command that was asked for none.
func noLogs() *logs { return &logs{Logger: slog.New(slog.DiscardHandler)} }

// openLogs makes the logs that the settings ask for; verbose is how often -v
// was said.
func openLogs(errOut io.Writer, settings config.Config, verbose int) (*logs, error) {
	l := noLogs()
	var handlers []slog.Handler
	if verbose > 0 {
		level := slog.LevelInfo
		if verbose > 1 {
			level = slog.LevelDebug
		}
		shown := writerFunc(func(p []byte) (int, error) {
			if l.hushed.Load() {
				return len(p), nil
			}
			return errOut.Write(p)
		})
		handlers = append(handlers, slog.NewTextHandler(shown, &slog.HandlerOptions{Level: level, ReplaceAttr: onScreen}))
	}
	if settings.LogFile != "" {
		file, err := os.OpenFile(settings.LogFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, &usageError{Err: fmt.Errorf("the log file: %w", err), Hint: "name a file that can be written with --log-file"}
		}
		l.file = file
		handlers = append(handlers, slog.NewTextHandler(file, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: redacted}))
	}
	if len(handlers) > 0 {
		l.Logger = slog.New(slog.NewMultiHandler(handlers...))
	}
	return l, nil
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// redacted hides what looks like a secret in whatever is logged.
func redacted(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString:
		return slog.String(a.Key, progress.Redact(a.Value.String()))
	case slog.KindAny:
		if _, isLevel := a.Value.Any().(slog.Level); !isLevel {
			return slog.String(a.Key, progress.Redact(fmt.Sprint(a.Value.Any())))
		}
	}
	return a
}

// onScreen is redacted, with the times of plain lines.
func onScreen(groups []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey && len(groups) == 0 {
		return slog.String(a.Key, a.Value.Time().Format(time.TimeOnly))
	}
	return redacted(groups, a)
}

// begin tells what was asked of which mig. Values of flags are not told: what
// they mean, later lines say.
func (l *logs) begin(cmd *cobra.Command) {
	l.Info("mig begins", "version", version.String(), "command", cmd.CommandPath())
}

// end tells how the command ended, each error of the chain with its type, and
// closes the file.
func (l *logs) end(code int, err error) {
	for _, e := range chain(err) {
		l.Info("error", "type", fmt.Sprintf("%T", e), "text", e.Error())
	}
	l.Info("mig ends", "code", code)
	if l.file != nil {
		_ = l.file.Close() // nobody is left to tell
	}
}

// chain is an error and all that it wraps, outermost first.
func chain(err error) []error {
	if err == nil {
		return nil
	}
	out := []error{err}
	switch e := err.(type) { //nolint:errorlint // this takes the chain apart
	case interface{ Unwrap() error }:
		out = append(out, chain(e.Unwrap())...)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			out = append(out, chain(inner)...)
		}
	}
	return out
}

// Emit makes the logs a progress.Sink. What is waited for changes often; that
// something is tried again is what a log is read for.
func (l *logs) Emit(u progress.Update) {
	level := slog.LevelInfo
	if u.State == progress.Waiting && u.Note.Reason() != "Retrying" {
		level = slog.LevelDebug
	}
	attrs := []slog.Attr{slog.String("run", u.Run), slog.String("state", string(u.State)), slog.String("reason", u.Note.Reason()), slog.String("text", u.Note.Text())}
	if u.Step != "" {
		attrs = append(attrs, slog.String("step", u.Step), slog.String("number", fmt.Sprintf("%d/%d", u.Number, u.Of)), slog.Duration("elapsed", u.Elapsed.Round(time.Millisecond)))
	}
	if on := u.Note.Regarding(); on.Name != "" {
		attrs = append(attrs, slog.String("object", strings.TrimSpace(string(on.Side)+" "+objectWords(on.Kind, on.Namespace, on.Name))))
	}
	l.LogAttrs(context.Background(), level, "progress", attrs...)
}

// openLogs opens the logs that a command line asks for.
func (f *Factory) openLogs(cmd *cobra.Command) error {
	settings, err := f.config(cmd)
	if err != nil {
		return nil //nolint:nilerr // the command itself says so, or does without settings
	}
	verbose, err := cmd.Flags().GetCount("verbose")
	if err != nil {
		return err
	}
	opened, err := openLogs(f.Streams.ErrOut, settings, verbose)
	if err != nil {
		return err
	}
	f.logs = opened
	f.logs.begin(cmd)
	return nil
}

// endLogs tells the end and leaves no logs open; where none were opened it is
// nothing.
func (f *Factory) endLogs(code int, err error) {
	if f.logs == nil {
		return
	}
	if errors.Is(err, ErrInterrupted) {
		f.logs.Info("interrupted")
	}
	f.logs.end(code, err)
	f.logs = nil
}

// log is the logger of the command that runs now.
func (f *Factory) log() *logs {
	if f.logs == nil {
		return noLogs()
	}
	return f.logs
}
