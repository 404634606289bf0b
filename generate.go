package moeflux

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/stages/sample"
	"github.com/moeflux/moeflux-actor/tokenizer"
)

// Generate continues the text of a request.
func (m *Model) Generate(ctx context.Context, r Request) Events {
	return m.events(ctx, r, sessionText)
}

// events runs a request for whoever ranges over its events.
func (m *Model) events(ctx context.Context, r Request, kind sessionKind) Events {
	return func(yield func(Event, error) bool) {
		g := &generation{m: m, ctx: ctx, r: &r, kind: kind, yield: yield}
		g.begin()
		err := g.serve()
		if errors.Is(err, errLeft) {
			err = nil
		}
		g.over(err)
		if err != nil {
			yield(Event{}, err)
		}
	}
}

// errLeft unwinds a request whose consumer has left the loop.
var errLeft = errors.New("the consumer has left")

// generation is one request under way.
type generation struct {
	m     *Model
	ctx   context.Context
	r     *Request
	kind  sessionKind
	yield func(Event, error) bool
	left  bool // the consumer is gone: yield must not be called again

	seq      *actors.Sequence
	before   int // positions that the sequence had
	sampling sample.Options
	ends     []int32 // tokens that end the text beside the model's own
	marked   bool    // the text is wanted with its special tokens, which may be marks
	prompt   Prompt
	reused   int  // tokens of it that the sequence holds already
	turn     int  // tokens of it after which a state is of use later; 0: any number
	resume   bool // take what the engine knows of the prompt, and remember it
	// prime, if not nil, gives the sequence a state when the engine knows nothing of the prompt. It
	// reports whether it has.
	prime func(ctx context.Context, ids []int32) (bool, error)

	within *within // nil where anything may come
	stream *tokenizer.Stream
	stop   *tokenizer.StopStream
	answer answer
	newIDs []int32
	reason StopReason

	call    *actors.Call // for traces
	account Account      // what it cost, once that is known
}

// serve does everything that a request asks for.
func (g *generation) serve() error {
	if err := g.r.check(g.kind); err != nil {
		return err
	}
	if g.m.text == nil {
		return errTokensOnly
	}
	var err error
	if g.sampling, err = g.m.sampling(g.r.Sampling); err != nil {
		return err
	}
	if err := g.sampling.Validate(); err != nil {
		return &RequestError{Field: "Sampling", Err: err}
	}
	s, release, err := g.session()
	if err != nil {
		return err
	}
	defer release()
	if err := g.prepare(s); err != nil {
		return err
	}
	if g.within, err = g.constrain(); err != nil {
		return err
	}
	before, err := s.spent(g.ctx)
	if err != nil {
		return err
	}
	if err := g.run(); err != nil && !errors.Is(err, errLeft) {
		return err
	}
	if g.reason == "" {
		g.reason = StopInterrupted // the consumer has left
	}
	s.add(g)
	if g.left {
		return errLeft
	}
	g.remember()
	account, err := s.spent(g.ctx)
	if err != nil {
		return err
	}
	g.account = account.Since(before)
	return g.emit(Event{End: g.end(g.account)})
}

// session returns the request's session, or one for this request alone.
func (g *generation) session() (s *Session, release func(), err error) {
	s = g.r.Session
	if s == nil {
		s = new(Session)
		release = func() { closeWithin(g.ctx, s) }
	} else {
		if !s.busy.TryLock() {
			return nil, nil, ErrBusy
		}
		release = s.busy.Unlock
		g.prime = s.prime
	}
	g.resume = g.r.Session != nil || !g.r.NoReuse
	if g.seq, err = s.sequence(g.ctx, g.m, g.r); err != nil {
		release()
		return nil, nil, err
	}
	g.before = g.seq.Len()
	return s, release, nil
}

// prepare makes the prompt.
func (g *generation) prepare(s *Session) error {
	if err := s.may(g.kind); err != nil {
		return err
	}
	if g.kind == sessionChat {
		return g.converse(s)
	}
	return g.continueText(s)
}

// closeWithin closes the session of one request. A hung device holds who gave it up no longer than
// the engine holds them; the goroutine ends when the sequence's own patience does.
func closeWithin(ctx context.Context, s *Session) {
	if ctx.Err() == nil {
		_ = s.Close()
		return
	}
	closed := make(chan struct{})
	go func() {
		_ = s.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(20 * time.Millisecond):
	}
}

// continueText makes a prompt of a session's text and the request's.
func (g *generation) continueText(s *Session) error {
	ids, err := g.encoded(len(s.text) == 0 && !s.opaque)
	if err != nil {
		return err
	}
	if s.opaque { // nobody knows the text before
		g.resume = false
	}
	g.prompt = Prompt{Text: g.r.Prompt, IDs: slices.Concat(s.text, ids)}
	if len(g.prompt.IDs) == 0 || !s.opaque && len(g.prompt.IDs) == g.seq.Len() {
		return ErrEmptyPrompt
	}
	g.turn = g.turnEnd(nil)
	return nil
}

