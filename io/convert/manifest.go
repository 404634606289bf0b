package convert

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/moeflux/moeflux-actor/model"
)

// manifestConfig returns the config object of the manifest.
func manifestConfig(in *input) (map[string]any, error) {
	out := map[string]any{}
	if in.cfg.Arch.Checkpoint().Moeflux {
		moefluxConfig(in.cfg, out)
	} else if err := sourceConfig(in, out); err != nil {
		return nil, err
	}
	out["model_type"] = string(in.cfg.Arch)
	if f := in.plan.codes; f.Codes() {
		out["default_bits"], out["default_group_size"] = f.Bits(), f.Group()
	}
	return out, nil
}

// sourceConfig copies the text part of config.json, without the keys that say how the source was
// stored.
func sourceConfig(in *input, out map[string]any) error {
	var top, text map[string]json.RawMessage
	if err := json.Unmarshal(in.config, &top); err != nil {
		return fmt.Errorf("convert: %s: %w", configName, err)
	}
	text = top
	if raw, ok := top["text_config"]; ok && string(raw) != "null" {
		text = nil
		if err := json.Unmarshal(raw, &text); err != nil {
			return fmt.Errorf("convert: %s: text_config: %w", configName, err)
		}
		for _, key := range []string{"tie_word_embeddings", "bos_token_id", "eos_token_id"} {
			if _, ok := text[key]; !ok && top[key] != nil {
				text[key] = top[key]
			}
		}
	}
	for key, raw := range text {
		if !strings.HasPrefix(key, "quantization") && key != "text_config" {
			out[key] = raw
		}
	}
	return nil
}

// moefluxConfig makes the object that moeflux writes.
func moefluxConfig(c *model.Config, out map[string]any) {
	out["rms_norm_eps"] = c.RMSNormEps
	out["rope_theta"] = c.RopeTheta
	out["partial_rotary_factor"] = float64(c.RotaryDim) / float64(c.HeadDim)
	out["tie_word_embeddings"] = c.TieWordEmbeddings
	for _, s := range c.Sizes() {
		out[s.Key] = s.Value
	}
	var types []string
	every := 0 // first full layer + 1, if the others follow from it
	for i, l := range c.Layers {
		if l.Mixer == model.FullAttention && every == 0 {
			every = i + 1
		}
		types = append(types, l.Mixer.String())
	}
	out["layer_types"] = types
	regular := every > 0
	for i, l := range c.Layers {
		regular = regular && (l.Mixer == model.FullAttention) == ((i+1)%every == 0)
	}
	if regular {
		out["full_attention_interval"] = every
	}
}
