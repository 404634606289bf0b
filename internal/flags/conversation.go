package flags

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/internal/process"
)

// Conversation are the flags that say how run converses.
type Conversation struct {
	Chat        bool     `help:"Take the prompt for a user's message in the model's chat template; without a prompt, on a terminal, converse."`
	System      *string  `placeholder:"TEXT|@FILE" help:"With --chat: the system message, or the file that holds it."`
	Tools       string   `option:"Tools" placeholder:"FILE" help:"With --chat: a JSON list of functions that the model may call, as OpenAI-style services take it. Its calls are shown; in a conversation you give their results."`
	ToolChoice  string   `option:"ToolChoice" placeholder:"CHOICE" help:"With --tools: auto leaves calls to the model, required makes it call a function, none forbids it, and the name of a function makes it call that one. In a conversation this is for answers to messages, not to results. Default: auto."`
	TemplateArg []string `sep:"none" placeholder:"NAME=VALUE" help:"With --chat: a further variable of the template, as JSON or else as text, like enable_thinking=false. May be given several times."`
}

// Unused reports flags that do nothing without --chat.
func (f *Conversation) Unused() error {
	switch {
	case f.System != nil:
		return process.Usagef("--system does nothing without --chat")
	case f.Tools != "":
		return process.Usagef("--tools does nothing without --chat")
	case f.ToolChoice != "":
		return process.Usagef("--tool-choice does nothing without --chat")
	case len(f.TemplateArg) > 0:
		return process.Usagef("--template-arg does nothing without --chat")
	}
	return nil
}

// SystemText returns the system message, "" for none.
func (f *Conversation) SystemText() (string, error) {
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
	return process.WithoutLineEnd(string(data)), nil
}

// ReadTools returns the functions that the model may call.
func (f *Conversation) ReadTools() ([]*moeflux.Tool, error) {
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

// Choice returns what --tool-choice says.
func (f *Conversation) Choice(tools []*moeflux.Tool) (moeflux.ToolChoice, error) {
	switch {
	case f.ToolChoice != "" && f.Tools == "":
		return moeflux.ToolChoice{}, process.Usagef("--tool-choice does nothing without --tools")
	case f.ToolChoice == "" || f.ToolChoice == "auto":
		return moeflux.ToolChoice{}, nil
	case f.ToolChoice == "none":
		return moeflux.ToolChoice{None: true}, nil
	case f.ToolChoice == "required":
		return moeflux.ToolChoice{Required: true}, nil
	}
	var names []string
	for _, t := range tools {
		if t.Name() == f.ToolChoice {
			return moeflux.ToolChoice{Name: f.ToolChoice}, nil
		}
		names = append(names, t.Name())
	}
	return moeflux.ToolChoice{}, process.Usagef("--tool-choice %q is not auto, none, required or one of %s", f.ToolChoice, strings.Join(names, ", "))
}

// TemplateArgs returns the further variables of the template.
func (f *Conversation) TemplateArgs() (map[string]any, error) {
	args := map[string]any{}
	for _, arg := range f.TemplateArg {
		name, text, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return nil, process.Usagef("--template-arg %q is not NAME=VALUE", arg)
		}
		if !json.Valid([]byte(text)) {
			args[name] = text
			continue
		}
		args[name] = json.RawMessage(text)
	}
	return args, nil
}
