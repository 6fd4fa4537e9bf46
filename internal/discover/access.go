package discover

import (
	"context"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/mig-cli/mig/internal/cluster"
)

// greet notes how we get to the cluster, for how long, and its clock. A clock
// that is not told is no finding: a proxy may take the header away.
func greet(ctx context.Context, c *cluster.Cluster) Access {
	mine := c.Credentials()
	a := Access{Credentials: mine.What, CredentialsUntil: mine.Until, Insecure: mine.Insecure}
	ctx, cancel := context.WithTimeout(ctx, ReachTimeout)
	defer cancel()
	a.User = whoami(ctx, c)
	asked := time.Now()
	g, err := c.Greet(ctx)
	if err != nil {
		return a
	}
	// The answer was made somewhere between asking and now; the header tells
	// whole seconds, so its own half is added.
	between := asked.Add(time.Since(asked) / 2)
	a.Now, a.CertificateUntil = g.Now, g.CertificateUntil
	if ahead := g.Now.Add(time.Second / 2).Sub(between); ahead.Abs() > time.Second {
		a.Ahead = ahead.Round(time.Second)
	}
	return a
}

// whoami is who the cluster takes us for; empty where it does not say.
func whoami(ctx context.Context, c *cluster.Cluster) string {
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(ctx, review); err != nil {
		return ""
	}
	return review.Status.UserInfo.Username
}
