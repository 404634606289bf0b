package converse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	moeflux "github.com/moeflux/moeflux-actor"
)

// The prompts of a conversation on a terminal.
const (
	promptFirst = "> "
	promptMore  = ". "
)

// Dialogue is a conversation with a person at a terminal.
type Dialogue struct {
	*Conversation
	Lines   LineReader
	Notes   io.Writer          // for what is not an answer
	Explain func(error) string // an error on one line, as the person understands it
	Fatal   func(error) bool   // whether nothing more can come after an error
	Context int                // positions that the conversation may have

	saved string // the file that was saved last
	turn  Turn
}

// Interrupt ends the answer under way, and reports whether there is one; see Turn.
func (d *Dialogue) Interrupt() bool { return d.turn.Interrupt() }

// Run talks with the person until they leave.
func (d *Dialogue) Run(ctx context.Context) error {
	d.note("Say something, or /help. Ctrl-C stops an answer, Ctrl-D ends.")
	for {
		switch done, err := d.step(ctx); {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case done || err != nil:
			return err
		}
	}
}

// step reads what the person says and does it.
func (d *Dialogue) step(ctx context.Context) (done bool, err error) {
	text, typed, err := readMessage(ctx, d.Lines, promptFirst, promptMore)
	switch {
	case errors.Is(err, ErrLineDropped):
		return false, nil
	case err == io.EOF:
		d.note("")
		return true, nil
	case err != nil:
		return false, err
	case strings.TrimSpace(text) == "":
		return false, nil
	}
	if command, ok := strings.CutPrefix(text, "/"); ok && typed {
		if text, ok = strings.CutPrefix(command, "/"); !ok {
			return d.command(ctx, command)
		}
		text = "/" + text
	}
	d.Messages = append(d.Messages, moeflux.Message{Role: moeflux.User, Content: text})
	if err := d.respond(ctx, 1); err != nil {
		return false, err
	}
	return d.results(ctx)
}

// results asks the person for the results of the calls that the answer makes, as long as it makes
// some, and has the model go on with them.
func (d *Dialogue) results(ctx context.Context) (done bool, err error) {
	for len(d.Messages) > 0 && len(d.Messages[len(d.Messages)-1].ToolCalls) > 0 {
		var results []moeflux.Message
		for _, c := range d.Messages[len(d.Messages)-1].ToolCalls {
			text, _, err := readMessage(ctx, d.Lines, "result of "+Visible(c.Name)+"> ", promptMore)
			switch {
			case errors.Is(err, ErrLineDropped):
				d.note("(the calls stay without results)")
				return false, nil
			case err == io.EOF:
				d.note("")
				return true, nil
			case err != nil:
				return false, err
			}
			results = append(results, moeflux.Message{Role: moeflux.ToolResult, ToolCallID: c.ID, Name: c.Name, Content: text})
		}
		d.Messages = append(d.Messages, results...)
		if err := d.respond(ctx, len(results)); err != nil {
			return false, err
		}
	}
	return false, nil
}

// respond answers the last messages, n of which are the person's. What goes wrong with one answer
// does not end the conversation; the messages then are taken back.
func (d *Dialogue) respond(ctx context.Context, n int) error {
	turn, cancel := context.WithCancel(ctx)
	defer cancel()
	d.turn.Begin(cancel)
	before := len(d.Messages)
	reason, err := d.answer(turn, d.turn.Halted)
	if err == nil && d.Keep != nil && len(d.Messages) > before {
		d.report(d.Keep(turn))
	}
	d.turn.End()
	if len(d.Messages) == before {
		d.Messages = d.Messages[:before-n]
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && turn.Err() != nil:
		d.note("(stopped; your message is taken back)")
	case err != nil && d.Fatal(err):
		return err
	case err != nil:
		d.note("error: %s", d.Explain(err))
		if _, full := errors.AsType[*moeflux.ContextError](err); full {
			d.note("The conversation has grown too long: /clear begins a new one, --ctx allows more.")
		}
	case len(d.Messages) < before:
		d.note("(stopped before the answer began; your message is taken back)")
	case reason == moeflux.StopInterrupted:
		d.note("(stopped)")
	case reason == moeflux.StopLength:
		d.note("(the limit of -n is reached)")
	case reason == moeflux.StopContext:
		d.note("(the context is full; /clear begins a new conversation)")
	}
	return nil
}

// note tells the person something that is not an answer.
func (d *Dialogue) note(format string, args ...any) {
	fmt.Fprintf(d.Notes, format+"\n", args...)
}
