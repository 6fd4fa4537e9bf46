package plan

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Marshal is the plan as a file for people: the same plan always gives the same
// bytes, every field has its place, and comments say what may be written there.
// Parse reads it back to the same plan.
func Marshal(p *Plan) []byte {
	w := &writer{}
	w.line(0, "# A plan of mig. Look it over, choose what is marked, then run: mig plan validate %s", p.Metadata.Name)
	w.line(0, "apiVersion: %s", text(p.APIVersion))
	w.line(0, "kind: %s", text(p.Kind))
	w.line(0, "metadata:")
	w.line(1, "name: %s", text(p.Metadata.Name))
	w.line(1, "uid: %s # made once, at random; what mig makes in the clusters carries it: never change or copy it", text(p.Metadata.UID))
	w.line(0, "spec:")
	w.clusters(p.Spec)
	w.namespaces(p.Spec.Namespaces)
	w.volumes(p.Spec.Volumes)
	w.storageClasses(p.Spec.StorageClasses)
	w.quiesce(p.Spec.Quiesce)
	w.accept(p.Spec.Accept)
	w.limits(p.Spec.Limits)
	return []byte(w.b.String())
}

// Write puts the plan into a file, whole or not at all. With overwrite unset
// an existing file is an error (os.ErrExist).
func Write(path string, p *Plan, overwrite bool) error {
	return writeFile(path, Marshal(p), overwrite)
}

// writeFile goes by a new file beside the old one, so that a full disk or a
// kill leaves the old one whole.
func writeFile(path string, data []byte, overwrite bool) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".mig-*")
	if err != nil {
		return fmt.Errorf("plan file %s: %w", path, bare(err))
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // after a rename there is nothing left to remove
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Chmod(0o644)
	}
	if err == nil {
		err = tmp.Sync()
	}
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("plan file %s: %w", path, bare(err))
	}
	return place(tmp.Name(), path, overwrite)
}

func place(tmp, path string, overwrite bool) error {
	if overwrite {
		if err := os.Rename(tmp, path); err != nil {
			return fmt.Errorf("plan file %s: %w", path, err)
		}
		return nil
	}
	// A link fails where a rename would replace.
	if err := os.Link(tmp, path); err != nil {
		if os.IsExist(err) {
			return fmt.Errorf("plan file %s: %w", path, os.ErrExist)
		}
		return fmt.Errorf("plan file %s: %w", path, err)
	}
	return nil
}

// writer writes YAML in one fixed form.
type writer struct{ b strings.Builder }

func (w *writer) line(indent int, format string, args ...any) {
	w.b.WriteString(strings.Repeat("  ", indent))
	fmt.Fprintf(&w.b, format, args...)
	w.b.WriteByte('\n')
}

func (w *writer) clusters(s Spec) {
	w.cluster("source", "where the namespaces are; its objects and data are never deleted", s.Source)
	w.cluster("destination", "where they go", s.Destination)
	w.line(1, "storage: # the object store between the two")
	w.line(2, "location: %s # a BackupStorageLocation of this name on both clusters, with the same bucket and prefix", text(s.Storage.Location))
}

func (w *writer) cluster(field, comment string, c Cluster) {
	w.line(1, "%s: # %s", field, comment)
	w.line(2, "context: %s # of the kubeconfig", text(c.Context))
	w.optional(2, "kubeconfig: %s # a path; without it kubectl's rules (KUBECONFIG, then the home file)", c.Kubeconfig)
	w.optional(2, "veleroNamespace: %s", c.VeleroNamespace)
}

func (w *writer) optional(indent int, format, value string) {
	if value != "" {
		w.line(indent, format, text(value))
	}
}

func (w *writer) namespaces(namespaces []Namespace) {
	w.line(1, "namespaces: # name: on the source; destination: its name there, where it is another one")
	for _, n := range namespaces {
		w.line(2, "- name: %s", text(n.Name))
		w.optional(2, "  destination: %s", n.Destination)
	}
}

func (w *writer) volumes(volumes []Volume) {
	if len(volumes) == 0 {
		return
	}
	w.b.WriteString(`  # Every claim of the namespaces. volume, capacity, used, storageClass, accessModes, volumeMode
  # and supported are as they were found; yours to choose are:
  #   action: copy (the data goes along) or skip (neither claim nor data does)
  #   copyMethod: filesystem
  #   destination: storageClass, accessModes, size of the claim there; what is left out stays as on the source
  #   verify: compare the contents of both sides after the copy
`)
	w.line(1, "volumes:")
	for _, v := range volumes {
		w.volume(v)
	}
}

