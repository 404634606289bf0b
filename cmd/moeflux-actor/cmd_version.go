package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCmd struct {
	JSON bool `name:"json" help:"Print one JSON object: version, revision, go, os, arch."`
}

// Help is shown by --help.
func (versionCmd) Help() string {
	return `Example:

    moeflux-actor version --json`
}

type versionResult struct {
	Version  string `json:"version"`  // of the module; "(devel)" for a build from a working tree
	Revision string `json:"revision"` // of the source, with "+dirty" if it was changed; "" if unknown
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// Run prints what the build knows of itself.
func (c *versionCmd) Run(_ context.Context, inv *invocation) error {
	v := versionResult{Version: "unknown", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.Version = info.Main.Version
		dirty := ""
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				v.Revision = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				dirty = "+dirty"
			}
		}
		if v.Revision != "" {
			v.Revision += dirty
		}
	}
	if c.JSON {
		return writeJSON(inv.stdout, v)
	}
	_, err := fmt.Fprintf(inv.stdout, "%s %s %s %s %s/%s\n", program, v.Version, v.Revision, v.Go, v.OS, v.Arch)
	return err
}
