package sample

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// exactLogProbs is the definition: log(exp(l[i]) / Σ exp(l)), with the sum in 200 bits.
func exactLogProbs(logits []float32) []float64 {
	peak := slices.Max(logits)
	sum := new(big.Float).SetPrec(200)
	for _, l := range logits {
		sum.Add(sum, big.NewFloat(math.Exp(float64(l)-float64(peak))))
	}
	total, _ := sum.Float64()
	p := make([]float64, len(logits))
	for i, l := range logits {
		p[i] = float64(l) - float64(peak) - math.Log(total)
	}
	return p
}

// Both sums are in float64 or more: 1e-11 is far above what 3,000 roundings make.
const logProbTolerance = 1e-11

func TestLogProbs(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for trial := range 300 {
		n := 1 + rng.IntN(3000)
		logits := make([]float32, n)
		for i := range logits {
			logits[i] = float32(rng.NormFloat64() * 8)
			if trial%3 == 0 {
				logits[i] = float32(math.Round(float64(logits[i]))) // many ties
			}
			if trial%5 == 0 && i > 0 && rng.IntN(2) == 0 {
				logits[i] = negInf
			}
		}
		want := exactLogProbs(logits)
		chosen, top := int32(rng.IntN(n)), rng.IntN(30)
		// Penalties, bias and temperature do not show in them.
		s := New(Options{Temperature: 0.3, TopK: 2, PresencePenalty: 2, LogitBias: map[int32]float64{0: -100}})
		got, err := s.LogProbs(logits, chosen, top)
		if err != nil {
			t.Fatal(err)
		}
		if d := math.Abs(got.Chosen.LogProb - want[chosen]); got.Chosen.Token != chosen || d > logProbTolerance {
			t.Fatalf("trial %d: chosen %+v, want token %d with %v", trial, got.Chosen, chosen, want[chosen])
		}
		order := make([]int32, 0, n)
		for i := range want {
			if !math.IsInf(want[i], -1) {
				order = append(order, int32(i))
			}
		}
		slices.SortStableFunc(order, func(a, b int32) int {
			switch {
			case logits[a] > logits[b]:
				return -1
			case logits[a] < logits[b]:
				return 1
			}
			return 0
		})
		order = order[:min(top, len(order))]
		if len(got.Top) != len(order) {
			t.Fatalf("trial %d: %d of the top %d, want %d", trial, len(got.Top), top, len(order))
		}
		for i, p := range got.Top {
			if p.Token != order[i] || math.Abs(p.LogProb-want[p.Token]) > logProbTolerance {
				t.Fatalf("trial %d: place %d is %+v, want token %d with %v", trial, i, p, order[i], want[order[i]])
			}
		}
	}
}

// All probabilities sum to 1.
func TestLogProbsSumToOne(t *testing.T) {
	logits := randomLogits(5000)
	got, err := New(Options{}).LogProbs(logits, 0, len(logits)+5)
	if err != nil || len(got.Top) != len(logits) {
		t.Fatalf("%d log-probabilities of %d tokens, %v", len(got.Top), len(logits), err)
	}
	sum := 0.0
	for _, p := range got.Top {
		sum += math.Exp(p.LogProb)
	}
	if math.Abs(sum-1) > logProbTolerance {
		t.Errorf("the probabilities sum to %v, want 1", sum)
	}
}

func TestLogProbsErrors(t *testing.T) {
	for _, c := range []struct {
		name   string
		logits []float32
		chosen int32
		want   func(error) bool
	}{
		{"NaN", []float32{1, nan}, 0, func(err error) bool { e, ok := errors.AsType[*LogitError](err); return ok && e.Token == 1 }},
		{"infinity", []float32{posInf}, 0, func(err error) bool { _, ok := errors.AsType[*LogitError](err); return ok }},
		{"nothing", nil, 0, func(err error) bool { return errors.Is(err, ErrNoFiniteLogit) }},
		{"ruled out", []float32{negInf}, 0, func(err error) bool { return errors.Is(err, ErrNoFiniteLogit) }},
		{"beyond the vocabulary", []float32{1, 2}, 2, func(err error) bool { return err != nil }},
		{"negative", []float32{1, 2}, -1, func(err error) bool { return err != nil }},
	} {
		if _, err := New(Options{}).LogProbs(c.logits, c.chosen, 1); !c.want(err) {
			t.Errorf("%s: LogProbs(%v, %d): error %v", c.name, c.logits, c.chosen, err)
		}
	}
}

// Asking for them does not change what is drawn next.
func TestLogProbsLeaveTheStreamAlone(t *testing.T) {
	logits := randomLogits(500)
	text := func(ask bool) (ids []int32) {
		s := New(Options{Temperature: 2, Seed: 5})
		for range 30 {
			id, err := s.Next(logits, nil, ids)
			if err != nil {
				t.Fatal(err)
			}
			if ids = append(ids, id); ask {
				if _, err := s.LogProbs(logits, id, 5); err != nil {
					t.Fatal(err)
				}
			}
		}
		return ids
	}
	if a, b := text(false), text(true); !slices.Equal(a, b) {
		t.Errorf("texts differ: %v without, %v with log-probabilities", a, b)
	}
}
