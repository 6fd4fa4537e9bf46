package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Kubectl runs kubectl as the administrator.
func (c Cluster) Kubectl(ctx context.Context, args ...string) error {
	_, err := c.kubectl(ctx, "", args...)
	return err
}

// Get is what kubectl prints.
func (c Cluster) Get(ctx context.Context, args ...string) (string, error) {
	return c.kubectl(ctx, "", args...)
}

// Apply makes the cluster's objects what the manifests say.
func (c Cluster) Apply(ctx context.Context, manifests string) error {
	_, err := c.kubectl(ctx, manifests, "apply", "-f", "-")
	return err
}

// Rollout waits until all pods of a workload are as its template says.
func (c Cluster) Rollout(ctx context.Context, namespace, workload string) error {
	err := c.Kubectl(ctx, "-n", namespace, "rollout", "status", workload, "--timeout="+readyTimeout.String())
	if err == nil || ctx.Err() != nil {
		return err
	}
	pods, _ := c.Get(ctx, "-n", namespace, "get", "pods", "-o", "wide")
	events, _ := c.Get(ctx, "-n", namespace, "get", "events", "--field-selector", "type=Warning")
	return fmt.Errorf("%w\npods:\n%s\nwarnings:\n%s", err, pods, events)
}

func (c Cluster) kubectl(ctx context.Context, input string, args ...string) (string, error) {
	const limit = readyTimeout + 30*time.Second // kubectl has limits of its own; this is for a server that never answers
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	command := exec.CommandContext(ctx, c.Program, append([]string{"kubectl", "--kubeconfig=" + c.Admin()}, args...)...)
	command.Env = append(os.Environ(), Marker(c.Place))
	command.Stdin = strings.NewReader(input)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("cluster %s: kubectl %s: %w: %s", c.Name, strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.String(), nil
}
