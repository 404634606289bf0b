package main

import (
	"context"

	"github.com/moeflux/moeflux-actor/internal/eval"
	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/internal/jsonlines"
	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/tokenizer"
)

type tokenizeCmd struct {
	Model       string `placeholder:"DIR|FILE.gguf" help:"Use the tokenizer of this model directory or GGUF file. Default: the demo model."`
	Tokenizer   string `placeholder:"FILE" help:"Use this tokenizer.json, tiktoken.model or hy.tiktoken."`
	CacheDir    string `placeholder:"DIR" help:"Where the demo model is unpacked. Default: moeflux-actor in the user's cache folder."`
	Decode      bool   `help:"Turn ids into text instead of text into ids."`
	SkipSpecial bool   `help:"With --decode: leave special tokens out of the text."`
	AddSpecial  bool   `help:"Add the special tokens that the tokenizer puts around a text. Default: none."`
	JSON        bool   `name:"json" help:"Does nothing: the output is JSON lines in any case."`
}

// Run translates stdin line by line.
func (c *tokenizeCmd) Run(ctx context.Context, inv *process.Invocation) error {
	switch {
	case c.Model != "" && c.Tokenizer != "":
		return process.Usagef("--model and --tokenizer are both given; use one")
	case c.SkipSpecial && !c.Decode:
		return process.Usagef("--skip-special does nothing without --decode")
	case c.AddSpecial && c.Decode:
		return process.Usagef("--add-special does nothing with --decode")
	}
	tok, err := c.open(ctx, inv)
	if err != nil {
		return err
	}
	translate := func(line []byte) (any, error) { return jsonlines.Encode(tok, line, c.AddSpecial) }
	if c.Decode {
		translate = func(line []byte) (any, error) { return jsonlines.Decode(tok, line, c.SkipSpecial, eval.ParseIDs) }
	}
	return jsonlines.Translate(ctx, inv.Stdin, inv.Stdout, translate)
}

func (c *tokenizeCmd) open(ctx context.Context, inv *process.Invocation) (*tokenizer.Tokenizer, error) {
	if c.Tokenizer != "" {
		return tokenizer.Load(c.Tokenizer)
	}
	dir, err := flags.ModelDir(ctx, inv, c.Model, c.CacheDir)
	if err != nil {
		return nil, err
	}
	return flags.LoadTokenizer(dir)
}
