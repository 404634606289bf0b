package actors_test

import (
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
)

// The label of exactness names every setting that changes results, and no other one.
func TestExactness(t *testing.T) {
	exact := deviceVariant(t, 1, "portable")
	rounded, err := host.New(host.Config{Threads: 1, Variant: "portable", Activations: host.Int8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rounded.Close() })
	q4, latent := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), fixtures.Packed(t, fixtures.DeepseekV3Q4, 0)
	const base = "experts=q4g64p weights=q4g64+q4g64p+q8g64+q8g64p activations=f32 kv=f32 top-k=4 device=host/portable"
	for _, c := range []struct {
		name, want string
		cfg        actors.Config
	}{
		{"defaults", base, actors.Config{Model: q4, Device: exact}},
		{"what changes speed only", base, actors.Config{Model: q4, Device: deviceVariant(t, 2, "portable"), RingDepth: 3, Prefetch: actors.PrefetchOff,
			ExpertIO: actors.ExpertIOBuffered, ReadWorkers: 2, ChunkRows: 5, WaveSlots: 3}},
		{"rounded inputs", "experts=q4g64p weights=q4g64+q4g64p+q8g64+q8g64p activations=int8 kv=f32 top-k=4 device=host/portable", actors.Config{Model: q4, Device: rounded}},
		{"keys and values", "experts=q4g64p weights=q4g64+q4g64p+q8g64+q8g64p activations=f32 kv=int8 top-k=4 device=host/portable", actors.Config{Model: q4, Device: exact, KV: actors.KVInt8}},
		{"fewer experts", "experts=q4g64p weights=q4g64+q4g64p+q8g64+q8g64p activations=f32 kv=f32 top-k=1 device=host/portable", actors.Config{Model: q4, Device: exact, ExpertsPerToken: 1}},
		{"another pack", "experts=bf16 weights=bf16 activations=f32 kv=f32 top-k=2 device=host/portable",
			actors.Config{Model: fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0), Device: exact}},
		{"two forms of latent attention", "experts=q4g64p weights=bf16+q4g64+q4g64p activations=f32 kv=f32 top-k=4 chunk-rows=7 device=host/portable",
			actors.Config{Model: latent, Device: exact, ChunkRows: 7}},
	} {
		e := open(t, c.cfg)
		if got := e.Info().Exactness; got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		r, err := e.Recording(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Meta.Exactness; got != c.want {
			t.Errorf("%s: records have %q, want %q", c.name, got, c.want)
		}
	}
}
