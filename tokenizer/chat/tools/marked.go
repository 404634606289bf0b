package tools

import (
	"regexp"
	"strings"
)

// markedForm is JSON between marks that are tokens of their own. DeepSeek V3 and R1 write
//
//	<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME
//	```json
//	{"x": 1}
//	```<｜tool▁call▁end｜><｜tool▁calls▁end｜>
//
// DeepSeek V3.1 writes
//
//	<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{"x": 1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>
//
// and Kimi K2 writes, with an ID that holds the name,
//
//	<|tool_calls_section_begin|><|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{"x": 1}<|tool_call_end|><|tool_calls_section_end|>
type markedForm struct {
	section, sectionEnd string
	call, callEnd       string
	sep                 string
	leaves              bool                                     // a section ends the reasoning
	ids                 bool                                     // before sep is an ID that holds the name
	head                func(head string) (id, name string)      // of what is before sep; no name if it is wrong
	named               bool                                     // the name may follow sep, in a line, before a fenced text
	bare                func(line string) (name string, ok bool) // of a line that begins a call without marks; may be nil
}

// fence begins and ends a fenced text.
const fenceJSON, fence = "```json\n", "```"

var deepSeek = &markedForm{
	section: "<｜tool▁calls▁begin｜>", sectionEnd: "<｜tool▁calls▁end｜>",
	call: "<｜tool▁call▁begin｜>", callEnd: "<｜tool▁call▁end｜>", sep: "<｜tool▁sep｜>",
	head: func(head string) (id, name string) { return "", strings.TrimSpace(head) }, named: true,
	bare: func(line string) (string, bool) { return strings.CutPrefix(line, "function:") },
}

var kimi = &markedForm{
	section: "<|tool_calls_section_begin|>", sectionEnd: "<|tool_calls_section_end|>",
	call: "<|tool_call_begin|>", callEnd: "<|tool_call_end|>", sep: "<|tool_call_argument_begin|>",
	leaves: true, ids: true, head: kimiHead,
}

// kimiName is the ID of a call of Kimi K2.
var kimiName = regexp.MustCompile(`^(?:functions\.)?(.+?)(?::\d+)?$`)

func kimiHead(head string) (id, name string) {
	id = strings.TrimSpace(head)
	if m := kimiName.FindStringSubmatch(id); m != nil {
		name = m[1]
	}
	return id, name
}

func (f *markedForm) opens() []string { return []string{f.section} }
func (f *markedForm) marks() []string {
	return []string{f.section, f.sectionEnd, f.call, f.callEnd, f.sep}
}
func (f *markedForm) begin() state    { return f.readSection }
func (f *markedForm) lineFeeds() bool { return false }
func (f *markedForm) stops() []stop {
	return []stop{{f.callEnd, true, f.readBetween}, {f.call, false, f.readBetween}, {f.sectionEnd, true, readAfter}, {f.section, false, readText}}
}

// readSection reads what begins the first call of a section.
func (f *markedForm) readSection(p *Parser) bool {
	mark, ok := p.next(f.call)
	switch {
	case mark != "":
		p.take(len(mark))
		p.state = f.readHead
	case !ok || p.buf == "" && !p.final:
		return false
	case f.bare != nil:
		p.state = f.readBare
	default:
		p.fail()
	}
	return true
}

// readBetween reads what follows a call.
func (f *markedForm) readBetween(p *Parser) bool {
	return p.between(f.section, f.sectionEnd, f.call, func(string) { p.state = f.readSection })
}

// between reads what follows a call in its section. Unless the section ends, next gets the mark of
// the next call, or nothing if that does not come.
func (p *Parser) between(section, sectionEnd, call string, next func(mark string)) bool {
	p.plain(Mark, len(p.buf)-len(strings.TrimLeft(p.buf, space)))
	mark, ok := p.here(call, sectionEnd, section)
	switch {
	case !ok || p.buf == "":
		return false
	case mark == sectionEnd:
		p.plain(Mark, len(mark))
		p.state = readAfter
	case mark == section:
		p.state = readText
	default:
		next(mark)
	}
	return true
}

