package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/moeflux/moeflux-actor/stages/sample"
	"github.com/moeflux/moeflux-actor/tokenizer"
)

type runCmd struct {
	Prompt    *string `short:"p" placeholder:"PROMPT" help:"The text to continue; with --chat the message to answer."`
	File      string  `short:"f" placeholder:"FILE" help:"Read that text from a file."`
	MaxTokens *int    `short:"n" placeholder:"N" help:"The most tokens to generate; 0: until the text or the context ends. Default: 256, with --chat 2048."`
	JSON      bool    `name:"json" help:"Print one JSON object at the end: text, prompt_ids, new_ids, stop_reason, stats; with --chat also prompt, reasoning and content."`
	Stdin     string  `arg:"" optional:"" name:"-" help:"Read that text from stdin."`

	chatFlags     `group:"Conversation:"`
	samplingFlags `group:"Sampling:"`
	engineFlags   `group:"Engine:"`
}

// Help is shown by --help.
func (runCmd) Help() string {
	return `Example:

    moeflux-actor run -p "package main" -n 100
    moeflux-actor run -f draft.go --temperature 0.8 --top-p 0.95 --seed 7 --stop $'\nfunc '
    moeflux-actor run --model DIR --chat -p "What is a monad?" --system "Be brief."
    moeflux-actor run --model DIR --chat

The text is streamed to stdout, without the prompt; the last line on stderr tells the speed. Without --model the
demo model runs; it writes Go-like text. Without a sampling flag the most likely token is taken each time. Ctrl-C ends
the text and exits with 130.

With --chat the prompt is a user's message in the model's chat template, and the text is the answer. On a terminal without a
prompt it converses: Ctrl-C stops an answer, Ctrl-D ends, /help lists the commands.`
}

// defaultTokens and defaultChatTokens are what -n means where it is not given. An answer has an end of its own, and may need
// room to reason.
const defaultTokens, defaultChatTokens = 256, 2048

// maxTokens returns what -n means.
func (c *runCmd) maxTokens() int {
	switch {
	case c.MaxTokens != nil:
		return *c.MaxTokens
	case c.Chat:
		return defaultChatTokens
	}
	return defaultTokens
}

// Run generates text.
func (c *runCmd) Run(ctx context.Context, inv *invocation) error {
	if c.maxTokens() < 0 {
		return usagef("-n %d, want 0 or more", c.maxTokens())
	}
	if c.LogProbs != nil && !c.JSON {
		return usagef("--logprobs does nothing without --json")
	}
	options, err := c.options(inv.env.seed)
	if err != nil {
		return err
	}
	if err := c.engineFlags.check(); err != nil {
		return err
	}
	if c.Chat {
		return c.runChat(ctx, inv, options)
	}
	if err := c.chatFlags.unused(); err != nil {
		return err
	}
	prompt, err := c.readPrompt(inv)
	if err != nil {
		return err
	}
	return c.withSession(ctx, inv, func(s *session, tok *tokenizer.Tokenizer) error {
		return c.continueText(ctx, inv, s, tok, prompt, options)
	})
}

// withSession runs f with the model open.
func (c *runCmd) withSession(ctx context.Context, inv *invocation, f func(*session, *tokenizer.Tokenizer) error) error {
	if c.Profile == "" {
		c.Profile = profileAuto
	}
	s, err := openSession(ctx, inv, &c.engineFlags)
	if err != nil {
		return err
	}
	tok, err := loadTokenizer(s.dir)
	if err == nil {
		err = f(s, tok)
	}
	return errors.Join(err, s.close())
}

// hasPrompt reports whether the command line says where the prompt is.
func (c *runCmd) hasPrompt() bool { return c.Prompt != nil || c.File != "" || c.Stdin != "" }

// readPrompt takes the prompt from where the command line says. A message loses the line feed that ends it as a file.
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
	case c.Chat:
		return withoutLineEnd(string(data)), nil
	}
	return string(data), nil
}

// withoutLineEnd returns the text of a file without its last line end.
func withoutLineEnd(text string) string {
	return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
}

// continueText continues the prompt as it is.
func (c *runCmd) continueText(ctx context.Context, inv *invocation, s *session, tok *tokenizer.Tokenizer, prompt string, options sample.Options) error {
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
	g := c.generation(inv, s, seq, tok, options)
	g.ids = ids
	g.show = &plainText{terminal: inv.stdoutTerminal}
	if !c.JSON {
		g.show = &plainText{out: inv.stdout, terminal: inv.stdoutTerminal}
	}
	return c.once(ctx, inv, g, nil)
}

// generation returns a generation of one text with what the flags say.
func (c *runCmd) generation(inv *invocation, s *session, seq sequence, tok *tokenizer.Tokenizer, options sample.Options) *generation {
	return &generation{
		s: s, seq: seq, tok: tok, sampling: options, maxTokens: c.maxTokens(), stops: c.Stop, logProbs: c.LogProbs,
		clock: runClock{now: inv.env.now, processStart: inv.env.start}, counts: s.engine.Stats,
	}
}

// once generates one text and prints all that is to be printed about it. finish completes the result.
func (c *runCmd) once(ctx context.Context, inv *invocation, g *generation, finish func(*runResult)) error {
	result, err := g.run(ctx)
	interrupted := err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled)
	if interrupted {
		err, result.StopReason = nil, stopInterrupted
	}
	if endErr := g.end(result); err == nil { // what came is shown whatever happened
		err = endErr
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
