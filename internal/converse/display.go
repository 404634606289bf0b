package converse

import (
	"io"
	"strings"

	moeflux "github.com/moeflux/moeflux-actor"
)

// Display shows a text as its events come.
type Display interface {
	Write(e *moeflux.Event) error
	End() error
}

// PlainText shows a text as it is.
type PlainText struct {
	Out      io.Writer // nil shows nothing
	Terminal bool      // end with a line feed
	midLine  bool
}

// Write shows the text of an event.
func (p *PlainText) Write(e *moeflux.Event) error { return p.print(e.Text) }

func (p *PlainText) print(text string) error {
	if p.Out == nil || text == "" {
		return nil
	}
	p.midLine = !strings.HasSuffix(text, "\n")
	_, err := io.WriteString(p.Out, text)
	return err
}

// End ends the line on a terminal.
func (p *PlainText) End() error {
	if p.Out != nil && p.Terminal && p.midLine {
		return p.print("\n")
	}
	return nil
}

// The escape sequences for what is not the answer itself.
const (
	DimOn  = "\x1b[2m"
	DimOff = "\x1b[22m"
)

// AnswerText shows an answer and tells its reasoning from its content. On a terminal reasoning is
// dim, or between its marks where nothing can be dim, and control characters are shown and not
// obeyed. Elsewhere the text goes out as the model wrote it.
type AnswerText struct {
	Plain PlainText // of a terminal or not; nowhere with --json
	Dim   bool      // the terminal can, and the user has not said no

	Thought, Said strings.Builder
	open          bool // within reasoning on the terminal
}

// End ends the answer.
func (a *AnswerText) End() error {
	if a.open {
		if err := a.close(""); err != nil {
			return err
		}
	}
	return a.Plain.End()
}

// Write writes the parts of a text, or the text itself where nobody sees it as it comes.
func (a *AnswerText) Write(e *moeflux.Event) error {
	a.Thought.WriteString(e.Reasoning)
	a.Said.WriteString(e.Text)
	if !a.Plain.Terminal {
		return a.Plain.print(e.Raw)
	}
	if e.Reasoning != "" {
		if err := a.Plain.print(a.begin() + Visible(e.Reasoning)); err != nil {
			return err
		}
	}
	if e.Text != "" {
		if err := a.say(e.Text); err != nil {
			return err
		}
	}
	return a.call(e.Call)
}

// call shows a piece of a call, which has a line of its own.
func (a *AnswerText) call(c *moeflux.CallPiece) error {
	switch {
	case c == nil:
		return nil
	case c.Name != "":
		before := ""
		if a.Plain.midLine && !a.open {
			before = "\n"
		}
		return a.say(before + "call " + c.Name + " ")
	case c.Done:
		return a.say("\n")
	}
	return a.say(c.Arguments)
}

// say shows text that is no reasoning.
func (a *AnswerText) say(text string) error {
	if a.open {
		if err := a.close("\n\n"); err != nil {
			return err
		}
	}
	return a.Plain.print(Visible(text))
}

// begin returns what goes before reasoning.
func (a *AnswerText) begin() string {
	if a.open {
		return ""
	}
	a.open = true
	if a.Dim {
		return DimOn
	}
	return "<think>\n"
}

// close ends the reasoning on the terminal.
func (a *AnswerText) close(after string) error {
	a.open = false
	mark := "\n</think>"
	if a.Dim {
		mark = DimOff
	}
	if a.Plain.Out == nil {
		return nil
	}
	midLine := a.Plain.midLine || !a.Dim
	err := a.Plain.print(mark + after)
	if after == "" {
		a.Plain.midLine = midLine
	}
	return err
}

// Visible shows control characters but line feeds and tabs as their pictures: a model shall not
// steer the terminal.
func Visible(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < 0x20:
			return r + 0x2400
		case r == 0x7f:
			return 0x2421
		case r >= 0x80 && r < 0xa0:
			return 0xfffd
		}
		return r
	}, text)
}
