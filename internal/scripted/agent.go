package scripted

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
)

// Agent is a script that does what it is told:
//
//   - what tool choices and schemas demand;
//   - a call of each tool that the user's last words name by a word of its name, with the text in
//     backquotes as its strings; once results are there, it says them;
//   - "exactly: X" says X, "the word "X"" of a system message says X, "count from A to B" counts,
//     "my name" is told from what was said before;
//   - everything else is repeated.
//
// It thinks before it answers where the template's variable enable_thinking says so. A prompt that
// begins like an earlier one is known as far as that.
type Agent struct {
	// Pause, if not 0, is how long each word takes.
	Pause time.Duration

	mu    sync.Mutex
	known [][]int32
}

// agentMemory is how many prompts an agent knows.
const agentMemory = 64

// Model returns a model with this script.
func (a *Agent) Model() *Model { return &Model{Context: 1 << 20, Say: a.Say} }

// Say answers a request.
func (a *Agent) Say(ctx context.Context, r moeflux.Request) moeflux.Events {
	return func(yield func(moeflux.Event, error) bool) {
		t := NewTeller(yield, &r)
		ids := promptOf(&r).IDs
		t.Prompt(len(ids), a.reused(ids, &r))
		if r.TemplateArgs["enable_thinking"] == true {
			for _, word := range []string{"They ", "ask ", "something."} {
				t.Token(moeflux.Event{Reasoning: word, Raw: word})
			}
		}
		if calls := callsOf(&r); len(calls) > 0 {
			for i, c := range calls {
				arguments := instance(c.Parameters(), saying(&r))
				half := len(arguments) / 2
				t.Call(i, c.Name(), arguments[:half], arguments[half:])
			}
			t.End(moeflux.StopEOS)
			return
		}
		for _, word := range strings.SplitAfter(answerTo(&r), " ") {
			if t.Over() {
				break
			}
			select {
			case <-ctx.Done():
				yield(moeflux.Event{}, context.Cause(ctx))
				return
			case <-time.After(a.Pause):
			}
			t.Say(word)
		}
		t.End(moeflux.StopEOS)
	}
}

// reused returns how much of a prompt was known, and learns it.
func (a *Agent) reused(ids []int32, r *moeflux.Request) int {
	if r.NoReuse {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	most := 0
	for _, k := range a.known {
		n := 0
		for n < min(len(k), len(ids)-1) && k[n] == ids[n] {
			n++
		}
		most = max(most, n)
	}
	if a.known = append(a.known, ids); len(a.known) > agentMemory {
		a.known = a.known[1:]
	}
	return most
}

// saying returns the user's last words.
func saying(r *moeflux.Request) string {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == moeflux.User {
			return m.Text()
		}
	}
	return r.Prompt
}

// callsOf returns the tools that the agent calls.
func callsOf(r *moeflux.Request) (calls []*moeflux.Tool) {
	must := r.ToolChoice.Required || r.ToolChoice.Name != ""
	if len(r.Tools) == 0 || r.ToolChoice.None || !must && r.Messages[len(r.Messages)-1].Role != moeflux.User {
		return nil
	}
	words := strings.FieldsFunc(strings.ToLower(saying(r)), func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') })
	for _, tool := range r.Tools {
		named := slices.ContainsFunc(strings.Split(strings.ToLower(tool.Name()), "_"), func(word string) bool {
			return len(word) > 3 && slices.Contains(words, word)
		})
		if r.ToolChoice.Name == tool.Name() || r.ToolChoice.Name == "" && named {
			calls = append(calls, tool)
		}
	}
	if must && calls == nil {
		calls = r.Tools[:1]
	}
	return calls
}

var (
	exactly  = regexp.MustCompile(`(?is)exactly[^:]*:\s*(.+)`)
	theWord  = regexp.MustCompile(`the word "(\w+)"`)
	countTo  = regexp.MustCompile(`(?i)count from (\d+) to (\d+)`)
	nameOf   = regexp.MustCompile(`(?i)my name is (\w+)`)
	asksName = regexp.MustCompile(`(?i)what is my name`)
)

// answerTo returns what the agent says.
func answerTo(r *moeflux.Request) string {
	if schema := r.Constraint.Schema(); schema != nil {
		return instance(schema, saying(r))
	}
	if r.Continue {
		return " is what comes next."
	}
	said := saying(r)
	if n := len(r.Messages); n > 0 && r.Messages[n-1].Role == moeflux.ToolResult {
		return "The tool says: " + results(r.Messages)
	}
	for _, m := range r.Messages {
		if word := theWord.FindStringSubmatch(m.Text()); m.Role == moeflux.System && word != nil {
			return word[1]
		}
	}
	if asksName.MatchString(said) {
		for _, m := range r.Messages {
			if name := nameOf.FindStringSubmatch(m.Text()); name != nil && m.Role == moeflux.User {
				return name[1]
			}
		}
	}
	if what := exactly.FindStringSubmatch(said); what != nil {
		return what[1]
	}
	if ends := countTo.FindStringSubmatch(said); ends != nil {
		return count(ends[1], ends[2])
	}
	return said
}

// results returns what the calls that were made last gave.
func results(messages []moeflux.Message) string {
	var texts []string
	for _, m := range slices.Backward(messages) {
		if m.Role != moeflux.ToolResult {
			break
		}
		texts = append(texts, m.Text())
	}
	slices.Reverse(texts)
	return strings.Join(texts, "; ")
}

func count(from, to string) string {
	a, _ := strconv.Atoi(from)
	b, _ := strconv.Atoi(to)
	var numbers []string
	for n := a; n <= min(b, a+100_000); n++ {
		numbers = append(numbers, fmt.Sprint(n))
	}
	return strings.Join(numbers, ", ")
}
