package bench

import (
	"math/rand/v2"

	"github.com/moeflux/moeflux-actor/io/synth"
)

// prompts gives prompts by number. They are the same in every measurement.
type prompts struct {
	kind   string                 // chain or random
	stride int                    // of a chain: tokens from one prompt to the next
	prompt func(k, n int) []int32 // the first n tokens of prompt k
}

// Prompts returns what gives prompts to Runs and Trials: the first n tokens of prompt k. stride is
// the length of a text with its prompt.
func Prompts(m *Model, stride int) (prompt func(k, n int) []int32, err error) {
	p, err := newPrompts(m, stride)
	if err != nil {
		return nil, err
	}
	return p.prompt, nil
}

// newPrompts takes prompts from the model's chain, if it has one. stride is the length of a text
// with its prompt: what follows a prompt in the chain is what its text decodes.
func newPrompts(m *Model, stride int) (*prompts, error) {
	vocab := m.Engine.Model().VocabSize
	chain, err := synth.Wrote(m.Config.Model)
	if err != nil {
		return nil, err
	}
	if !chain {
		return &prompts{kind: "random", prompt: func(k, n int) []int32 {
			random, ids := rand.New(rand.NewPCG(uint64(k), 0)), make([]int32, n)
			for i := range ids {
				ids[i] = random.Int32N(int32(vocab))
			}
			return ids
		}}, nil
	}
	s, err := synth.Load(m.Config.Model)
	if err != nil {
		return nil, err
	}
	return &prompts{kind: "chain", stride: stride, prompt: func(k, n int) []int32 {
		from := k * stride % vocab
		return s.Chain(from + n)[from:]
	}}, nil
}

// of returns the first n tokens of consecutive prompts, beginning with number first.
func (p *prompts) of(first, sequences, n int) [][]int32 {
	all := make([][]int32, sequences)
	for i := range all {
		all[i] = p.prompt(first+i, n)
	}
	return all
}
