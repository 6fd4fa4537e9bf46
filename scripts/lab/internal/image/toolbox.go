package image

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
)

// Toolbox is the image of Debian's static busybox, with a link for every applet.
func Toolbox(ctx context.Context, reference string) (Small, error) {
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return Small{}, err
	}
	list, err := exec.CommandContext(ctx, busybox, "--list").Output()
	if err != nil {
		return Small{}, fmt.Errorf("applets of %s: %w", busybox, err)
	}
	return Small{
		Name:      "toolbox",
		Reference: reference,
		Config:    Config{Command: []string{"/bin/sh"}, Env: []string{"PATH=/bin"}},
		Programs:  map[string]string{"/bin/busybox": busybox},
		Links:     appletLinks(string(list)),
	}, nil
}

func appletLinks(list string) map[string]string {
	links := map[string]string{}
	for applet := range strings.FieldsSeq(list) {
		if applet != "busybox" {
			links["/bin/"+applet] = "busybox"
		}
	}
	return links
}

func architecture() string { return runtime.GOARCH }
