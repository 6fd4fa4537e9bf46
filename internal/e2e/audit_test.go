//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/labtest"
	"github.com/mig-cli/mig/internal/naming"
)

// jsonpath is what kubectl alone reads, as somebody does who has no mig.
func (s *scenario) jsonpath(c *cluster.Cluster, path string, args ...string) string {
	s.t.Helper()
	out, err := s.lab.Kubectl(s.t.Context(), c, "", append(append([]string{"get"}, args...), "-o", "jsonpath="+path)...)
	s.must(err)
	return out
}

func annotation(key string) string { return "{.metadata.annotations." + dotted(key) + "}" }
func dotted(key string) string     { return strings.ReplaceAll(key, ".", `\.`) }

// tells wants values at paths of an object.
func (s *scenario) tells(c *cluster.Cluster, object []string, want map[string]string) {
	s.t.Helper()
	for path, value := range want {
		if got := s.jsonpath(c, path, object...); got != value {
			s.t.Errorf("%s: kubectl get %s -o jsonpath=%s prints %q, want %q", c.Access.Context, strings.Join(object, " "), path, got, value)
		}
	}
}

// tellsNothing wants no key of mig's or of the reference system's on an object.
func (s *scenario) tellsNothing(c *cluster.Cluster, object ...string) {
	s.t.Helper()
	got := s.jsonpath(c, "{.metadata.labels}{.metadata.annotations}{.spec.template.metadata}", object...)
	for _, prefix := range []string{naming.Prefix, "openshift.io/", "openshift-migration"} {
		if strings.Contains(got, prefix) {
			s.t.Errorf("%s: %s still has keys of %s: %s", c.Access.Context, strings.Join(object, " "), prefix, got)
		}
	}
}

// isMarked wants on the namespaces and claims of both sides where they went and
// whence they came, by which run, and gives that run's uid.
func (s *scenario) isMarked() (run string) {
	s.t.Helper()
	run = s.jsonpath(s.src(), annotation(naming.AnnRunUID), "namespace", s.name)
	record := []string{"configmap", "-n", labtest.VeleroNamespace, "-l", naming.LabelRecord + "=run," + naming.LabelRun + "=" + run}
	for _, side := range []struct {
		c                    *cluster.Cluster
		ns, direction, other string
	}{
		{s.src(), s.name, naming.AnnMigratedTo, labtest.DestinationContext + "/" + s.dest},
		{s.dst(), s.dest, naming.AnnMigratedFrom, labtest.SourceContext + "/" + s.name},
	} {
		s.tells(side.c, record, map[string]string{"{.items[0].metadata.labels." + dotted(naming.LabelPlan) + "}": s.planUID})
		for _, o := range []struct {
			object []string
			other  string
		}{
			{[]string{"namespace", side.ns}, side.other},
			{[]string{"persistentvolumeclaim", labtest.NotesClaim, "-n", side.ns}, side.other + "/" + labtest.NotesClaim},
		} {
			s.tells(side.c, o.object, map[string]string{
				annotation(side.direction): o.other, annotation(naming.AnnRunUID): run, annotation(naming.AnnPlanUID): s.planUID,
			})
			if _, err := time.Parse(time.RFC3339, s.jsonpath(side.c, annotation(naming.AnnMigratedAt), o.object...)); err != nil {
				s.t.Errorf("when %v was migrated: %v", o.object, err)
			}
		}
	}
	return run
}

// isAudited wants what a migration leaves on objects.
func (s *scenario) isAudited() {
	s.t.Helper()
	run := s.isMarked()
	s.tells(s.src(), []string{"deployment", "notes", "-n", s.name}, map[string]string{
		"{.spec.replicas}": "0", annotation(naming.RefPreQuiesceReplicas): "1",
	})
	s.tellsNothing(s.dst(), "deployment", "notes", "-n", s.dest)
	for _, is := range []struct {
		c           *cluster.Cluster
		kind, label string
	}{
		{s.src(), "backups.velero.io", naming.RefInitialBackup},
		{s.src(), "backups.velero.io", naming.RefStageBackup},
		{s.dst(), "restores.velero.io", naming.RefStageRestore},
		{s.dst(), "restores.velero.io", naming.RefFinalRestore},
	} {
		s.tells(is.c, []string{is.kind, "-n", labtest.VeleroNamespace, "-l", is.label + "=" + run}, map[string]string{
			"{.items[0].metadata.labels." + dotted(naming.RefPartOf) + "}":             naming.RefPartOfValue,
			"{.items[0].metadata.labels." + dotted(naming.RefMigratedByPlan) + "}":     s.planUID,
			"{.items[0].metadata.labels." + dotted(naming.RefMigratedByRun) + "}":      run,
			"{.items[0].metadata.annotations." + dotted(naming.RefMigrationType) + "}": "final",
			"{.items[0].metadata.annotations." + dotted(naming.RefPlanName) + "}":      s.name,
			"{.items[0].metadata.labels." + dotted(naming.LabelCreatedBy) + "}":        naming.CreatedBy,
		})
	}
}

// auditIsKept looks with kubectl alone at what plans have left on objects: of
// one that is migrated, of one that is closed then, and of one that is taken back.
func auditIsKept(t *testing.T, migrated, closed, back *scenario) {
	t.Helper()
	for _, s := range []*scenario{migrated, closed, back} {
		s.on(t).isAudited()
	}
	closed.succeeds("plan", "close", closed.name, "--yes")
	closed.on(t).isMarked()
	closed.on(t).tells(closed.src(), []string{"backups.velero.io", "-n", labtest.VeleroNamespace, "-l", naming.LabelPlan + "=" + closed.planUID}, map[string]string{
		"{.items[*].metadata.name}": "",
	})
	back.succeeds("rollback", "--yes")
	for _, object := range [][]string{
		{"namespace", back.name}, {"persistentvolumeclaim", labtest.NotesClaim, "-n", back.name}, {"deployment", "notes", "-n", back.name},
	} {
		back.on(t).tellsNothing(back.src(), object...)
	}
}
