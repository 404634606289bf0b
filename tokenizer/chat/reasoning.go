package chat

import "strings"

// Marks are what a model writes around its reasoning.
type Marks struct {
	Begin, End string
	// Answer and AnswerEnd are around the content; most models have no such marks.
	Answer, AnswerEnd string
}

// Think are the marks of most models.
var Think = Marks{Begin: "<think>", End: "</think>"}

// Reasoning tells the reasoning of an answer from its content, as the text comes in pieces. An
// answer reasons if it begins with the mark, after white space perhaps, or if the prompt ended with
// it; the second mark ends the reasoning. The content may begin with a mark of its own, and then
// ends with another. The marks are in neither part, nor are line feeds next to them. Marks further
// on in the content are text. It is for one goroutine.
type Reasoning struct {
	marks Marks
	state reasoningState
	held  string // not decided yet
	out   []Piece
}

// Piece is a piece of an answer. The pieces of an answer are the answer, to the byte.
type Piece struct {
	Kind PieceKind
	Text string
}

// PieceKind says what a Piece is.
type PieceKind int

// The kinds of pieces.
const (
	Said    PieceKind = iota // content
	Thought                  // reasoning
	Mark                     // the marks, and white space next to them
)

type reasoningState int

const (
	undecided       reasoningState = iota // white space so far, or the beginning of the mark
	reasoningBegins                       // after the mark: line feeds are dropped
	reasoning                             // held ends with line feeds or the beginning of the mark
	contentBegins                         // after the mark: line feeds are dropped, and the mark of the answer
	answerBegins                          // after that: line feeds are dropped
	answer                                // held ends with line feeds or the beginning of the mark
	answerOver                            // after the mark: line feeds are dropped
	content                               // nothing is held
)

// NewReasoning returns a Reasoning of the common marks; see Marks.NewReasoning.
func NewReasoning(prompt string) *Reasoning { return Think.NewReasoning(prompt) }

// NewReasoning returns a Reasoning at the beginning of the answer to a prompt, which may have
// opened the reasoning already. Without marks everything is content.
func (m Marks) NewReasoning(prompt string) *Reasoning {
	switch {
	case m.Begin == "" || m.End == "":
		return &Reasoning{state: content}
	case strings.HasSuffix(strings.TrimSpace(prompt), m.Begin):
		return &Reasoning{marks: m, state: reasoningBegins}
	}
	return &Reasoning{marks: m}
}

// Feed adds text of the answer and returns the pieces that are certain now.
func (r *Reasoning) Feed(text string) []Piece {
	r.held += text
	if r.state == undecided {
		r.decide()
	}
	r.dropLineFeeds(reasoningBegins, reasoning)
	if r.state == reasoning {
		r.reason()
	}
	if r.state == contentBegins {
		r.begin()
	}
	r.dropLineFeeds(answerBegins, answer)
	if r.state == answer {
		r.answer()
	}
	r.dropLineFeeds(answerOver, content)
	if r.state == content {
		r.emit(Said, len(r.held))
	}
	return r.take()
}

// End ends the answer and returns what was held back.
func (r *Reasoning) End() []Piece {
	switch r.state {
	case reasoning:
		r.emit(Thought, len(strings.TrimRight(r.held, "\n")))
	case undecided, answer:
		r.emit(Said, len(r.held))
	case contentBegins:
		r.emit(Mark, len(r.held)-len(strings.TrimLeft(r.held, "\n")))
		r.emit(Said, len(r.held)) // began like a mark
	}
	r.emit(Mark, len(r.held))
	return r.take()
}

// Leave ends the reasoning where it stands, as if the mark had come: some models go over to calling
// functions without it. It returns what was held back.
func (r *Reasoning) Leave() []Piece {
	out := r.End()
	r.state = content
	return out
}

func (r *Reasoning) take() []Piece {
	out := r.out
	r.out = nil
	return out
}

