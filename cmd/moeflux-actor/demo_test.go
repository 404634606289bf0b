package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/demo"
	"github.com/moeflux/moeflux-actor/internal/eval"
	"github.com/moeflux/moeflux-actor/internal/process"
)

// Without --model every command uses the demo model, whose losses agree with the reference. The
// first windows will do here; a window takes a second.
func TestEvalOfTheDemo(t *testing.T) {
	ref, err := demo.Reference()
	if err != nil {
		t.Fatal(err)
	}
	windows := 2
	if testing.Short() {
		windows = 1
	}
	file := writeFile(t, "ids.json", idList(ref.EvalIDs[:windows*ref.Seq+1]))
	var r eval.Losses
	if err := json.Unmarshal([]byte(mustCall(t, "", "eval", "--ids", file, "--json", "--activations", "f32").stdout), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.NLL) != windows || r.Tokens != windows*ref.Seq {
		t.Fatalf("%d windows of %d tokens, want %d of %d", len(r.NLL), r.Tokens, windows, windows*ref.Seq)
	}
	for i, got := range r.NLL {
		// The demo model's README grants float32 activations 1e-4.
		if math.Abs(got-ref.NLL[i]) > 1e-4 {
			t.Errorf("window %d: loss %.6f, want %.6f", i, got, ref.NLL[i])
		}
	}
}

// Activations of 8 bits, the default, cost at most half a percent of the mean loss.
func TestEvalOfTheDemoWithInt8(t *testing.T) {
	ref, err := demo.Reference()
	if err != nil {
		t.Fatal(err)
	}
	windows := 4
	if testing.Short() {
		windows = 1
	}
	eval := func(windows int, flags ...string) (r eval.Losses) {
		t.Helper()
		file := writeFile(t, "ids.json", idList(ref.EvalIDs[:windows*ref.Seq+1]))
		if err := json.Unmarshal([]byte(mustCall(t, "", append([]string{"eval", "--ids", file, "--json"}, flags...)...).stdout), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	def := eval(windows)
	want := 0.0
	for _, nll := range ref.NLL[:windows] {
		want += nll / float64(windows)
	}
	t.Logf("%d windows: mean loss %.5f, float32 %.5f (%+.3f%%)", windows, def.MeanNLL, want, 100*(def.MeanNLL/want-1))
	if math.Abs(def.MeanNLL-want) > 0.005*want {
		t.Errorf("mean loss %.5f, want %.5f within half a percent", def.MeanNLL, want)
	}
	if asked := eval(1, "--activations", "int8"); asked.NLL[0] != def.NLL[0] || math.Abs(asked.NLL[0]-ref.NLL[0]) < 1e-6 {
		t.Errorf("the first window's loss is %v with --activations int8, %v by default and %v in float32; want the same twice, and not the third", asked.NLL[0], def.NLL[0], ref.NLL[0])
	}
}

func TestRunOfTheDemo(t *testing.T) {
	ref, err := demo.Reference()
	if err != nil {
		t.Fatal(err)
	}
	texts := ref.Greedy
	if testing.Short() {
		texts = texts[:1]
	}
	for _, g := range texts {
		r := parseRun(t, mustCall(t, "", "run", "-p", g.Prompt, "-n", fmt.Sprint(len(g.NewIDs)), "--json", "--activations", "f32", "--temperature", "0"))
		if !slices.Equal(r.PromptIDs, g.PromptIDs) {
			t.Errorf("prompt %q has ids %v, want %v", g.Prompt, r.PromptIDs, g.PromptIDs)
			continue
		}
		// Below a gap of 1e-3 between the two best logits either may be taken, and the texts part.
		same := len(g.NewIDs)
		for i, gap := range g.Top1Gap {
			if gap <= 1e-3 {
				same = i
				break
			}
		}
		if len(r.NewIDs) < same || !slices.Equal(r.NewIDs[:same], g.NewIDs[:same]) || same == len(g.NewIDs) && r.Text != g.Text {
			t.Errorf("prompt %q continues with %v %q\nwant %v %q, at least the first %d", g.Prompt, r.NewIDs, r.Text, g.NewIDs, g.Text, same)
		}
	}
}

// An empty prompt is the token that begins every text.
func TestRunOfTheDemoWithAnEmptyPrompt(t *testing.T) {
	r := parseRun(t, mustCall(t, "", "run", "-p", "", "-n", "3", "--json"))
	if !slices.Equal(r.PromptIDs, []int32{4093}) || len(r.NewIDs) == 0 {
		t.Errorf("prompt ids %v, new ids %v, want 4093 and some", r.PromptIDs, r.NewIDs)
	}
}

func TestInspectOfTheDemo(t *testing.T) {
	o := mustCall(t, "", "inspect")
	if !strings.Contains(o.stdout, "qwen3_5_moe") || !strings.Contains(o.stdout, "32 a layer, 4 per token") {
		t.Errorf("inspect prints %q", o.stdout)
	}
	if o := mustCall(t, "", "inspect", "--parked-memory", "64MiB"); !strings.Contains(o.stdout, ", 64.0 MiB for parked states\n") {
		t.Errorf("inspect prints %q", o.stdout)
	}
}

// The demo model is unpacked once, into the folder that the command line or the system names, and
// only then a line says so.
func TestWhereTheDemoGoes(t *testing.T) {
	given, tmp := t.TempDir(), t.TempDir()
	homeless := testEnv()
	homeless.CacheDir = func() (string, error) { return "", errors.New("neither $XDG_CACHE_HOME nor $HOME are defined") }
	homeless.TempDir = tmp
	private := filepath.Join(tmp, fmt.Sprintf("moeflux-actor-%d", os.Getuid()))
	for _, c := range []struct {
		name  string
		env   process.Env
		flags []string
		where string
		lines int // on stderr at first
	}{
		{"--cache-dir", homeless, []string{"--cache-dir", given}, given, 1},
		{"no home", homeless, nil, private, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"tokenize"}, c.flags...)
			first := callWith(t.Context(), c.env, "", args...)
			if first.code != exitOK || strings.Count(first.stderr, "\n") != c.lines || !strings.Contains(first.stderr, c.where) {
				t.Errorf("first: exit %d, stderr %q, want %d lines that name %s", first.code, first.stderr, c.lines, c.where)
			}
			if _, err := os.Stat(filepath.Join(c.where, demo.Name(), "config.json")); err != nil {
				t.Errorf("the demo model is not there: %v", err)
			}
			if second := callWith(t.Context(), c.env, "", args...); second.code != exitOK || second.stderr != "" {
				t.Errorf("second: exit %d, stderr %q, want silence", second.code, second.stderr)
			}
		})
	}
}

