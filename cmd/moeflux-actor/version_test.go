package main

import (
	"regexp"
	"runtime/debug"
	"testing"
)

// The version is that of the module, however the program was built.
func TestVersionOf(t *testing.T) {
	for _, c := range []struct {
		name, main        string
		settings          []debug.BuildSetting
		version, revision string
	}{
		{"go install of a version", "v0.3.1", nil, "v0.3.1", ""},
		{"a build at a tag", "v0.3.1", []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "false"}}, "v0.3.1", "abc"},
		{"a build with changes", "v0.3.2-0.20261123190000-abc+dirty", []debug.BuildSetting{{Key: "vcs.modified", Value: "true"}, {Key: "vcs.revision", Value: "abc"}}, "v0.3.2-0.20261123190000-abc+dirty", "abc+dirty"},
		{"a build without git", "(devel)", nil, "(devel)", ""},
		{"a build of another module", "", []debug.BuildSetting{{Key: "vcs.modified", Value: "true"}}, "unknown", ""},
	} {
		version, revision := versionOf(&debug.BuildInfo{Main: debug.Module{Version: c.main}, Settings: c.settings})
		if version != c.version || revision != c.revision {
			t.Errorf("%s: %q, %q; want %q, %q", c.name, version, revision, c.version, c.revision)
		}
	}
	if got := mustCall(t, "", "version").stdout; !regexp.MustCompile(`^moeflux-actor \S+ `).MatchString(got) {
		t.Errorf("version prints %q", got)
	}
}
