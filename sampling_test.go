package moeflux

import (
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/stages/sample"
)

// withGeneration returns a model directory with a generation_config.json; "" for none.
func withGeneration(t *testing.T, content string) string {
	t.Helper()
	return fixtures.Overlay(t, fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), map[string]string{"generation_config.json": content})
}

// What a request leaves open is as the model's makers say, and off where they say nothing.
func TestDefaults(t *testing.T) {
	const all = `{"do_sample": true, "temperature": 1.5, "top_k": 20, "top_p": 0.9, "min_p": 0.01, "repetition_penalty": 1.1, "typical_p": 0.5}`
	for _, c := range []struct {
		name, file string
		given      Sampling
		want       sample.Options
		ignored    int
	}{
		{"all", all, Sampling{}, sample.Options{Temperature: 1.5, TopK: 20, TopP: 0.9, MinP: 0.01, RepeatPenalty: 1.1}, 1},
		{"some given", all, Sampling{TopK: new(3), RepeatPenalty: new(1.0), PresencePenalty: 2, Seed: new(uint64(7))},
			sample.Options{Temperature: 1.5, TopK: 3, TopP: 0.9, MinP: 0.01, RepeatPenalty: 1, PresencePenalty: 2, Seed: 7}, 1},
		{"greedy", all, Sampling{Temperature: new(0.0), Seed: new(uint64(7))}, sample.Options{Seed: 7}, 1},
		{"no temperature", `{"do_sample": true, "top_k": 20}`, Sampling{}, sample.Options{Temperature: 1, TopK: 20}, 0},
		{"greedy by the file", `{"temperature": 1.5, "top_k": 20, "repetition_penalty": 9, "typical_p": 0.5}`, Sampling{}, sample.Options{RepeatPenalty: 9}, 0},
		{"no file", "", Sampling{}, sample.Options{}, 0},
	} {
		m, err := Open(t.Context(), withGeneration(t, c.file), Options{Device: "host"})
		if err != nil {
			t.Fatal(err)
		}
		got, err := m.sampling(c.given)
		if c.given.Seed == nil && (got.Seed != 0) != (c.want.Temperature > 0) {
			t.Errorf("%s: the seed is %d", c.name, got.Seed)
		}
		if c.given.Seed == nil {
			got.Seed = 0
		}
		got.LogitBias = nil
		same := got.Temperature == c.want.Temperature && got.TopK == c.want.TopK && got.TopP == c.want.TopP && got.MinP == c.want.MinP &&
			got.RepeatPenalty == c.want.RepeatPenalty && got.PresencePenalty == c.want.PresencePenalty && got.Seed == c.want.Seed
		if err != nil || !same {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, c.want)
		}
		if _, ignored, err := Defaults(m.dir); err != nil || len(ignored) != c.ignored || c.ignored > 0 && !slices.Equal(ignored, []string{"typical_p"}) {
			t.Errorf("%s: ignores %q, %v; want %d", c.name, ignored, err, c.ignored)
		}
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
