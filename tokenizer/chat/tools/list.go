package tools

import "github.com/moeflux/moeflux-actor/tokenizer/chat"

// listForm is a JSON list of calls between tags:
//
//	<tool_calls>[{"name": "f", "arguments": {"x": 1}}, {"name": "g", "arguments": {}}]</tool_calls>
type listForm struct{}

const listCalls, listCallsEnd = "<tool_calls>", "</tool_calls>"

func (listForm) opens() []string { return []string{listCalls} }
func (listForm) marks() []string { return []string{listCalls, listCallsEnd} }
func (listForm) begin() state    { return readList }
func (listForm) lineFeeds() bool { return false }
func (listForm) stops() []stop {
	return []stop{{listCallsEnd, true, readAfter}, {listCalls, false, readText}}
}

// readList begins the list.
func readList(p *Parser) bool {
	return p.item("[", func() { p.take(1); p.state = readListFirst })
}

// readListFirst reads what follows the bracket.
func readListFirst(p *Parser) bool {
	if mark, _ := p.next("]"); mark != "" {
		p.take(1)
		p.state = readListEnd
		return true
	}
	return readListCall(p)
}

// readListCall begins a call of the list.
func readListCall(p *Parser) bool {
	return p.item("{", func() { p.beginHermes(readListDone) })
}

// item reads what must come, and calls next there.
func (p *Parser) item(must string, next func()) bool {
	mark, ok := p.next(must)
	switch {
	case !ok:
		return false
	case mark == "":
		return p.fail()
	}
	next()
	return true
}

// readListDone ends a call with its object.
func readListDone(p *Parser) bool {
	p.end(readListMore)
	return true
}

// readListMore reads what follows a call of the list. The calls before are whole even if the answer
// ends, or the bracket is missing.
func readListMore(p *Parser) bool {
	mark, ok := p.next(",", "]", listCallsEnd)
	switch {
	case !ok:
		return false
	case mark == ",":
		p.take(1)
		p.state = readListCall
	case mark == "]":
		p.take(1)
		p.state = readListEnd
	case mark != "" || p.buf == "":
		p.state = readListEnd
	default:
		return p.fail()
	}
	return true
}

// readListEnd reads the tag that ends the list. Models leave it out at the end of an answer.
func readListEnd(p *Parser) bool {
	mark, ok := p.next(listCallsEnd)
	if !ok {
		return false
	}
	p.take(len(mark))
	if len(p.unit) > 0 {
		p.emit(Event{Kind: Mark})
	}
	p.over(readAfter)
	return p.buf != ""
}

func (listForm) callRule(g *grammarMaker, f *chat.Function, number string) (string, error) {
	arguments, err := g.arguments(f, number)
	return literal("{\"name\": \""+f.Name()+"\", \"arguments\": ") + " " + arguments + " " + literal("}"), err
}

func (listForm) answerRule(many bool) string {
	return literal(listCalls+"[") + " " + repeated("call", many, `", "`) + " " + literal("]"+listCallsEnd)
}
