package process

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// Shim is the first argument with which the lab's program calls itself to become a daemon; see Become.
const Shim = "become-daemon"

// Marker and Builder are in the environment of what a lab starts, with the lab's directory as their value: Marker of what
// runs, Builder of what makes programs and images.
const (
	Marker  = "MIG_LAB_OWNER"
	Builder = "MIG_LAB_BUILDER"
)

// wanted stands for everything that a daemon is started with.
func (d Daemon) wanted() string {
	sum := sha256.New()
	for _, part := range append(append([]string{d.Namespace, d.Version, fmt.Sprint(d.Binds)}, d.Command...), d.Env...) {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Ensure starts the daemon unless it runs as wanted, and tells whether it did.
func (d Daemon) Ensure(ctx context.Context) (started bool, err error) {
	record, alive := d.Record()
	if alive && record.Wanted == d.wanted() {
		return false, nil
	}
	if err := d.Stop(ctx); err != nil {
		return false, err
	}
	if err := os.MkdirAll(d.Dir, 0o755); err != nil {
		return false, err
	}
	log, err := os.OpenFile(d.Log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return false, err
	}
	defer log.Close()
	order, err := json.Marshal(order{Record: d.recordFile(), Wanted: d.wanted(), Namespace: d.Namespace, Binds: d.Binds, Command: d.Command})
	if err != nil {
		return false, err
	}
	child := exec.Command("/proc/self/exe", Shim, string(order)) //nolint:noctx // it outlives every context
	child.Stdout, child.Stderr = log, log
	child.Dir = "/"
	child.Env = append(os.Environ(), d.Env...)
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		return false, fmt.Errorf("start %s: %w", d.Name, err)
	}
	exited := make(chan error, 1)
	go func() { exited <- child.Wait() }()
	// Until the record is there the process is not known to be ours.
	return true, Wait(ctx, stopTimeout, "record of "+d.Name, func() (bool, error) {
		record, _ := d.Record()
		select {
		case err := <-exited:
			return false, errors.Join(fmt.Errorf("it ended at once, %s", d.Complaint()), err)
		default:
			return record.PID == child.Process.Pid, nil
		}
	})
}

type order struct {
	Record    string   `json:"record"`
	Wanted    string   `json:"wanted"`
	Namespace string   `json:"namespace"`
	Binds     []Bind   `json:"binds"`
	Command   []string `json:"command"`
}

// Become turns the calling process into a daemon: it writes its own record and then executes the program, keeping its pid
// and start time. So a lab that is killed at any moment leaves no daemon without a record.
func Become(text string) error {
	var order order
	if err := json.Unmarshal([]byte(text), &order); err != nil {
		return err
	}
	// The namespace is the thread's, and execve goes on in the thread that calls it.
	runtime.LockOSThread()
	if order.Namespace != "" {
		if err := enter(order.Namespace); err != nil {
			return fmt.Errorf("network namespace %s: %w", order.Namespace, err)
		}
	}
	if err := bind(order.Binds); err != nil {
		return err
	}
	self, err := readStat(os.Getpid())
	if err != nil {
		return err
	}
	record, err := json.Marshal(Record{PID: os.Getpid(), Started: self.started, Wanted: order.Wanted})
	if err != nil {
		return err
	}
	if err := WriteFile(order.Record, record, 0o644); err != nil {
		return err
	}
	program, err := exec.LookPath(order.Command[0])
	if err != nil {
		return err
	}
	return syscall.Exec(program, order.Command, os.Environ())
}

// WriteFile writes a file whole or not at all, and leaves one alone that has this content already: kube-proxy ends when
// its configuration is written.
func WriteFile(path string, content []byte, mode os.FileMode) error {
	if now, err := os.ReadFile(path); err == nil && string(now) == string(content) {
		return os.Chmod(path, mode)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	partial := path + ".partial"
	if err := os.WriteFile(partial, content, mode); err != nil {
		return err
	}
	return os.Rename(partial, path)
}

// Complaint is where the log is and how it ends.
func (d Daemon) Complaint() string {
	const lines = 8
	content, _ := os.ReadFile(d.Log())
	all := strings.Split(strings.TrimSpace(string(content)), "\n")
	return fmt.Sprintf("log %s ends with:\n%s", d.Log(), strings.Join(all[max(0, len(all)-lines):], "\n"))
}
