package serveload

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// question is a text that clients ask for, always with the most likely tokens, so that there is one
// right answer.
type question struct {
	api    *api
	prompt string
	tokens int
	want   string // the answer that it got alone
}

// beginnings are what prompts begin with. Some are long, and several prompts share each, as those
// of agents do.
var beginnings = []string{
	"",
	"package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n)\n\n",
	strings.Repeat("// Each stage takes one message and returns what must happen next. It reads no clock.\n", 12),
	strings.Repeat("func (s *server) serve(w http.ResponseWriter, r *http.Request) error {\n\treturn nil\n}\n\n", 24),
}

var endings = []string{
	"func main() {\n", "// Package stages is", "type engine struct {\n\tname string\n", "What does a Mixture-of-Experts model read from disk?",
}

// The lengths of answers.
var lengths = []int{8, 16, 32}

// allQuestions returns every prompt in every API.
func allQuestions() (all []question) {
	for _, a := range apis {
		for _, begin := range beginnings {
			for _, end := range endings {
				all = append(all, question{api: a, prompt: begin + end, tokens: lengths[len(all)%len(lengths)]})
			}
		}
	}
	return all
}

// someQuestions returns n of all questions, spread over them; 0 means all.
func someQuestions(n int) (some []question) {
	all := allQuestions()
	if n <= 0 || n >= len(all) {
		return all
	}
	for i := range n {
		some = append(some, all[i*len(all)/n])
	}
	return some
}

// request returns the body that asks the question.
func (q *question) request(stream bool) []byte {
	body := q.api.body(q)
	body["stream"] = stream
	if a := q.api.name; stream && (a == "chat" || a == "completions") {
		body["stream_options"] = map[string]bool{"include_usage": true}
	}
	return encode(body)
}

// check compares an answer, or the beginning of one, with the one given alone.
func (q *question) check(got string, whole bool) error {
	if got == q.want || !whole && strings.HasPrefix(q.want, got) {
		return nil
	}
	return fmt.Errorf("%s of %q: got %q, alone it was %q", q.api.name, tail(q.prompt), got, q.want)
}

func tail(text string) string { return text[max(0, len(text)-30):] }

// learn asks a question alone and keeps the answer.
func (c *client) learn(ctx context.Context, q *question) error {
	a, err := c.fetch(ctx, q)
	if err != nil {
		return err
	}
	if a.fault != "" {
		return errors.New(a.fault)
	}
	q.want = a.text.String()
	if q.want == "" {
		return fmt.Errorf("%s of %q: it is empty, so nothing could be compared", q.api.name, tail(q.prompt))
	}
	return nil
}

func encode(v any) []byte {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(v); err != nil {
		panic(err) // all values are ours
	}
	return b.Bytes()
}
