package sample

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// randomLogits returns logits that look like a model's: most in a bell, some far above it.
func randomLogits(vocab int) []float32 {
	rng := rand.New(rand.NewPCG(1, 2))
	logits := make([]float32, vocab)
	for i := range logits {
		logits[i] = float32(rng.NormFloat64() * 3)
		if i%1000 == 0 {
			logits[i] += float32(10 + 5*rng.NormFloat64())
		}
	}
	return logits
}

func BenchmarkNext(b *testing.B) {
	for _, vocab := range []int{151936, 248320} {
		logits := randomLogits(vocab)
		for _, c := range []struct {
			name string
			opts Options
		}{
			{"greedy", Options{}},
			{"greedy-penalties", Options{RepeatPenalty: 1.1, PresencePenalty: 1}},
			{"temperature", Options{Temperature: 0.8}},
			{"topk40", Options{Temperature: 0.8, TopK: 40}},
			{"topp95", Options{Temperature: 0.8, TopP: 0.95}},
			{"minp05", Options{Temperature: 0.8, MinP: 0.05}},
			{"all", Options{Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05, RepeatPenalty: 1.1, PresencePenalty: 1, FrequencyPenalty: 0.2, LogitBias: map[int32]float64{7: -100}}},
		} {
			b.Run(fmt.Sprintf("vocab=%d/mode=%s", vocab, c.name), func(b *testing.B) {
				s, text := New(c.opts), make([]int32, 4096)
				for i := range text {
					text[i] = int32(i % 1500)
				}
				b.ReportAllocs()
				for b.Loop() {
					if _, err := s.Next(logits, text, text); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// marked allows every n-th token.
type marked []uint64

func every(n, vocab int) marked {
	m := make(marked, (vocab+63)/64)
	for t := 0; t < vocab; t += n {
		m[t/64] |= 1 << (t % 64)
	}
	return m
}

func (m marked) Accepts(token int32) bool { return m[token/64]>>(token%64)&1 == 1 }
func (m marked) Mask() []uint64           { return m }
func (m marked) Advance(int32) error      { return nil }
func (m marked) Complete() bool           { return false }

// Where one of a thousand tokens is allowed, most draws are refused and done again; where all are,
// none.
func BenchmarkNextWithin(b *testing.B) {
	const vocab = 151936
	logits := randomLogits(vocab)
	for _, c := range []struct {
		name  string
		every int
		opts  Options
	}{
		{"few/temperature", 977, Options{Temperature: 1}},
		{"few/topp95", 977, Options{Temperature: 0.8, TopP: 0.95}},
		{"few/topk40", 977, Options{Temperature: 0.8, TopK: 40}},
		{"few/greedy", 977, Options{}},
		{"all/temperature", 1, Options{Temperature: 1}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, m := New(c.opts), every(c.every, vocab)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.NextWithin(m, logits, nil, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkLogProbs(b *testing.B) {
	logits, s := randomLogits(248320), New(Options{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.LogProbs(logits, 7, 20); err != nil {
			b.Fatal(err)
		}
	}
}
