package model_test

import (
	"errors"
	"testing"

	"github.com/moeflux/moeflux-actor/model"
)

// What a manifest says is refused or is a possible model, as what config.json says; errors name the
// manifest.
func FuzzParseManifestConfig(f *testing.F) {
	latent := with(deepseek, keys{"model_type": nil, "max_position_embeddings": nil, "rope_scaling": keys{"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096}})
	hybrid := with(flat(), keys{"model_type": nil, "max_position_embeddings": nil, "vocab_size": 248320})
	for _, k := range []keys{latent, hybrid, qwen3MoE} {
		f.Add(encode(f, k), []byte(nil))
	}
	f.Add([]byte(`{"kv_lora_rank":1,"model_type":3}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, config, generation []byte) {
		c, err := model.ParseManifestConfig(config, generation)
		if (c == nil) == (err == nil) {
			t.Fatalf("got %v, %v: want one of the two", c, err)
		}
		if err == nil {
			if len(c.Layers) != c.NumHiddenLayers || c.MaxPositionEmbeddings < 1 || len(c.MoELayers()) == 0 {
				t.Errorf("impossible: %+v", c)
			}
			return
		}
		var unknown *model.UnknownArchError
		var bad *model.ConfigError
		if errors.As(err, &unknown) && unknown.File != "model_weights.json" || errors.As(err, &bad) && bad.File != "model_weights.json" && bad.File != "generation_config.json" {
			t.Errorf("got %v, want an error of the manifest", err)
		}
	})
}

func TestParseManifestConfigFills(t *testing.T) {
	latent := with(deepseek, keys{"model_type": nil, "max_position_embeddings": nil, "rope_scaling": keys{"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096}})
	if c, err := model.ParseManifestConfig(encode(t, latent), nil); err != nil || c.Arch != model.DeepseekV3 || c.MaxPositionEmbeddings != 163840 {
		t.Errorf("latent attention: got %+v, %v", c, err)
	}
	hybrid := with(flat(), keys{"model_type": nil, "max_position_embeddings": nil})
	if c, err := model.ParseManifestConfig(encode(t, hybrid), []byte(`{"eos_token_id":7}`)); err != nil || c.Arch != model.Qwen35MoE || c.MaxPositionEmbeddings != 262144 || len(c.EOSTokenIDs) != 1 {
		t.Errorf("linear attention: got %+v, %v", c, err)
	}
	var bad *model.ConfigError
	if _, err := model.ParseManifestConfig(encode(t, with(qwen3MoE, keys{"model_type": nil})), nil); !errors.As(err, &bad) || bad.Key != "config.model_type" {
		t.Errorf("neither: got %v", err)
	}
}
