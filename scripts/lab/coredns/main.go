// coredns is CoreDNS with the plugins that the lab's clusters need and no others: upstream's list brings cloud SDKs and
// tracers, and makes the build many times as long. There is no `forward`, since nothing beyond the clusters is to be reached.
//
// Its version is one that takes the same client-go as Velero, and go.mod keeps the shared modules at Velero's versions,
// so that both are built from the same compiled packages.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() {
	// The order in which a query passes the plugins, as in upstream's plugin.cfg.
	dnsserver.Directives = []string{"ready", "health", "errors", "cache", "kubernetes"}
	coremain.Run()
}
