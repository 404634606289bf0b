package actors_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/model"
)

// comparer compares with one tolerance and remembers the largest difference.
type comparer struct {
	t      *testing.T
	limit  float64
	worst  float64
	layers []model.Layer // of the model
	// decode is how many greedy tokens to compare; 0 means all there are.
	decode int
}

// TestFixtures compares every number that the reference implementation gives for a fixture with the
// engine's: the prompt read at once, in chunks and token by token, then 24 greedy tokens. Variants
// of the device that are not its default read in chunks only. avxvnni has avx2's kernels for
// float32.
func TestFixtures(t *testing.T) {
	variants := host.Variants()
	for i, variant := range variants[:testenv.Rounds(1, len(variants), len(variants))] {
		if i > 0 && variant == "avxvnni" {
			continue
		}
		chunks := []int{128, 64, 7, 1}
		if i > 0 {
			chunks = []int{7}
		}
		dev := deviceVariant(t, 2, variant)
		for _, name := range fixtures.All() {
			dir, ref := fixtures.Packed(t, name, 0), fixtures.Reference(t, name)
			for _, chunk := range chunks {
				t.Run(fmt.Sprintf("%s/variant=%s/chunk=%d", name, variant, chunk), func(t *testing.T) {
					e := open(t, actors.Config{Model: dir, Device: dev, ChunkRows: chunk})
					c := &comparer{t: t, limit: fixtures.Tolerance(name)}
					for _, prompt := range fixtures.Prompts(name) {
						c.checkPrompt(e, ref, prompt)
					}
					t.Logf("largest difference %.1e", c.worst)
				})
			}
		}
	}
}

// TestLegacyPacks opens packs in the form that flash-moe and moeflux write, made without our
// converter, and wants the reference's numbers.
func TestLegacyPacks(t *testing.T) {
	dev := device(t, 2)
	for _, name := range []string{fixtures.Qwen35MoEQ4, fixtures.DeepseekV3Q4KVB} {
		for _, moeflux := range []bool{false, true} {
			e := open(t, actors.Config{Model: fixtures.Legacy(t, name, moeflux), Device: dev})
			c := &comparer{t: t, limit: fixtures.Tolerance(name)}
			c.checkPrompt(e, fixtures.Reference(t, name), "p9")
		}
	}
}

func (c *comparer) checkPrompt(e *actors.Engine, ref *fixtures.Numbers, p string) {
	t := c.t
	t.Helper()
	s := sequence(t, e)
	defer s.Close()
	ids := ints(ref, p+".ids")
	chosen := choices(e)
	c.layers = e.Model().Layers
	got, err := s.EvalChunk(context.Background(), actors.Chunk{Tokens: ids, Logits: actors.AllLogits, Hidden: true, Routing: true, Dump: chosen})
	if err != nil {
		t.Fatal(err)
	}
	c.within(p+".logits", got.Logits, floats(ref, p+".logits"))
	c.within(p+".hidden", got.Hidden, floats(ref, p+".hidden"))
	c.samePositions(p, got.Dump, ref, p+".index_topk", 0, len(ids))
	c.sameRouting(p, got, ints(ref, p+".router_idx"), floats(ref, p+".router_weight"), e.Info().TopK)

	vocab := e.Model().VocabSize
	wantIDs, wantLogits := ints(ref, p+".decode_ids"), floats(ref, p+".decode_logits")
	id := argmax(got.Logits[len(got.Logits)-vocab:])
	if c.decode > 0 {
		wantIDs = wantIDs[:c.decode]
	}
	for i, want := range wantIDs {
		if id != want {
			t.Fatalf("%s: greedy token %d is %d, want %d", p, i, id, want)
		}
		got, err := s.EvalChunk(context.Background(), actors.Chunk{Tokens: []int32{id}, Logits: actors.AllLogits, Dump: chosen})
		if err != nil {
			t.Fatal(err)
		}
		c.within(fmt.Sprintf("%s.decode_logits row %d", p, i), got.Logits, wantLogits[i*vocab:(i+1)*vocab])
		c.samePositions(p, got.Dump, ref, p+".decode_index_topk", i, 1)
		id = argmax(got.Logits)
	}
}

// within wants every value within the tolerance.
func (c *comparer) within(what string, got, want []float32) {
	t := c.t
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range want {
		d := math.Abs(float64(got[i]) - float64(want[i]))
		c.worst = max(c.worst, d)
		if !(d <= c.limit) {
			t.Fatalf("%s: value %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// sameRouting wants the same experts, as sets, with the same weights.
func (c *comparer) sameRouting(p string, got *actors.Evaluated, idx []int32, weight []float32, k int) {
	t := c.t
	t.Helper()
	if len(got.Picks) != len(idx) {
		t.Fatalf("%s: %d picks, want %d", p, len(got.Picks), len(idx))
	}
	for at := 0; at < len(idx); at += k {
		for j := range k {
			i := slices.Index(got.Picks[at:at+k], idx[at+j])
			if i < 0 {
				t.Fatalf("%s: picks %v at %d, want the set %v", p, got.Picks[at:at+k], at/k, idx[at:at+k])
			}
			if d := math.Abs(float64(got.Weights[at+i]) - float64(weight[at+j])); !(d <= c.limit) {
				t.Fatalf("%s: expert %d at %d weighs %v, want %v", p, idx[at+j], at/k, got.Weights[at+i], weight[at+j])
			}
		}
	}
}

func ints(r *fixtures.Numbers, name string) []int32 {
	v, _ := r.I32(name)
	return v
}

func floats(r *fixtures.Numbers, name string) []float32 {
	v, _ := r.F32(name)
	return v
}
