package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mig-cli/mig/internal/apitest"
	"github.com/mig-cli/mig/internal/cluster"
)

// pair is two clusters that count what they are asked.
type pair struct{ *apitest.Pair }

// question is what an API server counts its requests by.
type question struct{ verb, resource, scope string }

var counter = regexp.MustCompile(`^(apiserver_request_total|process_cpu_seconds_total)(?:\{(.*)\})? (\S+)$`)

// metrics asks an API server what it was asked so far, and for its CPU time in
// seconds.
func metrics(ctx context.Context, c *cluster.Cluster) (map[question]int, float64, error) {
	text, err := c.Discovery.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, 0, err
	}
	asked, cpu := map[question]int{}, 0.0
	for line := range bytes.Lines(text) {
		m := counter.FindSubmatch(bytes.TrimSpace(line))
		if m == nil {
			continue
		}
		n, err := strconv.ParseFloat(string(m[3]), 64)
		if err != nil {
			return nil, 0, err
		}
		if string(m[1]) == "process_cpu_seconds_total" {
			cpu = n
			continue
		}
		labels := labelsOf(string(m[2]))
		resource := labels["resource"]
		if labels["group"] != "" {
			resource += "." + labels["group"]
		}
		asked[question{labels["verb"], resource, labels["scope"]}] += int(n)
	}
	return asked, cpu, nil
}

var label = regexp.MustCompile(`(\w+)="([^"]*)"`)

func labelsOf(text string) map[string]string {
	out := map[string]string{}
	for _, m := range label.FindAllStringSubmatch(text, -1) {
		out[m[1]] = m[2]
	}
	return out
}

// settle waits until both API servers have little to do.
func (p *pair) settle(ctx context.Context) error {
	const interval, idle = 2 * time.Second, 0.2 // CPUs
	for _, c := range []*cluster.Cluster{p.Source.Cluster, p.Destination.Cluster} {
		_, before, err := metrics(ctx, c)
		if err != nil {
			return err
		}
		for {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(interval):
			}
			_, now, err := metrics(ctx, c)
			if err != nil {
				return err
			}
			if now-before < idle*interval.Seconds() {
				break
			}
			before = now
		}
	}
	return nil
}

// asked counts the requests that both clusters are asked while something runs.
func (p *pair) asked(ctx context.Context, do func() error) (map[question]int, error) {
	count := func() (map[question]int, error) {
		here, _, err := metrics(ctx, p.Source.Cluster)
		if err != nil {
			return nil, err
		}
		there, _, err := metrics(ctx, p.Destination.Cluster)
		for q, n := range there {
			here[q] += n
		}
		return here, err
	}
	before, err := count()
	if err != nil {
		return nil, err
	}
	if err := do(); err != nil {
		return nil, err
	}
	after, err := count()
	for q := range after {
		after[q] -= before[q]
		if q.resource == "" && q.verb == "GET" {
			after[q] -= 2 // our own questions for these figures
		}
	}
	maps.DeleteFunc(after, func(q question, n int) bool { return n <= 0 || q.verb == "WATCH" || isOwn(q.resource) })
	return after, err
}

// isOwn names what the API servers ask themselves about.
func isOwn(resource string) bool {
	name, _, _ := strings.Cut(resource, ".")
	return slices.Contains([]string{"leases", "endpoints", "endpointslices", "apiservices", "servicecidrs", "ipaddresses"}, name)
}

func sum(asked map[question]int) int {
	total := 0
	for _, n := range asked {
		total += n
	}
	return total
}

// listed are the kinds that were listed in all namespaces at once, as kubectl
// names them.
func listed(asked map[question]int) []string {
	var out []string
	for q := range asked {
		if q.verb == "LIST" && q.scope == "cluster" {
			out = append(out, q.resource)
		}
	}
	slices.Sort(out)
	return out
}

// cost is what a run of a program takes.
type cost struct {
	took   time.Duration
	memory int64 // bytes, at its most
}

// run runs a program against a pair. Codes other than 0 that are fine are given.
func (p *pair) run(ctx context.Context, dir string, fine []int, name string, args ...string) (cost, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.Kubeconfig)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	began := time.Now()
	err := cmd.Run()
	c := cost{took: time.Since(began)}
	if cmd.ProcessState == nil {
		return c, err
	}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		c.memory = usage.Maxrss << 10
	}
	if code := cmd.ProcessState.ExitCode(); code != 0 && !slices.Contains(fine, code) {
		return c, fmt.Errorf("%s %s: exit %d: %s", name, strings.Join(args, " "), code, said.String())
	}
	return c, nil
}

// kubectl is the time in which kubectl lists the kinds of the source in all
// namespaces, paged, with so many processes as mig asks questions at once.
func (p *pair) kubectl(ctx context.Context, kinds []string) (time.Duration, error) {
	const inParallel = 8
	began := time.Now()
	var wait sync.WaitGroup
	errs := make(chan error, len(kinds))
	free := make(chan struct{}, inParallel)
	for _, kind := range kinds {
		wait.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			_, err := p.run(ctx, p.Dir, nil, filepath.Join(p.Dir, "bin", "kubectl"), "--context=src", "get", kind, "-A", "--chunk-size=500")
			errs <- err
		})
	}
	wait.Wait()
	close(errs)
	var failed []error
	for err := range errs {
		failed = append(failed, err)
	}
	return time.Since(began), cmp.Or(failed...)
}

// figure is a line of the output.
func figure(name string, value float64, unit string, vs float64) {
	line := fmt.Sprintf("bench %s value=%.4g unit=%s", name, value, unit)
	if vs > 0 {
		line += fmt.Sprintf(" vs=%.4g ratio=%.2f", vs, value/vs)
	}
	fmt.Println(line)
}
