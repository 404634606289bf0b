package moeflux

import (
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
)

// BenchmarkGenerate compares a token of the engine with one that comes as an event, as text and
// with the likeliest tokens beside it.
func BenchmarkGenerate(b *testing.B) {
	m := openDemo(b, Options{})
	const prompt, tokens = "package main\n\nfunc main() {\n", 256
	ids, err := m.Tokenizer().Encode(prompt, true)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("as=ids", func(b *testing.B) {
		for b.Loop() {
			seq, err := m.Engine().NewSequence(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			for _, err := range seq.Generate(b.Context(), ids, actors.GenerateOptions{MaxTokens: tokens, IgnoreEOS: true}) {
				if err != nil {
					b.Fatal(err)
				}
			}
			if err := seq.Close(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*tokens), "µs/token")
	})
	for name, top := range map[string]int{"text": 0, "text+5": 5} {
		b.Run("as="+name, func(b *testing.B) {
			n := 0
			for b.Loop() {
				end, err := m.Generate(b.Context(), Request{Prompt: prompt, MaxTokens: tokens, Sampling: greedy, NoReuse: true, TopLogProbs: top}).Wait()
				if err != nil {
					b.Fatal(err)
				}
				n += end.Usage.NewTokens
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(n), "µs/token")
		})
	}
}
