package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	moeflux "github.com/moeflux/moeflux-actor"
)

// chatFlags say how run converses.
type chatFlags struct {
	Chat        bool     `help:"Take the prompt for a user's message in the model's chat template; without a prompt, on a terminal, converse."`
	System      *string  `placeholder:"TEXT|@FILE" help:"With --chat: the system message, or the file that holds it."`
	Tools       string   `placeholder:"FILE" help:"With --chat: a JSON list of functions that the model may call, as OpenAI-style services take it. Its calls are shown; in a conversation you give their results."`
	TemplateArg []string `sep:"none" placeholder:"NAME=VALUE" help:"With --chat: a further variable of the template, as JSON or else as text, like enable_thinking=false. May be given several times."`
}

// unused reports flags that do nothing without --chat.
func (f *chatFlags) unused() error {
	switch {
	case f.System != nil:
		return usagef("--system does nothing without --chat")
	case f.Tools != "":
		return usagef("--tools does nothing without --chat")
	case len(f.TemplateArg) > 0:
		return usagef("--template-arg does nothing without --chat")
	}
	return nil
}

// system returns the system message, "" for none.
func (f *chatFlags) system() (string, error) {
	if f.System == nil {
		return "", nil
	}
	file, ok := strings.CutPrefix(*f.System, "@")
	if !ok {
		return *f.System, nil
	}
	data, err := os.ReadFile(file)
	switch {
	case err != nil:
		return "", fmt.Errorf("the system message cannot be read: %w", err)
	case !utf8.Valid(data):
		return "", fmt.Errorf("the system message in %s is not UTF-8 text; convert it first", file)
	}
	return withoutLineEnd(string(data)), nil
}

// tools returns the functions that the model may call.
func (f *chatFlags) tools() ([]*moeflux.Tool, error) {
	if f.Tools == "" {
		return nil, nil
	}
	file, err := os.Open(f.Tools)
	if err != nil {
		return nil, fmt.Errorf("the tools cannot be read: %w", err)
	}
	defer file.Close()
	tools, err := moeflux.ReadTools(file)
	if err != nil {
		return nil, fmt.Errorf("the tools in %s cannot be used: %w", f.Tools, err)
	}
	return tools, nil
}

// templateArgs returns the further variables of the template.
func (f *chatFlags) templateArgs() (map[string]any, error) {
	args := map[string]any{}
	for _, arg := range f.TemplateArg {
		name, text, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return nil, usagef("--template-arg %q is not NAME=VALUE", arg)
		}
		if !json.Valid([]byte(text)) {
			args[name] = text
			continue
		}
		args[name] = json.RawMessage(text)
	}
	return args, nil
}
