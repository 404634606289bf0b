package model_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/model"
)

func fixtureConfig(t testing.TB, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(fixtures.Dir(t, name), "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestParseConfigFixture(t *testing.T) {
	got, err := model.ParseConfig(fixtureConfig(t, fixtures.Qwen35MoEQ4), []byte(`{"bos_token_id": 3, "eos_token_id": [511, 7, 511, 9]}`))
	if err != nil {
		t.Fatal(err)
	}
	lin, full, moe := model.LinearAttention, model.FullAttention, model.MixtureOfExperts
	want := &model.Config{
		Arch: model.Qwen35MoE, HiddenSize: 128, NumHiddenLayers: 8, VocabSize: 512, MaxPositionEmbeddings: 4096, RMSNormEps: 1e-6,
		NumAttentionHeads: 4, NumKeyValueHeads: 2, HeadDim: 64, RotaryDim: 16, RopeTheta: 1e7,
		AttnOutputGate: true, QKNorm: model.QKNormPerHead,
		LinearNumKeyHeads: 2, LinearNumValueHeads: 4, LinearKeyHeadDim: 32, LinearValueHeadDim: 32, LinearConvKernelDim: 4,
		NumExperts: 16, NumExpertsPerTok: 4, MoEIntermediateSize: 64, SharedExpert: model.SharedExpertGated, SharedExpertIntermediateSize: 64,
		Scoring: model.SoftmaxScores, NormTopKProb: true, NGroup: 1, TopKGroup: 1, RoutedScalingFactor: 1,
		EOSTokenIDs: []int32{7, 9, 511}, BOSTokenID: 3,
		Layers: []model.Layer{{Mixer: lin, MixerIndex: 0, FFN: moe, MoEIndex: 0}, {Mixer: lin, MixerIndex: 1, FFN: moe, MoEIndex: 1}, {Mixer: lin, MixerIndex: 2, FFN: moe, MoEIndex: 2}, {Mixer: full, MixerIndex: 0, FFN: moe, MoEIndex: 3},
			{Mixer: lin, MixerIndex: 3, FFN: moe, MoEIndex: 4}, {Mixer: lin, MixerIndex: 4, FFN: moe, MoEIndex: 5}, {Mixer: lin, MixerIndex: 5, FFN: moe, MoEIndex: 6}, {Mixer: full, MixerIndex: 1, FFN: moe, MoEIndex: 7}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got.LinearConvDim() != 256 || got.KVDim() != 128 || got.Count(full) != 2 || got.Count(lin) != 6 {
		t.Errorf("derived: conv %d, kv %d, %d full, %d linear; want 256, 128, 2, 6", got.LinearConvDim(), got.KVDim(), got.Count(full), got.Count(lin))
	}
	if layers := got.MoELayers(); !slices.Equal(layers, []int{0, 1, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("MoELayers: got %v", layers)
	}
}

// flat is a configuration without text_config, as a text-only checkpoint has it.
func flat() map[string]any {
	return map[string]any{
		"model_type": "qwen3_5_moe_text", "hidden_size": 64, "num_hidden_layers": 4, "vocab_size": 320, "max_position_embeddings": 4096,
		"rms_norm_eps": 1e-6, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32, "rope_theta": 1e7,
		"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 16,
		"linear_conv_kernel_dim": 4, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 64,
		"shared_expert_intermediate_size": 64, "full_attention_interval": 2,
	}
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestParseConfigForms(t *testing.T) {
	type config = model.Config
	for _, c := range []struct {
		name string
		set  map[string]any // nil removes the key
		gen  string
		ok   func(*config) bool
	}{
		{"defaults", nil, "", func(c *config) bool {
			return c.RotaryDim == 8 && c.NormTopKProb && !c.TieWordEmbeddings && c.BOSTokenID == -1 && len(c.EOSTokenIDs) == 0 &&
				c.Layers[0].Mixer == model.LinearAttention && c.Layers[1].Mixer == model.FullAttention && c.Layers[3].MixerIndex == 1
		}},
		{"rope_parameters win over flat keys", map[string]any{"partial_rotary_factor": 1, "rope_parameters": map[string]any{
			"rope_theta": 5e5, "partial_rotary_factor": 0.5, "rope_type": "default", "mrope_section": []int{1, 2, 3}}}, "",
			func(c *config) bool { return c.RopeTheta == 5e5 && c.RotaryDim == 16 }},
		{"rope_scaling is the older name", map[string]any{"rope_theta": nil, "rope_scaling": map[string]any{"type": "mrope", "rope_theta": 12}}, "",
			func(c *config) bool { return c.RopeTheta == 12 }},
		{"flat factor beside rope_parameters", map[string]any{"partial_rotary_factor": 0.75, "rope_parameters": map[string]any{"rope_theta": 5e5}}, "",
			func(c *config) bool { return c.RotaryDim == 24 }},
		{"null counts as absent", map[string]any{"rope_scaling": json.RawMessage("null"), "eos_token_id": json.RawMessage("null")}, `{"eos_token_id": null}`,
			func(c *config) bool { return c.RotaryDim == 8 }},
		{"layer_types win over the interval", map[string]any{"layer_types": []string{"full_attention", "linear_attention", "linear_attention", "linear_attention"}}, "",
			func(c *config) bool { return c.Count(model.FullAttention) == 1 && c.Layers[3].MixerIndex == 2 }},
		{"switches", map[string]any{"norm_topk_prob": false, "tie_word_embeddings": true, "attention_bias": false, "attn_output_gate": true, "mlp_only_layers": []int{}}, "",
			func(c *config) bool { return !c.NormTopKProb && c.TieWordEmbeddings }},
		{"ids of both files", map[string]any{"eos_token_id": 5, "bos_token_id": 4}, `{"eos_token_id": [9, 5, 2], "bos_token_id": 8}`,
			func(c *config) bool { return slices.Equal(c.EOSTokenIDs, []int32{2, 5, 9}) && c.BOSTokenID == 4 }},
		{"bos only in generation_config", nil, `{"bos_token_id": 0}`, func(c *config) bool { return c.BOSTokenID == 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := flat()
			for k, v := range c.set {
				m[k] = v
				if v == nil {
					delete(m, k)
				}
			}
			var gen []byte
			if c.gen != "" {
				gen = []byte(c.gen)
			}
			got, err := model.ParseConfig(encode(t, m), gen)
			if err != nil {
				t.Fatalf("ParseConfig: %v", err)
			}
			if !c.ok(got) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// Each of these is refused with an error that names the key.
func TestParseConfigRefuses(t *testing.T) {
	for _, key := range []string{"hidden_size", "num_hidden_layers", "vocab_size", "max_position_embeddings", "num_attention_heads",
		"num_key_value_heads", "head_dim", "linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim",
		"linear_conv_kernel_dim", "num_experts", "num_experts_per_tok", "moe_intermediate_size", "shared_expert_intermediate_size"} {
		refuse(t, key, nil, key)
		for _, v := range []string{"0", "-1", "9223372036854775807", "9223372036854775808", "1e30", "1.5", `"64"`, "[]", "true"} {
			refuse(t, key, json.RawMessage(v), key)
		}
	}
	for _, c := range []struct {
		key   string
		value string // "" removes the key
		names string
	}{
		{"rms_norm_eps", "", "rms_norm_eps"}, {"rms_norm_eps", "0", "rms_norm_eps"}, {"rms_norm_eps", "-1", "rms_norm_eps"},
		{"rms_norm_eps", "1e-300", "rms_norm_eps"}, {"rms_norm_eps", "2", "rms_norm_eps"}, {"rms_norm_eps", `"x"`, "rms_norm_eps"},
		{"rope_theta", "", "rope_theta"}, {"rope_theta", "0", "rope_theta"}, {"rope_theta", "1e300", "rope_theta"},
		{"num_key_value_heads", "3", "num_attention_heads"}, {"num_attention_heads", "3", ""}, {"linear_num_key_heads", "3", "linear_num_value_heads"},
		{"num_experts_per_tok", "9", "num_experts_per_tok"}, {"linear_conv_kernel_dim", "1", "linear_conv_kernel_dim"},
		{"full_attention_interval", "", "layer_types"}, {"full_attention_interval", "0", "full_attention_interval"}, {"full_attention_interval", "-4", "full_attention_interval"},
		{"layer_types", `["full_attention"]`, "layer_types"}, {"layer_types", `["full_attention","linear_attention","sliding_attention","full_attention"]`, "layer_types"},
		{"layer_types", `4`, "layer_types"}, {"layer_types", `[1,2,3,4]`, "layer_types"},
		{"partial_rotary_factor", "0", "partial_rotary_factor"}, {"partial_rotary_factor", "1.5", "partial_rotary_factor"},
		{"partial_rotary_factor", "0.1", "partial_rotary_factor"}, {"partial_rotary_factor", "0.01", "partial_rotary_factor"},
		{"rope_scaling", `{"rope_type":"longrope","factor":4}`, "rope_scaling.rope_type"}, {"rope_scaling", `{"type":"linear","factor":4}`, "rope_scaling.type"},
		{"rope_scaling", `"yarn"`, "rope_scaling"}, {"rope_parameters", `{"rope_type":"llama3"}`, "rope_parameters.rope_type"},
		{"rope_parameters", `{"rope_theta":-1}`, "rope_parameters.rope_theta"}, {"rope_parameters", `{"rope_type":3}`, "rope_parameters.rope_type"},
		{"hidden_act", `"gelu"`, "hidden_act"}, {"hidden_act", `7`, "hidden_act"}, {"attention_bias", "true", "attention_bias"},
		{"attention_bias", `"no"`, "attention_bias"}, {"attn_output_gate", "false", "attn_output_gate"}, {"mlp_only_layers", "[2]", "mlp_only_layers"},
		{"mlp_only_layers", "{}", "mlp_only_layers"}, {"norm_topk_prob", "1", "norm_topk_prob"}, {"tie_word_embeddings", `"yes"`, "tie_word_embeddings"},
		{"eos_token_id", "320", "eos_token_id"}, {"eos_token_id", "[1, -1]", "eos_token_id"}, {"eos_token_id", "[1e99]", "eos_token_id"},
		{"bos_token_id", `"x"`, "bos_token_id"}, {"text_config", "[]", "text_config"},
	} {
		if c.value == "" {
			refuse(t, c.key, nil, c.names)
		} else if c.names != "" {
			refuse(t, c.key, json.RawMessage(c.value), c.names)
		}
	}
}

func refuse(t *testing.T, key string, value any, names string) {
	t.Helper()
	m := flat()
	m[key] = value
	if value == nil {
		delete(m, key)
	}
	got, err := model.ParseConfig(encode(t, m), nil)
	var bad *model.ConfigError
	if got != nil || !errors.As(err, &bad) {
		t.Errorf("%s = %s: got %v, %v, want a *ConfigError", key, value, got, err)
		return
	}
	for _, e := range split(err) {
		if errors.As(e, &bad) && bad.Key == names {
			return
		}
	}
	t.Errorf("%s = %s: got %v, want an error that names %s", key, value, err, names)
}

func split(err error) []error {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		return j.Unwrap()
	}
	return []error{err}
}

func TestParseConfigReportsAllTogether(t *testing.T) {
	m := flat()
	delete(m, "hidden_size")
	m["num_experts"], m["hidden_act"] = 0, "relu"
	_, err := model.ParseConfig(encode(t, m), []byte(`{"eos_token_id": -5}`))
	if got := len(split(err)); got != 4 {
		t.Errorf("got %d errors, want 4: %v", got, err)
	}
	for _, want := range []string{"hidden_size", "num_experts", "hidden_act", "generation_config.json: eos_token_id"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

func TestParseConfigArch(t *testing.T) {
	for _, c := range []struct{ config, want string }{
		{`{"model_type":"llama"}`, "llama"},
		{`{}`, ""},
		{`{"model_type":"qwen3_5_moe","text_config":{"model_type":"qwen3_5_text"}}`, "qwen3_5_text"},
		{`{"model_type":"other","text_config":{}}`, "other"},
	} {
		_, err := model.ParseConfig([]byte(c.config), nil)
		var unknown *model.UnknownArchError
		if !errors.As(err, &unknown) {
			t.Errorf("%s: got %v, want an *UnknownArchError", c.config, err)
			continue
		}
		if unknown.ModelType != c.want || !slices.Equal(unknown.Known, model.Known()) || len(unknown.Known) == 0 {
			t.Errorf("%s: got %q of %v, want %q of %v", c.config, unknown.ModelType, unknown.Known, c.want, model.Known())
		}
	}
}

func TestParseConfigBroken(t *testing.T) {
	for _, config := range []string{"", "null", "[]", "{", `{"a":}`, strings.Repeat("[", 1<<20), strings.Repeat(`{"a":`, 1<<18)} {
		_, err := model.ParseConfig([]byte(config), nil)
		var bad *model.ConfigError
		if !errors.As(err, &bad) || bad.File != "config.json" {
			t.Errorf("%.20q: got %v, want a *ConfigError of config.json", config, err)
		}
	}
	_, err := model.ParseConfig(encode(t, flat()), []byte("{"))
	var bad *model.ConfigError
	if !errors.As(err, &bad) || bad.File != "generation_config.json" {
		t.Errorf("broken generation_config.json: got %v", err)
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add(fixtureConfig(f, fixtures.Qwen35MoEQ4), []byte(`{"eos_token_id":[1,2]}`))
	f.Add(fixtureConfig(f, fixtures.Qwen35MoEBF16), []byte(nil))
	f.Add(encode(f, flat()), []byte(`{}`))
	for _, k := range []keys{qwen3MoE, deepseek, glm, minimax, {"model_type": "kimi_k25", "text_config": deepseek}} {
		f.Add(encode(f, k), []byte(nil))
	}
	for _, name := range []string{fixtures.DeepseekV3BF16, fixtures.Qwen3NextQ4, fixtures.Qwen3MoEQ4} {
		f.Add(fixtureConfig(f, name), []byte(nil))
	}
	f.Add([]byte(`{"model_type":"qwen3_5_moe","text_config":{"layer_types":[null]}}`), []byte(`[`))
	f.Fuzz(func(t *testing.T, config, generation []byte) {
		c, err := model.ParseConfig(config, generation)
		if (c == nil) == (err == nil) {
			t.Fatalf("got %v, %v: want one of the two", c, err)
		}
		if err != nil {
			return
		}
		// What is accepted is possible: no size overflows, every division is whole.
		for _, s := range c.Sizes() {
			if s.Value < 1 {
				t.Errorf("%s is %d", s.Key, s.Value)
			}
		}
		if len(c.Layers) != c.NumHiddenLayers || c.RotaryDim < 2 || c.RotaryDim > c.HeadDim || c.LinearConvDim() < 0 ||
			c.LinearConvDim() == 0 && c.Count(model.LinearAttention) > 0 || c.LatentDim() == 0 && c.Count(model.LatentAttention) > 0 ||
			c.NumAttentionHeads%c.NumKeyValueHeads != 0 || c.NumExpertsPerTok > c.NumExperts || c.NumExperts%c.NGroup != 0 {
			t.Errorf("impossible: %+v", c)
		}
		if len(c.MoELayers()) == 0 || (c.IntermediateSize == 0) != (len(c.MoELayers()) == len(c.Layers)) {
			t.Errorf("experts in layers %v of %d, dense width %d", c.MoELayers(), len(c.Layers), c.IntermediateSize)
		}
		for i, f := range c.RopeFrequencies() {
			if !(f > 0 && f <= 1) {
				t.Errorf("frequency %d is %v: %+v, %+v", i, f, c, c.YaRN)
				break
			}
		}
		if a, m := c.AttentionScale(), c.RopeMultiplier(); !(a > 0 && a < 1e9) || !(m > 0 && m < 1e9) {
			t.Errorf("scale %v, multiplier %v: %+v, %+v", a, m, c, c.YaRN)
		}
		if b := 12 * c.HiddenSize * c.MoEIntermediateSize * c.NumExperts; b <= 0 {
			t.Errorf("size of the experts overflows: %+v", c)
		}
	})
}
