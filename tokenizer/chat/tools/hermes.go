package tools

import (
	"encoding/json"
	"strings"
)

// hermesForm is a JSON object with name and arguments between tags:
//
//	<tool_call>
//	{"name": "f", "arguments": {"x": 1}}
//	</tool_call>
type hermesForm struct{}

const toolCall, toolCallEnd = "<tool_call>", "</tool_call>"

func (hermesForm) opens() []string { return []string{toolCall} }
func (hermesForm) marks() []string { return []string{toolCall, toolCallEnd} }
func (hermesForm) begin() state    { return readHermes }
func (hermesForm) lineFeeds() bool { return true }
func (hermesForm) stops() []stop {
	return []stop{{toolCallEnd, true, readAfter}, {toolCall, false, readText}}
}

// hermesCall is what is known of the object of a call.
type hermesCall struct {
	then      state // after the object
	name, key string
	place     hermesPlace
	text      []byte // of the string or the value that is being kept
	late      string // arguments that came before the name
	given     bool   // arguments have come
}

// hermesPlace is where in the object reading is.
type hermesPlace int

const (
	hermesElsewhere hermesPlace = iota
	hermesKey                   // in a key of the object
	hermesName                  // in the value of name
	hermesHeld                  // in arguments that cannot be given out yet
	hermesGiven                 // in arguments that are given out as they come
)

// readHermes begins a call.
func readHermes(p *Parser) bool { return p.beginHermes(readHermesEnd) }

// beginHermes begins to read the object of a call; then is read after it. It returns true, for
// states to return.
func (p *Parser) beginHermes(then state) bool {
	p.hermes = hermesCall{then: then}
	p.json.reset()
	p.state = readHermesObject
	return true
}

// readHermesObject reads the object of a call byte by byte.
func readHermesObject(p *Parser) bool {
	h := &p.hermes
	for p.buf != "" {
		c := p.buf[0]
		before, depth, number := p.json.state, len(p.json.stack), p.json.number()
		outside := depth == 0 && c != '{' && !strings.ContainsRune(space, rune(c))
		if outside || !p.json.step(c) {
			p.hermesGive()
			return p.fail()
		}
		ok := true
		switch {
		case depth == 1 && before == jsonValue && p.json.state != jsonValue:
			ok = p.hermesValue(c)
		case number && depth == 1 && !p.json.number():
			ok = p.hermesEnd() // c is behind the number
		case depth == 1 && (before == jsonKey || before == jsonKeyOrEnd) && p.json.state == jsonString:
			h.place, h.text = hermesKey, h.text[:0]
		}
		p.take(1)
		if h.place != hermesElsewhere {
			h.text = append(h.text, c)
		}
		switch {
		case depth == 1 && before == jsonString && p.json.state == jsonColon:
			ok = p.hermesEnd()
		case len(p.json.stack) == 1 && (depth > 1 || before != jsonNext && !number) && p.json.state == jsonNext:
			ok = p.hermesEnd()
		}
		if !ok {
			return p.fail()
		}
		if p.json.state == jsonDone {
			return p.hermesDone()
		}
	}
	p.hermesGive()
	return p.final && p.fail()
}

// hermesGive gives out the arguments that have come.
func (p *Parser) hermesGive() {
	if h := &p.hermes; h.place == hermesGiven {
		p.arguments(string(h.text))
		h.text = h.text[:0]
	}
}

// hermesValue begins the value of the last key. It reports false if the value cannot be.
func (p *Parser) hermesValue(first byte) bool {
	h := &p.hermes
	h.text = h.text[:0]
	switch h.key {
	case "name":
		h.place = hermesName
		return first == '"' && h.name == ""
	case "arguments", "parameters":
		if h.given || first != '{' && first != '"' {
			return false
		}
		h.given, h.place = true, hermesHeld
		if h.name != "" && first == '{' {
			h.place = hermesGiven
			p.start("", h.name)
		}
	}
	return true
}

// hermesEnd ends a key or a value. It reports false if it cannot be.
func (p *Parser) hermesEnd() bool {
	h := &p.hermes
	place := h.place
	if place == hermesGiven {
		p.hermesGive()
	}
	h.place = hermesElsewhere
	switch place {
	case hermesKey:
		h.key = unquote(h.text)
		return true
	case hermesName:
		if h.name = unquote(h.text); h.name == "" {
			return false
		}
	case hermesHeld:
		h.late = string(h.text)
		if h.late[0] == '"' {
			h.late = strings.TrimSpace(unquote(h.text))
		}
		if !isObject(h.late) {
			return false
		}
	default:
		return true
	}
	if h.name != "" && h.late != "" {
		p.start("", h.name)
		p.arguments(h.late)
	}
	return true
}

// hermesDone ends the object.
func (p *Parser) hermesDone() bool {
	h := &p.hermes
	if h.name == "" {
		return p.fail()
	}
	if !h.given {
		p.start("", h.name)
		p.arguments("{}")
	}
	p.state = h.then
	return true
}

// readHermesEnd reads what ends a call. Models leave it out at the end of an answer and before the
// next call.
func readHermesEnd(p *Parser) bool {
	mark, ok := p.next(toolCallEnd, toolCall)
	switch {
	case !ok:
		return false
	case mark == toolCallEnd:
		p.take(len(mark))
		p.end(readAfter)
	case mark == toolCall || p.final && p.buf == "":
		p.end(readText)
	default:
		p.fail()
	}
	return true
}

// unquote returns the text of a JSON string.
func unquote(quoted []byte) string {
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return ""
	}
	return s
}

// isObject reports whether a text is a JSON object.
func isObject(text string) bool {
	return strings.HasPrefix(text, "{") && json.Valid([]byte(text))
}