// emit moves the first n held bytes to the output.
func (r *Reasoning) emit(kind PieceKind, n int) {
	if n == 0 {
		return
	}
	r.out = append(r.out, Piece{kind, r.held[:n]})
	r.held = r.held[n:]
}

// decide looks whether the answer begins with reasoning.
func (r *Reasoning) decide() {
	text := strings.TrimLeft(r.held, " \t\r\n")
	switch {
	case strings.HasPrefix(text, r.marks.Begin):
		r.emit(Mark, len(r.held)-len(text)+len(r.marks.Begin))
		r.state = reasoningBegins
	case r.answers(text):
		r.emit(Mark, len(r.held)-len(text)+len(r.marks.Answer))
		r.state = answerBegins
	case !strings.HasPrefix(r.marks.Begin, text) && !strings.HasPrefix(r.marks.Answer, text):
		r.state = content
	}
}

// answers reports whether a text begins with the mark of the content.
func (r *Reasoning) answers(text string) bool {
	return r.marks.Answer != "" && strings.HasPrefix(text, r.marks.Answer)
}

// begin drops line feeds, and looks whether the content begins with its mark.
func (r *Reasoning) begin() {
	r.emit(Mark, len(r.held)-len(strings.TrimLeft(r.held, "\n")))
	switch {
	case r.answers(r.held):
		r.emit(Mark, len(r.marks.Answer))
		r.state = answerBegins
	case r.held != "" && !strings.HasPrefix(r.marks.Answer, r.held):
		r.state = content
	}
}

// answer gives out the content that is certain and moves on at its end.
func (r *Reasoning) answer() {
	if r.until(Said, r.marks.AnswerEnd) {
		r.state = answerOver
	}
}

// dropLineFeeds goes from one state to the other once something else than a line feed is there.
func (r *Reasoning) dropLineFeeds(from, to reasoningState) {
	if r.state != from {
		return
	}
	r.emit(Mark, len(r.held)-len(strings.TrimLeft(r.held, "\n")))
	if r.held != "" {
		r.state = to
	}
}

// reason gives out the reasoning that is certain and moves on at its end.
func (r *Reasoning) reason() {
	if r.until(Thought, r.marks.End) {
		r.state = contentBegins
	}
}

// until gives out what is certain to come before the mark, and reports whether the mark has come.
func (r *Reasoning) until(kind PieceKind, mark string) bool {
	end := strings.Index(r.held, mark)
	ended := end >= 0
	if !ended {
		end = len(r.held) - overlap(r.held, mark)
	}
	r.emit(kind, len(strings.TrimRight(r.held[:end], "\n")))
	if ended {
		r.emit(Mark, strings.Index(r.held, mark)+len(mark))
	}
	return ended
}

// overlap returns the length of the longest end of text with which mark begins, but is not whole.
func overlap(text, mark string) int {
	for n := min(len(mark)-1, len(text)); n > 0; n-- {
		if strings.HasSuffix(text, mark[:n]) {
			return n
		}
	}
	return 0
}

// Open reports whether the answer is within its reasoning.
func (r *Reasoning) Open() bool { return r.state == reasoningBegins || r.state == reasoning }

// Over reports whether all that comes is content.
func (r *Reasoning) Over() bool { return r.state == content }

// Push adds text of the answer and returns what is certain now; either part may be empty. Reasoning
// comes first.
func (r *Reasoning) Push(text string) (thought, said string) { return sum(r.Feed(text)) }

// Flush ends the answer and returns what was held back.
func (r *Reasoning) Flush() (thought, said string) { return sum(r.End()) }

func sum(pieces []Piece) (thought, said string) {
	for _, p := range pieces {
		switch p.Kind {
		case Thought:
			thought += p.Text
		case Said:
			said += p.Text
		}
	}
	return thought, said
}

// SplitReasoning tells the reasoning of a whole answer from its content; see Reasoning.
func SplitReasoning(prompt, answer string) (thought, said string) {
	r := NewReasoning(prompt)
	thought, said = r.Push(answer)
	moreThought, moreSaid := r.Flush()
	return thought + moreThought, said + moreSaid
}
