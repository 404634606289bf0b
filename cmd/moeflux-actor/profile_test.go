package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/internal/process"
)

// TestProfilePath shows which file each value of --profile means.
func TestProfilePath(t *testing.T) {
	model := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	inv := &process.Invocation{Env: process.Env{CacheDir: func() (string, error) { return "/cache", nil }}}
	for _, tc := range []struct{ profile, cacheDir, folder string }{
		{"", "", ""}, {"off", "", ""}, {"my.uses", "", "."},
		{"auto", "", filepath.Join("/cache", process.Program, "profiles")}, {"auto", "/mine", "/mine/profiles"},
	} {
		f := &flags.Engine{Settings: flags.Settings{Profile: tc.profile, CacheDir: tc.cacheDir}}
		got, err := f.ProfilePath(inv, model)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case tc.folder == "" && got != "", tc.folder != "" && filepath.Dir(got) != tc.folder, tc.folder != "" && !strings.HasSuffix(got, ".uses"):
			t.Errorf("--profile %q --cache-dir %q: %q, want a file in %q", tc.profile, tc.cacheDir, got, tc.folder)
		}
	}
	homeless := &process.Invocation{Env: process.Env{
		CacheDir: func() (string, error) { return "", errors.New("no home") }, TempDir: filepath.Join(t.TempDir(), "missing"),
	}}
	if got, err := (&flags.Engine{Settings: flags.Settings{Profile: "auto"}}).ProfilePath(homeless, model); got != "" || err != nil {
		t.Errorf("without a folder: %q, %v, want none", got, err)
	}
}
