package scripted

import (
	"context"
	"fmt"
	"strings"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/tokenizer"
)

// Echo says the last message, or the prompt, word by word.
func Echo(ctx context.Context, r moeflux.Request) moeflux.Events {
	text := r.Prompt
	if n := len(r.Messages); n > 0 {
		text = r.Messages[n-1].Text()
	}
	return Words(strings.SplitAfter(text, " ")...)(ctx, r)
}

// Words says texts, a token each, after a prompt of 7 tokens of which 3 were known.
func Words(texts ...string) Script {
	return func(_ context.Context, r moeflux.Request) moeflux.Events {
		return func(yield func(moeflux.Event, error) bool) {
			t := NewTeller(yield, &r)
			t.Prompt(7, 3)
			for _, text := range texts {
				t.Say(text)
			}
			t.End(moeflux.StopEOS)
		}
	}
}

// Teller yields the events of an answer, and keeps what its end has to say. It ends the text where
// the request wants that: at a limit, a stop string, or Interrupted.
type Teller struct {
	yield func(moeflux.Event, error) bool
	r     *moeflux.Request
	stop  *tokenizer.StopStream

	tokens, prompted, reused int
	message                  moeflux.Message
	left                     bool
}

// NewTeller returns a teller for one request.
func NewTeller(yield func(moeflux.Event, error) bool, r *moeflux.Request) *Teller {
	return &Teller{yield: yield, r: r, stop: tokenizer.NewStopStream(r.Stop...)}
}

func (t *Teller) emit(e moeflux.Event) {
	t.left = t.left || !t.yield(e, nil)
}

// Prompt tells that a prompt of some tokens was read, of which reused were known.
func (t *Teller) Prompt(tokens, reused int) {
	t.prompted, t.reused = tokens, reused
	t.emit(moeflux.Event{Prompt: &moeflux.Prompt{IDs: make([]int32, tokens)}})
	t.emit(moeflux.Event{Read: &moeflux.Read{Reused: reused}})
}

// Over reports that no token can come any more.
func (t *Teller) Over() bool {
	return t.left || t.r.MaxTokens > 0 && t.tokens == t.r.MaxTokens || t.stop.Found() != "" || t.r.Interrupted != nil && t.r.Interrupted()
}

// Say tells a token that is text.
func (t *Teller) Say(text string) { t.Token(moeflux.Event{Text: text, Raw: text}) }

// Token tells one token, unless the text is over.
func (t *Teller) Token(e moeflux.Event) {
	if t.Over() {
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
	e.Text = t.stop.Push(e.Text)
	t.message.Content += e.Text
	t.message.ReasoningContent += e.Reasoning
	t.emit(e)
}

// Call tells a call of a tool, in pieces.
func (t *Teller) Call(index int, name string, arguments ...string) {
	if t.Over() {
		return
	}
	id := fmt.Sprint("call_", index)
	t.Token(moeflux.Event{Call: &moeflux.CallPiece{Index: index, ID: id, Name: name}})
	for _, a := range arguments {
		t.Token(moeflux.Event{Call: &moeflux.CallPiece{Index: index, Arguments: a}})
	}
	t.Token(moeflux.Event{Call: &moeflux.CallPiece{Index: index, Done: true}})
	t.message.ToolCalls = append(t.message.ToolCalls, moeflux.ToolCall{ID: id, Name: name, Arguments: strings.Join(arguments, "")})
}

// End tells the end; why holds unless the request itself ended the text.
func (t *Teller) End(why moeflux.StopReason) {
	if t.left {
		return
	}
	if rest := t.stop.Flush(); rest != "" {
		t.message.Content += rest
		t.emit(moeflux.Event{Text: rest, Raw: rest})
	}
	e := &moeflux.End{Reason: why}
	switch {
	case t.stop.Found() != "":
		e.Reason, e.Stop = moeflux.StopString, t.stop.Found()
	case t.r.MaxTokens > 0 && t.tokens == t.r.MaxTokens:
		e.Reason = moeflux.StopLength
	}
	t.message.Role = moeflux.Assistant
	e.Message = t.message
	e.Usage = moeflux.Usage{PromptTokens: t.prompted, ReusedTokens: t.reused, NewTokens: t.tokens}
	e.Usage.Account.TotalNS = int64(time.Millisecond)
	t.emit(moeflux.Event{End: e})
}
