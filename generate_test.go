package moeflux

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
)

// greedy is how tests choose tokens that want the same text again.
var greedy = Sampling{Temperature: new(0.0)}

// collected is all that the events of a request told.
type collected struct {
	prompt    *Prompt
	read      *Read
	text, raw string
	thought   string
	ids       []int32
	tokens    []*Token
	end       *End
}

// collect ranges over events and checks their order.
func collect(t *testing.T, events Events) (c collected, err error) {
	t.Helper()
	for e, failed := range events {
		switch {
		case failed != nil:
			if err != nil {
				t.Errorf("two errors: %v, %v", err, failed)
			}
			err = failed
			continue
		case err != nil || c.end != nil:
			t.Errorf("an event after the end: %+v", e)
		case (e.Prompt != nil) != (c.prompt == nil), (e.Read != nil) && c.read != nil, e.Token != nil && c.read == nil:
			t.Errorf("event out of order: %+v", e)
		}
		if e.Prompt != nil {
			c.prompt = e.Prompt
		}
		if e.Read != nil {
			c.read = e.Read
		}
		if e.Token != nil {
			c.ids, c.tokens = append(c.ids, e.Token.ID), append(c.tokens, e.Token)
		}
		c.text, c.raw, c.thought, c.end = c.text+e.Text, c.raw+e.Raw, c.thought+e.Reasoning, e.End
	}
	return c, err
}

func mustCollect(t *testing.T, events Events) collected {
	t.Helper()
	c, err := collect(t, events)
	if err != nil {
		t.Fatal(err)
	}
	if c.prompt == nil || c.end == nil || len(c.ids) > 0 && c.read == nil {
		t.Fatalf("the events lack a prompt, its end or an end: %+v", c)
	}
	if c.text != c.end.Message.Content || c.thought != c.end.Message.ReasoningContent {
		t.Errorf("the end says %+v, the events said %q after thinking %q", c.end.Message, c.text, c.thought)
	}
	if u := c.end.Usage; u.PromptTokens != len(c.prompt.IDs) || u.NewTokens != len(c.ids) || c.read != nil && u.ReusedTokens != c.read.Reused {
		t.Errorf("usage %+v of %d tokens of the prompt and %d new ones, %+v", u, len(c.prompt.IDs), len(c.ids), c.read)
	}
	return c
}

// What the engine generates from the same tokens comes as text, and with its account.
func TestGenerate(t *testing.T) {
	m := openDemo(t, Options{})
	const prompt = "package main\n\nfunc main() {\n"
	ids, err := m.Tokenizer().Encode(prompt, true)
	if err != nil {
		t.Fatal(err)
	}
	seq, err := m.Engine().NewSequence(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var want []int32
	for id, err := range seq.Generate(t.Context(), ids, actors.GenerateOptions{MaxTokens: 30}) {
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, id)
	}
	account, err := seq.Describe(t.Context())
	if err := errors.Join(err, seq.Close()); err != nil {
		t.Fatal(err)
	}
	for _, r := range []Request{{NoReuse: true}, {}, {}} {
		r.Prompt, r.MaxTokens, r.Sampling = prompt, 30, greedy
		c := mustCollect(t, m.Generate(t.Context(), r))
		if !slices.Equal(c.prompt.IDs, ids) || c.prompt.Text != prompt || !slices.Equal(c.ids, want) || c.text != m.Tokenizer().Decode(want, true) || c.raw != c.text {
			t.Errorf("%d tokens %v say %q, want %v after %v", len(c.ids), c.ids, c.text, want, ids)
		}
		if c.end.Reason != StopLength || c.end.Seed != nil {
			t.Errorf("ends for %q with seed %v", c.end.Reason, c.end.Seed)
		}
		a := c.end.Usage.Account
		if a.Read+a.Reused != account.Account.Read || int(a.Reused) != c.read.Reused || a.Generated != 30 || a.DeviceNS == 0 {
			t.Errorf("account %+v, want that of the engine: %+v", a, account.Account)
		}
	}
	// The third has found what the second left.
	if c := mustCollect(t, m.Generate(t.Context(), Request{Prompt: prompt + "x", MaxTokens: 1})); c.read.Reused != len(ids) {
		t.Errorf("%d of %d tokens reused", c.read.Reused, len(ids))
	}
	if c := mustCollect(t, m.Generate(t.Context(), Request{Prompt: prompt + "x", MaxTokens: 1, NoReuse: true})); c.read.Reused != 0 {
		t.Errorf("%d tokens reused by a request that wants none", c.read.Reused)
	}
}

