package sample

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// bestOf are the n largest of logits by a plain sort.
func bestOf(logits []float32, n int) (b Best) {
	ids := make([]int32, len(logits))
	for i := range ids {
		ids[i] = int32(i)
	}
	slices.SortStableFunc(ids, func(a, b int32) int {
		switch x, y := logits[a], logits[b]; {
		case x != x && y == y || x > y:
			return -1
		case y != y && x == x || x < y:
			return 1
		}
		return 0
	})
	for _, id := range ids[:min(n, len(ids))] {
		b.Logits, b.Tokens = append(b.Logits, logits[id]), append(b.Tokens, id)
	}
	return b
}

// The largest logits give the same tokens as all of them, whenever options say that they are
// enough, many ties and tokens that are ruled out included.
func TestNextOf(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	drawn := 0
	for range 3000 {
		n := []int{1, 5, 70, 200}[rng.IntN(4)] + rng.IntN(3)
		logits := make([]float32, n)
		for i := range logits {
			logits[i] = float32(rng.IntN(12)) / 4
			if rng.IntN(5) == 0 {
				logits[i] = float32(math.Inf(-1))
			}
		}
		o := Options{TopK: rng.IntN(90), Temperature: []float64{0, 0.3, 1, 4}[rng.IntN(4)], TopP: []float64{0, 0.5, 0.95}[rng.IntN(3)], MinP: []float64{0, 0.2}[rng.IntN(2)], Seed: rng.Uint64()}
		if have := min(64, n); !o.Of(have) {
			if o.Temperature == 0 || o.TopK > 0 && o.TopK <= have {
				t.Fatalf("%+v need more than 64 logits", o)
			}
			continue
		}
		all, few := New(o), New(o)
		for range 4 {
			want, werr := all.Next(logits, nil, nil)
			got, gerr := few.NextOf(bestOf(logits, 64))
			if got != want || (werr == nil) != (gerr == nil) {
				t.Fatalf("%+v: %d, %v, want %d, %v", o, got, gerr, want, werr)
			}
			drawn++
		}
	}
	if drawn < 1000 {
		t.Errorf("only %d draws compared", drawn)
	}
}

// What looks at more than the largest logits says so.
func TestOf(t *testing.T) {
	for _, o := range []Options{
		{Temperature: 1}, {Temperature: 1, TopK: 65}, {RepeatPenalty: 1.1}, {PresencePenalty: 1}, {FrequencyPenalty: -1}, {LogitBias: map[int32]float64{1: 1}},
	} {
		if o.Of(64) {
			t.Errorf("%+v are content with 64 logits", o)
		}
	}
	if (Options{}).Of(0) {
		t.Error("no logit is enough")
	}
}

// Logits that cannot be are errors here, too.
func TestNextOfDamaged(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, bad := range []float32{inf, nan} {
		var e *LogitError
		if _, err := New(Options{}).NextOf(bestOf([]float32{1, bad, 2}, 3)); !errors.As(err, &e) || e.Token != 1 {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if _, err := New(Options{Temperature: 1, TopK: 2}).NextOf(bestOf([]float32{-inf, -inf}, 2)); !errors.Is(err, ErrNoFiniteLogit) {
		t.Errorf("nothing to choose: %v", err)
	}
	if _, err := New(Options{TopP: 2}).NextOf(bestOf([]float32{1}, 1)); err == nil {
		t.Error("options that are not valid pass")
	}
}
