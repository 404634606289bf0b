package main

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/sample"
	"github.com/moeflux/moeflux-actor/tokenizer"
)

// sequence is what a generation needs of an *actors.Sequence.
type sequence interface {
	Declare(positions int)
	Resume(ctx context.Context, text []int32) (reused int, err error)
	EvalChunk(ctx context.Context, c actors.Chunk) (*actors.Evaluated, error)
	Generate(ctx context.Context, prompt []int32, o actors.GenerateOptions) iter.Seq2[int32, error]
}

var _ sequence = (*actors.Sequence)(nil)

// generation continues one text and shows it as it comes.
type generation struct {
	s         *session
	seq       sequence
	tok       *tokenizer.Tokenizer
	sampling  sample.Options
	used      samplingUsed // the values of sampling and where they come from
	maxTokens int
	stops     []string
	ends      []int32 // tokens that end the text beside the model's own
	logProbs  *int    // nil for none
	// asked between two tokens or chunks whether to end the text; nil for never
	halt func() bool
	show display

	ids    []int32 // the whole prompt
	reused int     // tokens of it that the sequence holds already
	// take of the prompt's beginning what the engine knows, which reused then tells, and remember
	// it
	resume bool
	// prime, if not nil, gives the sequence a state when the engine knows nothing of the prompt. It
	// reports whether it has.
	prime func(ctx context.Context, ids []int32) (bool, error)

	// counts is asked for what the engine has counted when the prompt has been read; nil for not at
	// all.
	counts       func(context.Context) (*actors.Stats, error)
	promptCounts *actors.Stats // its answer

	clock  runClock
	newIDs []int32
	stream *tokenizer.Stream
	stop   *tokenizer.StopStream
	text   strings.Builder
}

// run generates until the text ends for any reason, which it notes in the result. The result is
// there with an error too.
func (g *generation) run(ctx context.Context) (*runResult, error) {
	ctx, end := g.s.span(ctx, "moeflux.run")
	defer end()
	r := &runResult{PromptIDs: g.ids}
	g.newIDs, g.stream, g.stop = []int32{}, g.tok.NewStream(true), tokenizer.NewStopStream(g.stops...)
	g.clock.promptStart = g.clock.now()
	rest, err := g.read(ctx)
	if err != nil {
		return r, err
	}
	if rest == nil {
		r.StopReason = stopInterrupted
		return r, nil
	}
	o := actors.GenerateOptions{
		MaxTokens: g.maxTokens, Sampling: g.sampling, StopReason: &r.StopReason, FirstToken: func() { err = g.promptRead(ctx) },
	}
	if g.resume {
		o.Resume, rest = true, g.ids // the sequence has all but the rest by now
	} else {
		o.Earlier = g.ids[:len(g.ids)-len(rest)]
	}
	if g.logProbs != nil {
		o.LogProbs, o.TopLogProbs = new(sample.LogProbs), *g.logProbs
	}
	for id, failed := range g.seq.Generate(ctx, rest, o) {
		if failed != nil {
			return r, failed
		}
		if err != nil {
			return r, err
		}
		if slices.Contains(g.ends, id) {
			r.StopReason = actors.StopEOS
			return r, nil
		}
		g.clock.token()
		g.newIDs = append(g.newIDs, id)
		if o.LogProbs != nil {
			r.LogProbs = append(r.LogProbs, g.describe(*o.LogProbs))
		}
		if err := g.write(g.stop.Push(g.stream.Push(id))); err != nil {
			return r, err
		}
		switch {
		case g.stop.Found() != "":
			r.StopReason = stopString
			return r, nil
		case g.halt != nil && g.halt():
			r.StopReason = stopInterrupted
			return r, nil
		}
	}
	return r, nil
}

// promptRead notes when the prompt had been read, and what had been counted by then.
func (g *generation) promptRead(ctx context.Context) (err error) {
	g.clock.promptEnd = g.clock.now()
	if g.counts != nil {
		g.promptCounts, err = g.counts(ctx)
	}
	return err
}

// known gives the sequence what the engine, or who primes it, knows of the prompt.
func (g *generation) known(ctx context.Context) (err error) {
	if !g.resume {
		return nil
	}
	if g.reused, err = g.resumeWhenFree(ctx); err != nil || g.reused > 0 || g.prime == nil {
		return err
	}
	if primed, err := g.prime(ctx, g.ids); err != nil || !primed {
		return err
	}
	g.reused, err = g.seq.Resume(ctx, g.ids)
	return err
}

// resumeWhenFree is Resume for a sequence that may still be busy with a step that was given up:
// the device ends it, but tells nobody.
func (g *generation) resumeWhenFree(ctx context.Context) (reused int, err error) {
	for {
		reused, err = g.seq.Resume(ctx, g.ids)
		if !errors.Is(err, stages.ErrBusy) {
			return reused, err
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// read evaluates the prompt except for a last chunk, which it returns: it yields the first token.
// If the text shall end before that, it returns nil. Only a generation that can be halted does it
// piece by piece; the chunks are those that the engine would make.
func (g *generation) read(ctx context.Context) (rest []int32, err error) {
	if g.maxTokens > 0 { // the last one is not evaluated
		g.seq.Declare(len(g.ids) + g.maxTokens - 1)
	}
	if err := g.known(ctx); err != nil {
		return nil, err
	}
	rest = g.ids[g.reused:]
	if g.halt == nil {
		return rest, nil
	}
	rows := g.s.engine.Info().ChunkRows
	for len(rest) > rows {
		if g.halt() {
			return nil, nil
		}
		chunk := actors.Chunk{Tokens: rest[:rows], Logits: actors.NoLogits}
		if g.resume {
			chunk.Before, chunk.Remember = len(g.ids)-len(rest), true
		}
		if _, err := g.seq.EvalChunk(ctx, chunk); err != nil {
			return nil, err
		}
		rest = rest[rows:]
	}
	if g.halt() {
		return nil, nil
	}
	return rest, nil
}

func (g *generation) write(text string) error {
	g.text.WriteString(text)
	return g.show.write(text)
}

// end shows what is still held back and completes the result except for its figures.
func (g *generation) end(r *runResult) error {
	var rest string
	if g.stream != nil {
		rest = g.stop.Push(g.stream.Flush()) + g.stop.Flush()
	}
	if err := g.write(rest); err != nil {
		return err
	}
	r.Text, r.NewIDs = g.text.String(), g.newIDs
	return g.show.end()
}

// describe turns log-probabilities into what --json prints.
func (g *generation) describe(p sample.LogProbs) tokenLogProbs {
	one := func(p sample.LogProb) tokenLogProb {
		bytes, _ := g.tok.TokenBytes(p.Token)
		t := tokenLogProb{ID: p.Token, Token: strings.ToValidUTF8(string(bytes), "\uFFFD"), Bytes: []int{}, LogProb: p.LogProb}
		for _, b := range bytes {
			t.Bytes = append(t.Bytes, int(b))
		}
		return t
	}
	all := tokenLogProbs{tokenLogProb: one(p.Chosen), Top: []tokenLogProb{}}
	for _, t := range p.Top {
		all.Top = append(all.Top, one(t))
	}
	return all
}

// runClock notes when what happened.
type runClock struct {
	now                                                         func() time.Time
	processStart, promptStart, promptEnd, firstToken, lastToken time.Time
}

func (c *runClock) token() {
	c.lastToken = c.now()
	if c.firstToken.IsZero() {
		c.firstToken = c.lastToken
	}
}
