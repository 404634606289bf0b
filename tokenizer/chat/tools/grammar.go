package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/moeflux/moeflux-actor/tokenizer/chat"
)

// ErrNoForm reports a model whose form of calls is not known.
var ErrNoForm = errors.New("how this model writes calls is not known")

// Grammar is answers in GBNF. The rules that Schemas names are not among Rules: each is the JSON
// texts that a schema allows.
type Grammar struct {
	Rules   string
	Schemas map[string][]byte
	Names   map[string]string // what each of the schemas is, for people
}

// Opens returns the marks that begin a call.
func (s Syntax) Opens() []string {
	if s.Calls == None {
		return nil
	}
	return forms[s.Calls].opens()
}

// Holds reports whether a token is a mark of calls, or a part of one.
func (s Syntax) Holds(token string) bool {
	return s.Calls != None && slices.ContainsFunc(forms[s.Calls].marks(), func(m string) bool { return strings.Contains(m, token) })
}

// TextGrammar returns the answers that hold no mark of a call.
func (s Syntax) TextGrammar() Grammar {
	if s.Calls == None {
		return Grammar{Rules: `root ::= .*`}
	}
	var g grammarMaker
	markRules(g.define, "root", false, s.Opens()...)
	return Grammar{Rules: g.rules.String()}
}

// CallGrammar returns the answers that call functions of a list and say nothing else: one call, or
// if many any number of them. The arguments are JSON that the function's schema allows. Where the
// form writes values without quotes, parameters come in the order of the schema's properties, and a
// string is bound by its enum and by nothing else. The error names what cannot be bound so.
func (s Syntax) CallGrammar(list []*chat.Function, many bool) (Grammar, error) {
	if s.Calls == None {
		return Grammar{}, ErrNoForm
	}
	if len(list) == 0 {
		return Grammar{}, errors.New("there is no function to call")
	}
	g, form := &grammarMaker{schemas: map[string][]byte{}, names: map[string]string{}}, forms[s.Calls]
	var calls []string
	for i, f := range list {
		if strings.ContainsAny(f.Name(), "<>{}\"`\\｜| \t\r\n") {
			return Grammar{}, fmt.Errorf("the name of the function %q has characters that calls cannot have", f.Name())
		}
		call, err := form.callRule(g, f, strconv.Itoa(i))
		if err != nil {
			return Grammar{}, fmt.Errorf("the function %s: %w", f.Name(), err)
		}
		calls = append(calls, call)
	}
	g.define("call", strings.Join(calls, " | "))
	g.define("root", form.answerRule(many))
	return Grammar{Rules: g.rules.String(), Schemas: g.schemas, Names: g.names}, nil
}

// CallOrJSONGrammar returns the answers that are any number of calls, as CallGrammar has them, or a
// JSON text that a schema allows.
func (s Syntax) CallOrJSONGrammar(list []*chat.Function, schema []byte) (Grammar, error) {
	g, err := s.CallGrammar(list, true)
	if err != nil {
		return g, err
	}
	const format = "format"
	g.Rules = strings.Replace("\n"+g.Rules, "\nroot ::=", "\ncalls ::=", 1) + "root ::= calls | " + format + "\n"
	g.Schemas[format], g.Names[format] = schema, "the format of the answer"
	return g, nil
}

// grammarMaker collects the rules of a grammar.
type grammarMaker struct {
	rules   strings.Builder
	schemas map[string][]byte
	names   map[string]string
}

func (g *grammarMaker) define(name, is string) { fmt.Fprintf(&g.rules, "%s ::= %s\n", name, is) }

// parametersOf returns the schema of a function's parameters, by keyword.
func parametersOf(f *chat.Function) (map[string]json.RawMessage, error) {
	schema := map[string]json.RawMessage{}
	if f.Parameters() != nil {
		if err := json.Unmarshal(f.Parameters(), &schema); err != nil {
			return nil, err
		}
	}
	if schema["type"] == nil {
		schema["type"] = json.RawMessage(`"object"`)
	}
	if string(schema["type"]) != `"object"` {
		return nil, fmt.Errorf("the type of its parameters is %s, but arguments are an object", schema["type"])
	}
	return schema, nil
}

// arguments returns the rule of the JSON of a function's arguments.
func (g *grammarMaker) arguments(f *chat.Function, number string) (string, error) {
	schema, err := parametersOf(f)
	if err != nil {
		return "", err
	}
	raw, err := json.Marshal(schema)
	name := "arguments-" + number
	g.schemas[name], g.names[name] = raw, "the parameters of the function "+f.Name()
	return name, err
}

// literal is a text in GBNF.
func literal(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ':
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// repeated returns one call, or any number of them with something between.
func repeated(call string, many bool, between string) string {
	if !many {
		return call
	}
	return call + " (" + between + " " + call + ")*"
}

// lead is what may be before calls whose form takes line feeds for a part of the marks.
const lead = `"\n"{0,2} `

func (hermesForm) callRule(g *grammarMaker, f *chat.Function, number string) (string, error) {
	arguments, err := g.arguments(f, number)
	return literal(toolCall+"\n{\"name\": \""+f.Name()+"\", \"arguments\": ") + " " + arguments + " " + literal("}\n"+toolCallEnd), err
}

func (hermesForm) answerRule(many bool) string { return lead + repeated("call", many, `"\n"`) }

func (f *markedForm) callRule(g *grammarMaker, function *chat.Function, number string) (string, error) {
	arguments, err := g.arguments(function, number)
	head := literal(function.Name() + f.sep)
	if f.ids {
		head = literal("functions."+function.Name()+":") + " [0-9]{1,3} " + literal(f.sep)
	}
	body := head + " " + arguments
	if f.named { // one mark serves both ways, and the model knows which is its own
		body = "(" + body + " | " + literal("function"+f.sep+function.Name()+"\n"+fenceJSON) + " " + arguments + " " + literal("\n"+fence) + ")"
	}
	return literal(f.call) + " " + body + " " + literal(f.callEnd), err
}

func (f *markedForm) answerRule(many bool) string {
	return literal(f.section) + " " + repeated("call", many, `"\n"?`) + " " + literal(f.sectionEnd)
}