// readHead reads what is before the arguments.
func (f *markedForm) readHead(p *Parser) bool {
	at, mark := find(p.buf, []string{f.sep, f.callEnd, f.sectionEnd})
	if at < 0 {
		return p.final && p.fail()
	}
	id, name := f.head(p.buf[:at])
	if mark != f.sep || name == "" {
		return p.fail()
	}
	p.take(at + len(mark))
	p.marked.id, p.marked.name = id, name
	p.state = f.readArguments
	return true
}

// readBare reads the line that begins a call without marks, and what opens its text.
func (f *markedForm) readBare(p *Parser) bool {
	line, _, ok := strings.Cut(p.buf, "\n")
	if !ok {
		at, _ := find(p.buf, []string{f.sectionEnd, f.section})
		return (p.final || at >= 0) && p.fail()
	}
	name, ok := f.bare(line)
	if !ok || name == "" {
		return p.fail()
	}
	p.take(len(line))
	p.marked = markedCall{name: name, bare: true}
	p.state = f.readFence
	return true
}

// readArguments begins the arguments, or first reads the name if it comes after the mark.
func (f *markedForm) readArguments(p *Parser) bool {
	p.marked.fenced, p.marked.bare = false, false
	mark, ok := p.next("{", f.callEnd)
	switch {
	case !ok || p.buf == "" && !p.final:
		return false
	case mark == "{":
		p.beginJSON(f.readClose)
	case mark == f.callEnd: // nothing for no arguments
		p.start(p.marked.id, p.marked.name)
		p.arguments("{}")
		p.state = f.readClose
	case f.named:
		p.state = f.readName
	default:
		p.fail()
	}
	return true
}

// readName reads the line that names the function.
func (f *markedForm) readName(p *Parser) bool {
	line, _, ok := strings.Cut(p.buf, "\n")
	if !ok {
		at, _ := find(p.buf, []string{f.callEnd, f.sectionEnd})
		return (p.final || at >= 0) && p.fail()
	}
	if p.marked.name = strings.TrimSpace(line); p.marked.name == "" || strings.Contains(line, f.callEnd) {
		return p.fail()
	}
	p.take(len(line))
	p.state = f.readFence
	return true
}

// readFence reads what opens a fenced text.
func (f *markedForm) readFence(p *Parser) bool {
	mark, ok := p.next(fenceJSON)
	if !ok {
		return false
	}
	if mark == "" {
		return p.fail()
	}
	p.take(len(mark))
	p.marked.fenced = true
	p.state = f.readFenced
	return true
}

// readFenced looks for the object in a fenced text.
func (f *markedForm) readFenced(p *Parser) bool {
	mark, ok := p.next("{")
	if !ok {
		return false
	}
	if mark == "" {
		return p.fail()
	}
	p.beginJSON(f.readClose)
	return true
}

// readClose reads what ends a call. Models leave it out at the end of an answer and before the next
// call.
func (f *markedForm) readClose(p *Parser) bool {
	if p.marked.fenced {
		mark, ok := p.next(fence)
		if !ok {
			return false
		}
		if mark == "" && p.buf != "" {
			return p.fail()
		}
		p.take(len(mark))
		p.marked.fenced = false
	}
	if p.marked.bare {
		p.end(f.readBetween)
		return true
	}
	mark, ok := p.next(f.callEnd, f.call, f.sectionEnd, f.section)
	switch {
	case !ok:
		return false
	case mark == f.callEnd:
		p.take(len(mark))
		p.end(f.readBetween)
	case mark != "" || p.final && p.buf == "":
		p.end(f.readBetween)
	default:
		p.fail()
	}
	return true
}

// markedCall is what is known of a call.
type markedCall struct {
	id, name string
	fenced   bool // the arguments are a fenced text
	bare     bool // it has no marks of its own
}

// beginJSON starts the call and reads an object for its arguments; next is read after it.
func (p *Parser) beginJSON(next state) {
	p.start(p.marked.id, p.marked.name)
	p.json.reset()
	p.after, p.state = next, readJSON
}

// readJSON gives out an object as it comes.
func readJSON(p *Parser) bool {
	for i := range len(p.buf) {
		if !p.json.step(p.buf[i]) {
			p.arguments(p.take(i))
			return p.fail()
		}
		if p.json.state == jsonDone {
			p.arguments(p.take(i + 1))
			p.state = p.after
			return true
		}
	}
	p.arguments(p.take(len(p.buf)))
	return p.final && p.fail()
}
