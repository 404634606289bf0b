package server

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
)

// script is a model that says what a test wants. Its methods may be called from many goroutines.
type script struct {
	context int
	// say returns the events of a request. nil: echo.
	say func(ctx context.Context, r moeflux.Request) moeflux.Events

	mu    sync.Mutex
	asked []moeflux.Request
	ended int // requests whose events are over, or whose reader has left
}

func (s *script) Info() moeflux.Info { return moeflux.Info{Context: max(s.context, 1)} }

func (s *script) Tokenizer() *moeflux.Tokenizer { return nil } // tests of it take a real model

// ChatPrompt makes a token of each word.
func (s *script) ChatPrompt(r moeflux.Request) (p moeflux.Prompt, err error) {
	for _, m := range r.Messages {
		p.Text += m.Role + ": " + m.Text() + "\n"
	}
	p.IDs = make([]int32, len(strings.Fields(p.Text)))
	return p, nil
}

func (s *script) Chat(ctx context.Context, r moeflux.Request) moeflux.Events { return s.ask(ctx, r) }
func (s *script) Generate(ctx context.Context, r moeflux.Request) moeflux.Events {
	return s.ask(ctx, r)
}

func (s *script) ask(ctx context.Context, r moeflux.Request) moeflux.Events {
	return func(yield func(moeflux.Event, error) bool) {
		s.mu.Lock()
		s.asked = append(s.asked, r)
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			s.ended++
			s.mu.Unlock()
		}()
		say := s.say
		if say == nil {
			say = echo
		}
		say(ctx, r)(yield)
	}
}

// last returns the request that came last.
func (s *script) last() moeflux.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[len(s.asked)-1]
}

// open returns how many requests have begun and not ended.
func (s *script) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked) - s.ended
}

// echo says the last message, or the prompt, word by word.
func echo(ctx context.Context, r moeflux.Request) moeflux.Events {
	text := r.Prompt
	if n := len(r.Messages); n > 0 {
		text = r.Messages[n-1].Text()
	}
	return words(strings.SplitAfter(text, " ")...)(ctx, r)
}

// words says texts, a token each.
func words(texts ...string) func(context.Context, moeflux.Request) moeflux.Events {
	return func(ctx context.Context, r moeflux.Request) moeflux.Events {
		return func(yield func(moeflux.Event, error) bool) {
			t := &telling{yield: yield, r: &r}
			t.prompt(7, 3)
			for _, text := range texts {
				t.token(moeflux.Event{Text: text, Raw: text})
			}
			t.end(moeflux.StopEOS)
		}
	}
}

// telling yields the events of an answer, and keeps what its end has to say.
type telling struct {
	yield                    func(moeflux.Event, error) bool
	r                        *moeflux.Request
	tokens, prompted, reused int
	message                  moeflux.Message
	left                     bool
}

func (t *telling) emit(e moeflux.Event) {
	t.left = t.left || !t.yield(e, nil)
}

func (t *telling) prompt(tokens, reused int) {
	t.prompted, t.reused = tokens, reused
	t.emit(moeflux.Event{Prompt: &moeflux.Prompt{IDs: make([]int32, tokens)}})
	t.emit(moeflux.Event{Read: &moeflux.Read{Reused: reused}})
}

// token tells one token, unless the text is over.
func (t *telling) token(e moeflux.Event) {
	if t.left || t.r.MaxTokens > 0 && t.tokens == t.r.MaxTokens || t.r.Interrupted != nil && t.r.Interrupted() {
		return
	}
	t.tokens++
	e.Token = &moeflux.Token{ID: int32(t.tokens)}
	if t.r.LogProbs {
		e.Token.Bytes, e.Token.LogProb = []byte(e.Raw), -0.5
		for i := range t.r.TopLogProbs {
			e.Token.Top = append(e.Token.Top, moeflux.Token{Bytes: fmt.Append(nil, "top", i), LogProb: -float64(i + 1)})
		}
	}
	t.message.Content += e.Text
	t.message.ReasoningContent += e.Reasoning
	t.emit(e)
}

// call tells a call of a tool, in pieces.
func (t *telling) call(index int, name string, arguments ...string) {
	if t.r.Interrupted != nil && t.r.Interrupted() {
		return
	}
	id := fmt.Sprint("call_", index)
	t.token(moeflux.Event{Call: &moeflux.CallPiece{Index: index, ID: id, Name: name}})
	for _, a := range arguments {
		t.token(moeflux.Event{Call: &moeflux.CallPiece{Index: index, ID: "", Arguments: a}})
	}
	t.token(moeflux.Event{Call: &moeflux.CallPiece{Index: index, Done: true}})
	t.message.ToolCalls = append(t.message.ToolCalls, moeflux.ToolCall{ID: id, Name: name, Arguments: strings.Join(arguments, "")})
}

func (t *telling) end(why moeflux.StopReason) {
	if t.left {
		return
	}
	if t.r.MaxTokens > 0 && t.tokens == t.r.MaxTokens {
		why = moeflux.StopLength
	}
	t.message.Role = moeflux.Assistant
	e := &moeflux.End{Reason: why, Message: t.message}
	e.Usage = moeflux.Usage{PromptTokens: t.prompted, ReusedTokens: t.reused, NewTokens: t.tokens}
	e.Usage.Account.TotalNS = int64(time.Millisecond)
	t.emit(moeflux.Event{End: e})
}
