package model_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/model"
)

func TestParseGeneration(t *testing.T) {
	half, k, zero, one := 0.5, 20, 0, 1.0
	for _, c := range []struct {
		name, file string
		want       model.Generation
	}{
		{"nothing", `{}`, model.Generation{}},
		{"other keys", `{"eos_token_id": [1, 2], "transformers_version": "4.57.0", "max_new_tokens": 5}`, model.Generation{}},
		{"all", `{"do_sample": true, "temperature": 0.5, "top_k": 20, "top_p": 0.5, "min_p": 0.5, "repetition_penalty": 1}`,
			model.Generation{Sample: true, Temperature: &half, TopK: &k, TopP: &half, MinP: &half, RepetitionPenalty: &one}},
		{"null and -1", `{"do_sample": true, "temperature": null, "top_k": -1}`, model.Generation{Sample: true, TopK: &zero}},
		{"ignored", `{"typical_p": 0.9, "num_beams": 1, "eta_cutoff": 1e-3, "penalty_alpha": null}`, model.Generation{Ignored: []string{"typical_p", "eta_cutoff"}}},
	} {
		got, err := model.ParseGeneration([]byte(c.file))
		if err != nil || !reflect.DeepEqual(got, &c.want) {
			t.Errorf("%s: got %+v, %v; want %+v", c.name, got, err, c.want)
		}
	}
}

func TestParseGenerationRefuses(t *testing.T) {
	for _, c := range []struct{ file, key, why string }{
		{`[]`, "", "not a JSON object"},
		{`{"do_sample": "yes"}`, "do_sample", `"yes" is not true or false`},
		{`{"temperature": -0.5}`, "temperature", "-0.5 is below 0"},
		{`{"temperature": "hot"}`, "temperature", `"hot" is not a number`},
		{`{"top_k": 1.5}`, "top_k", "1.5 is not a whole number"},
		{`{"top_k": -2}`, "top_k", "-2 is outside -1 to"},
		{`{"top_p": 1.5}`, "top_p", "1.5 is outside 0 to 1"},
		{`{"min_p": 2}`, "min_p", "2 is outside 0 to 1"},
		{`{"repetition_penalty": 0}`, "repetition_penalty", "0 is outside 0.01 to 100"},
	} {
		_, err := model.ParseGeneration([]byte(c.file))
		var bad *model.ConfigError
		if !errors.As(err, &bad) || bad.File != "generation_config.json" || bad.Key != c.key || !strings.Contains(bad.Why, c.why) {
			t.Errorf("%s: %v; want the file, key %q and %q", c.file, err, c.key, c.why)
		}
	}
}
