package server

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	moeflux "github.com/moeflux/moeflux-actor"
)

// call is what a client asks of a model, whatever the API.
type call struct {
	model   string // as the client names it; "" means the only one
	request moeflux.Request
	chat    bool // it is a conversation, else a text
	choices int  // answers to each prompt
	// prompts are those of a text, each of which is answered; a conversation has none.
	prompts []textPrompt

	stream  bool
	usage   bool // with stream: the usage comes in an event of its own
	oneCall bool // at most one call of a tool
	cached  bool // usage tells what of the prompt was known
}

// textPrompt is a text to continue, in words or in tokens.
type textPrompt struct {
	text string
	ids  []int32
}

// answers returns how many texts are wanted in all.
func (c *call) answers() int { return c.choices * max(1, len(c.prompts)) }

// requestOf returns the request of an answer.
func (c *call) requestOf(answer int) moeflux.Request {
	r := c.request
	if len(c.prompts) > 0 {
		p := c.prompts[answer/c.choices]
		r.Prompt, r.PromptIDs = p.text, p.ids
	}
	if n := answer % c.choices; n > 0 && r.Sampling.Seed != nil {
		r.Sampling.Seed = new(*r.Sampling.Seed + uint64(n)) // else all choices are the same
	}
	return r
}

// The bounds of what a request may ask for.
const (
	maxChoices     = 16
	maxAnswers     = 64 // choices of all prompts
	maxStops       = 16
	maxStopBytes   = 1024
	maxBias        = 1024
	maxTopLogProbs = 20
	maxTools       = 512
	maxMessages    = 100_000
	maxTokensBound = 1 << 24
)

// readSampling reads what OpenAI's APIs have in common, and what others call extensions.
func readSampling(o *object, r *moeflux.Request) {
	s := &r.Sampling
	s.Temperature = o.number("temperature", 0, 2)
	s.TopP = o.number("top_p", 0, 1)
	s.TopK = o.integer("top_k", 0, math.MaxInt32)
	s.MinP = o.number("min_p", 0, 1)
	s.RepeatPenalty = o.number("repeat_penalty", 0.01, 100)
	if p := o.number("repetition_penalty", 0.01, 100); p != nil { // the same in other servers' words
		s.RepeatPenalty = p
	}
	if p := o.number("presence_penalty", -2, 2); p != nil {
		s.PresencePenalty = *p
	}
	if p := o.number("frequency_penalty", -2, 2); p != nil {
		s.FrequencyPenalty = *p
	}
	readSeed(o, s)
	readBias(o, s)
	r.Stop = readStop(o, "stop")
}

// readSeed reads any whole number, negative ones too, as clients send them.
func readSeed(o *object, s *moeflux.Sampling) {
	var raw json.Number
	if !o.value("seed", "a whole number", &raw) {
		return
	}
	if n, err := strconv.ParseInt(raw.String(), 10, 64); err == nil {
		s.Seed = new(uint64(n))
		return
	}
	n, err := strconv.ParseUint(raw.String(), 10, 64)
	if err != nil {
		o.fail("seed", "seed must be a whole number of 64 bits")
		return
	}
	s.Seed = &n
}

func readBias(o *object, s *moeflux.Sampling) {
	bias := o.object("logit_bias")
	if bias == nil {
		return
	}
	if len(bias.fields) > maxBias {
		o.fail("logit_bias", "logit_bias has %d tokens; %d are allowed", len(bias.fields), maxBias)
		return
	}
	s.LogitBias = make(map[int32]float64, len(bias.fields))
	for name := range bias.fields {
		id, err := strconv.ParseInt(name, 10, 32)
		if err != nil || id < 0 {
			o.fail("logit_bias", "logit_bias: %q is not a token's number", name)
			return
		}
		if v := bias.number(name, -100, 100); v != nil {
			s.LogitBias[int32(id)] = *v
		}
	}
}

// readStop reads a field that is a string or a list of strings.
func readStop(o *object, name string) []string {
	if !o.has(name) {
		return nil
	}
	var one string
	stops := []string{}
	if json.Unmarshal(o.fields[name], &one) == nil {
		stops = append(stops, one)
	} else if !o.value(name, "a string or a list of strings", &stops) {
		return nil
	}
	if len(stops) > maxStops {
		o.fail(name, name+" has %d strings; %d are allowed", len(stops), maxStops)
		return nil
	}
	for _, s := range stops {
		if s == "" || len(s) > maxStopBytes {
			o.fail(name, name+": a string must have from 1 to %d bytes", maxStopBytes)
			return nil
		}
	}
	return stops
}

