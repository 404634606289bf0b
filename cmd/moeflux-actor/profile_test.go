package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
)

// TestProfilePath shows which file each value of --profile means.
func TestProfilePath(t *testing.T) {
	model := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	inv := &invocation{env: env{cacheDir: func() (string, error) { return "/cache", nil }}}
	for _, tc := range []struct{ profile, cacheDir, folder string }{
		{"", "", ""}, {"off", "", ""}, {"my.uses", "", "."},
		{"auto", "", filepath.Join("/cache", program, "profiles")}, {"auto", "/mine", "/mine/profiles"},
	} {
		f := &engineFlags{modelFlags: modelFlags{Profile: tc.profile, CacheDir: tc.cacheDir}}
		got, err := f.profilePath(inv, model)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case tc.folder == "" && got != "", tc.folder != "" && filepath.Dir(got) != tc.folder, tc.folder != "" && !strings.HasSuffix(got, ".uses"):
			t.Errorf("--profile %q --cache-dir %q: %q, want a file in %q", tc.profile, tc.cacheDir, got, tc.folder)
		}
	}
	homeless := &invocation{env: env{
		cacheDir: func() (string, error) { return "", errors.New("no home") }, tempDir: filepath.Join(t.TempDir(), "missing"),
	}}
	if got, err := (&engineFlags{modelFlags: modelFlags{Profile: "auto"}}).profilePath(homeless, model); got != "" || err != nil {
		t.Errorf("without a folder: %q, %v, want none", got, err)
	}
}
