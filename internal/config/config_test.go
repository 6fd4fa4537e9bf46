package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// load reads the settings from a file's content (empty: no file), an
// environment and a command line.
func load(t *testing.T, file string, env map[string]string, args ...string) (Config, error) {
	t.Helper()
	if env == nil {
		env = map[string]string{}
	}
	dir := t.TempDir()
	env["XDG_CONFIG_HOME"] = dir
	if file != "" {
		if err := os.MkdirAll(filepath.Join(dir, "mig"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "mig", "config.yaml"), []byte(file), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	flags := pflag.NewFlagSet("mig", pflag.ContinueOnError)
	flags.String("output", "table", "")
	flags.String("kubeconfig", "", "")
	flags.String("color", "auto", "")
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return Load(flags, func(key string) string { return env[key] })
}

func TestTheNearerSettingWins(t *testing.T) {
	const file = "output: yaml\nkubeconfig: /from/file\ncolor: never\nheartbeat: 2m\nlog-groups: github\n"
	env := map[string]string{"MIG_LOG_FILE": "/from/env.log", "MIG_LOG_GROUPS": "gitlab", "MIG_OUTPUT": "json", "MIG_KUBECONFIG": "/from/env"}
	got, err := load(t, file, env, "--output=table")
	if err != nil {
		t.Fatal(err)
	}
	want := Config{Output: "table", Kubeconfig: "/from/env", Colour: ColourNever, LogFile: "/from/env.log", Heartbeat: 2 * time.Minute, LogGroups: "gitlab"}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestWithoutAnySettingTheDefaultsHold(t *testing.T) {
	got, err := load(t, "", nil)
	if want := (Config{Colour: ColourAuto, Heartbeat: DefaultHeartbeat}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func TestASettingThatCannotBeUsedIsSaidByName(t *testing.T) {
	for _, c := range []struct {
		name, file string
		env        map[string]string
		want       string
	}{
		{"an unknown one in the file", "outptu: json\n", nil, `unknown setting "outptu"`},
		{"a file that is not YAML", "output: [\n", nil, "config.yaml"},
		{"a file named by MIG_CONFIG that is not there", "", map[string]string{"MIG_CONFIG": "/no/such"}, "/no/such"},
		{"no time", "heartbeat: often\n", nil, `invalid duration`},
		{"a time below zero", "", map[string]string{"MIG_HEARTBEAT": "-1s"}, "heartbeat: -1s"},
		{"no CI of ours", "log-groups: jenkins\n", nil, `log-groups: "jenkins" is none of`},
		{"no colour of ours", "", map[string]string{"MIG_COLOR": "red"}, `color: "red" is none of`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := load(t, c.file, c.env)
			var settings *Error
			if !errors.As(err, &settings) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an *Error that says %q", err, c.want)
			}
		})
	}
}
