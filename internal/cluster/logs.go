package cluster

import (
	"context"
	"io"
	"strconv"
)

// Logs opens what the one container of a pod has written. A kubelet keeps 10 MiB
// of it by default; what came before is lost. Errors: the cluster's own.
func (c *Cluster) Logs(ctx context.Context, namespace, pod string) (io.ReadCloser, error) {
	return c.Discovery.RESTClient().Get().AbsPath("/api/v1/namespaces", namespace, "pods", pod, "log").Stream(ctx)
}

// Tail opens the last lines of a pod's log, of its only container. Errors: as of
// Logs; a pod that has not begun has none.
func (c *Cluster) Tail(ctx context.Context, namespace, pod string, lines int) (io.ReadCloser, error) {
	return c.Discovery.RESTClient().Get().AbsPath("/api/v1/namespaces", namespace, "pods", pod, "log").
		Param("tailLines", strconv.Itoa(lines)).Stream(ctx)
}
