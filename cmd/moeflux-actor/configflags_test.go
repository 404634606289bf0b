package main

import (
	"strings"
	"testing"
)

// Settings come from the file, flags win over them, and what is printed says the same when it is
// read again.
func TestPrintConfig(t *testing.T) {
	file := writeFile(t, "config.yaml", "addr: 127.0.0.1:1\nmodel: [a=/x, /y]\ndrain-timeout: 5s\nopen-to-anyone: true\nmemory: 50%\nctx: 2048\n")
	printed := mustCall(t, "", "serve", "--config", file, "--print-config", "--addr", "127.0.0.1:2", "--model", "/z").stdout
	var set []string
	for line := range strings.Lines(printed) {
		if line = strings.TrimRight(line, "\n"); line != "" && !strings.HasPrefix(line, "#") {
			set = append(set, strings.TrimSpace(line))
		}
	}
	const want = `addr: 127.0.0.1:2|open-to-anyone: "true"|drain-timeout: 5s|model:|- /z|memory: 50%|ctx: "2048"`
	if got := strings.Join(set, "|"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !strings.Contains(printed, "#log-level: warn\n") || !strings.Contains(printed, "# The lowest level that is logged") {
		t.Errorf("what was not given is not there as a comment: %s", printed)
	}
	if again := mustCall(t, "", "serve", "--config", writeFile(t, "again.yaml", printed), "--print-config").stdout; again != printed {
		t.Errorf("read again it is\n%s\nand was\n%s", again, printed)
	}
	all := strings.ReplaceAll(printed, "\n#log-level", "\nlog-level")
	if got := mustCall(t, "", "serve", "--config", writeFile(t, "all.yaml", all), "--print-config").stdout; got != printed {
		t.Error("a comment that becomes a setting is not taken")
	}
}

// A mistake in the file is told with its line.
func TestConfigMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"adr: 1\n":                   "config.yaml: line 1: there is no setting adr",
		"# x\nconfig: y\n":           "line 2: there is no setting config",
		"\n\nctx: many\n":            "line 3: --ctx: expected a valid",
		"ctx: [1]\n":                 "ctx has one value, not a list",
		"drain-timeout: 5\n":         "line 1: --drain-timeout: expected duration",
		"addr: x\nmodel: []\n":       "line 2: model is an empty list",
		"open-to-anyone: perhaps\n":  "line 1: --open-to-anyone",
		"addr: 127.0.0.1\nmodel: {}": "line 2: model must be a value",
		"memory: 7 apples\n":         "line 1: --memory",
	} {
		o := call(t, "", "serve", "--config", writeFile(t, "config.yaml", text))
		if o.code != exitUsage || !strings.Contains(o.stderr, want) {
			t.Errorf("%q: exit %d, %q; want %q", text, o.code, o.stderr, want)
		}
	}
	if o := call(t, "", "serve", "--config", "/nowhere/c.yaml"); o.code != exitUsage || !strings.Contains(o.stderr, "--config: open /nowhere/c.yaml") {
		t.Errorf("exit %d, %q", o.code, o.stderr)
	}
}
