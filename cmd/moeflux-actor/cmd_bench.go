package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/membw"
	"github.com/moeflux/moeflux-actor/io/synth"
	"github.com/moeflux/moeflux-actor/stages/sample"
)

const (
	benchWarmup = 100 // tokens decoded before anything is measured; memory just taken is slow at first

	bandwidthTime     = time.Second / 2
	bandwidthBytes    = 256 << 20 // of each thread
	bandwidthMinBytes = 16 << 20  // below that caches would be measured
)

type benchCmd struct {
	PromptTokens int  `default:"128" placeholder:"P" help:"Tokens of a prompt. Default: 128."`
	GenTokens    int  `default:"128" placeholder:"G" help:"Tokens to decode after it, greedily. Default: 128."`
	Repeat       int  `default:"5" placeholder:"R" help:"Runs, each with other prompts. Default: 5."`
	Sequences    int  `default:"1" placeholder:"N" help:"Texts at once, each with a prompt of its own; speeds are of all together. Default: 1."`
	JSON         bool `name:"json" help:"Print one JSON object: the setting, memory bandwidth, prefill and decode with median, minimum and maximum, and every run."`

	engineFlags `group:"Engine:"`
}

// Help is shown by --help.
func (benchCmd) Help() string {
	return `Example:

    moeflux-actor bench --model DIR --prompt-tokens 128 --gen-tokens 128 --repeat 5 --json
    moeflux-actor bench --model DIR --expert-memory 4GiB --sequences 4

It measures the memory's bandwidth, warms up (one chunk of a prompt, then 100 tokens decoded, or G if that is less), and then measures R
runs. So the figures are those of a warm engine: nothing is thrown out of caches between runs. Prompts are random ids, the same in every
bench; with a model that synth made they are pieces of its chain, so that experts are used by the model's law. Decoding
does not stop at an end of text.

"Touched per token" is what inspect shows, for the K in use: all resident weights that a token needs and its experts. The share of the
memory bandwidth is that times the median decode speed; several sequences share weights, so that it is told for one alone.`
}

// Run measures a model's speed.
func (c *benchCmd) Run(ctx context.Context, inv *invocation) error {
	for _, f := range []struct {
		name  string
		value int
	}{{"--prompt-tokens", c.PromptTokens}, {"--gen-tokens", c.GenTokens}, {"--repeat", c.Repeat}, {"--sequences", c.Sequences}} {
		if f.value < 1 || f.value > 1<<20 {
			return usagef("%s %d, want 1 to %d", f.name, f.value, 1<<20)
		}
	}
	if err := c.check(); err != nil {
		return err
	}
	s, err := openSession(ctx, inv, &c.engineFlags)
	if err != nil {
		return err
	}
	var r *benchResult
	r, err = c.bench(ctx, inv, s)
	if err := errors.Join(err, s.close()); err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(inv.stdout, r)
	}
	_, err = io.WriteString(inv.stdout, r.text())
	return err
}

// bench measures an opened model.
func (c *benchCmd) bench(ctx context.Context, inv *invocation, s *session) (*benchResult, error) {
	info := s.engine.Info()
	if c.PromptTokens+c.GenTokens > info.Context {
		return nil, usagef("--prompt-tokens %d and --gen-tokens %d, but a sequence has %d positions", c.PromptTokens, c.GenTokens, info.Context)
	}
	described, err := readModel(s.dir)
	if err != nil {
		return nil, err
	}
	prompts, err := newBenchPrompts(s, c)
	if err != nil {
		return nil, err
	}
	r := &benchResult{
		Model: s.dir, Arch: described.Arch, Device: info.Device, Threads: deviceThreads(s), ExpertIO: string(info.ExpertIO),
		Slots: info.Slots, Prefetch: string(info.Prefetch), TopK: info.TopK, Prompts: prompts.kind, State: "warm",
		PromptTokens: c.PromptTokens, GenTokens: c.GenTokens, Sequences: c.Sequences, Repeat: c.Repeat,
		WarmupTokens: min(benchWarmup, c.GenTokens),
	}
	b := described.touched(info.TopK)
	r.TouchedToken, r.TouchedDense, r.TouchedExp = b.TouchedToken, b.TouchedDense, b.TouchedExp
	if r.MemoryBandwidth, err = measureBandwidth(ctx, inv, r.Threads); err != nil {
		return nil, err
	}
	if err := c.measure(ctx, inv, s, prompts, r); err != nil {
		return nil, err
	}
	r.summarise()
	return r, nil
}

// measure warms up and fills in the runs.
func (c *benchCmd) measure(ctx context.Context, inv *invocation, s *session, prompts *benchPrompts, r *benchResult) error {
	b := &benchRunner{inv: inv, s: s, bar: newProgress(inv)}
	defer b.bar.clear()
	defer func() {
		for _, seq := range b.seqs {
			seq.Close()
		}
	}()
	for range c.Sequences {
		seq, err := s.engine.NewSequence(ctx)
		if err != nil {
			return err
		}
		b.seqs = append(b.seqs, seq)
	}
	warm := min(c.PromptTokens, s.engine.Info().ChunkRows)
	b.total = int64(warm + r.WarmupTokens + c.Repeat*(c.PromptTokens+c.GenTokens))
	for i := range c.Repeat + 1 {
		if i == 0 {
			if _, err := b.run(ctx, prompts.of(0, warm), r.WarmupTokens); err != nil {
				return fmt.Errorf("warming up: %w", err)
			}
			continue
		}
		run, err := b.run(ctx, prompts.of(i, c.PromptTokens), c.GenTokens)
		if err != nil {
			return fmt.Errorf("run %d: %w", i, err)
		}
		r.Runs = append(r.Runs, *run)
	}
	return nil
}

