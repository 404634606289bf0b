package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/process"
)

type versionCmd struct {
	JSON bool `name:"json" help:"Print one JSON object: version, revision, go, os, arch, kernels, kernels_available."`
}

type versionResult struct {
	Version string `json:"version"` // of the module; "(devel)" for a build from a working tree
	// of the source, with "+dirty" if it was changed; "" if unknown
	Revision string `json:"revision"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`

	Kernels   string   `json:"kernels"`           // of the host device, in use
	Available []string `json:"kernels_available"` // the best first
}

// Run prints what the build knows of itself.
func (c *versionCmd) Run(_ context.Context, inv *process.Invocation) error {
	kernels, err := inv.Env.Device.Variant()
	if err != nil {
		return err
	}
	v := versionResult{
		Version: "unknown", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		Kernels: kernels, Available: host.Variants(),
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.Version, v.Revision = versionOf(info)
	}
	if c.JSON {
		return process.WriteJSON(inv.Stdout, v)
	}
	_, err = fmt.Fprintf(inv.Stdout, "%s %s %s %s %s/%s, kernels %s of %s\n", process.Program, v.Version, v.Revision, v.Go, v.OS, v.Arch,
		v.Kernels, strings.Join(v.Available, ", "))
	return err
}

// versionOf returns what a build knows of its source. "go install …@VERSION" knows the version, and
// a build in a checkout both; see versionResult.
func versionOf(info *debug.BuildInfo) (version, revision string) {
	dirty := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+dirty"
		}
	}
	if revision != "" {
		revision += dirty
	}
	return cmp.Or(info.Main.Version, "unknown"), revision
}
