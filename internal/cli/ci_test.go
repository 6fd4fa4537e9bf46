package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// ciScript runs the example's script with a mig that ends with codes by
// command (all others with 0), and gives its exit code and what mig was asked.
func ciScript(t *testing.T, step string, codes map[string]int, env ...string) (code int, asked []string) {
	t.Helper()
	script, err := filepath.Abs(filepath.Join("..", "..", "examples", "ci", "migrate.sh"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	mig := "#!/bin/sh\necho \"$*\" >>asked\ncase \"$*\" in\n"
	for command, code := range codes {
		mig += fmt.Sprintf("%q*) exit %d ;;\n", command, code)
	}
	if err := os.WriteFile(filepath.Join(dir, "mig"), []byte(mig+"esac\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", script, step)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), append([]string{"MIG=./mig", "PLAN=shop", "SRC=ctx1", "DST=ctx2"}, env...)...)
	said, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	text, err := os.ReadFile(filepath.Join(dir, "asked"))
	if err != nil {
		t.Fatal(err)
	}
	return code, strings.Split(strings.TrimSpace(string(text)), "\n")
}

func TestThePipelineGoesOnOrBackAsTheExitCodesSay(t *testing.T) {
	for _, c := range []struct {
		name     string
		codes    map[string]int
		rollback string
		code     int
		commands string // of mig, in order
	}{
		{"all is well", nil, "", 0, "plan plan stage migrate"},
		{"there and back", nil, "always", 0, "plan plan stage migrate rollback"},
		{"no rights to make a plan", map[string]int{"plan create": 4}, "", 4, "plan"},
		{"not ready", map[string]int{"plan validate": 10}, "", 10, "plan plan"},
		{"the stage fails", map[string]int{"stage": 1}, "", 1, "plan plan stage"},
		{"the migration fails", map[string]int{"migrate": 1}, "", 1, "plan plan stage migrate rollback"},
		{"it fails and is left", map[string]int{"migrate": 1}, "never", 1, "plan plan stage migrate"},
		{"it is blocked", map[string]int{"migrate": 10}, "", 10, "plan plan stage migrate rollback"},
		{"the rollback fails too", map[string]int{"migrate": 1, "rollback": 10}, "", 1, "plan plan stage migrate rollback"},
		{"something is left out", map[string]int{"migrate": 3}, "", 3, "plan plan stage migrate"},
		{"another holds it", map[string]int{"migrate": 11}, "", 11, "plan plan stage migrate"},
		{"interrupted", map[string]int{"migrate": 130}, "", 130, "plan plan stage migrate"},
		{"refused", map[string]int{"migrate": 4}, "", 4, "plan plan stage migrate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, asked := ciScript(t, "all", c.codes, "ROLLBACK="+c.rollback, "NAMESPACES=shop:shop-prod", "MAX_DOWNTIME=20m", "STORAGE_LOCATION=default")
			var commands []string
			for _, line := range asked {
				word, _, _ := strings.Cut(line, " ")
				commands = append(commands, word)
			}
			if got := strings.Join(commands, " "); code != c.code || got != c.commands {
				t.Errorf("exit %d after %q, want %d after %q", code, got, c.code, c.commands)
			}
		})
	}
}

func TestMigTakesWhatThePipelineAsksOfIt(t *testing.T) {
	_, asked := ciScript(t, "all", nil, "ROLLBACK=always", "NAMESPACES=shop", "MAX_DOWNTIME=20m", "STORAGE_LOCATION=default", "SRC_KUBECONFIG=a", "DST_KUBECONFIG=b")
	_, history := ciScript(t, "history", nil)
	for _, line := range append(asked, history...) {
		root := newRootCommand(newBench(t).Factory)
		root.SetContext(context.Background())
		cmd, args, err := root.Find(strings.Fields(line))
		if err == nil {
			err = cmd.ParseFlags(args)
		}
		if err == nil {
			err = cmd.ValidateArgs(cmd.Flags().Args())
		}
		if err != nil || cmd == root {
			t.Errorf("mig %s: %v", line, err)
		}
	}
}

func TestThePipelinesAreYAMLThatCallTheScript(t *testing.T) {
	for _, name := range []string{"github-actions.yaml", "gitlab-ci.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "examples", "ci", name))
		if err != nil {
			t.Fatal(err)
		}
		var content map[string]any
		if err := yaml.UnmarshalStrict(text, &content); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, step := range []string{"create", "validate", "stage", "migrate", "rollback", "history"} {
			if !strings.Contains(string(text), "examples/ci/migrate.sh "+step) {
				t.Errorf("%s has no %s", name, step)
			}
		}
	}
}
