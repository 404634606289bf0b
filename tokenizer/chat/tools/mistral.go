package tools

import (
	"strings"

	"github.com/moeflux/moeflux-actor/tokenizer/chat"
)

// mistralForm is a name and an object behind marks, which nothing ends but the object:
//
//	[TOOL_CALLS]NAME[ARGS]{"x": 1}[TOOL_CALLS]NAME[ARGS]{}
type mistralForm struct{}

const mistralCall, mistralArguments = "[TOOL_CALLS]", "[ARGS]"

func (mistralForm) opens() []string { return []string{mistralCall} }
func (mistralForm) marks() []string { return []string{mistralCall, mistralArguments} }
func (mistralForm) begin() state    { return readMistral }
func (mistralForm) lineFeeds() bool { return false }
func (mistralForm) stops() []stop   { return []stop{{mistralCall, false, readText}} }

// readMistral reads the name of a call.
func readMistral(p *Parser) bool {
	at, mark := find(p.buf, []string{mistralArguments, mistralCall})
	if at < 0 {
		return p.final && p.fail()
	}
	name := strings.TrimSpace(p.buf[:at])
	if mark != mistralArguments || name == "" || strings.ContainsAny(name, "[]{}\"\n") {
		return p.fail()
	}
	p.take(at + len(mark))
	p.marked = markedCall{name: name}
	p.state = readMistralArguments
	return true
}

// readMistralArguments begins the object of a call.
func readMistralArguments(p *Parser) bool {
	mark, ok := p.next("{")
	if !ok {
		return false
	}
	if mark == "" {
		return p.fail()
	}
	p.beginJSON(readMistralEnd)
	return true
}

// readMistralEnd ends the call with its object.
func readMistralEnd(p *Parser) bool {
	p.end(readAfter)
	return true
}

func (mistralForm) callRule(g *grammarMaker, f *chat.Function, number string) (string, error) {
	arguments, err := g.arguments(f, number)
	return literal(mistralCall+f.Name()+mistralArguments) + " " + arguments, err
}

func (mistralForm) answerRule(many bool) string { return repeated("call", many, "") }
