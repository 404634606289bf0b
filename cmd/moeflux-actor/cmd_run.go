package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/stages/sample"
	"github.com/moeflux/moeflux-actor/tokenizer"
)

type runCmd struct {
	Prompt    *string `short:"p" placeholder:"PROMPT" help:"The text to continue."`
	File      string  `short:"f" placeholder:"FILE" help:"Read the text to continue from a file."`
	MaxTokens int     `short:"n" default:"256" placeholder:"N" help:"The most tokens to generate; 0: until the text or the context ends. Default: 256."`
	JSON      bool    `name:"json" help:"Print one JSON object at the end: text, prompt_ids, new_ids, stop_reason, stats."`
	Stdin     string  `arg:"" optional:"" name:"-" help:"Read the text to continue from stdin."`

	samplingFlags `group:"Sampling:"`
	engineFlags   `group:"Engine:"`
}

// Help is shown by --help.
func (runCmd) Help() string {
	return `Example:

    moeflux-actor run -p "package main" -n 100
    moeflux-actor run -f draft.go --temperature 0.8 --top-p 0.95 --seed 7 --stop $'\nfunc '

The text is streamed to stdout, without the prompt; the last line on stderr tells the speed. Without --model the
demo model runs; it writes Go-like text. Without a sampling flag the most likely token is taken each time. Ctrl-C ends
the text and exits with 130.`
}

// Run generates text.
func (c *runCmd) Run(ctx context.Context, inv *invocation) error {
	if c.MaxTokens < 0 {
		return usagef("-n %d, want 0 or more", c.MaxTokens)
	}
	options, err := c.options(inv.env.seed)
	if err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	prompt, err := c.readPrompt(inv)
	if err != nil {
		return err
	}
	s, err := openSession(ctx, inv, &c.engineFlags)
	if err != nil {
		return err
	}
	err = c.generate(ctx, inv, s, prompt, options)
	return errors.Join(err, s.close())
}

// readPrompt takes the prompt from where the command line says.
func (c *runCmd) readPrompt(inv *invocation) (string, error) {
	const how = "give it with -p TEXT, -f FILE, or - for stdin"
	if c.Stdin != "" && c.Stdin != "-" {
		return "", usagef("unexpected argument %q; if it is the prompt, %s", c.Stdin, how)
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
		return "", usagef("the prompt is given %d times; use one of -p, -f and -", sources)
	case c.Prompt != nil:
		return *c.Prompt, nil
	case sources == 0 && inv.stdinTerminal:
		return "", usagef("no prompt; %s", how)
	case file == "":
		file = "-"
	}
	data, err := readInput(inv, file)
	switch {
	case err != nil:
		return "", fmt.Errorf("the prompt cannot be read: %w", err)
	case sources == 0 && len(data) == 0:
		return "", usagef("no prompt, and stdin is empty; %s", how)
	case !utf8.Valid(data):
		return "", fmt.Errorf("the prompt in %s is not UTF-8 text; convert it first", file)
	}
	return string(data), nil
}

// generate writes the text and the figures.
func (c *runCmd) generate(ctx context.Context, inv *invocation, s *session, prompt string, options sample.Options) error {
	tok, err := tokenizer.LoadDir(s.dir)
	if err != nil {
		return err
	}
	ids, err := tok.Encode(prompt, true)
	if err != nil {
		return fmt.Errorf("the prompt cannot be encoded: %w", err)
	}
	if len(ids) == 0 {
		return usagef("the prompt is empty and this model's texts begin with no token of their own; give some text")
	}
	seq, err := s.engine.NewSequence(ctx)
	if err != nil {
		return err
	}
	defer seq.Close()
	w := &textWriter{stream: tok.NewStream(true), stop: stopper{stops: c.Stop}, terminal: inv.stdoutTerminal}
	if !c.JSON {
		w.out = inv.stdout
	}
	clock := &runClock{now: inv.env.now, processStart: inv.env.start}
	result := runResult{PromptIDs: ids, NewIDs: []int32{}}
	err = c.loop(ctx, s, seq, options, w, clock, &result)
	interrupted := err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled)
	if err != nil && !interrupted {
		return err
	}
	if interrupted {
		result.StopReason = stopInterrupted
	}
	if err := w.end(); err != nil {
		return err
	}
	result.Text = w.text.String()
	if result.Stats, err = runStats(context.WithoutCancel(ctx), s.engine, clock, &result, options); err != nil {
		return err
	}
	if c.JSON {
		if err := writeJSON(inv.stdout, result); err != nil {
			return err
		}
	}
	fmt.Fprintln(inv.stderr, result.Stats.line())
	if interrupted {
		return errInterrupted
	}
	return nil
}

// loop generates until the text ends for any reason, which it notes in r.
func (c *runCmd) loop(ctx context.Context, s *session, seq *actors.Sequence, options sample.Options, w *textWriter, clock *runClock, r *runResult) error {
	ctx, end := s.span(ctx, "moeflux.run")
	defer end()
	clock.promptStart = clock.now()
	tokens := seq.Generate(ctx, r.PromptIDs, actors.GenerateOptions{
		MaxTokens: c.MaxTokens, Sampling: options, StopReason: &r.StopReason, FirstToken: clock.promptRead,
	})
	for id, err := range tokens {
		if err != nil {
			return err
		}
		clock.token()
		r.NewIDs = append(r.NewIDs, id)
		if err := w.push(id); err != nil {
			return err
		}
		if w.stop.stopped {
			r.StopReason = stopString
			return nil
		}
	}
	return nil
}

// textWriter turns ids into text, cut at stop strings, and writes it as it comes.
type textWriter struct {
	stream   *tokenizer.Stream
	stop     stopper
	out      io.Writer // nil keeps the text only
	terminal bool      // end with a line feed
	text     strings.Builder
}

func (w *textWriter) push(id int32) error { return w.write(w.stop.push(w.stream.Push(id))) }

// end writes what is still held back.
func (w *textWriter) end() error {
	if err := w.write(w.stop.push(w.stream.Flush()) + w.stop.flush()); err != nil {
		return err
	}
	if w.out != nil && w.terminal && !strings.HasSuffix(w.text.String(), "\n") {
		_, err := io.WriteString(w.out, "\n")
		return err
	}
	return nil
}

func (w *textWriter) write(text string) error {
	w.text.WriteString(text)
	if w.out == nil || text == "" {
		return nil
	}
	_, err := io.WriteString(w.out, text)
	return err
}

// runClock notes when what happened.
type runClock struct {
	now                                                         func() time.Time
	processStart, promptStart, promptEnd, firstToken, lastToken time.Time
}

func (c *runClock) promptRead() { c.promptEnd = c.now() }

func (c *runClock) token() {
	c.lastToken = c.now()
	if c.firstToken.IsZero() {
		c.firstToken = c.lastToken
	}
}
