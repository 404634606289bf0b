package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/internal/process"
)

// fieldName is the name of a field of a configuration, of several words.
var fieldName = regexp.MustCompile(`\b[A-Z][a-z]+(?:[A-Z][A-Za-z]*)+\b`)

// The help of flags is copied from comments of Go code, but names no Go types and no fields: its
// readers need not know the packages.
func TestHelpNamesNoGoTypes(t *testing.T) {
	for _, node := range newParser(t).Model.Leaves(false) {
		for _, group := range node.AllFlags(false) {
			for _, f := range group {
				for _, typ := range []string{"*stages.", "stages.", "actors."} {
					if strings.Contains(f.Help, typ) {
						t.Errorf("%s: the help of --%s contains %q: %s", node.FullPath(), f.Name, typ, f.Help)
					}
				}
				for _, name := range fieldName.FindAllString(f.Help, -1) {
					if flag, ok := flags.SettingFlags()[name]; ok {
						t.Errorf("%s: the help of --%s names the field %s, not %s", node.FullPath(), f.Name, name, flag)
					}
				}
			}
		}
	}
}

// Each field that a flag sets is known by the name that the parser gives the flag.
func TestSettingFlags(t *testing.T) {
	known := map[string]bool{}
	for _, node := range newParser(t).Model.Leaves(false) {
		for _, group := range node.AllFlags(false) {
			for _, f := range group {
				known["--"+f.Name] = true
			}
		}
	}
	if len(flags.SettingFlags()) < 20 {
		t.Errorf("only %d settings", len(flags.SettingFlags()))
	}
	for field, flag := range flags.SettingFlags() {
		if !known[flag] {
			t.Errorf("%s is set by %s, which does not exist", field, flag)
		}
	}
	mustCall(t, "", "inspect") // unpacks the demo model
	// What the library says of a setting reaches the user with its flag.
	for _, c := range [][2]string{{"--ring-depth", "70"}, {"--read-workers", "5000"}, {"--chunk-rows", "-1"}, {"--ctx", "-1"}, {"--experts-per-token", "-1"}, {"--prefetch-layers", "3"},
		{"--top-k", "-3"}, {"--temperature", "-1"}, {"--repeat-penalty", "200"}, {"--threads", "100000"}} {
		o := call(t, "", "run", "-p", "x", c[0]+"="+c[1])
		if o.code != exitUsage || !strings.HasPrefix(strings.TrimPrefix(o.stderr, process.Program+": "), c[0]) && !strings.Contains(o.stderr, ": "+c[0]+" must be ") {
			t.Errorf("%s %s: exit %d, stderr %q", c[0], c[1], o.code, o.stderr)
		}
		checkErrorLine(t, o)
	}
}
