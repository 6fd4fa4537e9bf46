// Package config gathers the settings of mig that are not part of a plan:
// flags win over the environment (MIG_OUTPUT for output, and so on), the
// environment over the file, the file over the defaults. It is the only user of
// viper and knows no command.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"
)

// Colour says when output is coloured.
type Colour string

// The choices of colour. Auto means on a terminal, unless NO_COLOR is set.
const (
	ColourAuto   Colour = "auto"
	ColourAlways Colour = "always"
	ColourNever  Colour = "never"
)

// Config is every setting, from wherever it came.
type Config struct {
	Output     string `mapstructure:"output"`     // empty: what the command prefers
	Kubeconfig string `mapstructure:"kubeconfig"` // empty: kubectl's rules
	Colour     Colour `mapstructure:"color"`
	LogFile    string `mapstructure:"log-file"` // empty: no log is kept
	// Heartbeat is how often plain lines tell what a step waits for; 0: never.
	Heartbeat time.Duration `mapstructure:"heartbeat"`
	// LogGroups is whose marks fold the lines of a step in a CI's log; empty: nobody's.
	LogGroups string `mapstructure:"log-groups"`
}

// DefaultHeartbeat keeps a log short, and a CI that ends what is silent quiet.
const DefaultHeartbeat = 30 * time.Second

// Error is a setting that cannot be used.
type Error struct {
	Where string // the file, or what the setting is called
	Err   error
	Hint  string
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.Where, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// Keys are the settings' names: as flags where a command has one, in the file,
// and in capitals behind MIG_ in the environment, with _ for -.
func Keys() []string {
	return []string{"output", "kubeconfig", "color", "log-file", "heartbeat", "log-groups"}
}

// Variable is the environment's name of a setting.
func Variable(key string) string {
	return "MIG_" + strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
}

// Path is the settings' file: MIG_CONFIG, else config.yaml in the directory mig
// of the user's configuration. Empty where there is neither.
func Path(getenv func(string) string) string {
	if path := getenv("MIG_CONFIG"); path != "" {
		return path
	}
	if dir := getenv("XDG_CONFIG_HOME"); dir != "" {
		return filepath.Join(dir, "mig", "config.yaml")
	}
	if home := getenv("HOME"); home != "" {
		return filepath.Join(home, ".config", "mig", "config.yaml")
	}
	return ""
}

// Load reads the settings. Flags that were given on the command line win; a
// file that is not there is no error unless MIG_CONFIG names it.
// Errors: *Error.
func Load(flags *pflag.FlagSet, getenv func(string) string) (Config, error) {
	v := viper.New()
	v.SetDefault("color", string(ColourAuto))
	v.SetDefault("heartbeat", DefaultHeartbeat)
	path := Path(getenv)
	if err := readFile(v, path, getenv("MIG_CONFIG") != ""); err != nil {
		return Config{}, &Error{Where: path, Err: err}
	}
	for _, key := range Keys() {
		if value := getenv(Variable(key)); value != "" {
			v.Set(key, value)
		}
		if f := flags.Lookup(key); f != nil && f.Changed {
			v.Set(key, f.Value.String())
		}
	}
	var c Config
	if err := v.Unmarshal(&c, func(d *mapstructure.DecoderConfig) { d.ErrorUnused = true }); err != nil {
		return Config{}, &Error{Where: "settings", Err: err}
	}
	return c, c.validate()
}

func readFile(v *viper.Viper, path string, must bool) error {
	if path == "" {
		return nil
	}
	v.SetConfigFile(path)
	v.SetConfigType("yaml")
	err := v.ReadInConfig()
	if errors.Is(err, fs.ErrNotExist) {
		if must {
			return os.ErrNotExist
		}
		return nil
	}
	if err != nil {
		return err
	}
	for _, key := range v.AllKeys() {
		if !slices.Contains(Keys(), key) {
			return fmt.Errorf("unknown setting %q; there are: %s", key, strings.Join(Keys(), ", "))
		}
	}
	return nil
}

// wrong says of a setting what cannot be used, and where it may come from.
func wrong(key, format string, value any) error {
	return &Error{
		Where: key, Err: fmt.Errorf(format, value),
		Hint: fmt.Sprintf("it is set by --%s, by %s in the environment, or by %s in the settings file", key, Variable(key), key),
	}
}

func (c Config) validate() error {
	if !slices.Contains([]Colour{ColourAuto, ColourAlways, ColourNever}, c.Colour) {
		return wrong("color", "%q is none of auto, always, never", c.Colour)
	}
	if c.Heartbeat < 0 {
		return wrong("heartbeat", "%s: a time is not below zero", c.Heartbeat)
	}
	if !slices.Contains([]string{"", "github", "gitlab"}, c.LogGroups) {
		return wrong("log-groups", "%q is none of github, gitlab", c.LogGroups)
	}
	return nil
}
