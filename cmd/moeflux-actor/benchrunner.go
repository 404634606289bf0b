package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/moeflux/moeflux-actor/stages"
)

// benchRunner runs texts with some sequences at once.
type benchRunner struct {
	inv         *invocation
	s           *session
	setting     *benchSetting
	texts       []*benchText
	bar         *progress
	trace       *routingTrace // of the only text, or nil
	done, total int64         // tokens of one sequence, for the bar
}

// nobodyWaits lets no text of a bench wait for memory, unless a flag says otherwise: all prompts
// are read before the first text goes on, so nobody would give any back.
func (f *engineFlags) nobodyWaits() { f.MaxWaiting = cmp.Or(f.MaxWaiting, -1) }

// newBenchRunner opens the sequences; close ends them.
func newBenchRunner(ctx context.Context, inv *invocation, s *session, setting *benchSetting, sequences int) (*benchRunner, error) {
	b := &benchRunner{inv: inv, s: s, setting: setting, bar: newProgress(inv)}
	for range sequences {
		seq, err := s.engine.NewSequence(ctx)
		if err != nil {
			b.close()
			return nil, err
		}
		b.texts = append(b.texts, newBenchText(seq))
	}
	return b, nil
}

func (b *benchRunner) close() {
	b.bar.clear()
	for _, t := range b.texts {
		t.Close()
	}
}

// forget empties the expert slots and drops all predictions.
func (b *benchRunner) forget(ctx context.Context) error {
	err := b.s.engine.ForgetExperts(ctx)
	if errors.Is(err, stages.ErrExpertsMapped) {
		return usagef("--forget needs expert slots, but these experts are mapped; add --expert-io direct or buffered")
	}
	return err
}

// run evaluates a prompt with each of the first sequences and, when all have done so, decodes n
// tokens with each. The other sequences are empty.
func (b *benchRunner) run(ctx context.Context, prompts [][]int32, n int) (*benchRun, error) {
	ctx, end := b.s.span(ctx, "moeflux.bench")
	defer end()
	for _, t := range b.texts {
		if err := t.Reset(ctx); err != nil {
			return nil, err
		}
	}
	for i, p := range prompts {
		b.texts[i].Declare(len(p) + n)
	}
	var r benchRun
	err := b.part(ctx, &r.Prefill, len(prompts), len(prompts[0]), 1, func(ctx context.Context, i int) error {
		err := b.read(ctx, i, prompts[i])
		b.progress(i, len(prompts[i]))
		return err
	})
	if err != nil || n == 0 {
		return &r, err
	}
	if b.trace != nil {
		b.trace.decode = len(b.trace.visits)
	}
	err = b.part(ctx, &r.Decode, len(prompts), n, n, func(ctx context.Context, i int) error {
		for range n {
			if err := b.read(ctx, i, b.texts[i].next); err != nil {
				return err
			}
			b.progress(i, 1)
		}
		return nil
	})
	return &r, err
}

// read appends tokens to a text, and records their routing if the runner has a trace.
func (b *benchRunner) read(ctx context.Context, i int, tokens []int32) error {
	if b.trace == nil {
		return b.texts[i].read(ctx, tokens)
	}
	r, err := b.texts[i].readTraced(ctx, tokens)
	if err != nil {
		return err
	}
	info := b.s.engine.Info()
	b.trace.add(r, &info, b.s.engine.Model().NumExperts)
	return nil
}

// progress counts tokens of the first sequence. Only that sequence's goroutine uses the bar.
func (b *benchRunner) progress(i, tokens int) {
	if i == 0 {
		b.done += int64(tokens)
		b.bar.update("measuring", b.done, b.total, formatCount)
	}
}

// part runs f for all sequences at once and measures it. tokens, and logits that some of them have,
// are those of one sequence.
func (b *benchRunner) part(ctx context.Context, p *benchPart, sequences, tokens, logits int, f func(ctx context.Context, i int) error) error {
	before, err := b.s.engine.Stats(ctx)
	if err != nil {
		return err
	}
	begin := b.inv.env.now()
	if err := together(ctx, sequences, f); err != nil {
		return err
	}
	end := b.inv.env.now()
	after, err := b.s.engine.Stats(ctx)
	if err != nil {
		return err
	}
	p.Tokens = tokens * sequences
	p.Seconds, p.TokensPerSecond = speed(p.Tokens, begin, end)
	p.MultiplyAdds = int64(sequences) * (int64(tokens)*b.setting.MACLayers + int64(logits)*b.setting.MACHead)
	p.count(before, after, b.setting)
	return nil
}

// together runs f(0) to f(n-1) at once and waits for all. It returns the first error, which also
// ends the context of the others.
func together(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if err := f(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// warmUp brings code, weights and the sequences' memory into the state of an engine at work: memory
// is slow at first touch.
func (b *benchRunner) warmUp(ctx context.Context, prompts [][]int32, n int) error {
	if _, err := b.run(ctx, prompts, n); err != nil {
		return fmt.Errorf("warming up: %w", err)
	}
	return nil
}
