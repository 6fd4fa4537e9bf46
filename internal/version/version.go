// Package version says which mig this is. It knows nothing of what mig does.
package version

import "runtime/debug"

// Set by the linker of a release; empty in a build from source.
var (
	Version = ""
	Commit  = ""
	Date    = ""
)

// String is the version in one word: the release's, else the module's as the Go
// command recorded it, else "devel".
func String() string {
	if Version != "" {
		return Version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
