package ggufinfo

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/moeflux/moeflux-actor/internal/figures"
)

// String formats a file for people.
func (r *Info) String() string {
	var b strings.Builder
	line := func(name, format string, args ...any) { figures.Line(&b, name, format, args...) }
	parts := ""
	if r.Format.Parts > 1 {
		parts = fmt.Sprintf(" in %d parts", r.Format.Parts)
	}
	line("model", "%s", r.File)
	line("format", "GGUF version %d, %s%s", r.Format.Version, figures.Bytes(r.Format.Bytes), parts)
	if r.Name != "" {
		line("name", "%q", r.Name)
	}
	line("architecture", "%s, which is %s here", named(r.Called), cmp.Or(string(r.Arch), "unknown"))
	s := &r.Shape
	line("layers", "%s", s.Kinds())
	line("sizes", "hidden %d, %d heads of %d (%d key-value heads), vocabulary %d, context %d", s.Hidden, s.Heads, s.HeadDim, s.KVHeads, s.Vocab, s.Context)
	if s.Experts > 0 {
		line("experts", "%d a layer, %d per token, width %d, stored as %s%s", s.Experts, s.ExpertsPerToken, s.ExpertWidth, cmp.Or(s.ExpertFormats, "nothing"), s.Shared())
	}
	for i, t := range r.Tensors {
		what := map[bool]string{true: "tensors"}[i == 0]
		line(what, "%-8s%s in %s%s", t.Type, figures.Bytes(t.Bytes), figures.Counted(t.Tensors, "tensor"), map[bool]string{false: ", not unpacked"}[t.Unpacked])
	}
	line("resident", "%s", figures.Bytes(r.Bytes.Resident))
	line("streamed", "%s in experts of up to %s", figures.Bytes(r.Bytes.Streamed), figures.Bytes(r.Bytes.Expert))
	if r.Unused > 0 {
		line("left out", "%s of draft layers", figures.Bytes(r.Unused))
	}
	line("per token", "%s touched: %s resident, %s experts", figures.Bytes(r.Bytes.TouchedToken), figures.Bytes(r.Bytes.TouchedDense), figures.Bytes(r.Bytes.TouchedExp))
	line("text", "%s", r.Text.String())
	if len(r.Missing) == 0 {
		line("here", "runs as it is: experts are read from the file, the rest is loaded")
	}
	for i, m := range r.Missing {
		what := map[bool]string{true: "here"}[i == 0]
		line(what, "%s%s", map[bool]string{true: "would not run: "}[i == 0], m)
	}
	return b.String()
}

// String tells what there is of text.
func (t *Text) String() string {
	if t.Tokens == 0 {
		return "none"
	}
	template := map[bool]string{true: "a chat template", false: "no chat template"}[t.Template]
	return fmt.Sprintf("%s of tokenizer %s, split by %s; %s", figures.Counted(t.Tokens, "token"), named(t.Tokenizer), named(t.Splitter), template)
}

// named quotes a name of the file, which may hold anything.
func named(s string) string {
	if s == "" {
		return "(none)"
	}
	return fmt.Sprintf("%q", s)
}
