package step

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mig-cli/mig/internal/naming"
	"github.com/mig-cli/mig/internal/pipeline"
	"github.com/mig-cli/mig/internal/plan"
	"github.com/mig-cli/mig/internal/velero"
)

func probe(node string, status corev1.ContainerState) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "velero", Name: "probe"}, Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Image: "registry.test/mover:1"}}}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: status}}
	if status.Terminated != nil {
		p.Status.Phase = corev1.PodSucceeded
		if status.Terminated.ExitCode != 0 {
			p.Status.Phase = corev1.PodFailed
		}
	}
	return p
}

func waitsFor(reason string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "as the kubelet says"}}
}

func endedWith(code int32, message string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message}}
}

func TestWhoRestoresIsSettledBeforeAnythingStops(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
	leaving := claim.DeepCopy()
	leaving.DeletionTimestamp = &metav1.Time{}
	one := []*corev1.PersistentVolumeClaim{claim}
	refused := []corev1.Pod{probe("n1", waitsFor("ImagePullBackOff"))}
	for name, c := range map[string]struct {
		st      moverState
		verdict pipeline.Verdict
		says    string
		warns   bool
	}{
		"nothing was made for it":     {moverState{}, pipeline.Done, "Velero restores", false},
		"nobody has looked":           {moverState{claims: one, unprobed: []string{"n1"}}, pipeline.Act, "n1", false},
		"it is being pulled":          {moverState{claims: one, probes: []corev1.Pod{probe("n1", waitsFor("ContainerCreating"))}}, pipeline.Wait, "velero/probe", false},
		"the first pull failed":       {moverState{claims: one, probes: []corev1.Pod{probe("n1", waitsFor("ErrImagePull"))}}, pipeline.Wait, "ErrImagePull", false},
		"it runs":                     {moverState{claims: one, probes: []corev1.Pod{probe("n1", endedWith(0, ""))}}, pipeline.Done, "on 1 node", false},
		"it cannot be pulled":         {moverState{claims: one, probes: refused}, pipeline.Act, "Velero is to restore", true},
		"the plan leaves no choice":   {moverState{claims: one, probes: refused, required: true}, pipeline.Failed, "registry.test/mover:1 on node n1: ImagePullBackOff: as the kubelet says", false},
		"a stage has filled some":     {moverState{claims: one, probes: refused, filled: true}, pipeline.Failed, "spec.mover: velero", false},
		"it is not of this processor": {moverState{claims: one, probes: []corev1.Pod{probe("n1", endedWith(1, "exec format error"))}, required: true}, pipeline.Failed, "exec format error", false},
		"it does not read the store":  {moverState{claims: one, unread: "it is of provider gcp"}, pipeline.Act, "Velero is to restore", true},
		"the claims are going":        {moverState{claims: []*corev1.PersistentVolumeClaim{leaving}}, pipeline.Wait, "to be gone", false},
		"one of the filled is going":  {moverState{claims: []*corev1.PersistentVolumeClaim{leaving, claim}, filled: true}, pipeline.Failed, "claim data", false},
		"one of the claims is going":  {moverState{claims: []*corev1.PersistentVolumeClaim{leaving, claim}}, pipeline.Act, "removing", false},
	} {
		d := decideMover(c.st)
		if d.Verdict != c.verdict || !strings.Contains(d.Note.Text(), c.says) || (len(d.Warnings) > 0) != c.warns {
			t.Errorf("%s: %v, %q, %d warnings", name, d.Verdict, d.Note.Text(), len(d.Warnings))
		}
	}
}

const restoredSummary = `{"type":"summary","bytes":100,"bytesWritten":7,"filesWritten":1,"filesKept":2`

func fillingOf(claim string, attempts int, status *corev1.ContainerState) filling {
	f := filling{Capture: velero.Capture{Claim: claim, Backup: &velerov1.PodVolumeBackup{}}, attempts: attempts}
	if status != nil {
		p := probe("n1", *status)
		f.pod = &p
	}
	return f
}

