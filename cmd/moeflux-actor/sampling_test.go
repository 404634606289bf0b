package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// withGeneration returns the fixture model with a generation_config.json.
func withGeneration(t *testing.T, model, content string) string {
	t.Helper()
	dir := withTemplate(t, model, chatML)
	file := filepath.Join(dir, "generation_config.json")
	_ = os.Remove(file) // a link to the fixture's own
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// What is not given comes from the model's generation_config.json, and --json says so.
func TestSamplingOfTheModel(t *testing.T) {
	fixture, ref := loadE2E(t)
	const all = `{"do_sample": true, "temperature": 1.5, "top_k": 20, "top_p": 0.9, "min_p": 0.01, "repetition_penalty": 1.1}`
	const m, f, d = flags.FromModel, flags.FromFlag, flags.FromNowhere
	from := func(values ...string) map[string]string {
		names, all := []string{"temperature", "top_k", "top_p", "min_p", "repeat_penalty"}, map[string]string{}
		for i, v := range values {
			all[names[i]] = v
		}
		return all
	}
	for _, c := range []struct {
		name, file string
		flags      []string
		want       flags.SamplingUsed
	}{
		{"all", all, nil, flags.SamplingUsed{Temperature: 1.5, TopK: 20, TopP: 0.9, MinP: 0.01, RepeatPenalty: 1.1, From: from(m, m, m, m, m)}},
		{"some by flag", all, []string{"--top-k", "3", "--repeat-penalty", "1"},
			flags.SamplingUsed{Temperature: 1.5, TopK: 3, TopP: 0.9, MinP: 0.01, RepeatPenalty: 1, From: from(m, f, m, m, f)}},
		{"greedy by flag", all, []string{"--temperature", "0"}, flags.SamplingUsed{From: from(f, d, d, d, d)}},
		{"no temperature", `{"do_sample": true, "top_k": 20}`, nil, flags.SamplingUsed{Temperature: 1, TopK: 20, From: from(m, m, d, d, d)}},
		{"greedy by the file", `{"temperature": 1.5, "top_k": 20, "repetition_penalty": 9}`, nil, flags.SamplingUsed{RepeatPenalty: 9, From: from(d, d, d, d, m)}},
		{"no file", "", nil, flags.SamplingUsed{From: from(d, d, d, d, d)}},
		{"no file, a flag", "", []string{"--temperature", "0.5"}, flags.SamplingUsed{Temperature: 0.5, From: from(f, d, d, d, d)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			model := withTemplate(t, fixture, chatML)
			if c.file != "" {
				model = withGeneration(t, fixture, c.file)
			}
			args := append([]string{"run", "--model", model, "-p", ref.Text, "-n", "24", "--json", "--activations", "f32", "--seed", "5"}, c.flags...)
			o := mustCall(t, "", args...)
			r := parseRun(t, o)
			got := r.Stats.Sampling
			if got.Temperature != c.want.Temperature || got.TopK != c.want.TopK || got.TopP != c.want.TopP || got.MinP != c.want.MinP || got.RepeatPenalty != c.want.RepeatPenalty {
				t.Errorf("used %+v, want %+v", got, c.want)
			}
			for name, where := range c.want.From {
				if got.From[name] != where {
					t.Errorf("%s comes from %q, want %q", name, got.From[name], where)
				}
			}
			if greedy := c.want.Temperature == 0 && c.want.RepeatPenalty == 0; greedy != slices.Equal(r.NewIDs, ref.DecodeIDs) {
				t.Errorf("ids %v, greedy %v: want the same only if it is greedy", r.NewIDs, ref.DecodeIDs)
			}
			if said := strings.Contains(o.stderr, "generation_config.json"); said != (c.want.From["temperature"] == m) {
				t.Errorf("the figures %q name the file: %v", o.stderr, said)
			}
			if chat := parseRun(t, mustCall(t, "", append(args, "--chat")...)); chat.Stats.Sampling.Temperature != c.want.Temperature {
				t.Errorf("a chat samples otherwise: %+v", chat.Stats.Sampling)
			}
		})
	}
	// logits and eval are greedy, or do not sample, and do not read the file.
	broken := withGeneration(t, fixture, `{"do_sample": true, "temperature": -1}`)
	mustCall(t, "[1,2,3]", "eval", "--model", broken, "--ids", "-")
	mustCall(t, `{"a": [1,2,3]}`, "logits", "--model", broken, "--ids", "-", "--out", filepath.Join(t.TempDir(), "out"), "--decode", "2")
	if !testing.Short() {
		mustCall(t, "", "bench", "--model", broken, "--prompt-tokens", "4", "--gen-tokens", "2", "--repeat", "1")
	}
	mustCall(t, "", "run", "--model", broken, "-p", "x", "-n", "1", "--temperature", "0")
	for _, args := range [][]string{{"run", "-p", "x"}, {"run", "-p", "x", "--chat"}} {
		o := call(t, "", append(args, "--model", broken, "-n", "1")...)
		if o.code != exitFailed || !strings.Contains(o.stderr, "generation_config.json: temperature: -1 is below 0") {
			t.Errorf("%v: exit %d, %q; want the file and the key", args, o.code, o.stderr)
		}
		checkErrorLine(t, o)
	}
	o := mustCall(t, "", "run", "-p", "x", "-n", "1", "--model", withGeneration(t, fixture, `{"do_sample": true, "typical_p": 0.5}`))
	if !strings.Contains(o.stderr, "sets typical_p, which this program does not know and ignores") {
		t.Errorf("stderr %q, want a word about typical_p", o.stderr)
	}
}

// convert carries generation_config.json into the packed directory, and inspect shows it.
func TestConvertCarriesSampling(t *testing.T) {
	o := mustCall(t, "", "inspect")
	if want := "sampling      temperature 0.6, top-p 0.95, min-p 0.1, repeat penalty 1.2\n"; !strings.Contains(o.stdout, want) {
		t.Errorf("inspect of the demo model prints %q, want %q", o.stdout, want)
	}
}

// The first text that a newcomer sees, whatever the seed: Go, and no line over and over.
func TestDemoTextDoesNotLoop(t *testing.T) {
	loops, short := 0, 0
	texts := testenv.Rounds(6, 6, 24)
	for seed := range texts {
		text := parseRun(t, mustCall(t, "", "run", "-p", "package main", "--seed", fmt.Sprint(seed), "--json")).Text
		seen, lines, again := map[string]bool{}, 0, 0
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); len(line) < 4 {
				continue
			}
			lines++
			if seen[line] {
				again++
			}
			seen[line] = true
		}
		if again*4 > lines {
			loops++
			t.Logf("seed %d: %d of %d lines come again:\n%s", seed, again, lines, text)
		}
		if lines < 4 {
			short++
		}
	}
	if loops+short > texts/6 {
		t.Errorf("%d of %d texts loop and %d are short", loops, texts, short)
	}
}
