package synth_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/io/synth"
	"github.com/moeflux/moeflux-actor/model"
)

// The published shapes have the known sizes of the models: bytes of an expert's record, and
// gigabytes of all experts and of the rest, with 4 bits in groups of 64.
func TestPublishedShapes(t *testing.T) {
	for name, want := range map[string]struct {
		arch          model.Arch
		layers        int
		record        int64
		experts, rest float64 // GB
		eos           []int32
	}{
		"qwen3-30b-a3b":      {model.Qwen3MoE, 48, 2654208, 16.3, 0.87, []int32{151643, 151645}},
		"qwen3.5-35b-a3b":    {model.Qwen35MoE, 40, 1769472, 18.1, 1.39, []int32{248044, 248046}},
		"qwen3.5-122b-a10b":  {model.Qwen35MoE, 48, 5308416, 65.2, 3.48, []int32{248044, 248046}},
		"qwen3.5-397b-a17b":  {model.Qwen35MoE, 60, 7077888, 217.4, 5.52, []int32{248044, 248046}},
		"qwen3-next-80b-a3b": {model.Qwen3Next, 48, 1769472, 43.5, 1.36, []int32{151643, 151645}},
		"deepseek-v3":        {model.DeepseekV3, 61, 24772608, 367.8, 9.78, []int32{1}},
		"mistral-small-4":    {model.Mistral4, 36, 14155776, 65.2, 1.72, nil},
	} {
		shape, err := synth.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		m, err := synth.New(synth.Options{Shape: shape})
		if err != nil {
			t.Fatal(err)
		}
		c := m.Config()
		dense, experts := m.Size()
		if got := experts / int64(len(c.MoELayers())*c.NumExperts); c.Arch != want.arch || c.NumHiddenLayers != want.layers || got != want.record {
			t.Errorf("%s: %s of %d layers, records of %d bytes; want %s, %d, %d", name, c.Arch, c.NumHiddenLayers, got, want.arch, want.layers, want.record)
		}
		// The figures are rounded, and leave out norms and the 8-bit routers of one shape.
		if math.Abs(float64(experts)/1e9-want.experts) > 0.06 || math.Abs(float64(dense)/1e9-want.rest) > 0.015*want.rest {
			t.Errorf("%s: %.2f GB of experts and %.3f GB besides, want %.1f and %.2f", name, float64(experts)/1e9, float64(dense)/1e9, want.experts, want.rest)
		}
		if !slices.Equal(c.EOSTokenIDs, want.eos) {
			t.Errorf("%s: texts end with %v, want %v", name, c.EOSTokenIDs, want.eos)
		}
	}
	if got := synth.Names(); len(got) != 7 || !slices.IsSorted(got) {
		t.Errorf("Names() = %v, want the seven of above, sorted", got)
	}
	var unknown *synth.UnknownShapeError
	if _, err := synth.Named("gpt-2"); !errors.As(err, &unknown) || !strings.Contains(err.Error(), "deepseek-v3") {
		t.Errorf("Named(gpt-2): %v, want an *UnknownShapeError that names others", err)
	}
}

// Smaller models of a shape keep what they can.
func TestResize(t *testing.T) {
	for _, c := range []struct {
		name                   string
		layers, vocab, experts int
		moe, k                 int
	}{
		{"deepseek-v3", 4, 1000, 64, 1, 8},
		{"deepseek-v3", 2, 1000, 64, 1, 8}, // fewer than the dense layers
		{"deepseek-v3", 1, 1000, 64, 1, 8},
		{"qwen3.5-35b-a3b", 6, 600, 4, 6, 4}, // fewer than are used
		{"qwen3-30b-a3b", 100, 600, 200, 100, 8},
	} {
		shape, err := synth.Named(c.name)
		if err != nil {
			t.Fatal(err)
		}
		m, err := synth.New(synth.Options{Shape: shape, Layers: c.layers, Vocab: c.vocab, Experts: c.experts})
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		got := m.Config()
		if got.NumHiddenLayers != c.layers || got.VocabSize != c.vocab || got.NumExperts != c.experts || len(got.MoELayers()) != c.moe || got.NumExpertsPerTok != c.k {
			t.Errorf("%+v: %d layers, %d tokens, %d experts, %d layers with experts, %d used", c, got.NumHiddenLayers, got.VocabSize, got.NumExperts, len(got.MoELayers()), got.NumExpertsPerTok)
		}
		if len(got.EOSTokenIDs) == 0 || int(slices.Max(got.EOSTokenIDs)) >= c.vocab {
			t.Errorf("%+v: texts end with %v, want ids of the vocabulary", c, got.EOSTokenIDs)
		}
	}
}

// A configuration that lists its layers without an interval is truncated, or continued as it began.
func TestLayerList(t *testing.T) {
	o := tiny(t, "qwen3_5_moe")
	o.Shape.Config = []byte(strings.Replace(string(o.Shape.Config), `"full_attention_interval":4`,
		`"layer_types":["linear_attention","full_attention","full_attention","linear_attention","full_attention"]`, 1))
	for layers, want := range map[int]int{0: 3, 2: 1, 8: 5} {
		o.Layers = layers
		m, err := synth.New(o)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Config().Count(model.FullAttention); got != want {
			t.Errorf("%d layers: %d of full attention, want %d", layers, got, want)
		}
	}
}

func TestBadOptions(t *testing.T) {
	edit := func(from, to string) func(*synth.Options) {
		return func(o *synth.Options) {
			before := string(o.Shape.Config)
			if !strings.Contains(before, from) {
				t.Fatalf("%q is not in %s", from, before)
			}
			o.Shape.Config = []byte(strings.Replace(before, from, to, 1))
		}
	}
	for _, c := range []struct {
		name   string
		change func(*synth.Options)
		want   string
	}{
		{"route", func(o *synth.Options) { o.Route = "wild" }, `route "wild"`},
		{"layers", func(o *synth.Options) { o.Layers = -1 }, "layers -1"},
		{"topics", func(o *synth.Options) { o.Topics = -1 }, "topics -1"},
		{"vocabulary", func(o *synth.Options) { o.Vocab = 3; o.Shape.Generation = nil }, ""},
		{"no vocabulary", func(o *synth.Options) { o.Vocab = 1 }, "vocab_size 1"},
		{"experts", func(o *synth.Options) { o.Experts = 1017 }, "1017 experts"},
		{"hidden size", edit(`"hidden_size":320`, `"hidden_size":192`), "hidden_size 192"},
		{"odd hidden size", edit(`"hidden_size":320`, `"hidden_size":300`), "300 inputs"},
		{"odd width", edit(`"moe_intermediate_size":64`, `"moe_intermediate_size":96`), "moe_intermediate_size 96"},
		{"tied", edit(`"tie_word_embeddings":false`, `"tie_word_embeddings":true`), "tie_word_embeddings true"},
	} {
		o := tiny(t, "qwen3_moe")
		c.change(&o)
		_, err := synth.New(o)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v, want none", c.name, err)
			}
			continue
		}
		var bad *synth.OptionError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an *OptionError about %s", c.name, err, c.want)
		}
	}
	for name, config := range map[string]string{"null": "null", "a list": "[1]", "nothing": "", "an unknown model": `{"model_type": "gpt2"}`} {
		if _, err := synth.New(synth.Options{Shape: synth.Shape{Config: []byte(config)}}); err == nil {
			t.Errorf("New of %s: no error", name)
		}
	}
}
