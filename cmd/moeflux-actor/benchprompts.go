package main

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/moeflux/moeflux-actor/io/synth"
)

// benchPrompts returns prompts by number.
type benchPrompts struct {
	kind   string                 // chain or random
	stride int                    // of a chain: tokens from one prompt to the next
	prompt func(k, n int) []int32 // the first n tokens of prompt k
}

// newBenchPrompts takes prompts from the model's chain, if it has one. stride is the length of a
// text with its prompt: what follows a prompt in the chain is what its text decodes.
func newBenchPrompts(s *session, stride int) (*benchPrompts, error) {
	vocab := s.engine.Model().VocabSize
	_, err := os.Stat(filepath.Join(s.dir, synth.RecordName))
	if errors.Is(err, fs.ErrNotExist) {
		return &benchPrompts{kind: "random", prompt: func(k, n int) []int32 {
			random, ids := rand.New(rand.NewPCG(uint64(k), 0)), make([]int32, n)
			for i := range ids {
				ids[i] = random.Int32N(int32(vocab))
			}
			return ids
		}}, nil
	}
	m, err := synth.Load(s.dir)
	if err != nil {
		return nil, err
	}
	return &benchPrompts{kind: "chain", stride: stride, prompt: func(k, n int) []int32 {
		from := k * stride % vocab
		return m.Chain(from + n)[from:]
	}}, nil
}

// of returns the first n tokens of consecutive prompts, beginning with number first.
func (p *benchPrompts) of(first, sequences, n int) [][]int32 {
	prompts := make([][]int32, sequences)
	for i := range prompts {
		prompts[i] = p.prompt(first+i, n)
	}
	return prompts
}
