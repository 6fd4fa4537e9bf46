package record

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mig-cli/mig/internal/cluster"
)

// Who is the user that the cluster takes us for; "unknown" where it cannot
// say (before Kubernetes 1.28, or where asking is not allowed).
func Who(ctx context.Context, c *cluster.Cluster) (string, error) {
	var review authenticationv1.SelfSubjectReview
	err := c.Create(ctx, &review)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err), meta.IsNoMatchError(err):
		return "unknown", nil
	case err != nil:
		return "", fmt.Errorf("ask who we are: %w", err)
	case review.Status.UserInfo.Username == "":
		return "unknown", nil
	}
	return review.Status.UserInfo.Username, nil
}
