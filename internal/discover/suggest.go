package discover

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mig-cli/mig/internal/plan"
)

// ClassChoice is the storage class that volumes of a source's class could have
// on the destination.
type ClassChoice struct {
	Source      string `json:"source"`
	Destination string `json:"destination"` // empty: none suggests itself, a person must choose
	Why         string `json:"why"`
}

// successors are the CSI drivers that took over from Kubernetes' own
// provisioners, as its migration of in-tree volumes names them.
func successors() map[string]string {
	return map[string]string{
		"kubernetes.io/aws-ebs":         "ebs.csi.aws.com",
		"kubernetes.io/gce-pd":          "pd.csi.storage.gke.io",
		"kubernetes.io/azure-disk":      "disk.csi.azure.com",
		"kubernetes.io/azure-file":      "file.csi.azure.com",
		"kubernetes.io/cinder":          "cinder.csi.openstack.org",
		"kubernetes.io/vsphere-volume":  "csi.vsphere.vmware.com",
		"kubernetes.io/portworx-volume": "pxd.portworx.com",
		"kubernetes.io/rbd":             "rbd.csi.ceph.com",
	}
}

// noProvisioner is what classes have whose volumes are made by hand.
const noProvisioner = "kubernetes.io/no-provisioner"

// SuggestClass suggests a class of the destination for a class of the source:
// the one of the same name, else one of the same provisioner, else the default.
// An empty name is that of claims that name no class.
func SuggestClass(name string, source, destination []StorageClass) ClassChoice {
	here := Facts{StorageClasses: source}
	there := Facts{StorageClasses: destination}
	if _, ok := there.StorageClass(name); ok && name != "" {
		return ClassChoice{name, name, "same name on the destination"}
	}
	if class, ok := here.StorageClass(name); ok {
		if c, ok := ofProvisioner(class.Provisioner, destination); ok {
			return ClassChoice{name, c.Name, "same provisioner " + c.Provisioner}
		}
		if c, ok := ofProvisioner(successors()[class.Provisioner], destination); ok {
			return ClassChoice{name, c.Name, fmt.Sprintf("%s took over from %s", c.Provisioner, class.Provisioner)}
		}
	}
	if c, ok := there.DefaultStorageClass(); ok {
		return ClassChoice{name, c.Name, "the destination's default class"}
	}
	return ClassChoice{name, "", "no class of this name or provisioner on the destination, and no default: choose one"}
}

// oneNodeOnly are the drivers whose disks one node at a time can mount.
func oneNodeOnly() []string {
	return []string{
		"ebs.csi.aws.com", "kubernetes.io/aws-ebs", "pd.csi.storage.gke.io", "kubernetes.io/gce-pd", "disk.csi.azure.com", "kubernetes.io/azure-disk",
		"cinder.csi.openstack.org", "kubernetes.io/cinder", "rancher.io/local-path", "topolvm.io", "dobs.csi.digitalocean.com", "csi.hetzner.cloud",
		"linodebs.csi.linode.com", "block.csi.vultr.com", "local.csi.openebs.io", "zfs.csi.openebs.io", "rbd.csi.ceph.com", "openshift-storage.rbd.csi.ceph.com",
		"rook-ceph.rbd.csi.ceph.com",
	}
}

// FitsModes says whether a class's driver can make file systems with these
// access modes. A driver that is not known is believed.
func (c StorageClass) FitsModes(modes []string) bool {
	shared := slices.ContainsFunc(modes, func(m string) bool { return m == "ReadWriteMany" || m == "ReadOnlyMany" })
	return !shared || !slices.Contains(oneNodeOnly(), c.Provisioner)
}

// SuggestClassFor suggests a class of the destination for one claim: that for
// its class where it fits the claim's access modes, else the first that does,
// the default class before others.
func SuggestClassFor(c Claim, source, destination []StorageClass) ClassChoice {
	choice := SuggestClass(c.StorageClass, source, destination)
	there := Facts{StorageClasses: destination}
	taken, ok := there.StorageClass(choice.Destination)
	if !ok || c.VolumeMode == "Block" || taken.FitsModes(c.AccessModes) {
		return choice
	}
	passed := fmt.Sprintf("%s makes volumes for one node, and this one is shared", taken.Name)
	fitting := slices.DeleteFunc(slices.Clone(destination), func(o StorageClass) bool {
		return !o.FitsModes(c.AccessModes) || o.Provisioner == noProvisioner
	})
	slices.SortStableFunc(fitting, func(a, b StorageClass) int { return cmp.Compare(rank(a), rank(b)) })
	if len(fitting) == 0 {
		return ClassChoice{c.StorageClass, "", passed + ", and no class makes others: choose one"}
	}
	return ClassChoice{c.StorageClass, fitting[0].Name, passed + "; " + fitting[0].Provisioner + " may do"}
}

func rank(c StorageClass) int {
	if c.Default {
		return 0
	}
	return 1
}

// ofProvisioner prefers the default class among those of a provisioner.
func ofProvisioner(provisioner string, classes []StorageClass) (found StorageClass, ok bool) {
	if provisioner == "" || provisioner == noProvisioner {
		return StorageClass{}, false
	}
	for _, c := range classes {
		if c.Provisioner == provisioner && (!ok || c.Default) {
			found, ok = c, true
		}
	}
	return found, ok
}

// ActionChoice is what could happen to a claim, and what suggests itself.
type ActionChoice struct {
	Supported []plan.Action
	Action    plan.Action // empty: a person must choose
	Why       string
}

// SuggestAction suggests what to do with a claim: copy whatever Velero can
// read; where it cannot, say why and leave the choice.
func SuggestAction(c Claim) ActionChoice {
	only := func(why string) ActionChoice { return ActionChoice{[]plan.Action{plan.Skip}, "", why} }
	switch {
	case c.Terminating:
		return only("it is being deleted")
	case c.Phase == "Lost":
		return only("its volume is lost: there is no data to copy")
	case c.Phase != "Bound":
		return only("not bound to a volume (" + c.Phase + "): there is no data to copy")
	case c.VolumeMode == "Block":
		return only("a block volume: Velero's file-system backup cannot read it")
	case c.Backend == "hostPath":
		return only("a hostPath volume: Velero's file-system backup refuses it")
	case len(c.Running()) > 0:
		return ActionChoice{[]plan.Action{plan.Copy, plan.Skip}, plan.Copy, "mounted by " + c.Running()[0].Pod}
	case len(c.MountedBy) > 0 && !slices.ContainsFunc(c.MountedBy, func(m Mounter) bool { return !m.Finished() }):
		return ActionChoice{[]plan.Action{plan.Copy, plan.Skip}, plan.Copy, fmt.Sprintf("used only by finished pods (%s): copied through a helper pod", c.MountedBy[0].Pod)}
	case len(c.MountedBy) > 0:
		return ActionChoice{[]plan.Action{plan.Copy, plan.Skip}, plan.Copy, fmt.Sprintf("mounted by %s (%s): copied through a helper pod", c.MountedBy[0].Pod, c.MountedBy[0].Phase)}
	default:
		return ActionChoice{[]plan.Action{plan.Copy, plan.Skip}, plan.Copy, "mounted by no pod: copied through a helper pod"}
	}
}

// mountedBy says in words who mounts a claim.
func mountedBy(c Claim) []string {
	out := []string{}
	for _, m := range c.MountedBy {
		where := m.Phase
		if m.Node != "" {
			where = strings.ToLower(m.Phase) + " on " + m.Node
		}
		out = append(out, fmt.Sprintf("%s (%s)", m.Pod, where))
	}
	return out
}
