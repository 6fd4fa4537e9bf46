package cli

import (
	"context"
	"errors"
)

// errNotBuilt is a run that this mig cannot do yet.
var errNotBuilt = errors.New("runs are not built yet") //nolint:gochecknoglobals // a sentinel

func startRun(context.Context, runRequest) (runResult, error) { return runResult{}, errNotBuilt }

func previewRun(context.Context, runRequest) ([]previewStep, error) { return nil, errNotBuilt }
