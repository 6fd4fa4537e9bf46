package cluster

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	cgroups      = "/sys/fs/cgroup"
	cgroupPrefix = "miglab-"
)

func cgroupOf(node string) string { return cgroupPrefix + node }

// ensureCgroup makes a node's group in every hierarchy. The kubelet wants it to be there.
func ensureCgroup(node string) error {
	for _, hierarchy := range hierarchies() {
		group := filepath.Join(hierarchy, cgroupOf(node))
		if err := os.MkdirAll(group, 0o755); err != nil {
			return err
		}
		// In version 1 a new cpuset group has no processors, and no process may enter it.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			content, err := os.ReadFile(filepath.Join(hierarchy, file))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(group, file), content, 0o644)
			}
			if err != nil {
				return err
			}
		}
		if err := delegate(hierarchy); err != nil {
			return err
		}
	}
	return nil
}

// delegate lets version 2's controllers work in the groups below the root.
func delegate(hierarchy string) error {
	controllers, err := os.ReadFile(filepath.Join(hierarchy, "cgroup.controllers"))
	if err != nil {
		return nil // version 1
	}
	for controller := range strings.FieldsSeq(string(controllers)) {
		if err := os.WriteFile(filepath.Join(hierarchy, "cgroup.subtree_control"), []byte("+"+controller), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// hierarchies are where groups are made: version 2's one, or version 1's for each controller.
func hierarchies() []string {
	if _, err := os.Stat(filepath.Join(cgroups, "cgroup.controllers")); err == nil {
		return []string{cgroups}
	}
	return slices.DeleteFunc(mounted(), func(dir string) bool { return filepath.Base(dir) == "unified" })
}

// mounted are version 1's hierarchies, and version 2's beside them, in which runc makes groups too.
func mounted() []string {
	var found []string
	entries, _ := filepath.Glob(cgroups + "/*/cgroup.procs")
	for _, entry := range entries {
		dir := filepath.Dir(entry)
		if info, err := os.Lstat(dir); err == nil && info.IsDir() {
			found = append(found, dir)
		}
	}
	return found
}

// groups are the lab's groups whose names match a pattern, and those in them, the innermost first.
func groups(pattern string) []string {
	var found []string
	for _, hierarchy := range append(mounted(), cgroups) {
		roots, _ := filepath.Glob(filepath.Join(hierarchy, pattern))
		for _, root := range roots {
			_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
				if err == nil && entry.IsDir() {
					found = append(found, path)
				}
				return nil // gone while we look
			})
		}
	}
	slices.Reverse(found)
	return found
}

const allGroups = cgroupPrefix + "*"

// Contained are the processes in the lab's containers.
func Contained() []int { return processesIn(groups(allGroups)) }

func processesIn(groups []string) []int {
	seen := map[int]bool{}
	for _, group := range groups {
		content, err := os.ReadFile(filepath.Join(group, "cgroup.procs"))
		if err != nil {
			continue
		}
		for field := range strings.FieldsSeq(string(content)) {
			if pid, err := strconv.Atoi(field); err == nil {
				seen[pid] = true
			}
		}
	}
	var pids []int
	for pid := range seen {
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	return pids
}

// removeCgroups removes the groups when nothing is left in them.
func removeCgroups() error {
	var errs []error
	for _, group := range groups(allGroups) {
		if err := os.Remove(group); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
