package main

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/internal/converse"
	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/internal/process"
)

// textFlags are the flags of commands that continue a text.
type textFlags struct {
	promptFlags
	MaxTokens *int `short:"n" placeholder:"N" help:"The most tokens to generate; 0: until the model ends the text or the context is full. Default: 256, with run --chat 2048."`
	JSON      bool `name:"json" help:"Print one JSON object at the end: text, prompt_ids, new_ids, stop_reason, stats; with run --chat also prompt, reasoning and content; where run bounds the text also constraint."`

	flags.Sampling `group:"Sampling:"`
	flags.Engine   `group:"Engine:"`
}

// promptFlags say where a text is.
type promptFlags struct {
	Prompt *string `short:"p" placeholder:"PROMPT" help:"The text to continue; with run --chat the message to answer."`
	File   string  `short:"f" placeholder:"FILE" help:"Read that text from a file."`
	Stdin  string  `arg:"" optional:"" name:"-" help:"Read that text from stdin."`
}

// checkText reports flags that no model can change.
func (c *textFlags) checkText(defaultMax int) error {
	if n := c.maxTokens(defaultMax); n < 0 {
		return process.Usagef("-n %d: must be 0 or more", n)
	}
	if c.LogProbs != nil && !c.JSON {
		return process.Usagef("--logprobs does nothing without --json")
	}
	if err := c.CheckSampling(); err != nil {
		return err
	}
	return c.Engine.Check()
}

// maxTokens returns what -n means.
func (c *textFlags) maxTokens(byDefault int) int {
	if c.MaxTokens != nil {
		return *c.MaxTokens
	}
	return byDefault
}

// withModel runs f with the model open.
func (c *textFlags) withModel(ctx context.Context, inv *process.Invocation, f func(*flags.Opened) error) error {
	if c.Profile == "" {
		c.Profile = flags.ProfileAuto
	}
	return c.Engine.WithModel(ctx, inv, f)
}

// hasPrompt reports whether the command line says where the prompt is.
func (c *promptFlags) hasPrompt() bool { return c.Prompt != nil || c.File != "" || c.Stdin != "" }

// readPrompt takes the prompt from where the command line says. Where there may be none it may be
// empty. A message loses the line feed that ends it as a file.
func (c *promptFlags) readPrompt(inv *process.Invocation, mayBeNone, message bool) (string, error) {
	const how = "give it with -p TEXT, -f FILE, or - for stdin"
	if c.Stdin != "" && c.Stdin != "-" {
		return "", process.Usagef("unexpected argument %q; if it is the prompt, %s", c.Stdin, how)
	}
	sources := 0
	for _, given := range []bool{c.Prompt != nil, c.File != "", c.Stdin != ""} {
		if given {
			sources++
		}
	}
	file := c.File
	switch {
	case sources > 1:
		return "", process.Usagef("the prompt is given %d times; use one of -p, -f and -", sources)
	case c.Prompt != nil:
		return *c.Prompt, nil
	case sources == 0 && inv.StdinTerminal && mayBeNone:
		return "", nil
	case sources == 0 && inv.StdinTerminal:
		return "", process.Usagef("no prompt; %s", how)
	case file == "":
		file = "-"
	}
	data, err := process.ReadInput(inv, file)
	switch {
	case err != nil:
		return "", fmt.Errorf("the prompt cannot be read: %w", err)
	case sources == 0 && len(data) == 0 && !mayBeNone:
		return "", process.Usagef("no prompt, and stdin is empty; %s", how)
	case !utf8.Valid(data):
		return "", fmt.Errorf("the prompt in %s is not UTF-8 text; convert it first", file)
	case message:
		return process.WithoutLineEnd(string(data)), nil
	}
	return string(data), nil
}

// generation returns a generation of one text with what the flags and the model say.
func (c *textFlags) generation(inv *process.Invocation, s *flags.Opened, defaultMax int) (*generation, error) {
	sampling, used, err := c.SamplingFor(inv, s.Dir)
	if err != nil {
		return nil, err
	}
	g := &generation{s: s, used: used}
	g.Now, g.Clock.Start = inv.Env.Now, inv.Env.Start
	g.request = moeflux.Request{MaxTokens: c.maxTokens(defaultMax), Stop: c.Stop, Sampling: sampling}
	if c.LogProbs != nil {
		g.request.LogProbs, g.request.TopLogProbs = true, *c.LogProbs
	}
	return g, nil
}

// plainText returns the display of a text.
func (c *textFlags) plainText(inv *process.Invocation) *converse.PlainText {
	if c.JSON {
		return &converse.PlainText{Terminal: inv.StdoutTerminal}
	}
	return &converse.PlainText{Out: inv.Stdout, Terminal: inv.StdoutTerminal}
}

// once generates one text and prints it with its figures. finish, if not nil, completes the result.
// save, if not nil, keeps the text: a signal then ends it between two tokens, where it can be kept,
// and a second Ctrl-C ends it at once.
func (c *textFlags) once(ctx context.Context, inv *process.Invocation, g *generation, finish func(*runResult), save func(context.Context) error) error {
	if save != nil {
		var turn converse.Turn
		halt := func() { turn.Interrupt() }
		defer context.AfterFunc(ctx, halt)() // another signal's
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		turn.Begin(cancel)
		defer inv.Env.Interrupts.Catch(halt)()
		g.request.Interrupted = turn.Halted
	}
	result, err := g.run(ctx)
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err, result.StopReason = nil, moeflux.StopInterrupted
	}
	if err != nil {
		return err
	}
	if finish != nil {
		finish(result)
	}
	if result.Stats, err = runStats(context.WithoutCancel(ctx), g); err != nil {
		return err
	}
	if c.JSON {
		if err := process.WriteJSON(inv.Stdout, result); err != nil {
			return err
		}
	}
	if text := result.Constraint.cut(result.StopReason, g.request.MaxTokens); text != "" {
		inv.Say("%s", text)
	}
	fmt.Fprintln(inv.Stderr, result.Stats.line())
	if save != nil {
		if err := save(ctx); err != nil {
			return err
		}
	}
	if result.StopReason == moeflux.StopInterrupted {
		return process.ErrInterrupted
	}
	return nil
}
