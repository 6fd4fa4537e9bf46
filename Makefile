SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS   += --no-print-directory

# One set of flags for every module and target, so that all of them share the build cache.
export CGO_ENABLED := 0
export GOFLAGS     := -trimpath -buildvcs=false

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null)
DATE    ?= $(shell git log -1 --format=%cI 2>/dev/null)

version_pkg := github.com/mig-cli/mig/internal/version
ldflags     := -s -w -X $(version_pkg).Version=$(VERSION) -X $(version_pkg).Commit=$(COMMIT) -X $(version_pkg).Date=$(DATE)

# The lab's programs gather others' code (Kubernetes, Velero, …) in modules of their own. What of ours is in them is a main of
# a few lines, for which a linter would first have to read all of Kubernetes, and the provisioner, which is linted alone.
modules   := . cmd/mig-mover scripts/lab
lint_dirs := $(modules) scripts/lab/kubernetes/provisioner

# The tests that need the lab are behind a build tag, in whichever package they belong to.
e2e_packages = $(addprefix ./,$(sort $(dir $(shell grep -rl '^//go:build e2e' --include='*_test.go' internal))))

lab := go run -C scripts/lab .

golangci   := bin/tools/golangci-lint
gotestsum  := bin/tools/gotestsum
goreleaser := bin/tools/goreleaser

##@ Build

.PHONY: build
build: ## Build bin/mig
	go build -ldflags '$(ldflags)' -o bin/mig ./cmd/mig

.PHONY: generate
generate: ## Write what is made from the code: completions, go.mod, go.sum
	scripts/completions.sh
	for module in $(modules); do go mod tidy -C "$$module"; done

.PHONY: snapshot
snapshot: $(goreleaser) ## Build mig for every system that a release is for, into dist/
	$(goreleaser) build --snapshot --clean

##@ Check

.PHONY: fmt
fmt: $(golangci) ## Format all Go code
	$(golangci) fmt

.PHONY: fmt-check
fmt-check: $(golangci) ## Fail if code is not formatted
	$(golangci) fmt --diff

.PHONY: lint
lint: $(golangci) ## Lint all code
	failed=; for dir in $(lint_dirs); do \
		echo "lint $$dir"; \
		(cd "$$dir" && "$(CURDIR)/$(golangci)" run) || failed=yes; \
	done; test -z "$$failed"

.PHONY: verify-generated
verify-generated: ## Fail if `make generate` would change something
	made=$$(mktemp -d); trap 'rm -rf "$$made"' EXIT; \
	scripts/completions.sh "$$made"; diff -ru completions "$$made"
	for module in $(modules); do go mod tidy -C "$$module" -diff; done

##@ Test

.PHONY: test
test: test-unit e2e ## Run all tests: those of values and commands, then those on the lab

.PHONY: test-unit
test-unit: $(gotestsum) ## Run the tests that need no cluster
	for module in $(modules); do \
		(cd "$$module" && "$(CURDIR)/$(gotestsum)" --format pkgname-and-test-fails --format-hide-empty-pkg -- ./...); \
	done

# client-go under the race detector takes minutes to build, and what is ours and concurrent is not there.
.PHONY: race
race: $(gotestsum) ## Run the tests of the packages without clients under the race detector
	packages=$$(go list -test -f '{{if eq .Name "main"}}{{.ImportPath}} {{join .Deps " "}}{{end}}' ./... | \
		awk '$$1 ~ /\.test$$/ && !/ k8s\.io\/client-go\/kubernetes / { sub(/\.test$$/, "", $$1); print $$1 }'); \
	CGO_ENABLED=1 $(gotestsum) --format pkgname-and-test-fails --format-hide-empty-pkg -- -race $$packages

# What is tested and shown is what `build` made.
e2e demo cases kill: export MIG := $(CURDIR)/bin/mig

.PHONY: e2e
e2e: build lab-up $(gotestsum) ## Run the tests on the lab; RUN=regexp selects some
	$(gotestsum) --format testname -- -tags e2e -p 1 -count 1 -timeout 70m -run '$(RUN)' $(e2e_packages)