// readStream reads whether and how the answer is streamed.
func readStream(o *object, c *call) {
	c.stream, _ = o.boolean("stream")
	if progress, _ := o.boolean("return_progress"); progress {
		if !c.stream {
			o.fail("return_progress", "return_progress is only allowed with stream")
		}
		c.request.Progress = true
	}
	options := o.object("stream_options")
	if options == nil {
		return
	}
	if !c.stream {
		o.fail("stream_options", "stream_options is only allowed with stream")
		return
	}
	c.usage, _ = options.boolean("include_usage")
	options.only("include_obfuscation", "nothing is obfuscated", false)
}

// readChoices reads how many answers are wanted.
func readChoices(o *object, c *call) {
	c.choices = 1
	if n := o.integer("n", 1, maxChoices); n != nil {
		c.choices = *n
	}
}

// readConstraint reads what bounds the text: a format, or a grammar of one of the extensions.
func readConstraint(o *object, r *moeflux.Request) {
	set := func(name string, c *moeflux.Constraint) {
		if r.Constraint != nil {
			o.fail(name, "%s: only one thing may bound the text", name)
			return
		}
		if err := c.Validate(); err != nil {
			o.fail(name, "%s: %v", name, err)
			return
		}
		r.Constraint = c
	}
	if f := o.object("response_format"); f != nil {
		if c := readFormat(f); c != nil {
			set("response_format", c)
		}
	}
	if text, ok := o.text("grammar"); ok && text != "" {
		set("grammar", moeflux.GBNF(text))
	}
	if text, ok := o.text("guided_regex"); ok && text != "" {
		set("guided_regex", moeflux.Regexp(text))
	}
	if o.has("guided_json") {
		set("guided_json", moeflux.JSONSchema(o.fields["guided_json"]))
	}
	if o.has("guided_choice") {
		var texts []string
		if o.value("guided_choice", "a list of strings", &texts) {
			set("guided_choice", moeflux.Choices(texts...))
		}
	}
}

// bound has a format, an object of the request, bound the text.
func bound(format *object, c *call, by *moeflux.Constraint) {
	name := strings.TrimSuffix(format.path, ".")
	if err := by.Validate(); err != nil {
		format.fail("schema", "%s: %v", name, err)
		return
	}
	c.request.Constraint = by
}

// readFormat reads a response_format; nil means any text.
func readFormat(f *object) *moeflux.Constraint {
	switch f.word("type", "text", "json_object", "json_schema") {
	case "json_object":
		return moeflux.JSONSchema([]byte(`{"type":"object"}`))
	case "json_schema":
		inner := f.object("json_schema")
		if inner == nil {
			f.fail("json_schema", "%sjson_schema is missing", f.path)
			return nil
		}
		if !inner.has("schema") {
			inner.fail("schema", "%sschema is missing", inner.path)
			return nil
		}
		return moeflux.JSONSchema(inner.fields["schema"])
	case "text":
	default:
		if !f.has("type") {
			f.fail("type", "%stype is missing", f.path)
		}
	}
	return nil
}

// templateArgs are the variables of chat templates that clients may set. All others are refused:
// some belong to the engine.
var templateArgs = map[string]bool{
	"enable_thinking": true, "thinking": true, "preserve_thinking": true, "clear_thinking": true, "thinking_budget": true,
	"reasoning_effort": true, "model_identity": true, "date_string": true, "add_vision_id": true,
}

// readTemplateArgs reads chat_template_kwargs: known names with scalars.
func readTemplateArgs(o *object, r *moeflux.Request) {
	args := o.object("chat_template_kwargs")
	if args == nil {
		return
	}
	for name, raw := range args.fields {
		if !templateArgs[name] {
			args.note(unsupported(args.path+name, "%s%s is not a variable that may be set", args.path, name))
			return
		}
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			continue // the body was valid JSON
		}
		switch v.(type) {
		case map[string]any, []any:
			args.fail(name, "%s%s must be a text, a number, true or false", args.path, name)
			return
		}
		setTemplateArg(r, name, v)
	}
}

func setTemplateArg(r *moeflux.Request, name string, v any) {
	if r.TemplateArgs == nil {
		r.TemplateArgs = make(map[string]any)
	}
	r.TemplateArgs[name] = v
}