// deviceThreads returns the compute threads of the device that the flags opened.
func deviceThreads(s *session) int {
	d, ok := s.device.(interface{ Threads() int })
	if !ok {
		panic(fmt.Sprintf("device %s does not tell its threads", s.device.Name()))
	}
	return d.Threads()
}

// measureBandwidth returns what the device's threads can read of main memory in a second; nil where memory is too short
// to tell it from a cache.
func measureBandwidth(ctx context.Context, inv *invocation, threads int) (*float64, error) {
	free, err := inv.env.freeMemory()
	if err != nil {
		return nil, fmt.Errorf("cannot tell how much memory is free: %w", err)
	}
	bytes := min(bandwidthBytes, free/4/int64(threads))
	if bytes < bandwidthMinBytes {
		inv.say("%s of free memory are too few to measure its bandwidth", formatBytes(free))
		return nil, nil
	}
	rate, err := membw.Measure(ctx, threads, int(bytes), bandwidthTime)
	if err != nil {
		return nil, err
	}
	return &rate, nil
}

// benchPrompts hands out prompts, another one for every run and sequence.
type benchPrompts struct {
	kind      string                 // chain or random
	prompt    func(k, n int) []int32 // the first n tokens of prompt k
	sequences int
}

// newBenchPrompts looks whether the model has a chain.
func newBenchPrompts(s *session, c *benchCmd) (*benchPrompts, error) {
	vocab := s.engine.Model().VocabSize
	_, err := os.Stat(filepath.Join(s.dir, synth.RecordName))
	if errors.Is(err, fs.ErrNotExist) {
		return &benchPrompts{kind: "random", sequences: c.Sequences, prompt: func(k, n int) []int32 {
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
	stride := c.PromptTokens + c.GenTokens // what follows a prompt in the chain is what its text decodes
	return &benchPrompts{kind: "chain", sequences: c.Sequences, prompt: func(k, n int) []int32 {
		from := k * stride % vocab
		return m.Chain(from + n)[from:]
	}}, nil
}

// of returns the first n tokens of a run's prompts, one for each sequence; run 0 is the warm-up.
func (p *benchPrompts) of(run, n int) [][]int32 {
	prompts := make([][]int32, p.sequences)
	for i := range prompts {
		prompts[i] = p.prompt(run*p.sequences+i, n)
	}
	return prompts
}

// benchRunner runs texts with some sequences at once.
type benchRunner struct {
	inv         *invocation
	s           *session
	seqs        []*actors.Sequence
	bar         *progress
	done, total int64 // tokens of one sequence, for the bar
}

// run reads a prompt with each sequence, and when all have, decodes n tokens with each.
func (b *benchRunner) run(ctx context.Context, prompts [][]int32, n int) (*benchRun, error) {
	ctx, end := b.s.span(ctx, "moeflux.bench")
	defer end()
	logits := make([][]float32, len(b.seqs))
	for _, seq := range b.seqs {
		if err := seq.Reset(ctx); err != nil {
			return nil, err
		}
	}
	var r benchRun
	err := b.part(ctx, &r.Prefill, len(prompts[0]), func(ctx context.Context, i int) (err error) {
		logits[i], err = b.seqs[i].Eval(ctx, prompts[i])
		b.progress(i, len(prompts[i]))
		return err
	})
	if err != nil {
		return nil, err
	}
	err = b.part(ctx, &r.Decode, n, func(ctx context.Context, i int) error {
		greedy := sample.New(sample.Options{})
		for range n {
			next, err := greedy.Next(logits[i], nil, nil)
			if err != nil {
				return err
			}
			if logits[i], err = b.seqs[i].Eval(ctx, []int32{next}); err != nil {
				return err
			}
			b.progress(i, 1)
		}
		return nil
	})
	return &r, err
}

// progress counts tokens of the first sequence, by whose goroutine alone the bar is used.
func (b *benchRunner) progress(i, tokens int) {
	if i == 0 {
		b.done += int64(tokens)
		b.bar.update("measuring", b.done, b.total, formatCount)
	}
}

// part does f for every sequence at once, and measures it; tokens are those of one sequence.
func (b *benchRunner) part(ctx context.Context, p *benchPart, tokens int, f func(ctx context.Context, i int) error) error {
	before, err := b.s.engine.Stats(ctx)
	if err != nil {
		return err
	}
	begin := b.inv.env.now()
	if err := together(ctx, len(b.seqs), f); err != nil {
		return err
	}
	end := b.inv.env.now()
	after, err := b.s.engine.Stats(ctx)
	if err != nil {
		return err
	}
	p.Tokens = tokens * len(b.seqs)
	p.Seconds, p.TokensPerSecond = speed(p.Tokens, begin, end)
	p.count(before, after)
	return nil
}

// together runs f(0) to f(n-1) at once and waits for all. The first error ends the others' context and is returned.
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
