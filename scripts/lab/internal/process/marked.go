package process

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Marked returns the processes that carry this entry in their environment.
func Marked(entry string) []int {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	var marked []int
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil || !hasEntry(content, entry) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && pid != os.Getpid() {
			marked = append(marked, pid)
		}
	}
	return marked
}

// Owners are the directories of the labs that something on this machine was started by.
func Owners() []string {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	var owners []string
	for _, file := range files {
		content, _ := os.ReadFile(file)
		for part := range bytes.SplitSeq(content, []byte{0}) {
			if owner, found := strings.CutPrefix(string(part), Marker+"="); found && !slices.Contains(owners, owner) {
				owners = append(owners, owner)
			}
		}
	}
	return owners
}

// HasArgument tells whether a process was started with this argument.
func HasArgument(pid int, argument string) bool {
	content, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	return err == nil && hasEntry(content, argument)
}

func hasEntry(environ []byte, entry string) bool {
	for part := range bytes.SplitSeq(environ, []byte{0}) {
		if string(part) == entry {
			return true
		}
	}
	return false
}

// KillAll kills processes until find finds none.
func KillAll(ctx context.Context, find func() []int) error {
	var errs []error
	for range 5 { // while they are killed, they may start others
		pids := find()
		if len(pids) == 0 {
			return nil
		}
		errs = nil
		for _, pid := range pids {
			errs = append(errs, Kill(ctx, pid))
		}
	}
	return errors.Join(errs...)
}

// Memory is the proportional share of memory of a process: pages that several processes share are counted once in all.
func Memory(pid int) int64 {
	content, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "smaps_rollup"))
	if err != nil {
		return 0
	}
	return parsePSS(string(content))
}

func parsePSS(rollup string) int64 {
	for line := range strings.Lines(rollup) {
		fields := strings.Fields(line)
		if len(fields) > 1 && fields[0] == "Pss:" {
			kib, _ := strconv.ParseInt(fields[1], 10, 64)
			return kib << 10
		}
	}
	return 0
}
