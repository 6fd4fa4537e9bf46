package discover

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/mig-cli/mig/internal/plan"
)

// The kinds of volumes that are no claims and may hold data.
const (
	kindHostPath  = "hostPath"
	kindEmptyDir  = "emptyDir"
	kindEphemeral = "ephemeral"
)

// outsideOf finds the volumes of a pod template that are no claims and could
// hold data. ConfigMaps, Secrets and what is projected of them are objects: they
// go along as such.
func outsideOf(workload string, pod *corev1.PodSpec) []Outside {
	if pod == nil {
		return nil
	}
	var out []Outside
	for _, v := range pod.Volumes {
		o := Outside{Workload: workload, Volume: v.Name, Used: plan.Unknown}
		switch {
		case v.HostPath != nil:
			o.Kind, o.Path = kindHostPath, v.HostPath.Path
		case v.EmptyDir != nil && v.EmptyDir.Medium != corev1.StorageMediumMemory:
			o.Kind = kindEmptyDir
			if v.EmptyDir.SizeLimit != nil {
				o.Size = v.EmptyDir.SizeLimit.String()
			}
		case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
			o.Kind = kindEphemeral
			o.Size = v.Ephemeral.VolumeClaimTemplate.Spec.Resources.Requests.Storage().String()
		default:
			continue
		}
		o.mounts(pod)
		o.judge(v)
		out = append(out, o)
	}
	return out
}

// mounts notes where the containers mount the volume, and whether none may
// write to it.
func (o *Outside) mounts(pod *corev1.PodSpec) {
	o.ReadOnly = true
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		for _, m := range c.VolumeMounts {
			if m.Name != o.Volume {
				continue
			}
			o.Mounts = append(o.Mounts, m.MountPath)
			o.Images = append(o.Images, c.Image)
			o.ReadOnly = o.ReadOnly && m.ReadOnly
		}
	}
	slices.Sort(o.Mounts)
	slices.Sort(o.Images)
	o.Mounts, o.Images = slices.Compact(o.Mounts), slices.Compact(o.Images)
}

// judge says what the volume is and what becomes of it.
func (o *Outside) judge(v corev1.Volume) {
	o.Class, o.Verdict = OutsideData, "not copied: "+o.Kind
	switch {
	case o.Kind == kindHostPath && isNodesOwn(v.HostPath, o.ReadOnly):
		o.Class, o.Verdict = OutsideSystem, "not copied: the node's own, as on every node"
	case o.Kind == kindEphemeral:
		o.Class, o.Verdict = OutsideScratch, "not copied: temporary, the pod makes its own"
	case o.Kind == kindEmptyDir && !holdsDatabase(*o):
		o.Class, o.Verdict = OutsideScratch, "not copied: emptyDir, lost with its pod anyway"
	case o.Kind == kindEmptyDir:
		o.Verdict = "not copied: emptyDir, of a database"
	}
}

// isNodesOwn says of a path of the node whether it is the operating system's or
// the kubelet's: nothing in it is the application's. Logs are the node's where
// they are only read.
func isNodesOwn(h *corev1.HostPathVolumeSource, readOnly bool) bool {
	if t := h.Type; t != nil && (*t == corev1.HostPathSocket || *t == corev1.HostPathCharDev || *t == corev1.HostPathBlockDev) {
		return true
	}
	p := path.Clean(h.Path)
	if readOnly && (p == "/" || isBelow(p, "/var/log", "/var/lib/docker", "/var/lib/containerd", "/var/lib/containers", "/etc")) {
		return true
	}
	return isBelow(p, "/etc/localtime", "/etc/timezone", "/etc/machine-id", "/etc/os-release", "/etc/hosts", "/etc/resolv.conf", "/etc/ssl", "/etc/pki",
		"/etc/ca-certificates", "/usr/share", "/usr/lib", "/usr/local/share/ca-certificates", "/lib/modules", "/proc", "/sys", "/dev", "/boot", "/run", "/var/run",
		"/var/lib/kubelet")
}

func isBelow(p string, dirs ...string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool { return p == d || strings.HasPrefix(p, d+"/") })
}

// holdsDatabase tells a database's directory by the program's image or by where
// such programs keep their data: in an emptyDir it is lost with the pod, and
// few mean that.
func holdsDatabase(o Outside) bool {
	programs := []string{
		"postgres", "mysql", "mariadb", "percona", "mongo", "redis", "valkey", "cassandra", "elasticsearch", "opensearch", "influxdb", "couchdb", "etcd",
		"rabbitmq", "kafka", "zookeeper", "clickhouse", "neo4j", "minio", "cockroach", "mssql", "oracle", "prometheus", "victoria-metrics", "nats", "solr",
	}
	places := []string{
		"/var/lib/postgresql", "/var/lib/mysql", "/var/lib/pgsql", "/data/db", "/var/lib/mongodb", "/var/lib/redis", "/var/lib/cassandra", "/usr/share/elasticsearch/data",
		"/var/lib/influxdb", "/var/lib/rabbitmq", "/var/lib/kafka", "/var/lib/clickhouse", "/var/lib/neo4j", "/bitnami", "/var/opt/mssql", "/prometheus",
	}
	if slices.ContainsFunc(o.Mounts, func(m string) bool { return isBelow(m, places...) }) {
		return true
	}
	ofProgram := slices.ContainsFunc(o.Images, func(image string) bool {
		name, _, _ := strings.Cut(path.Base(image), ":")
		return slices.ContainsFunc(programs, func(p string) bool { return strings.HasPrefix(name, p) })
	})
	return ofProgram && slices.ContainsFunc(o.Mounts, isDataDir)
}

// isDataDir leaves out where programs put what they need for a moment.
func isDataDir(mount string) bool {
	base := path.Base(mount)
	return !isBelow(mount, "/tmp", "/var/tmp", "/run", "/var/run", "/dev", "/etc", "/opt", "/usr") &&
		!slices.ContainsFunc([]string{"tmp", "temp", "cache", "run", "conf", "config", "logs", "log", "shm"}, func(w string) bool { return strings.Contains(base, w) })
}

// Says is what the volume is and where: hostPath /srv/a at /data.
func (o Outside) Says() string {
	said := o.Kind + " " + o.Volume
	if o.Path != "" {
		said = o.Kind + " " + o.Path
	}
	if len(o.Mounts) > 0 {
		said += " at " + strings.Join(o.Mounts, ", ")
	}
	return said
}
