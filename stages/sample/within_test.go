package sample

import (
	"errors"
	"math"
	"testing"
)

// few allows some tokens.
type few map[int32]bool

func (f few) Allows(token int32) bool { return f[token] }

func (f few) Forbid(logits []float32) {
	for i := range logits {
		if !f[int32(i)] {
			logits[i] = float32(math.Inf(-1))
		}
	}
}

// Within a constraint tokens come as often as they would if there were no others.
func TestNextWithin(t *testing.T) {
	logits := []float32{2, 1, 0.5, 3, -1, 0}
	allowed := few{1: true, 2: true, 4: true, 5: true}
	const draws = 200_000
	s, counts := New(Options{Temperature: 1, Seed: 3}), map[int32]float64{}
	for range draws {
		token, err := s.NextWithin(allowed, logits, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		counts[token]++
	}
	sum := 0.0
	for token := range allowed {
		sum += math.Exp(float64(logits[token]))
	}
	for token := range int32(len(logits)) {
		want := 0.0
		if allowed[token] {
			want = math.Exp(float64(logits[token])) / sum
		}
		if got, sigma := counts[token]/draws, math.Sqrt(want*(1-want)/draws); math.Abs(got-want) > 5*sigma {
			t.Errorf("token %d came in %.4f of the draws, want %.4f ± %.4f", token, got, want, sigma)
		}
	}
	if token, err := New(Options{}).NextWithin(allowed, logits, nil, nil); token != 1 || err != nil {
		t.Errorf("the likeliest that is allowed is %d, %v; want 1", token, err)
	}
	if _, err := New(Options{}).NextWithin(few{}, logits, nil, nil); !errors.Is(err, ErrNoneAllowed) {
		t.Errorf("nothing is allowed: %v", err)
	}
	if _, err := New(Options{}).NextWithin(few{}, []float32{float32(math.NaN())}, nil, nil); !errors.As(err, new(*LogitError)) {
		t.Errorf("no number: %v", err)
	}
}
