package build

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	veleroPath = "github.com/vmware-tanzu/velero"
	awsPath    = "github.com/vmware-tanzu/velero-plugin-for-aws"
	k8sPath    = "k8s.io/kubernetes"
)

// Source is the directory scripts/lab.
type Source string

// FindSource looks for scripts/lab from the working directory upwards.
func FindSource() (Source, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		for _, candidate := range []string{dir, filepath.Join(dir, "scripts", "lab")} {
			if _, err := os.Stat(filepath.Join(candidate, "kubernetes", "go.mod")); err == nil {
				return Source(candidate), nil
			}
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("the sources of the lab's programs (scripts/lab) are not here: call lab inside mig's repository")
		}
	}
}

// Kubernetes is the module of the cluster's programs, in the version that the repository has.
func (s Source) Kubernetes() (Module, error) {
	return kubernetesModule(filepath.Join(string(s), "kubernetes"), "kubernetes")
}

// KubernetesProgram is the file name of a Kubernetes version's program.
func KubernetesProgram(version string) string {
	if version == "" {
		return "kubernetes"
	}
	return "kubernetes-" + version
}

func kubernetesModule(dir, name string) (Module, error) {
	module := Module{Name: name, Dir: dir, Programs: map[string]string{name: "."}}
	version, err := module.Version(k8sPath)
	if err != nil {
		return Module{}, err
	}
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	module.Variables = map[string]string{}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		module.Variables[pkg+".gitVersion"] = version
		module.Variables[pkg+".gitMajor"] = major
		module.Variables[pkg+".gitMinor"] = minor
		module.Variables[pkg+".gitTreeState"] = "clean"
	}
	return module, nil
}

// CoreDNS is the module of the cluster's DNS server.
func (s Source) CoreDNS() Module {
	return Module{Name: "coredns", Dir: filepath.Join(string(s), "coredns"), Programs: map[string]string{"coredns": "."}}
}

// S3 is the module of the object store.
func (s Source) S3() Module {
	return Module{Name: "s3", Dir: filepath.Join(string(s), "s3"), Programs: map[string]string{"s3": "."}}
}

// Velero is the module of Velero's programs and those of its plugin for S3.
func (s Source) Velero() Module {
	return Module{
		Name: "velero",
		Dir:  filepath.Join(string(s), "velero"),
		Programs: map[string]string{
			"velero":                veleroPath + "/cmd/velero",
			"velero-helper":         veleroPath + "/cmd/velero-helper",
			"velero-restore-helper": veleroPath + "/cmd/velero-restore-helper",
			"velero-plugin-for-aws": awsPath + "/velero-plugin-for-aws",
			"cp-plugin":             awsPath + "/hack/cp-plugin",
		},
		Variables: map[string]string{veleroPath + "/pkg/buildinfo.Version": "{" + veleroPath + "}"},
	}
}

// VeleroVersions are the versions of Velero and its plugin.
func (s Source) VeleroVersions() (velero, plugin string, err error) {
	module := s.Velero()
	if velero, err = module.Version(veleroPath); err != nil {
		return "", "", err
	}
	plugin, err = module.Version(awsPath)
	return velero, plugin, err
}

// Mover is the module of the program that works next to volumes. It is not the lab's, and shares a package with mig.
func (s Source) Mover() Module {
	root := filepath.Join(string(s), "..", "..")
	return Module{
		Name: "mig-mover", Dir: filepath.Join(root, "cmd", "mig-mover"), Sources: []string{filepath.Join(root, "internal", "manifest")},
		Programs: map[string]string{"mig-mover": "."},
	}
}

// Pause is the program of the containers that hold a pod's namespaces. It is part of this module.
func (s Source) Pause() Module {
	return Module{Name: "pause", Dir: filepath.Join(string(s), "pause"), Programs: map[string]string{"pause": "."}}
}
