package converse

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/peterh/liner"
)

// LineReader reads what a person types.
type LineReader interface {
	// ReadLine returns one line without its end. It is io.EOF at the end of the input and
	// ErrLineDropped after Ctrl-C.
	ReadLine(ctx context.Context, prompt string) (string, error)
	Close() error
}

// ErrLineDropped reports that the person wants to begin again.
var ErrLineDropped = errors.New("the line was dropped")

// plainLines reads lines as they come, from a pipe or a terminal that can do no more.
type plainLines struct {
	in  *bufio.Reader
	out io.Writer // for prompts
}

// NewPlainLines reads lines from in and writes prompts to out.
func NewPlainLines(in io.Reader, out io.Writer) LineReader {
	return &plainLines{bufio.NewReader(in), out}
}

func (p *plainLines) ReadLine(ctx context.Context, prompt string) (string, error) {
	if _, err := io.WriteString(p.out, prompt); err != nil {
		return "", err
	}
	line, err := p.in.ReadString('\n')
	if err == io.EOF && line != "" {
		err = nil
	}
	return strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), err
}

func (p *plainLines) Close() error { return nil }

// lineEditor reads lines from the process's own terminal, which edits them and remembers those
// before. Of the small editors liner is the one that knows how wide characters are;
// golang.org/x/term takes all for one column, and garbles Chinese.
type lineEditor struct {
	state *liner.State
}

// NewLineEditor edits lines on the process's own terminal.
func NewLineEditor() (LineReader, error) {
	state := liner.NewLiner()
	state.SetCtrlCAborts(true)
	state.SetMultiLineMode(true) // long lines wrap
	return &lineEditor{state}, nil
}

// ReadLine returns when ctx ends, too; the terminal then is of no more use.
func (e *lineEditor) ReadLine(ctx context.Context, prompt string) (string, error) {
	type result struct {
		line string
		err  error
	}
	done := make(chan result, 1)
	before, _ := liner.TerminalMode()
	go func() {
		line, err := e.state.Prompt(prompt)
		done <- result{line, err}
	}()
	select {
	case <-ctx.Done():
		awaitMode(before)
		return "", context.Cause(ctx)
	case r := <-done:
		switch {
		case errors.Is(r.err, liner.ErrPromptAborted):
			return "", ErrLineDropped
		case r.err == io.EOF:
			return "", io.EOF
		case r.err != nil:
			return "", fmt.Errorf("reading the terminal: %w", r.err)
		}
		if strings.TrimSpace(r.line) != "" {
			e.state.AppendHistory(r.line)
		}
		return r.line, nil
	}
}

// awaitMode waits until the editor, in its goroutine, has changed the terminal from what it was: a
// change that came after Close would stay when the program is gone.
func awaitMode(before liner.ModeApplier) {
	for end := time.Now().Add(modeWithin); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if now, err := liner.TerminalMode(); err != nil || !reflect.DeepEqual(now, before) {
			return
		}
	}
}

// modeWithin is far more than a goroutine needs to begin. Only a terminal that sends no signals, so
// that there is nothing to change, is waited for so long.
const modeWithin = time.Second

func (e *lineEditor) Close() error { return e.state.Close() }

// block begins and ends a text of several lines.
const block = `"""`

// readMessage reads what a person has to say: a line, which goes on where it ends with a backslash,
// or everything between two """. typed is false for the latter, which is never a command.
func readMessage(ctx context.Context, lines LineReader, prompt, more string) (text string, typed bool, err error) {
	line, err := lines.ReadLine(ctx, prompt)
	if err != nil {
		return "", false, err
	}
	if rest, ok := strings.CutPrefix(line, block); ok {
		text, err = readBlock(ctx, lines, rest, more)
		return text, false, err
	}
	for strings.HasSuffix(line, `\`) {
		text += strings.TrimSuffix(line, `\`) + "\n"
		if line, err = lines.ReadLine(ctx, more); err != nil {
			return "", false, err
		}
	}
	return text + line, true, nil
}

// readBlock reads up to the closing """. Line feeds next to the marks are not part of the text.
func readBlock(ctx context.Context, lines LineReader, first, more string) (string, error) {
	text := first
	for !strings.HasSuffix(text, block) {
		line, err := lines.ReadLine(ctx, more)
		if err != nil {
			return "", err
		}
		text += "\n" + line
	}
	text = strings.TrimSuffix(text, block)
	return strings.TrimSuffix(strings.TrimPrefix(text, "\n"), "\n"), nil
}