# What the cases are run on: nothing, two API servers, and the lab, without and with what only real nodes have.
NEEDS ?= cli api velero node

.PHONY: cases
cases: build lab-build ## Run the cases; NEEDS="cli api" leaves the lab out, RUN=regexp selects, MIG_CASES=dir adds those in it
	$(if $(filter velero node,$(NEEDS)),$(MAKE) lab-up)
	go test -c -tags e2e,cases -o bin/cases.test ./internal/cases
	cd internal/cases && MIG_NEEDS='$(NEEDS)' MIG_CASES='$(abspath $(MIG_CASES))' \
		$(CURDIR)/bin/cases.test -test.timeout 4h -test.run '$(RUN)' $(if $(MIG_CASES),-test.v)

# Takes an hour or more: each kill waits until the dead process's lease has run out.
.PHONY: kill
kill: build lab-up ## Kill mig before and after each effect of each step, and at random; KILLS=n, SEED=n, RUN=regexp
	go test -tags e2e,kill -count 1 -timeout 4h -v -run '$(or $(RUN),^TestKill)' ./internal/e2e

.PHONY: demo
demo: build lab-up ## Move a PostgreSQL between two clusters, prove it, and take it back
	go run ./scripts/demo

# For figures, not for CI: minutes the first time, when the clusters are filled, and many for the large volumes.
.PHONY: bench bench-plan bench-move
bench: bench-plan bench-move ## Measure mig, all of the two below

bench-plan: build lab-build ## Measure the looking, on clusters of many teams, beside kubectl; SCALE=0.1 for smaller ones
	go run ./scripts/bench -mig bin/mig -scale '$(or $(SCALE),1)'

bench-move: build lab-up ## Measure moves on the lab; SIZES=1,4,8 (GiB), SMALL=5, FILES=200000, BASELINE=program that moves by hand
	go run ./scripts/bench/move -mig bin/mig -sizes '$(or $(SIZES),1,4,8)' -small '$(or $(SMALL),5)' -files '$(or $(FILES),200000)' -baseline '$(BASELINE)'

# Each phase tells its time; lab-build and lab-up are the first parts of e2e.
.PHONY: ci
ci: ## What every change must pass: format, lint, build, all tests
	@for phase in fmt-check lint build verify-generated test-unit lab-build lab-up e2e; do \
		began=$$SECONDS; \
		$(MAKE) $$phase || { echo "ci: $$phase failed after $$((SECONDS - began)) s"; exit 1; }; \
		echo "ci: $$phase took $$((SECONDS - began)) s"; \
	done

##@ Lab: two real clusters on this machine (Linux, as root)

.PHONY: lab-up
lab-up: ## Start the lab, or what is missing of it
	$(lab) up

.PHONY: lab-down
lab-down: ## Stop the lab and remove what it left; what was built is kept
	$(lab) down

.PHONY: lab-status
lab-status: ## Say what of the lab is running
	$(lab) status

.PHONY: lab-test
lab-test: ## Kill the lab and its processes at random, and see that it comes up again; KILLS=n, SEED=n
	go test -C scripts/lab -tags lab -count 1 -timeout 1h -v -run TheLabComesUp .

.PHONY: lab-build
lab-build: ## Build the lab's programs and images
	$(lab) build

##@ Help

.PHONY: help
help: ## Show this help
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Tools are built when their versions change.
tool = go build -C $(<D) -ldflags='-s -w' -o $(CURDIR)/$@

$(golangci): scripts/tools/go.mod scripts/tools/go.sum
	$(tool) github.com/golangci/golangci-lint/v2/cmd/golangci-lint

$(gotestsum): scripts/tools/go.mod scripts/tools/go.sum
	$(tool) gotest.tools/gotestsum

$(goreleaser): scripts/tools/release/go.mod scripts/tools/release/go.sum
	$(tool) github.com/goreleaser/goreleaser/v2
