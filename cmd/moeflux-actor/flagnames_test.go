package main

import (
	"strings"
	"testing"
)

func TestForUsers(t *testing.T) {
	for in, want := range map[string]string{
		"actors: Config.RingDepth is 70, but must be 1 to 64":                     "--ring-depth is 70, but must be 1 to 64",
		"raise Config.Context or shorten the text":                                "raise --ctx or shorten the text",
		"set Config.ExpertIO to auto, or Config.KV, and Config.Nothing":           "set --expert-io to auto, or --kv, and Config.Nothing",
		"sample: Options.TopP is 2":                                               "--top-p is 2",
		"host: Config.Threads is -1":                                              "host: --threads is -1",
		"m cannot be opened: weights: m: model: config.json: vocab_size: missing": "m cannot be opened: m: config.json: vocab_size: missing",
		"moeflux: moeflux: a":                                                     "a",
		"open /tmp/model: no such file":                                           "open /tmp/model: no such file",
		"actors: a\nactors: b":                                                    "a\nb",
	} {
		if got := forUsers(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
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
	if len(settingFlags) < 20 {
		t.Errorf("only %d settings", len(settingFlags))
	}
	for field, flag := range settingFlags {
		if !known[flag] {
			t.Errorf("%s is set by %s, which does not exist", field, flag)
		}
	}
	mustCall(t, "", "inspect") // unpacks the demo model
	// What the library says of a setting reaches the user with its flag.
	for _, c := range [][2]string{{"--ring-depth", "70"}, {"--read-workers", "5000"}, {"--chunk-rows", "-1"}, {"--ctx", "-1"}, {"--experts-per-token", "-1"}, {"--prefetch-layers", "3"},
		{"--top-k", "-3"}, {"--temperature", "-1"}, {"--repeat-penalty", "200"}, {"--threads", "100000"}} {
		o := call(t, "", "run", "-p", "x", c[0]+"="+c[1])
		if o.code != exitUsage || !strings.HasPrefix(strings.TrimPrefix(o.stderr, program+": "), c[0]) && !strings.Contains(o.stderr, ": "+c[0]+" must be ") {
			t.Errorf("%s %s: exit %d, stderr %q", c[0], c[1], o.code, o.stderr)
		}
		checkErrorLine(t, o)
	}
}
