package actors_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
)

// tolerance for logits and hidden states of the hybrid models: the references' own float32 noise is 2e-4, amplified by the
// delta rule's normalisation (testdata/README.md of package fixtures).
const tolerance = 2e-3

// TestFixtures compares every number that the reference implementation gives for a fixture with the engine's: the
// prompt read at once, in chunks and token by token, then 24 greedy tokens.
func TestFixtures(t *testing.T) {
	for _, name := range []string{fixtures.Qwen35MoEBF16, fixtures.Qwen35MoEQ4} {
		dir, ref := fixtures.Packed(t, name, 0), fixtures.Reference(t, name)
		dev := device(t, 2)
		for _, chunk := range []int{128, 7, 1} {
			t.Run(fmt.Sprintf("%s/chunk=%d", name, chunk), func(t *testing.T) {
				e := open(t, actors.Config{Model: dir, Device: dev, ChunkRows: chunk})
				for _, prompt := range []string{"p1", "p9", "p70"} {
					checkPrompt(t, e, ref, prompt)
				}
			})
		}
	}
}

func checkPrompt(t *testing.T, e *actors.Engine, ref *fixtures.Numbers, p string) {
	t.Helper()
	s := sequence(t, e)
	defer s.Close()
	ids := ints(ref, p+".ids")
	got, err := s.EvalChunk(context.Background(), actors.Chunk{Tokens: ids, Logits: actors.AllLogits, Hidden: true, Routing: true})
	if err != nil {
		t.Fatal(err)
	}
	within(t, p+".logits", got.Logits, floats(ref, p+".logits"))
	within(t, p+".hidden", got.Hidden, floats(ref, p+".hidden"))
	sameRouting(t, p, got, ints(ref, p+".router_idx"), floats(ref, p+".router_weight"), e.Info().TopK)

	vocab := e.Model().VocabSize
	wantIDs, wantLogits := ints(ref, p+".decode_ids"), floats(ref, p+".decode_logits")
	id := argmax(got.Logits[len(got.Logits)-vocab:])
	for i, want := range wantIDs {
		if id != want {
			t.Fatalf("%s: greedy token %d is %d, want %d", p, i, id, want)
		}
		logits := eval(t, s, id)
		within(t, fmt.Sprintf("%s.decode_logits row %d", p, i), logits, wantLogits[i*vocab:(i+1)*vocab])
		id = argmax(logits)
	}
}

// within wants every value within the tolerance.
func within(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range want {
		if d := math.Abs(float64(got[i]) - float64(want[i])); !(d <= tolerance) {
			t.Fatalf("%s: value %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// sameRouting wants the same experts, as sets, with the same weights.
func sameRouting(t *testing.T, p string, got *actors.Evaluated, idx []int32, weight []float32, k int) {
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
			if d := math.Abs(float64(got.Weights[at+i]) - float64(weight[at+j])); !(d <= tolerance) {
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
