package tools

import (
	"strconv"
	"strings"

	"github.com/moeflux/moeflux-actor/tokenizer/chat"
)

// Options are what a Parser needs beside the syntax.
type Options struct {
	// Prompt is what the answer answers, as text: it may have opened the reasoning. Its end is
	// enough.
	Prompt string
	// Tools are the functions that the model may call. Their schemas give the arguments a type
	// where the form has none; whether a called function exists is not checked.
	Tools []*chat.Function
	// NewID makes the ID of a call, unless the model wrote one. Nil gives call_0, call_1, and so
	// on, which are unique in one answer only.
	NewID func(index int) string
	// NoCalls means that there are none: what looks like one is text.
	NoCalls bool
}

// Parser reads one answer. It is for one goroutine.
type Parser struct {
	form    form
	options Options
	types   map[string]paramTypes // of functions

	reasoning *chat.Reasoning
	early     string // may begin the mark that ends the reasoning early

	buf   string // of the content, not read yet
	final bool   // no more comes
	state state

	unit   []byte // read, in no event yet
	call   []byte // read of the call so far
	index  int    // of the call, or of the next one
	begun  bool   // the call has started
	events []Event

	json   jsonScan
	hermes hermesCall
	marked markedCall
	after  state // the arguments
	xml    xmlCall

	harmony harmonyText
}

// state reads something and reports true, or reports false if it needs more than there is. Once the
// text is final, it must come to an end.
type state func(p *Parser) bool

// form is how calls are written.
type form interface {
	// opens are the marks that begin calls.
	opens() []string
	// marks are all that the form writes around calls and their parts.
	marks() []string
	// begin is the state after one of them.
	begin() state
	// lineFeeds reports whether line feeds next to calls are part of the marks.
	lineFeeds() bool
	// stops are the marks at which reading goes on after a malformed call.
	stops() []stop
	// callRule returns, in GBNF, how a call of a function is written; number tells functions apart.
	callRule(g *grammarMaker, f *chat.Function, number string) (string, error)
	// answerRule returns how an answer of one "call", or of many, is written.
	answerRule(many bool) string
}

// framing is a form of the whole answer, not only of calls.
type framing interface {
	form
	// first is the state at the beginning of an answer.
	first(p *Parser) state
}

// stop is a mark that ends a malformed call.
type stop struct {
	mark  string
	past  bool // the mark belongs to the call
	state state
}

// New returns a Parser at the beginning of an answer.
func New(s Syntax, o Options) *Parser {
	p := &Parser{form: forms[s.Calls], options: o, reasoning: s.Reasoning.NewReasoning(o.Prompt), state: readText}
	switch f, framed := p.form.(framing); {
	case framed:
		p.state = f.first(p)
	case o.NoCalls:
		p.form = nil
	}
	if p.options.NewID == nil {
		p.options.NewID = func(i int) string { return "call_" + strconv.Itoa(i) }
	}
	return p
}

// Feed takes the next piece of the answer and returns what is certain now.
func (p *Parser) Feed(text string) []Event {
	if p.leavesEarly() && (p.early != "" || !p.reasoning.Over()) {
		text = p.feedEarly(text)
	}
	p.pieces(p.reasoning.Feed(text))
	return p.takeEvents()
}

// End ends the answer and returns what was held back.
func (p *Parser) End() []Event {
	p.pieces(p.reasoning.Feed(p.early))
	p.early = ""
	p.pieces(p.reasoning.End())
	p.final = true
	p.read()
	return p.takeEvents()
}

// Parse reads a whole answer.
func Parse(s Syntax, o Options, answer string) []Event {
	p := New(s, o)
	return append(p.Feed(answer), p.End()...)
}

func (p *Parser) takeEvents() []Event {
	out := p.events
	p.events = nil
	return out
}

// leavesEarly reports whether a call ends the reasoning without the reasoning's own mark. A mark
// that is a token of its own cannot be what the model only thinks of.
func (p *Parser) leavesEarly() bool {
	m, ok := p.form.(*markedForm)
	return ok && m.leaves
}