func (w *writer) volume(v Volume) {
	w.line(2, "- claim: %s", text(v.Claim))
	w.optional(3, "volume: %s", v.Volume)
	w.optional(3, "capacity: %s", v.Capacity)
	w.optional(3, "used: %s", v.Used)
	w.optional(3, "storageClass: %s", v.StorageClass)
	w.list(3, "accessModes", v.AccessModes)
	w.optional(3, "volumeMode: %s", v.VolumeMode)
	supported := make([]string, 0, len(v.Supported))
	for _, a := range v.Supported {
		supported = append(supported, string(a))
	}
	w.list(3, "supported", supported)
	if v.Action == "" && len(supported) > 0 {
		w.line(3, `action: "" # choose: %s`, strings.Join(supported, " or "))
	} else if v.Action == "" {
		w.line(3, `action: "" # choose: copy or skip`)
	} else {
		w.line(3, "action: %s", text(string(v.Action)))
	}
	w.optional(3, "copyMethod: %s", v.CopyMethod)
	w.volumeDestination(v.Destination)
	if v.Verify {
		w.line(3, "verify: true")
	}
}

func (w *writer) volumeDestination(d VolumeDestination) {
	if d.StorageClass == "" && len(d.AccessModes) == 0 && d.Size == "" {
		return
	}
	w.line(3, "destination:")
	w.optional(4, "storageClass: %s", d.StorageClass)
	w.list(4, "accessModes", d.AccessModes)
	w.optional(4, "size: %s", d.Size)
}

func (w *writer) list(indent int, field string, values []string) {
	if len(values) == 0 {
		return
	}
	quoted := make([]string, 0, len(values))
	for _, v := range values {
		quoted = append(quoted, text(v))
	}
	w.line(indent, "%s: [%s]", field, strings.Join(quoted, ", "))
}

func (w *writer) storageClasses(classes map[string]string) {
	if len(classes) == 0 {
		w.line(1, "storageClasses: {} # class on the source: class on the destination, for volumes without one of their own")
		return
	}
	w.line(1, "storageClasses: # class on the source: class on the destination, for volumes without one of their own")
	for _, from := range sortedKeys(classes) {
		w.line(2, "%s: %s", text(from), text(classes[from]))
	}
}

func (w *writer) quiesce(q Quiesce) {
	w.line(1, "quiesce: # the application is stopped for the last copy")
	if q.Enabled != nil {
		w.line(2, "enabled: %t", *q.Enabled)
	}
	if len(q.Except) == 0 {
		w.line(2, "except: [] # KIND/NAMESPACE/NAME of workloads that stay up; they may mount no copied claim")
		return
	}
	w.line(2, "except: # KIND/NAMESPACE/NAME of workloads that stay up; they may mount no copied claim")
	for _, e := range q.Except {
		w.line(3, "- %s", text(e))
	}
}

func (w *writer) accept(accepted []Accept) {
	if len(accepted) == 0 {
		w.line(1, "accept: [] # findings of mig plan validate that you have seen and accept: {type, object, why}")
		return
	}
	w.line(1, "accept: # findings of mig plan validate that you have seen and accept: {type, object, why}")
	for _, a := range accepted {
		w.line(2, "- type: %s", text(a.Type))
		w.line(2, "  object: %s", text(a.Object))
		w.line(2, "  why: %s", text(a.Why))
	}
}

func (w *writer) limits(l LimitsSpec) {
	if l.MaxDowntime == "" && len(l.Timeouts) == 0 {
		return
	}
	w.line(1, "limits:")
	w.optional(2, "maxDowntime: %s # the source comes up again when it was down for so long and nothing runs on the destination yet", l.MaxDowntime)
	if len(l.Timeouts) == 0 {
		return
	}
	w.line(2, "timeouts: # step: how long it may take")
	for _, step := range sortedKeys(l.Timeouts) {
		w.line(3, "%s: %s", text(step), text(l.Timeouts[step]))
	}
}

// plain needs no quotes in YAML, and no reader takes it for a number, a truth
// value or nothing.
var plain = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9._/-]*[A-Za-z0-9])?$|^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti|P|Pi|E|Ei)$`)

// notPlain are words that some reader of YAML takes for something else than a text.
var notPlain = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|true|false|null|nan|inf)$`)

func text(s string) string {
	if plain.MatchString(s) && !notPlain.MatchString(s) {
		return s
	}
	return strconv.Quote(s)
}