func TestVolumesAreFilledSoManyAtOnceAndWhatWasCutOffBeginsAgain(t *testing.T) {
	ok, lossy := endedWith(0, restoredSummary+`}`), endedWith(3, restoredSummary+`,"disagreements":2,"first":[{"path":"pipe","kind":"not-in-snapshot"}]}`)
	killed, running, mute := endedWith(137, `{"type":"progress"}`), corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, endedWith(0, "")
	for name, c := range map[string]struct {
		fillings []filling
		verdict  pipeline.Verdict
		says     string
		begins   int
		leftOut  bool
	}{
		"none has begun":             {[]filling{fillingOf("a/1", 0, nil), fillingOf("a/2", 0, nil), fillingOf("a/3", 0, nil)}, pipeline.Act, "next volumes", 2, false},
		"as many as may be":          {[]filling{fillingOf("a/1", 1, &running), fillingOf("a/2", 1, &running), fillingOf("a/3", 0, nil)}, pipeline.Wait, "a/1, a/2", 0, false},
		"one is through":             {[]filling{fillingOf("a/1", 1, &ok), fillingOf("a/2", 1, &running), fillingOf("a/3", 0, nil)}, pipeline.Act, "next volumes", 1, false},
		"all are through":            {[]filling{fillingOf("a/1", 1, &ok), fillingOf("a/2", 1, &ok)}, pipeline.Done, "2 volumes, 200 B, 14 B of it written now", 0, false},
		"one was killed":             {[]filling{fillingOf("a/1", 1, &killed), fillingOf("a/2", 1, &ok)}, pipeline.Act, "a/1: mig-mover ended with code 137", 1, false},
		"one is killed every time":   {[]filling{fillingOf("a/1", fillAttempts, &killed), fillingOf("a/2", 1, &running)}, pipeline.Failed, "volume of a/1: mig-mover ended with code 137: , 4 times", 1, false},
		"one ended without a word":   {[]filling{fillingOf("a/1", fillAttempts, &mute)}, pipeline.Failed, "no summary", 0, false},
		"a backup lacks what a file": {[]filling{fillingOf("a/1", 1, &lossy)}, pipeline.Done, "1 volume", 0, true},
	} {
		d := decideFilling(c.fillings, 2)
		if d.Verdict != c.verdict || !strings.Contains(d.Note.Text(), c.says) {
			t.Errorf("%s: %v, %q", name, d.Verdict, d.Note.Text())
		}
		if n := len(toBegin(c.fillings, 2)); n != c.begins && d.Verdict != pipeline.Failed {
			t.Errorf("%s: begins %d", name, n)
		}
		leftOut := false
		for _, w := range d.Warnings {
			leftOut = leftOut || w.Reason() == ReasonLeftOut && strings.Contains(w.Text(), `"pipe"; and 1 more`)
		}
		if leftOut != c.leftOut {
			t.Errorf("%s: left out is told: %v", name, leftOut)
		}
	}
}

const stagedClaim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  namespace: shop-prod
  name: data
  labels: {mig-cli.github.io/created-by: mig, mig-cli.github.io/plan-uid: 5f0c3d9e-27b1, mig-cli.github.io/run-uid: run0, mig-cli.github.io/step: EnsureDestinationClaims}
