package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	moeflux "github.com/moeflux/moeflux-actor"
)

// The prompts of a conversation on a terminal.
const (
	promptFirst = "> "
	promptMore  = ". "
)

// dialogue is a conversation with a person at a terminal.
type dialogue struct {
	*conversation
	inv   *invocation
	lines lineReader
	saved string // the file that was saved last
	turn  turnState
}

// turnState is what Ctrl-C sees of the answer under way.
type turnState struct {
	running atomic.Bool
	asked   atomic.Int32 // how often the person asked for an end
	cancel  atomic.Pointer[context.CancelFunc]
}

// converse talks with the person at the terminal until they leave.
func converse(ctx context.Context, inv *invocation, v *conversation) error {
	d := &dialogue{conversation: v, inv: inv}
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	edited := inv.stdoutTerminal && !inv.env.dumb
	d.lines = newPlainLines(cancelReader{ctx, inv.stdin}, inv.stderr)
	if edited {
		var err error
		if d.lines, err = inv.env.editor(); err != nil {
			return err
		}
	}
	defer d.lines.close()
	defer inv.env.interrupts.catch(func() {
		// Between answers an editor has Ctrl-C as a key. What comes as a signal then was meant for
		// the answer before.
		if !d.turn.interrupt() && !edited {
			leave(errInterrupted)
		}
	})()
	d.note("Say something, or /help. Ctrl-C stops an answer, Ctrl-D ends.")
	for {
		switch done, err := d.step(ctx); {
		case errors.Is(context.Cause(ctx), errInterrupted):
			return errInterrupted
		case done || err != nil:
			return err
		}
	}
}

// step reads what the person says and does it.
func (d *dialogue) step(ctx context.Context) (done bool, err error) {
	text, typed, err := readMessage(ctx, d.lines, promptFirst, promptMore)
	switch {
	case errors.Is(err, errLineDropped):
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
	d.messages = append(d.messages, moeflux.Message{Role: moeflux.User, Content: text})
	return false, d.respond(ctx)
}

// respond answers the last message, which is the person's. What goes wrong with one answer does not
// end the conversation; the message then is taken back.
func (d *dialogue) respond(ctx context.Context) error {
	turn, cancel := context.WithCancel(ctx)
	defer cancel()
	d.turn.begin(cancel)
	before := len(d.messages)
	reason, err := d.answer(turn, d.turn.halted)
	if err == nil && d.keep != nil && len(d.messages) > before {
		d.report(d.keep(turn))
	}
	d.turn.running.Store(false)
	if len(d.messages) == before {
		d.messages = d.messages[:before-1]
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && turn.Err() != nil:
		d.note("(stopped; your message is taken back)")
	case err != nil && fatal(err):
		return err
	case err != nil:
		d.note("error: %s", oneLine(err))
		if _, full := errors.AsType[*moeflux.ContextError](err); full {
			d.note("The conversation has grown too long: /clear begins a new one, --ctx allows more.")
		}
	case len(d.messages) < before:
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

// fatal reports whether nothing more can come of the engine or of stdout.
func fatal(err error) bool {
	_, broken := errors.AsType[*moeflux.BrokenError](err)
	return broken || errors.Is(err, moeflux.ErrClosed) || errors.Is(err, errReaderGone)
}

// note tells the person something that is not an answer.
func (d *dialogue) note(format string, args ...any) {
	fmt.Fprintf(d.inv.stderr, format+"\n", args...)
}

// begin notes that an answer is under way; cancel ends it at once.
func (t *turnState) begin(cancel context.CancelFunc) {
	t.asked.Store(0)
	t.cancel.Store(&cancel)
	t.running.Store(true)
}

// interrupt ends the answer under way, if there is one: the first time between two tokens, where
// the conversation can go on from, the second time at once.
func (t *turnState) interrupt() bool {
	if !t.running.Load() {
		return false
	}
	if t.asked.Add(1) > 1 {
		(*t.cancel.Load())()
	}
	return true
}

func (t *turnState) halted() bool { return t.asked.Load() > 0 }
