package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/eval"
	"github.com/moeflux/moeflux-actor/io/synth"
	"github.com/moeflux/moeflux-actor/io/weights"
)

// small is a real shape, cut down to 30 MB.
var small = []string{"--shape", "qwen3-30b-a3b", "--layers", "1", "--vocab", "600", "--experts", "12"}

func synthArgs(more ...string) []string { return append(append([]string{"synth"}, small...), more...) }

// What synth makes, inspect opens, the check passes on, and a router that is written over is found
// out.
func TestSynthMakesAndChecks(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	var made synthResult
	o := mustCall(t, "", synthArgs("--json", "--chain", "5", dir)...)
	if err := json.Unmarshal([]byte(o.stdout), &made); err != nil || made.Dst != dir || made.Bytes < 20e6 || len(made.Chain) != 5 {
		t.Fatalf("printed %q (%v), want dst, more than 20 MB and a chain of 5", o.stdout, err)
	}
	if o := mustCall(t, "", "inspect", dir); !strings.Contains(o.stdout, "12 a layer, 8 per token, width 768") {
		t.Errorf("inspect prints %q", o.stdout)
	}
	var r eval.Differences
	o = mustCall(t, "", "synth", "--check", dir, "--tokens", "12", "--json")
	if err := json.Unmarshal([]byte(o.stdout), &r); err != nil || r.Tokens != 12 || r.Differences != 0 || r.Seconds <= 0 {
		t.Errorf("the check prints %q (%v), want 12 tokens without difference", o.stdout, err)
	}
	if o := mustCall(t, "", "synth", "--check", dir, "--tokens", "3", "--experts-per-token", "2"); !strings.HasPrefix(o.stdout, "3 tokens: 0 differences") {
		t.Errorf("with fewer experts the check prints %q", o.stdout)
	}

	overwrite(t, dir, "model.layers.0.mlp.gate.scales")
	o = call(t, "", "synth", "--check", dir, "--tokens", "12")
	if o.code != exitFailed || !strings.Contains(o.stdout, "layer 0: found experts [0 1 2 3 4 5 6 7]") || !strings.Contains(o.stderr, "differences in 12 tokens") {
		t.Errorf("with a router of zeros: exit %d, stdout %q, stderr %q", o.code, o.stdout, o.stderr)
	}
	overwrite(t, dir, "lm_head.scales")
	o = call(t, "", "synth", "--check", dir, "--tokens", "30")
	if lines := strings.Count(o.stdout, "\n"); o.code != exitFailed || !strings.Contains(o.stdout, "position 0: ") || !strings.Contains(o.stdout, "found token") || lines != eval.MostDifferences+1 {
		t.Errorf("with a head of zeros too: exit %d, %d lines %q", o.code, lines, o.stdout)
	}
}

// overwrite fills a tensor with zeros.
func overwrite(t *testing.T, dir, tensor string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, weights.ManifestName))
	if err != nil {
		t.Fatal(err)
	}
	var m weights.Manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	d, ok := m.Tensors[tensor]
	if !ok {
		t.Fatalf("no tensor %s", tensor)
	}
	f, err := os.OpenFile(filepath.Join(dir, weights.DataName), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(make([]byte, d.Size), d.Offset); err != nil {
		t.Fatal(err)
	}
}

// Without a directory it says what a model would do, and writes nothing.
func TestSynthPredicts(t *testing.T) {
	shape, err := synth.Named("qwen3-30b-a3b")
	if err != nil {
		t.Fatal(err)
	}
	m, err := synth.New(synth.Options{Shape: shape, Layers: 1, Vocab: 600, Experts: 12, Seed: 9, Route: synth.Strong})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Trim(fmt.Sprint(m.Chain(40)), "[]") + "\n"
	if o := mustCall(t, "", synthArgs("--chain", "40", "--seed", "9", "--route", "strong")...); o.stdout != want {
		t.Errorf("the chain is printed as %q, want %q", o.stdout, want)
	}
	file := filepath.Join(t.TempDir(), "routing")
	o := mustCall(t, "", synthArgs("--simulate", "20", "--routing", file)...)
	if !strings.HasPrefix(o.stdout, "20 tokens use ") || !strings.Contains(o.stdout, "a cache of the last used 25.0% of all experts hits") {
		t.Errorf("the simulation prints %q", o.stdout)
	}
	raw, err := os.ReadFile(file)
	if err != nil || strings.Count(string(raw), "\n") != 20 {
		t.Errorf("the routing is %q, %v, want 20 lines", raw, err)
	}
}

func TestSynthUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--chain", "3"}, "no --shape; available: deepseek-v3"},
		{[]string{"--shape", "qwen3.5-35b-a3b"}, "nothing to do"},
		{[]string{"--shape", "gpt-2", "x"}, `unknown shape "gpt-2"; known: deepseek-v3`},
		{synthArgs("--route", "wild", "x")[1:], `route "wild"`},
		{synthArgs("--layers", "-1", "x")[1:], "cannot be negative"},
		{synthArgs("--experts", "2000", "x")[1:], "2000 experts: must be at most 1016"},
		{synthArgs("--simulate", "1")[1:], "--simulate 1"},
		{synthArgs("--routing", "f", "x")[1:], "--routing goes with --simulate"},
		{synthArgs("--chain", "-1", "x")[1:], "--chain -1"},
		{synthArgs("--model", "m", "x")[1:], "name the model with --check"},
		{[]string{"--check", "d", "--shape", "qwen3-30b-a3b"}, "--check takes a finished model alone"},
		{[]string{"--check", "d", "--tokens", "0"}, "--tokens 0"},
		{[]string{"--check", "d", "--device", "abacus"}, "--device abacus"},
	} {
		o := call(t, "", append([]string{"synth"}, c.args...)...)
		if o.code != exitUsage || !strings.Contains(o.stderr, c.want) {
			t.Errorf("%q: exit %d, stderr %q; want %d and %q", c.args, o.code, o.stderr, exitUsage, c.want)
		}
		checkErrorLine(t, o)
	}
}

func TestSynthFailures(t *testing.T) {
	empty := t.TempDir()
	if err := os.WriteFile(filepath.Join(empty, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{synthArgs(empty), "exists and is not empty"},
		{[]string{"synth", "--check", empty}, "is not a synthetic model"},
		{[]string{"synth", "--check", filepath.Join(empty, "missing")}, "is not a synthetic model"},
		{synthArgs("--simulate", "5", "--routing", filepath.Join(empty, "missing", "file")), "no such file"},
	} {
		o := call(t, "", c.args...)
		if o.code != exitFailed || !strings.Contains(o.stderr, c.want) {
			t.Errorf("%q: exit %d, stderr %q; want %d and %q", c.args, o.code, o.stderr, exitFailed, c.want)
		}
		checkErrorLine(t, o)
	}
}

// An interrupted run says so and leaves nothing.
func TestSynthInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	parent := t.TempDir()
	o := callWith(ctx, testEnv(), "", synthArgs(filepath.Join(parent, "model"))...)
	entries, err := os.ReadDir(parent)
	if o.code != exitInterrupted || !strings.Contains(o.stderr, "interrupted; nothing is left") || err != nil || len(entries) != 0 {
		t.Errorf("exit %d, stderr %q, left %v, %v; want %d and nothing left", o.code, o.stderr, entries, err, exitInterrupted)
	}
}

// The help names every shape and law that there is.
func TestSynthHelp(t *testing.T) {
	o := mustCall(t, "", "synth", "--help")
	text := strings.Join(strings.Fields(o.stdout), " ")
	for _, name := range slices.Concat(synth.Names(), synth.Routes()) {
		if !strings.Contains(text, name) {
			t.Errorf("the help lacks %s:\n%s", name, o.stdout)
		}
	}
}