// A text ends before a stop string, when it is told to, and where the consumer leaves. Each gives
// its memory back: there is room for one.
func TestEnds(t *testing.T) {
	m := openDemo(t, Options{Config: Config{MaxSequences: 1, MaxWaiting: -1}})
	r := Request{Prompt: "package main\n\nfunc main() {\n", MaxTokens: 40, Sampling: greedy}
	whole := mustCollect(t, m.Generate(t.Context(), r)).text
	for _, stop := range []string{whole[3:5], whole[4:11], whole[len(whole)/2 : len(whole)/2+3]} {
		r := r
		r.Stop = []string{"never this", stop}
		c := mustCollect(t, m.Generate(t.Context(), r))
		if want, _, _ := strings.Cut(whole, stop); c.text != want || c.end.Reason != StopString || c.end.Stop != stop {
			t.Errorf("stop %q: %q for %q (%q), want %q", stop, c.text, c.end.Reason, c.end.Stop, want)
		}
	}
	for asked := range 6 { // the question before the prompt comes first
		r, n := r, 0
		r.Stop = []string{whole[3:9] + "never"} // holds text back
		r.Interrupted = func() bool { n++; return n > asked }
		c := mustCollect(t, m.Generate(t.Context(), r))
		if len(c.ids) != asked || c.end.Reason != StopInterrupted || c.text != m.Tokenizer().Decode(c.ids, true) {
			t.Errorf("interrupted at question %d: %d tokens, %q, for %q", asked+1, len(c.ids), c.text, c.end.Reason)
		}
	}
	for leave := range 5 {
		n := 0
		for _, err := range m.Generate(t.Context(), r) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n > leave {
				break
			}
		}
	}
}

