package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/moeflux/moeflux-actor/tokenizer"
)

type tokenizeCmd struct {
	Model       string `placeholder:"DIR" help:"Use the tokenizer of this model directory. Default: the demo model."`
	Tokenizer   string `placeholder:"FILE" help:"Use this tokenizer.json."`
	CacheDir    string `placeholder:"DIR" help:"Where the demo model is unpacked. Default: moeflux-actor in the user's cache folder."`
	Decode      bool   `help:"Turn ids into text instead of text into ids."`
	SkipSpecial bool   `help:"With --decode: leave special tokens out of the text."`
	AddSpecial  bool   `help:"Add the special tokens that the tokenizer puts around a text. Default: none."`
	JSON        bool   `name:"json" help:"Does nothing: the output is JSON lines in any case."`
}

// Help is shown by --help.
func (tokenizeCmd) Help() string {
	return `Example:

    echo '{"text": "package main"}' | moeflux-actor tokenize --model DIR
    echo '[1, 2, 3]' | moeflux-actor tokenize --decode --skip-special --tokenizer tokenizer.json

Each line of stdin is {"text": ...}, or with --decode a list of ids, and gives one line on stdout: {"ids": [...]} or
{"text": ...}. Unknown ids give no text. The first bad line ends the command with an error that names it.`
}

// Run translates stdin line by line.
func (c *tokenizeCmd) Run(ctx context.Context, inv *invocation) error {
	switch {
	case c.Model != "" && c.Tokenizer != "":
		return usagef("--model and --tokenizer are both given; use one")
	case c.SkipSpecial && !c.Decode:
		return usagef("--skip-special does nothing without --decode")
	case c.AddSpecial && c.Decode:
		return usagef("--add-special does nothing with --decode")
	}
	tok, err := c.open(ctx, inv)
	if err != nil {
		return err
	}
	translate := func(line []byte) (any, error) { return encodeLine(tok, line, c.AddSpecial) }
	if c.Decode {
		translate = func(line []byte) (any, error) { return decodeLine(tok, line, c.SkipSpecial) }
	}
	return translateLines(ctx, inv, translate)
}

func (c *tokenizeCmd) open(ctx context.Context, inv *invocation) (*tokenizer.Tokenizer, error) {
	if c.Tokenizer != "" {
		return tokenizer.Load(c.Tokenizer)
	}
	dir, err := modelDir(ctx, inv, c.Model, c.CacheDir)
	if err != nil {
		return nil, err
	}
	return loadTokenizer(dir)
}

// translateLines prints what translate makes of each line of stdin, as soon as no further line is
// waiting.
func translateLines(ctx context.Context, inv *invocation, translate func([]byte) (any, error)) (err error) {
	in, out := bufio.NewReaderSize(inv.stdin, 64<<10), bufio.NewWriterSize(inv.stdout, 64<<10)
	defer func() { err = errors.Join(err, out.Flush()) }()
	for number := 1; ; number++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		line, err := in.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return fmt.Errorf("reading stdin: %w", err)
		}
		if err == io.EOF && len(line) == 0 {
			return nil
		}
		result, lineErr := translate(bytes.TrimSpace(line))
		if lineErr != nil {
			return fmt.Errorf("line %d of stdin: %w", number, lineErr)
		}
		if err := writeJSON(out, result); err != nil {
			return err
		}
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

type idsLine struct {
	IDs []int32 `json:"ids"`
}

type textLine struct {
	Text string `json:"text"`
}

func encodeLine(tok *tokenizer.Tokenizer, line []byte, addSpecial bool) (any, error) {
	const form = `this is not an object like {"text": "..."}`
	if !utf8.Valid(line) {
		return nil, errors.New(form + ": it is not UTF-8")
	}
	var in struct {
		Text *string `json:"text"`
	}
	if err := json.Unmarshal(line, &in); err != nil {
		return nil, fmt.Errorf(form+": %w", noEOF(err))
	}
	if in.Text == nil {
		return nil, errors.New(form + `: "text" is missing`)
	}
	ids, err := tok.Encode(*in.Text, addSpecial)
	if ids == nil {
		ids = []int32{} // prints as a list
	}
	return idsLine{ids}, err
}

func decodeLine(tok *tokenizer.Tokenizer, line []byte, skipSpecial bool) (any, error) {
	ids, err := parseIDs(line)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		if id < 0 {
			return nil, fmt.Errorf("id %d at index %d is negative", id, i)
		}
	}
	return textLine{tok.Decode(ids, skipSpecial)}, nil
}