spec: {storageClassName: fast, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}`

func TestClaimsThatAStageHasFilledStayUnlessThePlanWantsThemOtherwise(t *testing.T) {
	source := strings.NewReplacer("shop-prod", "shop", "mig-cli.github.io/created-by: mig, ", "").Replace(stagedClaim)
	has := func(r Run, class string) {
		t.Helper()
		var c corev1.PersistentVolumeClaim
		claims, err := r.staged(t.Context())
		if err != nil || len(claims) != 1 {
			t.Fatalf("%d claims, %v", len(claims), err)
		}
		c = *claims[0]
		if *c.Spec.StorageClassName != class || c.Labels[naming.LabelPlan] != r.Owner.PlanUID {
			t.Errorf("class %s, labels %v", *c.Spec.StorageClassName, c.Labels)
		}
	}
	r := bed(t, source, "")
	check(t, "made", settle(t, EnsureDestinationClaims(r)), pipeline.Done, "1 claim")
	has(r, "fast")
	r = bed(t, source, stagedClaim)
	check(t, "kept", settle(t, EnsureDestinationClaims(r)), pipeline.Done, "1 claim")
	has(r, "fast")
	r = bed(t, source, strings.Replace(stagedClaim, "fast", "slow", 1)+"\n---\n"+strings.Replace(stagedClaim, "name: data", "name: skipped-now", 1))
	check(t, "made anew", settle(t, EnsureDestinationClaims(r)), pipeline.Done, "1 claim")
	has(r, "fast")
	r = bed(t, source, strings.Replace(stagedClaim, "created-by: mig", "created-by: somebody", 1))
	check(t, "another's", settle(t, EnsureDestinationClaims(r)), pipeline.Failed, "no run of this plan made: shop-prod/data")
	r = bed(t, source, stagedClaim)
	check(t, "given up", settle(t, StagedClaimsRemoved(r)), pipeline.Done, "no claim of a stage")
}

func TestVolumesShareAStagePodWhereNothingParts(t *testing.T) {
	wish := func(claim, last, affinity string) stageWish {
		return stageWish{Volume: plan.Volume{Claim: claim}, last: last, affinity: affinity}
	}
	alone := wish("shop/a", "", "")
	alone.alone = true
	many := []stageWish{}
	for i := range mostTogether + 1 {
		many = append(many, wish(fmt.Sprintf("shop/%d", i), "", ""))
	}
	for name, c := range map[string]struct {
		wishes []stageWish
		want   string
	}{
		"nothing parts them":          {[]stageWish{wish("shop/a", "", ""), wish("shop/b", "", "")}, naming.StagePod("shop", "a") + ":a,b"},
		"another namespace":           {[]stageWish{wish("shop/a", "", ""), wish("store/b", "", "")}, naming.StagePod("shop", "a") + ":a " + naming.StagePod("store", "b") + ":b"},
		"other nodes":                 {[]stageWish{wish("shop/a", "", "zone 1"), wish("shop/b", "", "zone 2")}, naming.StagePod("shop", "a") + ":a " + naming.StagePod("shop", "b") + ":b"},
		"the pod that had them":       {[]stageWish{wish("shop/a", "db-0", ""), wish("shop/b", "db-1", ""), wish("shop/c", "db-0", "")}, "db-0:a,c db-1:b"},
		"a name can be one pod's":     {[]stageWish{wish("shop/a", "db-0", "zone 1"), wish("shop/b", "db-0", "zone 2")}, "db-0:a " + naming.StagePod("shop", "b") + ":b"},
		"Velero restores through it":  {[]stageWish{alone, wish("shop/b", "", "")}, naming.StagePod("shop", "a") + ":a " + naming.StagePod("shop", "b") + ":b"},
		"more than a node has places": {many, naming.StagePod("shop", "0") + ":0,1,2,3,4,5,6,7 " + naming.StagePod("shop", "8") + ":8"},
	} {
		var got []string
		for _, g := range stageGroups(c.wishes) {
			var claims []string
			for _, v := range g.volumes {
				claims = append(claims, v.Name())
			}
			got = append(got, g.name+":"+strings.Join(claims, ","))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: got  %s\nwant %s", name, text, c.want)
		}
	}
}

func TestClaimsThatOnePodMountsAreMadeTogetherWhereThatMayRun(t *testing.T) {
	pod := func(name, zone string, claims ...string) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		if zone != "" {
			p.Spec.NodeSelector = map[string]string{"zone": zone}
		}
		for _, c := range claims {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c}}})
		}
		return p
	}
	ended := pod("job", "", "data", "idle")
	ended.Status.Phase = corev1.PodSucceeded
	volumes := []plan.Volume{{Claim: "shop/data"}, {Claim: "shop/idle"}, {Claim: "shop/log"}, {Claim: "shop/shared", AccessModes: []string{"ReadWriteMany"}}, {Claim: "shop/cache"}}
	groups := together(volumes, []corev1.Pod{pod("db-0", "b", "data", "log"), pod("web", "", "cache", "shared"), pod("db-1", "b", "log"), pod("api", "", "shared", "log", "skipped"), ended})
	var got []string
	for _, g := range groups {
		claims := claimsOf(g.volumes)
		slices.Sort(claims)
		got = append(got, strings.Join(claims, ",")+"@"+g.where.NodeSelector["zone"])
	}
	slices.Sort(got)
	// What many nodes may mount joins nobody.
	if text := strings.Join(got, " "); text != "shop/cache@ shop/data,shop/log@b shop/idle@ shop/shared@" {
		t.Errorf("got %s", text)
	}
}

func TestWhatAStageBroughtStaysForTheNextRunAndGoesWithARollback(t *testing.T) {
	there := madeByUs + "---" + stagedClaim + "\n---\n" + `
{apiVersion: v1, kind: Pod, metadata: {namespace: velero, name: mig-restore-run1-x, labels: {` + ourLabels + `, mig-cli.github.io/step: EnsureStageRestore}, annotations: {mig-cli.github.io/claim: shop/data}}, status: {phase: Running}}`
	there = strings.Replace(there, "name: data,", "name: other,", 1)
	r := bed(t, "", there)
	check(t, "the mover is stopped", settle(t, VeleroWorkStopped(r)), pipeline.Done, "nothing for this plan")
	if exists(t, r.Destination, "v1", "Pod", "velero", "mig-restore-run1-x") {
		t.Error("mig-mover goes on while its volume is taken away")
	}
	d := settle(t, DestinationCleanedButForStaged(r))
	check(t, "cleaned", d, pipeline.Done, "nothing of the application runs")
	if len(warned(d, "LeftInPlace")) > 0 {
		t.Errorf("warned of %q", warned(d, "LeftInPlace"))
	}
	if !exists(t, r.Destination, "v1", "PersistentVolumeClaim", "shop-prod", "data") || !exists(t, r.Destination, "v1", "Namespace", "", "shop-prod") ||
		exists(t, r.Destination, "apps/v1", "Deployment", "shop-prod", "web") {
		t.Error("a stage's claim, and it alone, is to stay")
	}
	check(t, "rolled back", settle(t, DestinationCleaned(r)), pipeline.Done, "nothing of the application runs")
	if exists(t, r.Destination, "v1", "PersistentVolumeClaim", "shop-prod", "data") || exists(t, r.Destination, "v1", "Namespace", "", "shop-prod") {
		t.Error("a rollback is to take it")
	}
}
