package bench

import (
	"context"
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/internal/figures"
)

// runner runs texts with some sequences at once.
type runner struct {
	host        *Host
	m           *Model
	setting     *Setting
	texts       []*text
	trace       *routingTrace // of the only text, or nil
	said        [][]int32     // the tokens that followed, by text; nil if nobody asks
	done, total int64         // tokens of one sequence, for the progress; no total, no progress
}

// newRunner opens the sequences; close ends them.
func newRunner(ctx context.Context, h *Host, m *Model, setting *Setting, sequences int) (*runner, error) {
	r := &runner{host: h, m: m, setting: setting}
	for range sequences {
		seq, err := m.Engine.NewSequence(ctx)
		if err != nil {
			r.close()
			return nil, err
		}
		r.texts = append(r.texts, newText(seq))
	}
	return r, nil
}

func (r *runner) close() {
	for _, t := range r.texts {
		t.Close()
	}
}

// run evaluates a prompt with each of the first sequences and, when all have done so, decodes n
// tokens with each. The other sequences are empty.
func (r *runner) run(ctx context.Context, prompts [][]int32, n int) (*Run, error) {
	ctx, end := r.m.Span(ctx, "moeflux.bench")
	defer end()
	for _, t := range r.texts {
		if err := t.Reset(ctx); err != nil {
			return nil, err
		}
	}
	for i, p := range prompts {
		r.texts[i].Declare(len(p) + n)
	}
	var run Run
	err := r.part(ctx, &run.Prefill, len(prompts), len(prompts[0]), 1, func(ctx context.Context, i int) error {
		err := r.read(ctx, i, prompts[i])
		r.progress(i, len(prompts[i]))
		return err
	})
	if err != nil || n == 0 {
		return &run, err
	}
	if r.trace != nil {
		r.trace.decode = len(r.trace.visits)
	}
	err = r.part(ctx, &run.Decode, len(prompts), n, n, func(ctx context.Context, i int) error {
		for range n {
			if err := r.read(ctx, i, r.texts[i].next); err != nil {
				return err
			}
			r.progress(i, 1)
		}
		return nil
	})
	return &run, err
}

// keep keeps the tokens of the next run, which decodes n.
func (r *runner) keep(n int) {
	r.said = make([][]int32, len(r.texts))
	for i := range r.said {
		r.said[i] = make([]int32, 0, 1+n)
	}
}

// tokens returns what was kept.
func (r *runner) tokens() []int32 { return slices.Concat(r.said...) }

// read appends tokens to a text, and keeps what follows if somebody asks.
func (r *runner) read(ctx context.Context, i int, tokens []int32) error {
	err := r.pass(ctx, i, tokens)
	if r.said != nil && err == nil {
		r.said[i] = append(r.said[i], r.texts[i].next[0])
	}
	return err
}

// pass passes tokens through the model, and records their routing if there is a trace.
func (r *runner) pass(ctx context.Context, i int, tokens []int32) error {
	if r.trace == nil {
		return r.texts[i].read(ctx, tokens)
	}
	e, err := r.texts[i].readTraced(ctx, tokens)
	if err != nil {
		return err
	}
	info := r.m.Engine.Info()
	r.trace.add(e, &info, r.m.Engine.Model().NumExperts)
	return nil
}

// progress counts tokens of the first sequence. Only that sequence's goroutine tells of them.
func (r *runner) progress(i, tokens int) {
	if i == 0 && r.total > 0 {
		r.done += int64(tokens)
		r.host.progress("measuring", r.done, r.total)
	}
}

// part runs f for all sequences at once and measures it. tokens, and logits that some of them have,
// are those of one sequence.
func (r *runner) part(ctx context.Context, p *Part, sequences, tokens, logits int, f func(ctx context.Context, i int) error) error {
	before, err := r.m.Engine.Stats(ctx)
	if err != nil {
		return err
	}
	begin := r.host.Now()
	if err := together(ctx, sequences, f); err != nil {
		return err
	}
	end := r.host.Now()
	after, err := r.m.Engine.Stats(ctx)
	if err != nil {
		return err
	}
	p.Tokens = tokens * sequences
	p.Seconds, p.TokensPerSecond = figures.Speed(p.Tokens, begin, end)
	p.MultiplyAdds = int64(sequences) * (int64(tokens)*r.setting.MACLayers + int64(logits)*r.setting.MACHead)
	p.count(before, after, r.setting)
	return nil
}

// warmUp brings code, weights and the sequences' memory into the state of an engine at work: memory
// is slow at first touch.
func (r *runner) warmUp(ctx context.Context, prompts [][]int32, n int) error {
	if _, err := r.run(ctx, prompts, n); err != nil {
		return fmt.Errorf("warming up: %w", err)
	}
	return nil
}