// Somebody else's folder among the temporary files is not used.
func TestNoHomeAndATrap(t *testing.T) {
	for _, c := range []struct {
		name string
		lay  func(path string) error
	}{
		{"symbolic link", func(path string) error { return os.Symlink(t.TempDir(), path) }},
		{"file", func(path string) error { return os.WriteFile(path, nil, 0o600) }},
		{"writable by all", func(path string) error {
			if err := os.Mkdir(path, 0o700); err != nil {
				return err
			}
			return os.Chmod(path, 0o777)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := testEnv()
			e.CacheDir = func() (string, error) { return "", errors.New("no home") }
			e.TempDir = t.TempDir()
			if err := c.lay(filepath.Join(e.TempDir, fmt.Sprintf("moeflux-actor-%d", os.Getuid()))); err != nil {
				t.Fatal(err)
			}
			o := callWith(t.Context(), e, "", "tokenize")
			if o.code != exitFailed || !strings.Contains(o.stderr, "--cache-dir") {
				t.Errorf("exit %d, stderr %q, want %d and a word about --cache-dir", o.code, o.stderr, exitFailed)
			}
			checkErrorLine(t, o)
		})
	}
}

// A model whose experts are all in memory has no use for a profile: nothing is read, written or
// said of it.
func TestNoProfileWithoutSlots(t *testing.T) {
	file := writeFile(t, "profile", "not a profile")
	o := mustCall(t, "", "run", "-p", "x", "-n", "2", "--profile", file, "--log-level", "info")
	if strings.Contains(o.stderr, "profile") {
		t.Errorf("stderr %q speaks of the profile", o.stderr)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != "not a profile" {
		t.Errorf("the file holds %q, %v", got, err)
	}
	o = mustCall(t, "", "run", "-p", "x", "-n", "2", "--profile", file, "--expert-io", "buffered")
	if !strings.Contains(o.stderr, "profile") {
		t.Errorf("with slots, stderr %q says nothing of a profile that cannot be used", o.stderr)
	}
}
