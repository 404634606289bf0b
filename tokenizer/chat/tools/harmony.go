package tools

import (
	"regexp"
	"strings"

	"github.com/moeflux/moeflux-actor/tokenizer/chat"
)

// harmonyForm is that of gpt-oss. It frames the whole answer: what is thought, said and called are
// messages of their own, whose heads name a channel, and of calls the function. The prompt has
// begun the first.
//
//	<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>So.<|return|>
//	<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{"x": 1}<|call|>
//
// The function may stand before the channel. What the channel commentary says to nobody is for the
// user. A text without a head is said.
type harmonyForm struct{}

const (
	harmonyStart, harmonyChannel, harmonyMessage  = "<|start|>", "<|channel|>", "<|message|>"
	harmonyEnd, harmonyCall, harmonyReturn        = "<|end|>", "<|call|>", "<|return|>"
	harmonyConstrain, harmonyTo, harmonyFunctions = "<|constrain|>", " to=", "functions."
)

// What a head says.
var (
	harmonyRecipient = regexp.MustCompile(`\bto=([^\s<]+)`)
	harmonyNamed     = regexp.MustCompile(`<\|channel\|>\s*(\w+)`)
)

func (harmonyForm) opens() []string { return []string{harmonyTo + harmonyFunctions} }
func (harmonyForm) marks() []string {
	return []string{harmonyStart, harmonyChannel, harmonyMessage, harmonyEnd, harmonyCall, harmonyReturn, harmonyConstrain}
}
func (harmonyForm) begin() state    { return readHarmonyHead }
func (harmonyForm) lineFeeds() bool { return false }
func (harmonyForm) stops() []stop {
	return []stop{{harmonyCall, true, readHarmonyHead}, {harmonyEnd, true, readHarmonyHead}, {harmonyReturn, true, readHarmonyHead},
		{harmonyStart, false, readHarmonyHead}}
}

// first returns the state at the beginning of an answer. Where the prompt has ended within a
// message, the answer goes on with it.
func (harmonyForm) first(p *Parser) state {
	_, last, _ := cutLast(p.options.Prompt, harmonyStart)
	head, body, open := strings.Cut(last, harmonyMessage)
	if at, _ := find(body, []string{harmonyEnd, harmonyCall, harmonyReturn}); !open || at >= 0 || harmonyRecipient.MatchString(head) {
		return readHarmonyHead
	}
	p.harmony.begin(head)
	return readHarmonyBody
}

// cutLast cuts text at the last sep.
func cutLast(text, sep string) (before, after string, found bool) {
	if at := strings.LastIndex(text, sep); at >= 0 {
		return text[:at], text[at+len(sep):], true
	}
	return text, "", false
}

// harmonyText is the message that is read, if it is no call.
type harmonyText struct {
	kind Kind
	told [Reasoning + 1]bool // messages of a kind that have begun
}

// begin takes the head of a message. It reports whether one of its kind was before it.
func (h *harmonyText) begin(head string) (further bool) {
	h.kind = Text
	if m := harmonyNamed.FindStringSubmatch(head); m != nil && m[1] == "analysis" {
		h.kind = Reasoning
	}
	further = h.told[h.kind]
	h.told[h.kind] = true
	return further
}

// readHarmonyHead reads what is before a message.
func readHarmonyHead(p *Parser) bool {
	mark, ok := p.here(harmonyChannel, harmonyStart, harmonyTo, harmonyMessage)
	switch {
	case p.buf == "" || !ok:
		return false
	case mark == "": // no head
		p.harmony.begin("")
		p.state = readHarmonyBody
		return true
	}
	at, end := find(p.buf, []string{harmonyMessage, harmonyEnd, harmonyCall, harmonyReturn})
	switch {
	case at < 0 && !p.final:
		return false
	case end != harmonyMessage:
		p.take(len(mark)) // at which reading would stop
		return p.fail()
	}
	head, n := p.buf[:at], at+len(end)
	if to := harmonyRecipient.FindStringSubmatch(head); to != nil && !p.options.NoCalls {
		p.take(n)
		p.marked = markedCall{name: strings.TrimPrefix(to[1], harmonyFunctions)}
		p.state = readHarmonyArguments
		return true
	}
	p.beginText(head, n)
	return true
}

// beginText begins a message that is no call, whose head is n bytes. It is set apart from one of
// the same kind before it.
func (p *Parser) beginText(head string, n int) {
	p.state = readHarmonyBody
	if !p.harmony.begin(head) {
		p.plain(Mark, n)
		return
	}
	p.take(n)
	p.call = p.call[:0]
	p.emit(Event{Kind: p.harmony.kind, Text: "\n\n"})
}

// readHarmonyBody reads a message that is no call.
func readHarmonyBody(p *Parser) bool {
	ends := []string{harmonyEnd, harmonyReturn, harmonyCall, harmonyStart}
	at, mark := find(p.buf, ends)
	if at < 0 {
		n := len(p.buf)
		if !p.final {
			n -= overlaps(p.buf, ends)
		}
		p.plain(p.harmony.kind, n)
		return false
	}
	p.plain(p.harmony.kind, at)
	if mark != harmonyStart {
		p.plain(Mark, len(mark))
	}
	p.state = readHarmonyHead
	return true
}

// readHarmonyArguments begins the object of a call.
func readHarmonyArguments(p *Parser) bool {
	mark, ok := p.next("{", harmonyCall)
	switch {
	case !ok || p.buf == "" && !p.final:
		return false
	case mark == "{":
		p.beginJSON(readHarmonyEnd)
	case mark == harmonyCall: // nothing for no arguments
		p.start("", p.marked.name)
		p.arguments("{}")
		p.state = readHarmonyEnd
	default:
		p.fail()
	}
	return true
}

// readHarmonyEnd ends a call. Its mark ends the turn, so that answers come without it.
func readHarmonyEnd(p *Parser) bool {
	mark, ok := p.next(harmonyCall, harmonyEnd, harmonyReturn, harmonyStart)
	switch {
	case !ok:
		return false
	case mark == "" && p.buf != "":
		return p.fail()
	case mark != harmonyStart:
		p.take(len(mark))
	}
	p.end(readHarmonyHead)
	return true
}

func (harmonyForm) callRule(g *grammarMaker, f *chat.Function, number string) (string, error) {
	arguments, err := g.arguments(f, number)
	to, channel := harmonyTo+harmonyFunctions+f.Name(), harmonyChannel+"commentary"
	head := "(" + literal(channel+to) + " | " + literal(to+channel) + ") " + literal(" ") + " " + literal(harmonyConstrain) + "? " + literal("json"+harmonyMessage)
	return head + " " + arguments, err
}

// answerRule is one call, since a call ends the turn.
func (harmonyForm) answerRule(bool) string { return "call" }
