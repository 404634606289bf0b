package converse

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/tokenizer/chat"
)

// splitText is the display of an answer that comes as the events of its pieces.
type splitText struct {
	*AnswerText
	reasoning *chat.Reasoning
}

func split(a *AnswerText, prompt string) *splitText {
	return &splitText{a, chat.NewReasoning(prompt)}
}

func (s *splitText) write(piece string) error {
	thought, said := s.reasoning.Push(piece)
	return s.AnswerText.Write(&moeflux.Event{Raw: piece, Reasoning: thought, Text: said})
}

func (s *splitText) end() error {
	thought, said := s.reasoning.Flush()
	return errors.Join(s.AnswerText.Write(&moeflux.Event{Reasoning: thought, Text: said}), s.AnswerText.End())
}

func TestAnswerText(t *testing.T) {
	for _, c := range []struct {
		name          string
		terminal, dim bool
		prompt        string
		pieces        []string
		want          string
	}{
		{"piped", false, false, "", []string{"<thi", "nk>\na</think>\n\nb"}, "<think>\na</think>\n\nb"},
		{"piped, with control characters", false, false, "", []string{"\x1b[2J"}, "\x1b[2J"},
		{"no reasoning", true, true, "", []string{"a", "b"}, "ab\n"},
		{"ends with a line feed", true, true, "", []string{"a\n"}, "a\n"},
		{"dim", true, true, "", []string{"<thi", "nk>\na", "b</thi", "nk>\n", "\nc"}, DimOn + "ab" + DimOff + "\n\nc\n"},
		{"dim without an end", true, true, "<think>", []string{"a"}, DimOn + "a" + DimOff + "\n"},
		{"dim without an end after a line", true, true, "<think>", []string{"a\n", "b\n"}, DimOn + "a\nb" + DimOff + "\n"},
		{"dim without content", true, true, "<think>", []string{"a</think>\n"}, DimOn + "a" + DimOff + "\n"},
		{"no dim", true, false, "<think>\n", []string{"a", "</think>b"}, "<think>\na\n</think>\n\nb\n"},
		{"no dim, no end", true, false, "<think>\n", []string{"a"}, "<think>\na\n</think>\n"},
		{"empty reasoning", true, true, "<think>\n", []string{"</think>\n\nb"}, "b\n"},
		{"nothing", true, true, "", nil, ""},
		{"control characters", true, true, "<think>", []string{"\x1b[2J</think>\x07\x7f\u009b\t\n"}, DimOn + "␛[2J" + DimOff + "\n\n␇␡\uFFFD\t\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			a := split(&AnswerText{Plain: PlainText{Out: &out, Terminal: c.terminal}, Dim: c.dim}, c.prompt)
			for _, p := range c.pieces {
				if err := a.write(p); err != nil {
					t.Fatal(err)
				}
			}
			if err := a.end(); err != nil {
				t.Fatal(err)
			}
			if out.String() != c.want {
				t.Errorf("pieces %q show %q, want %q", c.pieces, out.String(), c.want)
			}
			thought, said := chat.SplitReasoning(c.prompt, strings.Join(c.pieces, ""))
			if a.Thought.String() != thought || a.Said.String() != said {
				t.Errorf("kept %q and %q, want %q and %q", a.Thought.String(), a.Said.String(), thought, said)
			}
		})
	}
}

// With --json nothing is shown, and the parts are kept.
func TestAnswerTextShowsNothing(t *testing.T) {
	a := split(&AnswerText{Plain: PlainText{Terminal: true}, Dim: true}, "")
	for _, p := range []string{"<think>a", "</think>b"} {
		if err := a.write(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.end(); err != nil || a.Thought.String() != "a" || a.Said.String() != "b" {
		t.Errorf("kept %q and %q, %v; want a and b", a.Thought.String(), a.Said.String(), err)
	}
}

// Errors of the stream come out of every path.
func TestAnswerTextFails(t *testing.T) {
	for _, pieces := range [][]string{{"a"}, {"<think>a"}, {"<think>a</think>b"}} {
		for after := range 4 {
			out := &failingAfter{left: after}
			a := split(&AnswerText{Plain: PlainText{Out: out, Terminal: true}, Dim: true}, "")
			var err error
			for _, p := range pieces {
				if e := a.write(p); err == nil {
					err = e
				}
			}
			if e := a.end(); err == nil {
				err = e
			}
			if out.failed != (err != nil) {
				t.Errorf("pieces %q, %d writes: failed %v, error %v", pieces, after, out.failed, err)
			}
		}
	}
}

// failingAfter lets some writes pass.
type failingAfter struct {
	left   int
	failed bool
}

func (f *failingAfter) Write(p []byte) (int, error) {
	if f.left == 0 {
		f.failed = true
		return 0, io.ErrShortWrite
	}
	f.left--
	return len(p), nil
}

// A call has a line of its own on a terminal, after what was said or thought.
func TestAnswerTextCalls(t *testing.T) {
	call := []moeflux.Event{
		{Call: &moeflux.CallPiece{Name: "cold", ID: "1"}}, {Call: &moeflux.CallPiece{Arguments: `{"city": `}},
		{Call: &moeflux.CallPiece{Arguments: "\"\x1b\"}"}}, {Call: &moeflux.CallPiece{Done: true}},
	}
	for before, want := range map[moeflux.Event]string{
		{Text: "I look."}:   "I look.\n",
		{Text: "I look.\n"}: "I look.\n",
		{}:                  "",
		{Reasoning: "Hm."}:  DimOn + "Hm." + DimOff + "\n\n",
	} {
		var out bytes.Buffer
		a := &AnswerText{Plain: PlainText{Out: &out, Terminal: true}, Dim: true}
		for _, e := range slices.Concat([]moeflux.Event{before}, call, call, []moeflux.Event{{Text: "So."}}) {
			if err := a.Write(&e); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.End(); err != nil {
			t.Fatal(err)
		}
		line := "call cold {\"city\": \"␛\"}\n"
		if want += line + line + "So.\n"; out.String() != want {
			t.Errorf("after %+v: %q, want %q", before, out.String(), want)
		}
	}
}
