package tools

import "strings"

// xmlForm is a name and parameters between tags. Qwen3-Coder writes
//
//	<tool_call>
//	<function=NAME>
//	<parameter=KEY>
//	VALUE
//	</parameter>
//	</function>
//	</tool_call>
//
// MiniMax M2 writes
//
//	<minimax:tool_call>
//	<invoke name="NAME">
//	<parameter name="KEY">VALUE</parameter>
//	</invoke>
//	</minimax:tool_call>
//
// GLM 4.5 writes
//
//	<tool_call>NAME
//	<arg_key>KEY</arg_key>
//	<arg_value>VALUE</arg_value>
//	</tool_call>
//
// and Hy3 writes
//
//	<tool_calls:opensource>
//	<tool_call:opensource>NAME<tool_sep:opensource>
//	<arg_key:opensource>KEY</arg_key:opensource>
//	<arg_value:opensource>VALUE</arg_value:opensource>
//	</tool_call:opensource>
//	</tool_calls:opensource>
//
// Nothing is quoted: a value ends at its tag, whatever it is. MiniMax M3 has a word before each
// tag, see nested.go.
type xmlForm struct {
	section, sectionEnd string // GLM has none: a call is a section
	call, callEnd       string
	nameEnd             string // GLM: the line or the next tag
	param, keyEnd       string
	value               string // opens the value, if keyEnd does not
	valueEnd            string
	lines               bool // a line feed on each side of a value is no part of it
	loose               bool // models forget the section around a call
	nested              bool // tags are named after parameters, and lists and objects are tags within
}

var coder = &xmlForm{
	section: toolCall, sectionEnd: toolCallEnd, call: "<function=", callEnd: "</function>", nameEnd: ">",
	param: "<parameter=", keyEnd: ">", valueEnd: "</parameter>", lines: true, loose: true,
}

var miniMax = &xmlForm{
	section: "<minimax:tool_call>", sectionEnd: "</minimax:tool_call>", call: `<invoke name="`, callEnd: "</invoke>", nameEnd: `">`,
	param: `<parameter name="`, keyEnd: `">`, valueEnd: "</parameter>",
}

var glm = &xmlForm{
	call: toolCall, callEnd: toolCallEnd,
	param: "<arg_key>", keyEnd: "</arg_key>", value: "<arg_value>", valueEnd: "</arg_value>",
}

var hunyuan = &xmlForm{
	section: "<tool_calls:opensource>", sectionEnd: "</tool_calls:opensource>", call: "<tool_call:opensource>", callEnd: "</tool_call:opensource>",
	nameEnd: "<tool_sep:opensource>", param: "<arg_key:opensource>", keyEnd: "</arg_key:opensource>",
	value: "<arg_value:opensource>", valueEnd: "</arg_value:opensource>",
}

func (f *xmlForm) opens() []string {
	switch {
	case f.section == "":
		return []string{f.call}
	case f.loose:
		return []string{f.section, f.call}
	}
	return []string{f.section}
}

func (f *xmlForm) marks() []string {
	return []string{f.section, f.sectionEnd, f.call, f.callEnd, f.nameEnd, f.param, f.keyEnd, f.value, f.valueEnd}
}
func (f *xmlForm) begin() state    { return f.readOpen }
func (f *xmlForm) lineFeeds() bool { return true }

func (f *xmlForm) stops() []stop {
	if f.section == "" {
		return []stop{{f.callEnd, true, readAfter}, {f.call, false, readText}}
	}
	return []stop{{f.callEnd, true, f.readBetween}, {f.call, false, f.readBetween}, {f.sectionEnd, true, readAfter}, {f.section, false, readText}}
}

// xmlCall is what is known of a call.
type xmlCall struct {
	function, key string
	params        int   // so far
	types         types // of the value
	open          bool  // a string has begun
	skip          bool  // the line feed before the value was not looked for yet
}

// readOpen goes on after the mark that readText found: a section, or a call without one.
func (f *xmlForm) readOpen(p *Parser) bool {
	p.state = f.readCall
	if strings.HasSuffix(string(p.call), f.call) {
		p.state = f.readName
	}
	return true
}

// readCall reads what begins a call.
func (f *xmlForm) readCall(p *Parser) bool {
	mark, ok := p.next(f.call)
	if !ok {
		return false
	}
	if mark == "" {
		return p.fail()
	}
	p.take(len(mark))
	p.state = f.readName
	return true
}