// encoded returns the tokens of the request's text, with those that begin any if it is the first.
func (g *generation) encoded(first bool) ([]int32, error) {
	if ids := g.r.PromptIDs; ids != nil {
		known := int32(g.m.engine.Model().VocabSize)
		if i := slices.IndexFunc(ids, func(id int32) bool { return id < 0 || id >= known }); i >= 0 {
			return nil, &RequestError{Field: "PromptIDs", Err: fmt.Errorf("there is no token %d: the model has %d", ids[i], known)}
		}
		return ids, nil
	}
	ids, err := g.m.text.Encode(g.r.Prompt, first)
	if err != nil {
		return nil, fmt.Errorf("the prompt cannot be encoded: %w", err)
	}
	return ids, nil
}

// run generates until the text ends for any reason, which it notes.
func (g *generation) run() error {
	g.stream, g.stop = g.m.text.NewStream(!g.marked), tokenizer.NewStopStream(g.r.Stop...)
	g.prompt.Sequence = uint64(g.seq.ID())
	if err := g.emit(Event{Prompt: &g.prompt}); err != nil {
		return err
	}
	err := g.tokens()
	if ferr := g.flush(); err == nil { // what came is given even after an error
		err = ferr
	}
	return err
}

// tokens reads the prompt and gives the new tokens.
func (g *generation) tokens() error {
	rest, err := g.read()
	if err != nil {
		return err
	}
	if rest == nil {
		g.reason = StopInterrupted
		return nil
	}
	var reason StopReason
	o := actors.GenerateOptions{
		MaxTokens: g.r.MaxTokens, Sampling: g.sampling, StopReason: &reason,
		FirstToken: func() {
			err = g.emit(Event{Read: &Read{Reused: g.reused}})
			g.storePrompt()
		},
	}
	if g.resume {
		o.Resume, rest = true, g.prompt.IDs // the sequence has all but the rest by now
	} else {
		o.Earlier = g.prompt.IDs[:len(g.prompt.IDs)-len(rest)]
	}
	if g.r.LogProbs || g.r.TopLogProbs > 0 {
		o.LogProbs, o.TopLogProbs = new(sample.LogProbs), g.r.TopLogProbs
	}
	if g.within != nil {
		o.Constraint = g.within
	}
	for id, failed := range g.seq.Generate(g.ctx, rest, o) {
		if failed != nil {
			return failed
		}
		if err != nil { // of the event that the prompt has been read
			return err
		}
		if slices.Contains(g.ends, id) {
			g.reason = StopEOS
			return nil
		}
		if err := g.token(id, o.LogProbs); err != nil || g.reason != "" {
			return err
		}
	}
	g.reason = reason
	return err
}

// token gives what one new token brings, and notes whether the text ends with it.
func (g *generation) token(id int32, p *sample.LogProbs) error {
	g.newIDs = append(g.newIDs, id)
	g.call.Token()
	text := g.stream.Push(id)
	g.within.said(text) // at once: it decides what may come next
	events := g.answer.push(g.stop.Push(text))
	events[0].Token = g.describe(id, p)
	if err := g.emit(events...); err != nil {
		return err
	}
	switch {
	case g.stop.Found() != "":
		g.reason = StopString
	case g.interrupted():
		g.reason = StopInterrupted
	}
	return nil
}

func (g *generation) interrupted() bool { return g.r.Interrupted != nil && g.r.Interrupted() }

// flush gives what was held back; the text has ended.
func (g *generation) flush() error {
	events := append(g.answer.push(g.stop.Push(g.stream.Flush())+g.stop.Flush()), g.answer.flush()...)
	return g.emit(slices.DeleteFunc(events, func(e Event) bool { return e == Event{} })...)
}

// emit gives events to the consumer.
func (g *generation) emit(events ...Event) error {
	for _, e := range events {
		if g.left = g.left || !g.yield(e, nil); g.left {
			break
		}
	}
	if g.left {
		return errLeft
	}
	return nil
}

// describe returns what an event tells of a token.
func (g *generation) describe(id int32, p *sample.LogProbs) *Token {
	if p == nil {
		return &Token{ID: id}
	}
	one := func(p sample.LogProb) Token {
		bytes, _ := g.m.text.TokenBytes(p.Token)
		return Token{ID: p.Token, Bytes: bytes, LogProb: p.LogProb}
	}
	t := one(p.Chosen)
	for _, other := range p.Top {
		t.Top = append(t.Top, one(other))
	}
	return &t
}

// end returns the end of a text.
func (g *generation) end(account Account) *End {
	e := &End{Reason: g.reason, Stop: g.stop.Found(), Message: g.answer.Message(), Malformed: g.answer.Malformed()}
	e.Complete = g.reason != StopString && g.within.whole()
	if g.sampling.Temperature > 0 {
		e.Seed = new(g.sampling.Seed)
	}
	e.Usage = Usage{PromptTokens: len(g.prompt.IDs), ReusedTokens: g.reused, NewTokens: len(g.newIDs), Account: account}
	return e
}
