package moeflux

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
)

// thoughtful is a template that begins each answer with a mark of reasoning and shows none of
// earlier answers, so that a turn's prompt is not the beginning of the next one's.
const thoughtful = `{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
<think>
{% endif %}`

// openKeeping opens a fixture model with a template and a folder for states.
func openKeeping(t *testing.T, model, template, stateDir string) *Model {
	t.Helper()
	files := map[string]string{"chat_template.jinja": template}
	if model != fixtures.Qwen35MoEQ4 { // which is the one that has a tokenizer
		files["tokenizer.json"] = smallTokenizer(t, 320)
	}
	dir := fixtures.Overlay(t, fixtures.Packed(t, model, 0), files)
	o := Options{Device: "host", Config: Config{StateDir: stateDir}}
	if stateDir != "" {
		o.Config.StateDisk = 1 << 30
	}
	m, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	return m
}

// smallTokenizer returns the fixtures' tokenizer with fewer words.
func smallTokenizer(t *testing.T, words int) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(fixtures.Dir(t, fixtures.Qwen35MoEQ4), "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	model, added := all["model"].(map[string]any), all["added_tokens"].([]any)
	words -= len(added)
	for i, token := range added {
		token.(map[string]any)["id"] = words + i
	}
	vocab := model["vocab"].(map[string]any)
	maps.DeleteFunc(vocab, func(_ string, id any) bool { return id.(float64) >= float64(words) })
	model["merges"] = slices.DeleteFunc(model["merges"].([]any), func(pair any) bool {
		p := pair.([]any)
		return vocab[p[0].(string)+p[1].(string)] == nil
	})
	if raw, err = json.Marshal(all); err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// A conversation goes on in another process, from its messages alone, and reads only what is new:
// where templates leave out what the model thought, its answer as well. Each token has the bits of
// a model that keeps nothing, or keeps it in memory. Another scope finds nothing.
func TestConversationOnDisk(t *testing.T) {
	for _, model := range []string{fixtures.Qwen35MoEQ4, fixtures.Qwen3MoEBF16, fixtures.DeepseekV3Q4} {
		for name, template := range map[string]string{"plain": hermes, "thinking": thoughtful} {
			t.Run(model+"/"+name, func(t *testing.T) { conversationOnDisk(t, model, template) })
		}
	}
}

func conversationOnDisk(t *testing.T, model, template string) {
	base, dir := openKeeping(t, model, template, ""), t.TempDir()
	question := func(words string) Message { // so long that it is worth a state, and the context suffices
		if base.Info().StateBytes > 0 {
			return Message{Role: User, Content: strings.Repeat(words, 18)}
		}
		return Message{Role: User, Content: strings.Repeat(words, 4)}
	}
	messages := []Message{question("is it cold ")}
	answer := "It is."
	if template == thoughtful {
		answer = "Hm.\n</think>\n\nIt is."
	}
	ask := func(m *Model, noReuse bool, scope string) collected {
		t.Helper()
		return mustCollect(t, m.Chat(t.Context(), Request{Messages: messages, Constraint: says(answer), NoReuse: noReuse, Scope: scope, LogProbs: true, Sampling: greedy}))
	}
	same := func(got, want collected) {
		t.Helper()
		if len(got.tokens) != len(want.tokens) || len(got.tokens) == 0 {
			t.Fatalf("%d tokens, want %d", len(got.tokens), len(want.tokens))
		}
		for i, token := range got.tokens {
			if token.ID != want.tokens[i].ID || token.LogProb != want.tokens[i].LogProb {
				t.Errorf("token %d: %+v, want %+v", i, token, want.tokens[i])
			}
		}
	}
	known := []int32(nil) // what the next turn can begin with
	for turn := range 3 {
		m := openKeeping(t, model, template, dir)
		if turn > 0 {
			if got := ask(m, false, fmt.Sprint("another", turn)); got.read.Reused != 0 {
				t.Errorf("turn %d: another scope finds %d tokens", turn, got.read.Reused)
			}
		}
		got := ask(m, false, "mine")
		fresh, inMemory := ask(base, true, ""), ask(base, false, "")
		if model == fixtures.DeepseekV3Q4 { // answers have other last bits there than texts that are read
			fresh = inMemory
		}
		same(got, fresh)
		if inMemory.read.Reused != got.read.Reused {
			t.Errorf("turn %d: %d tokens are known from disk, %d from memory", turn, got.read.Reused, inMemory.read.Reused)
		}
		want := 0
		for want < min(len(known), len(got.prompt.IDs)-1) && known[want] == got.prompt.IDs[want] {
			want++
		}
		if template == hermes && want < len(known) {
			t.Fatalf("turn %d: the prompt goes on after %d tokens of %d: the test shows nothing", turn, want, len(known))
		}
		if got.read.Reused != want {
			t.Errorf("turn %d: %d of %d tokens are known, want %d", turn, got.read.Reused, len(got.prompt.IDs), want)
		}
		if again := ask(m, false, "mine"); template == hermes && again.read.Reused != len(got.prompt.IDs)-1 {
			t.Errorf("turn %d: asked again, %d of %d tokens are known, want all but one", turn, again.read.Reused, len(got.prompt.IDs))
		}
		if known = got.prompt.IDs; template == hermes {
			known = slices.Concat(got.prompt.IDs, got.ids)
		}
		messages = append(messages, Message{Role: Assistant, Content: "It is."}, question("and then "))
		if err := m.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// A text that is continued goes on in another process as well. A session that is kept on disk has
// no second copy there.
func TestTextOnDisk(t *testing.T) {
	dir := t.TempDir()
	begin := func() *Model { return openDemo(t, Options{Config: Config{StateDir: dir, StateDisk: 1 << 30}}) }
	stored := func(m *Model) int64 {
		t.Helper()
		if err := m.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		st, err := m.Engine().Stats(t.Context())
		if !errors.Is(err, ErrClosed) {
			t.Fatal(err)
		}
		return st.States.Stored
	}
	m := begin()
	s := mustOpen(t, openSessions(t, t.TempDir()), "a")
	mustCollect(t, m.Generate(t.Context(), Request{Session: s, Prompt: "func main() {", MaxTokens: 5, Sampling: greedy}))
	closeSession(t, s)
	if n := stored(m); n != 0 {
		t.Errorf("%d states of a session are stored", n)
	}
	m = begin()
	first := mustCollect(t, m.Generate(t.Context(), Request{Prompt: "package main\n\nfunc main() {\n", MaxTokens: 20, Sampling: greedy}))
	if n := stored(m); n != 1 && n != 2 { // after the prompt, and at the end
		t.Errorf("%d states of a text are stored", n)
	}
	ids := slices.Concat(first.prompt.IDs, first.ids)
	next := mustCollect(t, begin().Generate(t.Context(), Request{PromptIDs: ids, MaxTokens: 5, Sampling: greedy}))
	if want := len(ids) - 1; next.read.Reused != want {
		t.Errorf("%d of %d tokens are known, want %d", next.read.Reused, len(ids), want)
	}
}
