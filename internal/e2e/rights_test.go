//go:build e2e

package e2e

import (
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mig-cli/mig/internal/cluster"
	"github.com/mig-cli/mig/internal/labtest"
	"github.com/mig-cli/mig/internal/naming"
)

// limited makes the scenario's mig run as a service account that has the
// printed rights and no others.
func (s *scenario) limited() {
	s.t.Helper()
	ctx := s.t.Context()
	account, all := "mig-"+s.name, s.lab
	config := clientcmdapi.NewConfig()
	for _, side := range []struct {
		c         *cluster.Cluster
		as        string
		namespace string
	}{{s.src(), "source", s.name}, {s.dst(), "destination", s.dest}} {
		context := side.c.Access.Context
		_, err := s.lab.Kubectl(ctx, side.c, "", "create", "serviceaccount", account, "-n", metav1.NamespaceDefault)
		s.must(err)
		rights := s.succeeds("cluster", "check", context, "--as", side.as, "--namespaces", side.namespace,
			"--print-role=all", "--for", "system:serviceaccount:default:"+account).Stdout
		// The names of others' Roles are not to be met.
		rights = regexp.MustCompile(`name: mig\b([^-])`).ReplaceAllString(rights, "name: "+account+"$1")
		// Nor are they an other's where a test beside this one looks for such.
		rights = strings.ReplaceAll(rights, "labels: {", "labels: {"+naming.LabelCreatedBy+": "+naming.CreatedBy+", ")
		_, err = s.lab.Kubectl(ctx, side.c, rights, "apply", "-f", "-")
		s.must(err)
		s.t.Cleanup(func() { s.takeAway(all, side.c, account, rights) })

		name := side.c.Access.Context
		config.Clusters[name] = &clientcmdapi.Cluster{Server: side.c.Config.Host, CertificateAuthorityData: side.c.Config.CAData, CertificateAuthority: side.c.Config.CAFile}
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: s.token(side.c, account)}
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	own := *s.lab
	own.Kubeconfig = filepath.Join(s.t.TempDir(), "kubeconfig")
	s.must(clientcmd.WriteToFile(*config, own.Kubeconfig))
	s.lab = &own
}

// token is good for longer than a run may take: mig refuses a shorter one.
func (s *scenario) token(c *cluster.Cluster, account string) string {
	s.t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(7 * 24 * 60 * 60))}}
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: account}}
	s.must(c.SubResource("token").Create(s.t.Context(), of, request))
	return request.Status.Token
}

func (s *scenario) takeAway(all *labtest.Lab, c *cluster.Cluster, account, rights string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), patience)
	defer cancel()
	_, err := all.Kubectl(ctx, c, rights, "delete", "--ignore-not-found", "-f", "-")
	if err == nil {
		err = client.IgnoreNotFound(c.Delete(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: account}}))
	}
	if err != nil {
		s.t.Errorf("taking the rights away: %v", err)
	}
}

func TestThePrintedRightsAreEnoughForAWholeMoveAndBack(t *testing.T) {
	t.Parallel()
	s := newScenario(t, "e2e-rights")
	ctx := t.Context()
	s.deployNotes(5)
	s.must(s.lab.Apply(ctx, s.src(), s.name, labtest.FrontYAML))
	s.must(s.lab.WorkloadsReady(ctx, s.src(), s.name, patience))
	all := s.lab
	s.limited()
	before, err := labtest.ObjectsOf(ctx, s.src(), s.name)
	s.must(err)
	s.makePlan(nil)

	s.succeeds("plan", "validate")
	s.succeeds("pv", "discover")
	s.succeeds("stage")
	migrated := s.succeeds("migrate")
	if _, err := all.Arrived(ctx, s.name, s.dest, labtest.NotesWriting); err != nil {
		t.Error(err)
	}
	t.Run("nothing is missing, and what differs must", func(t *testing.T) { s.on(t).succeeds("verify") })
	s.succeeds("status")
	back := s.succeeds("rollback", "--yes")
	s.must(all.GoneFromDestination(ctx, s.planUID, s.dest))
	s.must(all.SourceAsBefore(ctx, before, s.name))
	for _, r := range []labtest.Result{migrated, back} {
		if strings.Contains(r.Stdout+r.Stderr, "forbidden") {
			t.Errorf("something was not allowed:\n%s", r)
		}
	}
}
