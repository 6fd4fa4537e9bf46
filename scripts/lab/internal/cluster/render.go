package cluster

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// The files that a node's programs read.

func (n node) renderContainerd() string {
	return fmt.Sprintf(`version = 2
root = %[1]q
state = %[2]q
oom_score = 0
disabled_plugins = [
  "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp",
]
[grpc]
  address = %[3]q
[plugins."io.containerd.internal.v1.opt"]
  path = %[4]q
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %[5]q
  # Without CAP_SYS_RESOURCE no score may be lowered.
  restrict_oom_score_adj = true
  disable_apparmor = true
  stream_server_address = "127.0.0.1"
  # Pods' network namespaces are then ours to remove, and not among those of others.
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = %[6]q
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = %[7]q
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
        Root = %[8]q
`, n.dir("containerd"), n.dir("state"), n.socket(), n.dir("opt"), PauseImage, n.dir("registries"), n.dir("cni"), n.dir("runc"))
}

// renderNoRegistry sends every pull to a closed port, so that a missing image fails at once and nothing is asked outside.
func renderNoRegistry() string {
	return `server = "http://127.0.0.1:9"
[host."http://127.0.0.1:9"]
  capabilities = ["pull", "resolve"]
`
}

func (n node) renderCNI() string {
	return fmt.Sprintf(`{
  "cniVersion": "0.4.0",
  "name": "%[1]s",
  "plugins": [
    {
      "type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
      "ipam": {"type": "host-local", "dataDir": "%[2]s", "ranges": [[{"subnet": "%[3]s"}]], "routes": [{"dst": "0.0.0.0/0"}]}
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`, cniNetwork(n.net.Name), n.dir("ipam"), n.net.Pods)
}

// cniNetwork is also the beginning of the names of what CNI keeps in its own directory.
func cniNetwork(node string) string { return "miglab-" + node }

func (n node) renderKubelet() string {
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %[1]s
port: 10250
healthzBindAddress: 127.0.0.1
tlsCertFile: %[2]s
tlsPrivateKeyFile: %[3]s
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: %[4]s}}
authorization: {mode: Webhook}
containerRuntimeEndpoint: unix://%[5]s
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /%[6]s
cgroupsPerQOS: true
enforceNodeAllocatable: [pods]
failSwapOn: false
oomScoreAdj: 0
maxOpenFiles: %[7]d
clusterDomain: cluster.local
clusterDNS: [%[8]s]
resolvConf: %[9]s
podLogsDir: %[10]s
volumePluginDir: %[11]s
# The images are imported, and cannot be pulled again.
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard: {memory.available: 100Mi, nodefs.available: 1%%, imagefs.available: 1%%}
`, n.net.Address, n.cert(n.net.Name+"-serving"), n.key(n.net.Name+"-serving"), n.cert("ca"), n.socket(), cgroupOf(n.net.Name),
		openFilesLimit(), n.dnsIP(), n.dir("resolv.conf"), n.dir("pod-logs"), n.dir("plugins"))
}

// openFilesLimit is this process's hard limit, above which the kubelet may not go.
func openFilesLimit() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 1024
	}
	return min(limit.Max, 1_000_000)
}

func (n node) renderKubeProxy() string {
	// The limits of connection tracking are the whole machine's, and may not be set from a namespace.
	return fmt.Sprintf(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: %[1]s}
hostnameOverride: %[2]s
clusterCIDR: %[3]s
mode: iptables
conntrack: {maxPerCore: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
`, n.kubeconfig("proxy"), n.net.Name, n.podCIDR())
}
