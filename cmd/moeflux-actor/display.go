package main

import (
	"io"
	"strings"

	moeflux "github.com/moeflux/moeflux-actor"
)

// display shows a text as its events come.
type display interface {
	write(e *moeflux.Event) error
	end() error
}

// plainText shows a text as it is.
type plainText struct {
	out      io.Writer // nil shows nothing
	terminal bool      // end with a line feed
	midLine  bool
}

func (p *plainText) write(e *moeflux.Event) error { return p.print(e.Text) }

func (p *plainText) print(text string) error {
	if p.out == nil || text == "" {
		return nil
	}
	p.midLine = !strings.HasSuffix(text, "\n")
	_, err := io.WriteString(p.out, text)
	return err
}

func (p *plainText) end() error {
	if p.out != nil && p.terminal && p.midLine {
		return p.print("\n")
	}
	return nil
}

// The escape sequences for what is not the answer itself.
const (
	dimOn  = "\x1b[2m"
	dimOff = "\x1b[22m"
)

// answerText shows an answer and tells its reasoning from its content. On a terminal reasoning is
// dim, or between its marks where nothing can be dim, and control characters are shown and not
// obeyed. Elsewhere the text goes out as the model wrote it.
type answerText struct {
	plain plainText // of a terminal or not; nowhere with --json
	dim   bool      // the terminal can, and the user has not said no

	thought, said strings.Builder
	open          bool // within reasoning on the terminal
}

func (a *answerText) end() error {
	if a.open {
		if err := a.close(""); err != nil {
			return err
		}
	}
	return a.plain.end()
}

// write writes the parts of a text, or the text itself where nobody sees it as it comes.
func (a *answerText) write(e *moeflux.Event) error {
	a.thought.WriteString(e.Reasoning)
	a.said.WriteString(e.Text)
	if !a.plain.terminal {
		return a.plain.print(e.Raw)
	}
	if e.Reasoning != "" {
		if err := a.plain.print(a.begin() + visible(e.Reasoning)); err != nil {
			return err
		}
	}
	if e.Text == "" {
		return nil
	}
	if a.open {
		if err := a.close("\n\n"); err != nil {
			return err
		}
	}
	return a.plain.print(visible(e.Text))
}

// begin returns what goes before reasoning.
func (a *answerText) begin() string {
	if a.open {
		return ""
	}
	a.open = true
	if a.dim {
		return dimOn
	}
	return "<think>\n"
}

// close ends the reasoning on the terminal.
func (a *answerText) close(after string) error {
	a.open = false
	mark := "\n</think>"
	if a.dim {
		mark = dimOff
	}
	if a.plain.out == nil {
		return nil
	}
	midLine := a.plain.midLine || !a.dim
	err := a.plain.print(mark + after)
	if after == "" {
		a.plain.midLine = midLine
	}
	return err
}

// visible shows control characters but line feeds and tabs as their pictures: a model shall not
// steer the terminal.
func visible(text string) string {
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
