package main

import (
	"context"
	"fmt"
	"os"

	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/internal/jsonlines"
	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/io/modelfiles"
	"github.com/moeflux/moeflux-actor/tokenizer/chat"
)

type chatTemplateCmd struct {
	Model    string `placeholder:"DIR|FILE.gguf" help:"Use the chat template of this model directory or GGUF file. Default: the demo model."`
	Template string `placeholder:"FILE" help:"Use the chat template in this file."`
	BOS      string `name:"bos" placeholder:"TEXT" help:"The template's bos_token. Default: the model's; with --template, none."`
	EOS      string `name:"eos" placeholder:"TEXT" help:"The template's eos_token. Default: the model's; with --template, none."`
	CacheDir string `placeholder:"DIR" help:"Where the demo model is unpacked. Default: moeflux-actor in the user's cache folder."`
	JSON     bool   `name:"json" help:"Does nothing: the output is JSON lines in any case."`
}

// Run renders stdin line by line.
func (c *chatTemplateCmd) Run(ctx context.Context, inv *process.Invocation) error {
	if c.Model != "" && c.Template != "" {
		return process.Usagef("--model and --template are both given; use one")
	}
	template, err := c.open(ctx, inv)
	if err != nil {
		return err
	}
	return jsonlines.Translate(ctx, inv.Stdin, inv.Stdout, func(line []byte) (any, error) { return jsonlines.Render(template, line) })
}

func (c *chatTemplateCmd) open(ctx context.Context, inv *process.Invocation) (*chat.Template, error) {
	o := chat.Options{BOS: c.BOS, EOS: c.EOS, Now: inv.Env.Now}
	if c.Template != "" {
		text, err := os.ReadFile(c.Template)
		if err != nil {
			return nil, fmt.Errorf("the template cannot be read: %w", err)
		}
		return chat.Parse(c.Template, string(text), o)
	}
	dir, err := flags.ModelDir(ctx, inv, c.Model, c.CacheDir)
	if err != nil {
		return nil, err
	}
	return modelfiles.Template(dir, o)
}
