package sample

import (
	"errors"
	"math"
	"testing"
)

// few allows some tokens, always the same.
type few map[int32]bool

func (f few) Accepts(token int32) bool { return f[token] }

func (f few) Mask() []uint64 {
	mask := make([]uint64, 1)
	for t := range f {
		mask[0] |= 1 << t
	}
	return mask
}

func (f few) Advance(int32) error { return nil }
func (f few) Complete() bool      { return false }

// referenceWithin is the definition: what the cuts leave of the distribution, of that what is
// allowed, in proportion; if that is nothing, the same over the allowed tokens alone.
func referenceWithin(c few, logits []float32, prompt, sampled []int32, o Options) []float64 {
	p, sum := reference(logits, prompt, sampled, o), 0.0
	for i := range p {
		if !c[int32(i)] {
			p[i] = 0
		}
		sum += p[i]
	}
	if sum == 0 {
		masked := make([]float32, len(logits))
		for i, l := range logits {
			if masked[i] = l; !c[int32(i)] {
				masked[i] = float32(math.Inf(-1))
			}
		}
		return reference(masked, prompt, sampled, o)
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// Draws within a constraint follow the definition: chi square below 29.6, the 99.9th percentile of
// ten degrees of freedom, of which there are fewer, at fixed seeds.
func TestNextWithin(t *testing.T) {
	logits := []float32{0.5, 2, -1, 1.5, 0, 2, -3, 1, 0.2, 3}
	prompt, sampled := []int32{1, 2}, []int32{5, 1, 5}
	for i, o := range []Options{
		{Temperature: 1.3}, {Temperature: 1, TopK: 4}, {Temperature: 1, TopP: 0.8}, {Temperature: 2, MinP: 0.5}, {Temperature: 1, TopK: 7, TopP: 0.9, RepeatPenalty: 2},
		{Temperature: 1, PresencePenalty: 0.8, LogitBias: map[int32]float64{1: -100, 6: 4}}, {Temperature: 1, TopK: 1}, {Temperature: 2, TopK: 6},
	} {
		for j, c := range []few{{1: true, 3: true, 7: true}, {6: true, 2: true}, {9: true, 0: true, 4: true, 8: true}} {
			o.Seed = uint64(10*i + j + 1)
			const draws = 30000
			want, counts, s := referenceWithin(c, logits, prompt, sampled, o), make([]int, len(logits)), New(o)
			for range draws {
				id, err := s.NextWithin(c, logits, prompt, sampled)
				if err != nil {
					t.Fatal(err)
				}
				counts[id]++
			}
			chi := 0.0
			for id, p := range want {
				if p == 0 && counts[id] > 0 {
					t.Errorf("%+v within %v: token %d came", o, c, id)
				}
				if p > 0 {
					chi += math.Pow(float64(counts[id])-draws*p, 2) / (draws * p)
				}
			}
			if chi > 29.6 {
				t.Errorf("%+v within %v: chi square %.1f; counts %v, want %v", o, c, chi, counts, want)
			}
		}
	}
}

// A greedy choice takes the best that is allowed, with penalties; none to choose from is an error.
func TestNextWithinGreedy(t *testing.T) {
	logits := []float32{2, 1, 0.5, 3, -1, 0}
	allowed := few{1: true, 2: true, 4: true, 5: true}
	for _, c := range []struct {
		o    Options
		want int32
	}{{Options{}, 1}, {Options{TopK: 1}, 1}, {Options{RepeatPenalty: 4}, 2}, {Options{LogitBias: map[int32]float64{4: 7, 0: 9}}, 4}} {
		if token, err := New(c.o).NextWithin(allowed, logits, []int32{1}, nil); token != c.want || err != nil {
			t.Errorf("%+v: %d, %v; want %d", c.o, token, err, c.want)
		}
	}
	if _, err := New(Options{}).NextWithin(few{}, logits, nil, nil); !errors.Is(err, ErrNoneAllowed) {
		t.Errorf("nothing is allowed: %v", err)
	}
	if _, err := New(Options{LogitBias: map[int32]float64{1: -100}}).NextWithin(few{1: true}, logits, nil, nil); !errors.Is(err, ErrNoneAllowed) {
		t.Errorf("what is allowed is excluded: %v", err)
	}
	if _, err := New(Options{}).NextWithin(few{}, []float32{float32(math.NaN())}, nil, nil); !errors.As(err, new(*LogitError)) {
		t.Errorf("no number: %v", err)
	}
}
