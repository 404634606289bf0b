package chat

import "strings"

// The marks around the reasoning of an answer.
const (
	beginReasoning = "<think>"
	endReasoning   = "</think>"
)

// Reasoning tells the reasoning of an answer from its content, as the text comes in pieces. An
// answer reasons if it begins with <think>, after white space perhaps, or if the prompt ended with
// it; </think> ends the reasoning. The marks are in neither part, nor are line feeds next to them.
// Marks further on in the content are text. It is for one goroutine.
type Reasoning struct {
	state reasoningState
	held  string // not decided yet
}

type reasoningState int

const (
	undecided       reasoningState = iota // white space so far, or the beginning of the mark
	reasoningBegins                       // after the mark: line feeds are dropped
	reasoning                             // held ends with line feeds or the beginning of the mark
	contentBegins                         // after the mark: line feeds are dropped
	content                               // nothing is held
)

// NewReasoning returns a Reasoning at the beginning of the answer to a prompt, which may have
// opened the reasoning already.
func NewReasoning(prompt string) *Reasoning {
	if strings.HasSuffix(strings.TrimSpace(prompt), beginReasoning) {
		return &Reasoning{state: reasoningBegins}
	}
	return &Reasoning{}
}

// Push adds text of the answer and returns what is certain now; either part may be empty. Reasoning
// comes first.
func (r *Reasoning) Push(text string) (thought, said string) {
	r.held += text
	if r.state == undecided {
		r.decide()
	}
	thought = r.pushReasoning()
	if r.state == contentBegins {
		if r.held = strings.TrimLeft(r.held, "\n"); r.held != "" {
			r.state = content
		}
	}
	if r.state == content {
		said, r.held = r.held, ""
	}
	return thought, said
}

// decide looks whether the answer begins with reasoning.
func (r *Reasoning) decide() {
	text := strings.TrimLeft(r.held, " \t\r\n")
	switch rest, marked := strings.CutPrefix(text, beginReasoning); {
	case marked:
		r.state, r.held = reasoningBegins, rest
	case !strings.HasPrefix(beginReasoning, text):
		r.state = content
	}
}

// pushReasoning returns the reasoning that is certain and moves on at its end.
func (r *Reasoning) pushReasoning() string {
	if r.state == reasoningBegins {
		if r.held = strings.TrimLeft(r.held, "\n"); r.held != "" {
			r.state = reasoning
		}
	}
	if r.state != reasoning {
		return ""
	}
	thought, rest, ended := strings.Cut(r.held, endReasoning)
	if ended {
		r.state, r.held = contentBegins, rest
		return strings.TrimRight(thought, "\n")
	}
	open := 0
	for n := min(len(endReasoning)-1, len(r.held)); n > 0 && open == 0; n-- {
		if strings.HasSuffix(r.held, endReasoning[:n]) {
			open = n
		}
	}
	thought = strings.TrimRight(r.held[:len(r.held)-open], "\n")
	r.held = r.held[len(thought):]
	return thought
}

// Open reports whether the answer is within its reasoning.
func (r *Reasoning) Open() bool { return r.state == reasoningBegins || r.state == reasoning }

// Flush ends the answer and returns what was held back.
func (r *Reasoning) Flush() (thought, said string) {
	rest := r.held
	r.held = ""
	switch r.state {
	case reasoning:
		return strings.TrimRight(rest, "\n"), ""
	case undecided:
		return "", rest
	}
	return "", ""
}

// SplitReasoning tells the reasoning of a whole answer from its content; see Reasoning.
func SplitReasoning(prompt, answer string) (thought, said string) {
	r := NewReasoning(prompt)
	thought, said = r.Push(answer)
	moreThought, moreSaid := r.Flush()
	return thought + moreThought, said + moreSaid
}
