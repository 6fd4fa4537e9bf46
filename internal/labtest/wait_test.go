package labtest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestUntilSaysAtItsLimitWhatWasMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		err := Until(t.Context(), time.Minute, "the pod is ready", func(context.Context) (NotYet, error) {
			looks++
			if looks%2 == 0 {
				return "", errors.New("connection refused")
			}
			return "it is Pending", nil
		})
		if err == nil || !strings.Contains(err.Error(), "the pod is ready: not within 1m0s: ") {
			t.Errorf("got %v", err)
		}
	})
}

func TestUntilOutlastsErrorsOfTheLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		err := Until(t.Context(), time.Minute, "the pod is ready", func(context.Context) (NotYet, error) {
			looks++
			if looks < 5 {
				return "", errors.New("connection refused")
			}
			return "", nil
		})
		if err != nil || looks != 5 {
			t.Errorf("got %v after %d looks", err, looks)
		}
	})
}
