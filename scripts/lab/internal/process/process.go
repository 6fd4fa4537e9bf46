// Package process runs the lab's daemons: they outlive the lab's command, and are found again by what it wrote down.
package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Daemon is a program that is to run.
type Daemon struct {
	Name      string   // of its record and log
	Dir       string   // where these are
	Command   []string // the program's path and its arguments
	Env       []string // in addition to the lab's own environment
	Namespace string   // path of a network namespace to run in, or nothing
	// Binds are directories to mount elsewhere, for this daemon and what it starts alone.
	Binds []Bind
	// Version stands for what the command line does not show and yet wants a restart, such as the program's build.
	Version string
}

// Bind shows one directory at the place of another. That place is to be a private mount, or all others would see it too.
type Bind struct{ From, To string }

// Record is what is written down of a running daemon.
type Record struct {
	PID int `json:"pid"`
	// Started is the process's start in the kernel's ticks since boot: with it, a pid means one process for ever.
	Started uint64 `json:"started"`
	// Wanted is what it was started as. Another Wanted wants another process.
	Wanted string `json:"wanted"`
}

const stopTimeout = 20 * time.Second

func (d Daemon) recordFile() string { return filepath.Join(d.Dir, d.Name+".json") }

// Log is the daemon's log file.
func (d Daemon) Log() string { return filepath.Join(d.Dir, d.Name+".log") }

// Record returns what was written down, and whether that process is alive.
func (d Daemon) Record() (Record, bool) { return ReadRecord(d.recordFile()) }

// ReadRecord reads a record and tells whether its process is alive.
func ReadRecord(file string) (Record, bool) {
	content, err := os.ReadFile(file)
	if err != nil {
		return Record{}, false
	}
	var record Record
	if err := json.Unmarshal(content, &record); err != nil {
		return Record{}, false // half written: that process never became the daemon
	}
	return record, record.alive()
}

func (r Record) alive() bool {
	stat, err := readStat(r.PID)
	return err == nil && stat.started == r.Started && stat.state != 'Z' && stat.state != 'X'
}

// Stop kills the daemon and waits until it is gone. Not gracefully: a kube-apiserver would take many seconds, and a lab
// may be killed at any moment anyway.
func (d Daemon) Stop(ctx context.Context) error {
	record, alive := d.Record()
	if alive {
		if err := Kill(ctx, record.PID); err != nil {
			return fmt.Errorf("stop %s: %w", d.Name, err)
		}
	}
	if err := os.Remove(d.recordFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Kill kills a process and waits until it is gone.
func Kill(ctx context.Context, pid int) error {
	before, err := readStat(pid)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	record := Record{PID: pid, Started: before.started}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return Wait(ctx, stopTimeout, fmt.Sprintf("end of process %d after SIGKILL", pid), func() (bool, error) { return !record.alive(), nil })
}

// Wait polls until done, and says what it waited for when that takes longer than the limit.
func Wait(ctx context.Context, limit time.Duration, what string, done func() (bool, error)) error {
	const pause = 50 * time.Millisecond
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	for {
		ok, err := done()
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		case <-timeout.C:
			return fmt.Errorf("%s: not within %s", what, limit)
		case <-time.After(pause):
		}
	}
}

type stat struct {
	state   byte
	started uint64
}

func readStat(pid int) (stat, error) {
	content, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return stat{}, err
	}
	return parseStat(string(content))
}

// parseStat reads /proc/PID/stat, whose second field is a name that may hold spaces and parentheses.
func parseStat(content string) (stat, error) {
	const startField = 22 - 3 // counted from the state, which is the third
	_, rest, found := cutLast(content, ") ")
	fields := strings.Fields(rest)
	if !found || len(fields) <= startField {
		return stat{}, fmt.Errorf("not a process's stat: %q", content)
	}
	started, err := strconv.ParseUint(fields[startField], 10, 64)
	return stat{state: fields[0][0], started: started}, err
}

func cutLast(text, separator string) (before, after string, found bool) {
	at := strings.LastIndex(text, separator)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(separator):], true
}