func TestCancelled(t *testing.T) {
	m := openDemo(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	var last error
	for e, err := range m.Generate(ctx, Request{Prompt: "package main", Sampling: greedy}) {
		if last = err; err != nil {
			break
		}
		if e.Token != nil {
			if n++; n == 3 {
				cancel()
			}
		}
	}
	if !errors.Is(last, context.Canceled) || n > 4 {
		t.Errorf("after %d tokens: %v, want a cancelled context after 3", n, last)
	}
}

// What is drawn can be drawn again, and probabilities are the model's own.
func TestSampling(t *testing.T) {
	m := openDemo(t, Options{})
	r := Request{Prompt: "if err != nil {\n", MaxTokens: 12, Sampling: Sampling{Temperature: new(1.5)}, TopLogProbs: 3}
	first := mustCollect(t, m.Generate(t.Context(), r))
	if first.end.Seed == nil {
		t.Fatal("no seed")
	}
	r.Sampling.Seed = first.end.Seed
	if again := mustCollect(t, m.Generate(t.Context(), r)); again.text != first.text || *again.end.Seed != *first.end.Seed {
		t.Errorf("seed %d: %q, then %q", *first.end.Seed, first.text, again.text)
	}
	r.Sampling.Seed = nil
	if again := mustCollect(t, m.Generate(t.Context(), r)); again.text == first.text || *again.end.Seed == *first.end.Seed {
		t.Errorf("the same text without a seed: %q", again.text)
	}
	var said []byte
	for i, token := range first.tokens {
		said = append(said, token.Bytes...)
		p := math.Exp(token.LogProb)
		if len(token.Top) != 3 || !(p > 0 && p <= 1) || token.Top[0].LogProb < token.Top[1].LogProb || token.LogProb > token.Top[0].LogProb {
			t.Errorf("token %d: %+v", i, token)
		}
	}
	if string(said) != first.text {
		t.Errorf("the tokens say %q, the text %q", said, first.text)
	}
	if c := mustCollect(t, m.Generate(t.Context(), Request{Prompt: "x", MaxTokens: 1, LogProbs: true})); c.tokens[0].LogProb >= 0 || c.tokens[0].Top != nil {
		t.Errorf("LogProbs alone: %+v", c.tokens[0])
	}
	r.Sampling = Sampling{LogitBias: map[int32]float64{first.ids[0]: -100}, Temperature: new(0.0)}
	if c := mustCollect(t, m.Generate(t.Context(), r)); c.ids[0] == first.ids[0] {
		t.Errorf("token %d came though it is excluded", first.ids[0])
	}
}

func TestRequestErrors(t *testing.T) {
	m := openDemo(t, Options{Config: Config{Context: 64}})
	ok := Request{Prompt: "package main", MaxTokens: 1}
	with := func(change func(*Request)) Request { r := ok; change(&r); return r }
	closed := new(Session)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		r     Request
		field string
		is    error
	}{
		{"MaxTokens", with(func(r *Request) { r.MaxTokens = -1 }), "MaxTokens", nil},
		{"Stop", with(func(r *Request) { r.Stop = []string{"a", ""} }), "Stop", nil},
		{"TopLogProbs", with(func(r *Request) { r.TopLogProbs = -1 }), "TopLogProbs", nil},
		{"Sampling", with(func(r *Request) { r.Sampling.TopP = new(2.0) }), "Sampling", nil},
		{"messages", with(func(r *Request) { r.Messages = []Message{{Role: User, Content: "x"}} }), "Messages", nil},
		{"tools", with(func(r *Request) { r.Tools = []*Tool{weather(t)} }), "Tools", nil},
		{"closed session", with(func(r *Request) { r.Session = closed }), "", ErrClosed},
	} {
		_, err := m.Generate(t.Context(), c.r).Wait()
		e, ok := errors.AsType[*RequestError](err)
		if c.field != "" && (!ok || e.Field != c.field || !strings.HasPrefix(e.Error(), "Request."+c.field)) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	hello := []Message{{Role: User, Content: "hello"}}
	talk := new(Session)
	defer closeSession(t, talk)
	mustCollect(t, m.Chat(t.Context(), Request{Session: talk, Messages: hello, MaxTokens: 1}))
	for _, c := range []struct {
		name  string
		r     Request
		field string
		is    error
	}{
		{"a prompt", Request{Messages: hello, Prompt: "x"}, "Prompt", nil},
		{"an unknown role", Request{Messages: []Message{hello[0], {Role: "robot"}}}, "Messages[1]", nil},
		{"no message", Request{}, "", ErrEmptyPrompt},
		{"no new message", Request{Session: talk}, "", ErrEmptyPrompt},
	} {
		_, err := m.Chat(t.Context(), c.r).Wait()
		e, ok := errors.AsType[*RequestError](err)
		if c.field != "" && (!ok || e.Field != c.field) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("Chat with %s: %v", c.name, err)
		}
	}
	_, err := m.Generate(t.Context(), with(func(r *Request) { r.Prompt = strings.Repeat("word ", 200) })).Wait()
	if e, ok := errors.AsType[*ContextError](err); !ok || e.Max != 64 {
		t.Errorf("a prompt beyond the context: %v", err)
	}
	c := mustCollect(t, m.Generate(t.Context(), Request{Prompt: "package main", Sampling: greedy}))
	if c.end.Reason != StopContext {
		t.Errorf("a text without bound ends for %q, want %q", c.end.Reason, StopContext)
	}
}