// feedEarly takes text while the answer may be within its reasoning, and returns what follows a
// mark that ends it early.
func (p *Parser) feedEarly(text string) string {
	text = p.early + text
	mark := p.form.opens()[0]
	at := strings.Index(text, mark)
	if at < 0 {
		keep := overlap(text, mark)
		p.early = text[len(text)-keep:]
		return text[:len(text)-keep]
	}
	p.early = ""
	p.pieces(p.reasoning.Feed(text[:at]))
	if p.reasoning.Open() {
		p.pieces(p.reasoning.Leave())
	}
	return text[at:]
}

// pieces takes what is told apart as reasoning and content.
func (p *Parser) pieces(pieces []chat.Piece) {
	for _, piece := range pieces {
		switch piece.Kind {
		case chat.Thought:
			p.events = append(p.events, Event{Kind: Reasoning, Text: piece.Text, Raw: piece.Text})
		case chat.Mark:
			p.events = append(p.events, Event{Kind: Mark, Raw: piece.Text})
		case chat.Said:
			p.buf += piece.Text
			p.read()
		}
	}
}

func (p *Parser) read() {
	for p.state(p) {
	}
}

// take reads n bytes.
func (p *Parser) take(n int) string {
	text := p.buf[:n]
	p.buf = p.buf[n:]
	p.unit = append(p.unit, text...)
	p.call = append(p.call, text...)
	return text
}

// emit gives out an event for what was read since the last one.
func (p *Parser) emit(e Event) {
	e.Raw = string(p.unit)
	p.unit = p.unit[:0]
	p.events = append(p.events, e)
}

// plain gives out n bytes outside of calls.
func (p *Parser) plain(kind Kind, n int) {
	if n == 0 {
		return
	}
	text := p.take(n)
	p.call = p.call[:0]
	if kind == Mark {
		text = ""
	}
	p.emit(Event{Kind: kind, Text: text})
}

// readText reads content up to a call.
func readText(p *Parser) bool {
	if p.form == nil {
		p.plain(Text, len(p.buf))
		return false
	}
	at, mark := find(p.buf, p.form.opens())
	end := at
	if at < 0 {
		end = len(p.buf)
		if !p.final {
			end -= overlaps(p.buf, p.form.opens())
		}
	}
	if p.form.lineFeeds() && (at >= 0 || !p.final) {
		end = len(strings.TrimRight(p.buf[:end], "\n"))
	}
	p.plain(Text, end)
	if at < 0 {
		return false
	}
	p.take(at - end + len(mark))
	p.state = p.form.begin()
	return true
}

// readAfter drops the line feeds after calls.
func readAfter(p *Parser) bool {
	if p.form.lineFeeds() {
		p.plain(Mark, len(p.buf)-len(strings.TrimLeft(p.buf, "\n")))
	}
	if p.buf == "" {
		return false
	}
	p.state = readText
	return true
}

// start begins the call. id may be empty.
func (p *Parser) start(id, name string) {
	if id == "" {
		id = p.options.NewID(p.index)
	}
	p.begun = true
	p.emit(Event{Kind: CallStart, Index: p.index, ID: id, Name: name})
}

// arguments gives out a piece of the call's arguments.
func (p *Parser) arguments(text string) {
	if text != "" {
		p.emit(Event{Kind: CallArguments, Index: p.index, Text: text})
	}
}

// end ends the call, and next is read after it.
func (p *Parser) end(next state) {
	p.emit(Event{Kind: CallEnd, Index: p.index})
	p.over(next)
}

func (p *Parser) over(next state) {
	if p.begun {
		p.index++
	}
	p.begun, p.call, p.state = false, p.call[:0], next
}

// fail goes over to the end of a malformed call. It returns true, for states to return.
func (p *Parser) fail() bool {
	p.state = readBroken
	return true
}

// readBroken reads to where a malformed call ends.
func readBroken(p *Parser) bool {
	stops := p.form.stops()
	best, at := -1, len(p.buf)
	for i, s := range stops {
		if j := strings.Index(p.buf, s.mark); j >= 0 && (j < at || j == at && best < 0) {
			best, at = i, j
		}
	}
	if best < 0 && !p.final {
		return false
	}
	next := state(readText)
	if best >= 0 {
		next = stops[best].state
		if stops[best].past {
			at += len(stops[best].mark)
		}
	}
	p.take(at)
	index := -1
	if p.begun {
		index = p.index
	}
	if len(p.call) > 0 {
		p.emit(Event{Kind: Malformed, Index: index, Text: string(p.call)})
	}
	p.over(next)
	return len(p.buf) > 0
}
