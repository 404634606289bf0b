package moeflux

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/stages"
)

// worthState is how many new tokens are worth a recurrent state of their own, which takes a step
// more to come by.
const worthState = 64

// read evaluates the prompt except for a last chunk, which it returns: it yields the first token.
// If the text shall end before that, it returns nil. A generation that can be interrupted, or tells
// its progress, does it piece by piece; the chunks are those that the engine would make.
func (g *generation) read() (rest []int32, err error) {
	ids := g.prompt.IDs
	if g.r.MaxTokens > 0 { // the last one is not evaluated
		g.seq.Declare(len(ids) + g.r.MaxTokens - 1)
	}
	if err := g.known(); err != nil {
		return nil, err
	}
	rest = ids[g.reused:]
	if err := g.progress(len(rest)); err != nil {
		return nil, err
	}
	for n := g.piece(rest); n > 0; n = g.piece(rest) {
		if g.interrupted() {
			return nil, nil
		}
		chunk := actors.Chunk{Tokens: rest[:n], Logits: actors.NoLogits}
		if g.resume {
			chunk.Before, chunk.Remember = len(ids)-len(rest), true
		}
		if _, err := g.seq.EvalChunk(g.ctx, chunk); err != nil {
			return nil, err
		}
		if rest = rest[n:]; len(ids)-len(rest) == g.turn {
			g.store()
		}
		if err := g.progress(len(rest)); err != nil {
			return nil, err
		}
	}
	if g.interrupted() {
		return nil, nil
	}
	return rest, nil
}

// piece returns how many tokens of the rest of the prompt make the next chunk; 0 if it is the last.
func (g *generation) piece(rest []int32) int {
	n, read := len(rest), len(g.prompt.IDs)-len(rest)
	if g.turn-g.reused >= worthState && read < g.turn {
		n = g.turn - read
	}
	if g.r.Interrupted != nil || g.r.Progress {
		n = min(n, g.m.Info().ChunkRows)
	}
	if n == len(rest) {
		return 0
	}
	return n
}

// progress tells how much of the prompt is known, where that is wanted.
func (g *generation) progress(rest int) error {
	if !g.r.Progress {
		return nil
	}
	total := len(g.prompt.IDs)
	return g.emit(Event{Reading: &Reading{Known: total - rest, Reused: g.reused, Total: total}})
}

// known gives the sequence what the engine, or who primes it, knows of the prompt.
func (g *generation) known() (err error) {
	if !g.resume {
		return nil
	}
	if g.reused, err = resumeWhenFree(g.ctx, g.seq, g.prompt.IDs); err != nil || g.reused > 0 || g.prime == nil {
		return err
	}
	if primed, err := g.prime(g.ctx, g.prompt.IDs); err != nil || !primed {
		return err
	}
	g.reused, err = g.seq.Resume(g.ctx, g.prompt.IDs)
	return err
}

// resumeWhenFree is Resume for a sequence that may still be busy with a step that was given up: the
// device ends it, but tells nobody.
func resumeWhenFree(ctx context.Context, seq *actors.Sequence, ids []int32) (reused int, err error) {
	for {
		reused, err = seq.Resume(ctx, ids)
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

// remember leaves the answer of a conversation that nobody keeps for its next turn, which brings it
// back in its messages: that costs one step, and saves reading the answer. What the model thought
// does not come back, in most templates, so that the state with it would be of no use. If it fails,
// the next turn reads more. A text that is continued may come back as it stands.
func (g *generation) remember() {
	if g.kind == sessionText {
		g.store()
		return
	}
	if g.kind != sessionChat || g.r.Session != nil || !g.resume || g.answer.Message().ReasoningContent != "" || len(g.newIDs) == 0 {
		return
	}
	var last []int32
	switch evaluated := g.seq.Len() - len(g.prompt.IDs); {
	case evaluated == len(g.newIDs)-1:
		last = g.newIDs[evaluated:]
	case g.reason == StopEOS && len(g.ends) > 0:
		last = g.ends
	default:
		return
	}
	if _, err := g.seq.EvalChunk(g.ctx, actors.Chunk{Tokens: last, Logits: actors.NoLogits, Remember: true}); err != nil {
		g.m.log.Debug("an answer is not remembered", "why", err)
		return
	}
	g.store()
}

// turnEnd returns after how many tokens of the prompt a recurrent state is of use later: it serves
// only texts that begin with all of them. The next turn of a conversation departs from the prompt
// where the template begins an answer otherwise than it writes earlier ones, as with reasoning. Who
// asks the same again has to have the last token evaluated. Without recurrent state it is 0: any
// beginning serves.
func (g *generation) turnEnd(messages []Message) int {
	last := len(g.prompt.IDs) - 1
	switch {
	case !g.resume || g.m.Info().StateBytes == 0:
		return 0
	case g.kind != sessionChat || g.r.Continue:
		return last
	}
	d, err := g.m.chat()
	if err != nil {
		return last
	}
	next, err := g.m.render(d, g.r, append(slices.Clip(messages), Message{Role: Assistant, Content: "?"}, Message{Role: User, Content: "?"}))
	if err != nil { // a template that refuses this may take what is really said
		return last
	}
	n := 0
	for n < min(len(next.IDs), last) && next.IDs[n] == g.prompt.IDs[n] {
		n++
	}
	return n
}

// storePrompt has the state after the prompt kept on disk, unless another is of more use.
func (g *generation) storePrompt() {
	if g.turn == 0 {
		g.store()
	}
}

// store has the state of the text so far kept on disk, where the engine keeps some. A session that
// is kept on disk has a file of its own.
func (g *generation) store() {
	if !g.resume || g.r.Session != nil && g.r.Session.sessions != nil {
		return
	}
	if err := g.seq.Store(g.ctx); err != nil {
		g.m.log.Debug("a text is not kept on disk", "why", err)
	}
}
