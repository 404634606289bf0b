package actors_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/stages/sample"
)

// generate returns the ids and log-probabilities of one generation.
func generate(t *testing.T, s *actors.Sequence, prompt []int32, o actors.GenerateOptions) (ids []int32, probs []sample.LogProbs) {
	t.Helper()
	o.LogProbs, o.TopLogProbs = new(sample.LogProbs), 3
	for id, err := range s.Generate(context.Background(), prompt, o) {
		if err != nil {
			t.Fatal(err)
		}
		ids, probs = append(ids, id), append(probs, *o.LogProbs)
	}
	return ids, probs
}

// A text that is read in two pieces continues as when it is read in one: penalties see the earlier
// piece.
func TestGenerateSeesTheEarlierText(t *testing.T) {
	e := open(t, actors.Config{Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)})
	text := []int32{504, 82, 88, 82, 280, 76, 198, 33, 68, 361, 465, 67, 13, 511, 198}
	o := actors.GenerateOptions{MaxTokens: 12, IgnoreEOS: true, Sampling: sample.Options{
		Temperature: 1, Seed: 4, RepeatPenalty: 3, PresencePenalty: 1, FrequencyPenalty: 0.5,
	}}
	want, wantProbs := generate(t, sequence(t, e), text, o)

	pieces := sequence(t, e)
	eval(t, pieces, text[:9]...)
	o.Earlier = text[:9]
	got, gotProbs := generate(t, pieces, text[9:], o)
	if !slices.Equal(got, want) {
		t.Errorf("in two pieces %v, in one %v", got, want)
	}
	for i := range gotProbs {
		if !slices.Equal(gotProbs[i].Top, wantProbs[i].Top) || gotProbs[i].Chosen != wantProbs[i].Chosen {
			t.Errorf("log-probabilities at %d: in two pieces %+v, in one %+v", i, gotProbs[i], wantProbs[i])
		}
	}
}

// The log-probabilities are those of the logits that the sequence gives, whatever sampling does to
// them.
func TestGenerateLogProbs(t *testing.T) {
	e := open(t, actors.Config{Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)})
	prompt := []int32{504, 82, 88, 82}
	ids, probs := generate(t, sequence(t, e), prompt, actors.GenerateOptions{MaxTokens: 6, IgnoreEOS: true, Sampling: sample.Options{
		Temperature: 2, Seed: 1, TopK: 50, LogitBias: map[int32]float64{41: -100},
	}})
	again, next := sequence(t, e), prompt
	for i, id := range ids {
		logits := eval(t, again, next...)
		sum := 0.0
		for _, l := range logits {
			sum += math.Exp(float64(l))
		}
		// Some 500 roundings in float64.
		if want := float64(logits[id]) - math.Log(sum); probs[i].Chosen.Token != id || math.Abs(probs[i].Chosen.LogProb-want) > 1e-11 {
			t.Errorf("token %d is %d: %+v, want %v", i, id, probs[i].Chosen, want)
		}
		if len(probs[i].Top) != 3 || probs[i].Top[0].Token != argmax(logits) {
			t.Errorf("token %d: the top is %+v, want three from %d on", i, probs[i].Top, argmax(logits))
		}
		next = []int32{id}
	}
}

// thirds allows every token at every third place, and else only those whose id is divisible by
// three; the text is complete after nine.
type thirds struct{ n int }

func (c *thirds) Accepts(token int32) bool { return c.n%3 == 0 || token%3 == 0 }

func (c *thirds) Mask() []uint64 {
	mask := make([]uint64, 1000)
	for i := range int32(64 * len(mask)) {
		if c.Accepts(i) {
			mask[i/64] |= 1 << (i % 64)
		}
	}
	return mask
}

func (c *thirds) Advance(int32) error { c.n++; return nil }
func (c *thirds) Complete() bool      { return c.n == 9 }

// A constraint decides among the model's own tokens, and ends the text.
func TestGenerateWithin(t *testing.T) {
	e := open(t, actors.Config{Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)})
	prompt := []int32{504, 82, 88, 82, 280, 76}
	var reason actors.StopReason
	ids, _ := generate(t, sequence(t, e), prompt, actors.GenerateOptions{IgnoreEOS: true, Constraint: &thirds{}, StopReason: &reason})
	if len(ids) != 9 || reason != actors.StopEOS {
		t.Fatalf("%d tokens for %q, want 9 for %q", len(ids), reason, actors.StopEOS)
	}
	again, refused := sequence(t, e), 0
	for i, id := range ids {
		logits := eval(t, again, slices.Concat(prompt, ids[:i])[again.Len():]...)
		best, free := int32(-1), int32(0)
		for j, l := range logits {
			if l > logits[free] {
				free = int32(j)
			}
			if (i%3 == 0 || j%3 == 0) && (best < 0 || l > logits[best]) {
				best = int32(j)
			}
		}
		if id != best {
			t.Errorf("token %d is %d, want the likeliest that is allowed, %d", i, id, best)
		}
		if best != free {
			refused++
		}
	}
	if refused == 0 {
		t.Error("the constraint had nothing to refuse")
	}
}