// A request that can be interrupted reads its prompt in the engine's own chunks, and stops between
// two of them.
func TestInterruptedPrompt(t *testing.T) {
	m := openDemo(t, Options{Config: Config{ChunkRows: 16}})
	prompt := strings.Repeat("x := 1\n", 40)
	ids, err := m.Tokenizer().Encode(prompt, true)
	if err != nil || len(ids) < 100 {
		t.Fatalf("%d tokens, %v", len(ids), err)
	}
	whole := mustCollect(t, m.Generate(t.Context(), Request{Prompt: prompt, MaxTokens: 5, Sampling: greedy, NoReuse: true}))
	chunks := (len(ids) - 1 + 15) / 16 // before the one of the last token alone
	for _, at := range []int{1, 3, chunks + 1, chunks + 2, 1000} {
		s, asked := new(Session), 0
		c := mustCollect(t, m.Generate(t.Context(), Request{
			Session: s, Prompt: prompt, MaxTokens: 5, Sampling: greedy, Interrupted: func() bool { asked++; return asked == at },
		}))
		before := 0 // positions known from the round before
		if c.read == nil {
			if at > chunks+1 || len(c.ids) > 0 || c.end.Reason != StopInterrupted {
				t.Errorf("interrupted at question %d: %d tokens for %q", at, len(c.ids), c.end.Reason)
			}
		} else if at <= chunks+1 && c.read.Reused == 0 || !slices.Equal(c.ids, whole.ids[:len(c.ids)]) {
			t.Errorf("question %d: %+v, %v; want %v", at, c.read, c.ids, whole.ids)
		}
		if at == 3 {
			before = s.Positions()
			if before != 32 {
				t.Errorf("interrupted after two chunks of 16: %d positions", before)
			}
		}
		// What was read of it is part of the session's text, and is not read again.
		rest := mustCollect(t, m.Generate(t.Context(), Request{Session: s, MaxTokens: 5 - len(c.ids) + 1, Sampling: greedy}))
		if got := slices.Concat(c.ids, rest.ids)[:5]; !slices.Equal(got, whole.ids) || rest.read.Reused < before {
			t.Errorf("interrupted at question %d and continued %v, want %v; %d reused", at, got, whole.ids, rest.read.Reused)
		}
		closeSession(t, s)
		if err := m.Engine().ForgetTexts(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// A conversation whose messages come back with the next turn is not read again, nor its answer, as
// far as the answer's text has the tokens that were generated.
func TestTurnsReused(t *testing.T) {
	m := openDemo(t, Options{})
	for _, thrifty := range []bool{false, true} {
		messages := []Message{{Role: User, Content: "hello"}}
		for turn := range 3 {
			c := mustCollect(t, m.Chat(t.Context(), Request{Messages: messages, MaxTokens: 12, Sampling: greedy, NoReuse: thrifty}))
			messages = append(messages, c.end.Message, Message{Role: User, Content: "and then"})
			d, err := m.chat()
			if err != nil {
				t.Fatal(err)
			}
			next, err := m.render(d, &Request{}, messages)
			if err != nil {
				t.Fatal(err)
			}
			all := slices.Concat(c.prompt.IDs, c.ids)
			same := slices.Equal(next.IDs[:min(len(all), len(next.IDs))], all)
			if same && !thrifty {
				waitFor(t, m, next.IDs, len(all))
			}
			again := mustCollect(t, m.Chat(t.Context(), Request{Messages: messages, MaxTokens: 1, Sampling: greedy, NoReuse: thrifty}))
			switch want := len(all); {
			case thrifty && again.read.Reused > 0:
				t.Errorf("turn %d: %d tokens reused by a request that wants none", turn, again.read.Reused)
			case !thrifty && same && again.read.Reused < want:
				t.Errorf("turn %d: %d of %d tokens reused, want %d", turn, again.read.Reused, len(next.IDs), want)
			case !same:
				t.Logf("turn %d: the answer's text has other tokens", turn)
			}
		}
		if err := m.Engine().ForgetTexts(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// waitFor waits until the engine knows n tokens of a text: a state is copied while others go on.
func waitFor(t *testing.T, m *Model, ids []int32, n int) {
	t.Helper()
	seq, err := m.Engine().NewSequence(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer seq.Close()
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if known, err := seq.Resume(t.Context(), ids); err != nil || known >= n {
			return
		}
	}
}