// readBetween reads what follows a call in its section.
func (f *xmlForm) readBetween(p *Parser) bool {
	return p.between(f.section, f.sectionEnd, f.call, func(mark string) {
		switch {
		case mark != "":
			p.state = f.readCall
		case f.loose: // perhaps there was no section
			p.state = readText
		default:
			p.fail()
		}
	})
}

// readName reads the name of the function.
func (f *xmlForm) readName(p *Parser) bool {
	ends := []string{f.nameEnd}
	if f.nameEnd == "" {
		ends = []string{"\n", f.param, f.callEnd}
	}
	at, mark := find(p.buf, ends)
	if at < 0 {
		return p.final && p.fail()
	}
	name := strings.TrimSpace(p.buf[:at])
	if name == "" || strings.ContainsAny(name, "<>\"\n{") {
		return p.fail()
	}
	if f.nameEnd == "" {
		mark = ""
	}
	p.take(at + len(mark))
	p.xml = xmlCall{function: name}
	p.start("", name)
	p.state = f.readParam
	return true
}

// readParam reads what begins a parameter, or ends the call.
func (f *xmlForm) readParam(p *Parser) bool {
	mark, ok := p.next(f.callEnd)
	if ok && mark == "" {
		mark, ok = p.next(f.param)
	}
	switch {
	case !ok:
		return false
	case mark == f.param:
		p.take(len(mark))
		p.state = f.readKey
	case mark == f.callEnd:
		text := "}"
		if p.xml.params == 0 {
			text = "{}"
		}
		p.take(len(mark))
		p.arguments(text)
		p.end(f.next())
	default:
		p.fail()
	}
	return true
}

// next is what is read after a call.
func (f *xmlForm) next() state {
	if f.section == "" {
		return readAfter
	}
	return f.readBetween
}

// readKey reads the name of a parameter.
func (f *xmlForm) readKey(p *Parser) bool {
	at := strings.Index(p.buf, f.keyEnd)
	if at < 0 {
		return p.final && p.fail()
	}
	p.xml.key = strings.TrimSpace(p.buf[:at])
	if f.nested && (p.xml.key == "" || strings.ContainsAny(p.xml.key, notInTags)) {
		return p.fail()
	}
	p.take(at + len(f.keyEnd))
	p.xml.types = p.typesOf(p.xml.function, p.xml.key)
	p.xml.open, p.xml.skip = false, f.lines
	p.state = f.readValue
	switch {
	case f.value != "":
		p.state = f.readValueMark
	case f.nested && !p.xml.types.onlyText():
		p.state = f.readTree
	}
	return true
}

func (f *xmlForm) readValueMark(p *Parser) bool {
	mark, ok := p.next(f.value)
	if !ok {
		return false
	}
	if mark == "" {
		return p.fail()
	}
	p.take(len(mark))
	p.state = f.readValue
	return true
}

// readValue reads the value of a parameter. What is a string for certain is given out as it comes.
func (f *xmlForm) readValue(p *Parser) bool {
	x := &p.xml
	if x.skip {
		if p.buf == "" { // the line feed before the value may come
			return p.final && p.fail()
		}
		x.skip = false
		p.take(len(p.buf) - len(strings.TrimPrefix(p.buf, "\n")))
	}
	mark := f.endOf(x.key)
	at := strings.Index(p.buf, mark)
	end := at
	if at < 0 {
		end = len(p.buf) - overlap(p.buf, mark)
	}
	if f.lines {
		end = len(strings.TrimSuffix(p.buf[:end], "\n"))
	}
	tag := p.buf[end:]
	if x.types.onlyText() {
		p.text(end)
		end = 0
	}
	if at < 0 {
		return p.final && p.fail()
	}
	value := p.buf[:end]
	p.take(len(value) + strings.Index(tag, mark) + len(mark))
	if x.types.onlyText() {
		p.arguments(`"`)
	} else {
		p.arguments(p.keyText() + x.types.convert(value))
	}
	x.params++
	p.state = f.readParam
	return true
}

// text gives out n bytes of a string.
func (p *Parser) text(n int) {
	head := ""
	if !p.xml.open {
		head = p.keyText() + `"`
		p.xml.open = true
	} else if n == 0 {
		return
	}
	p.arguments(head + quoted(p.take(n)))
}

// keyText is what is before the value in the JSON of the arguments.
func (p *Parser) keyText() string {
	open := ", "
	if p.xml.params == 0 {
		open = "{"
	}
	return open + `"` + quoted(p.xml.key) + `": `
}
