package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
)

// Experts of another folder, and of other bits: --experts-dir chooses.
func TestExpertsDir(t *testing.T) {
	src, dir := fixtures.Dir(t, fixtures.Qwen35MoEQ4), t.TempDir()
	four, two, elsewhere := filepath.Join(dir, "four"), filepath.Join(dir, "two"), filepath.Join(dir, "disk")
	mustCall(t, "", "convert", src, four)
	mustCall(t, "", "convert", "--expert-bits", "2", src, two)
	run := func(args ...string) runResult {
		t.Helper()
		return parseRun(t, mustCall(t, "", append([]string{"run", "-p", "hello", "-n", "8", "--json", "--temperature", "0", "--activations", "f32"}, args...)...))
	}
	with4, with2 := run("--model", four), run("--model", two)
	if slices.Equal(with4.NewIDs, with2.NewIDs) {
		t.Fatalf("two and four bits both give %v", with4.NewIDs)
	}
	// Both in one model: four bits unless the others are named.
	if err := os.Rename(filepath.Join(two, "packed_experts"), filepath.Join(four, "packed_experts_2bit")); err != nil {
		t.Fatal(err)
	}
	if got := run("--model", four); !slices.Equal(got.NewIDs, with4.NewIDs) {
		t.Errorf("with both: %v, want %v", got.NewIDs, with4.NewIDs)
	}
	for _, how := range []string{"mmap", "buffered"} {
		if got := run("--model", four, "--experts-dir", filepath.Join(four, "packed_experts_2bit"), "--expert-io", how); !slices.Equal(got.NewIDs, with2.NewIDs) {
			t.Errorf("with the experts of two bits, %s: %v, want %v", how, got.NewIDs, with2.NewIDs)
		}
	}
	// States are those of the experts that made them.
	state := filepath.Join(dir, "state")
	mustCall(t, "", "state", "save", state, "-p", "hello", "--model", four)
	o := call(t, "", "state", "load", state, "--model", four, "--experts-dir", filepath.Join(four, "packed_experts_2bit"))
	if o.code != exitFailed || !strings.Contains(o.stderr, "another model") && !strings.Contains(o.stderr, "fingerprint") {
		t.Errorf("a state of four bits under two: exit %d, %q", o.code, o.stderr)
	}
	// On another disk, by the folder itself or the one around it.
	if err := os.Mkdir(elsewhere, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(four, "packed_experts"), filepath.Join(elsewhere, "packed_experts")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(four, "packed_experts_2bit")); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{elsewhere, filepath.Join(elsewhere, "packed_experts")} {
		if got := run("--model", four, "--experts-dir", at); !slices.Equal(got.NewIDs, with4.NewIDs) {
			t.Errorf("from %s: %v, want %v", at, got.NewIDs, with4.NewIDs)
		}
		mustCall(t, "", "inspect", four, "--experts-dir", at, "--verify")
	}
	o = call(t, "", "run", "-p", "x", "--model", four)
	if o.code != exitFailed || !strings.Contains(o.stderr, "layer_00.bin") {
		t.Errorf("without experts: exit %d, %q", o.code, o.stderr)
	}
	o = call(t, "", "run", "-p", "x", "--model", four, "--experts-dir", dir)
	if o.code != exitFailed || !strings.Contains(o.stderr, filepath.Join(dir, "packed_experts", "layer_00.bin")) {
		t.Errorf("a folder without experts: exit %d, %q", o.code, o.stderr)
	}
}

// A context beyond the model's own positions is refused, with the advice that works.
func TestContextBeyond(t *testing.T) {
	mustCall(t, "", "inspect") // unpacks the demo model
	o := call(t, "", "run", "-p", "x", "-n", "2", "--ctx", "5000")
	if want := "--ctx is 5000, but the model was trained for 4096 positions; lower it, or set --ctx-beyond, which risks nonsense beyond them"; o.code != exitFailed || !strings.Contains(o.stderr, want) {
		t.Errorf("exit %d, %q; want %q", o.code, o.stderr, want)
	}
	checkErrorLine(t, o)
	o = mustCall(t, "", "run", "-p", strings.Repeat("x := 1\n", 900), "-n", "2", "--ctx", "5000", "--ctx-beyond", "--json")
	r := parseRun(t, o)
	if len(r.PromptIDs) <= 4096 || len(r.NewIDs) == 0 || !strings.Contains(o.stderr, "longer than what the model was trained for") {
		t.Errorf("%d ids of the prompt, %d new, stderr %q; want more than 4096, some, and a warning", len(r.PromptIDs), len(r.NewIDs), o.stderr)
	}
}
