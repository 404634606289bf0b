package moeflux

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/snapshot"
	"github.com/moeflux/moeflux-actor/tokenizer/chat"
)

// openSessions opens a folder of sessions.
func openSessions(t *testing.T, dir string) *Sessions {
	t.Helper()
	s, err := OpenSessions(t.Context(), dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustOpen(t *testing.T, all *Sessions, name string) *Session {
	t.Helper()
	s, err := all.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closeSession(t *testing.T, s *Session) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func save(t *testing.T, s *Session) {
	t.Helper()
	if err := s.Save(t.Context()); err != nil {
		t.Error(err)
	}
}

// A text in parts is the text in one go, in one process or in several, and nothing is read twice.
func TestSessionOfText(t *testing.T) {
	m := openDemo(t, Options{})
	whole := mustCollect(t, m.Generate(t.Context(), Request{Prompt: "package main", MaxTokens: 30, Sampling: greedy}))
	for name, kept := range map[string]bool{"in memory": false, "on disk": true} {
		t.Run(name, func(t *testing.T) {
			all, s, text := openSessions(t, t.TempDir()), new(Session), ""
			for i, n := range []int{10, 15, 5} {
				r := Request{MaxTokens: n, Sampling: greedy}
				if i == 0 {
					r.Prompt = "package main"
				}
				if kept {
					s = mustOpen(t, all, "a")
				}
				r.Session = s
				c := mustCollect(t, m.Generate(t.Context(), r))
				if text += c.text; i > 0 && c.read.Reused != len(c.prompt.IDs)-1 {
					t.Errorf("part %d: %d of %d tokens reused", i, c.read.Reused, len(c.prompt.IDs))
				}
				if kept {
					save(t, s)
					closeSession(t, s)
				}
			}
			if text != whole.text {
				t.Errorf("in parts %q, want %q", text, whole.text)
			}
			closeSession(t, s)
		})
	}
}

// A text that a stop string ended goes on from what was shown, also where the string begins within
// a token.
func TestSessionStopped(t *testing.T) {
	m := openDemo(t, Options{})
	const prompt = "package main\n\nfunc main() {\n"
	whole := mustCollect(t, m.Generate(t.Context(), Request{Prompt: prompt, MaxTokens: 30, Sampling: greedy})).text
	for at := 3; at < 14; at += 2 {
		stop := whole[at : at+4]
		shown, _, _ := strings.Cut(whole, stop)
		want := mustCollect(t, m.Generate(t.Context(), Request{Prompt: prompt + shown + " //", MaxTokens: 8, Sampling: greedy}))
		all := openSessions(t, t.TempDir())
		s := mustOpen(t, all, "a")
		c := mustCollect(t, m.Generate(t.Context(), Request{Session: s, Prompt: prompt, Stop: []string{stop}, MaxTokens: 30, Sampling: greedy}))
		if c.text != shown || c.end.Reason != StopString {
			t.Fatalf("stop %q: %q for %q, want %q", stop, c.text, c.end.Reason, shown)
		}
		save(t, s)
		closeSession(t, s)
		s = mustOpen(t, all, "a")
		c = mustCollect(t, m.Generate(t.Context(), Request{Session: s, Prompt: " //", MaxTokens: 8, Sampling: greedy}))
		if got := m.Tokenizer().Decode(c.prompt.IDs, true); got != prompt+shown+" //" {
			t.Errorf("stop %q: the text goes on from %q, want %q", stop, got, prompt+shown+" //")
		}
		if slices.Equal(c.prompt.IDs, want.prompt.IDs) && c.text != want.text {
			t.Errorf("stop %q: goes on %q, want %q", stop, c.text, want.text)
		}
		if c.read.Reused == 0 {
			t.Errorf("stop %q: the prompt is read again", stop)
		}
		closeSession(t, s)
	}
}

// A conversation that goes on in another process gets the answers of one that never stopped.
func TestSessionOfChat(t *testing.T) {
	m := openDemo(t, Options{})
	for name, system := range map[string]Message{
		"plain": {Role: System, Content: "Be kind."},
		"parts": {Role: System, Parts: []chat.Part{{Text: "Be kind."}, {Text: "Be brief."}}},
	} {
		t.Run(name, func(t *testing.T) { restartsChat(t, m, t.TempDir(), system) })
	}
}

func restartsChat(t *testing.T, m *Model, dir string, system Message) {
	first := []Message{system, {Role: User, Content: "hello"}}
	talk := func(s *Session, messages ...Message) collected {
		return mustCollect(t, m.Chat(t.Context(), Request{Session: s, Messages: messages, MaxTokens: 12, Sampling: greedy}))
	}
	once := new(Session)
	defer closeSession(t, once)
	talk(once, first...)
	talk(once, Message{Role: User, Content: "and then"})
	all := openSessions(t, dir)
	s := mustOpen(t, all, "talk")
	talk(s, first...)
	save(t, s)
	if _, err := openSessions(t, dir).Open("talk"); !errors.Is(err, ErrSessionHeld) {
		t.Errorf("opened twice: %v", err)
	}
	closeSession(t, s)
	s = mustOpen(t, openSessions(t, dir), "talk")
	defer closeSession(t, s)
	if got := s.Messages(); !s.IsChat() || s.IsText() || len(got) != 3 || !reflect.DeepEqual(got[:2], first) {
		t.Errorf("kept %+v", got)
	}
	if c := talk(s, Message{Role: User, Content: "and then"}); c.read.Reused < 20 {
		t.Errorf("%d of %d tokens reused", c.read.Reused, len(c.prompt.IDs))
	}
	if !reflect.DeepEqual(s.Messages(), once.Messages()) {
		t.Errorf("with a restart\n%+v\nin one go\n%+v", s.Messages(), once.Messages())
	}
	if s.Positions() == 0 || s.MadeWith() != m.dir {
		t.Errorf("%d positions, made with %q", s.Positions(), s.MadeWith())
	}
}

// What fails, or is left before it begins, changes nothing of a conversation; what is left later
// is kept as far as it came.
func TestSessionUnanswered(t *testing.T) {
	m := openDemo(t, Options{})
	s := new(Session)
	defer closeSession(t, s)
	ask := Request{Session: s, Messages: []Message{{Role: User, Content: "hello"}}, MaxTokens: 8, Sampling: greedy}
	never := ask
	never.Interrupted = func() bool { return true }
	if c := mustCollect(t, m.Chat(t.Context(), never)); c.end.Reason != StopInterrupted || len(s.Messages()) != 0 {
		t.Errorf("interrupted at once for %q: %+v", c.end.Reason, s.Messages())
	}
	wrong := ask
	wrong.Messages = nil
	if _, err := m.Chat(t.Context(), Request{Session: s, Messages: ask.Messages, MaxTokens: -1}).Wait(); err == nil || len(s.Messages()) != 0 {
		t.Errorf("a wrong request: %v, %+v", err, s.Messages())
	}
	n := 0
	for e, err := range m.Chat(t.Context(), ask) {
		if err != nil {
			t.Fatal(err)
		}
		if _, again := m.Chat(t.Context(), ask).Wait(); !errors.Is(again, ErrBusy) {
			t.Fatalf("two requests at once: %v", again)
		}
		if e.Token != nil {
			if n++; n == 3 {
				break
			}
		}
	}
	if got := s.Messages(); len(got) != 2 || got[1].Role != Assistant {
		t.Errorf("left in the middle: %+v", got)
	}
	if err := s.SetMessages(s.Messages()[:1]); err != nil {
		t.Fatal(err)
	}
	again := ask
	again.Messages = nil
	c := mustCollect(t, m.Chat(t.Context(), again))
	if len(s.Messages()) != 2 {
		t.Errorf("answered again: %+v", s.Messages())
	}
	if u := c.end.Usage; u.Account.Generated != int64(u.NewTokens) || u.Account.Read != int64(u.PromptTokens-u.ReusedTokens+u.NewTokens-1) { // the last one is not read
		t.Errorf("the usage has another request's share: %+v", u)
	}
	if _, err := m.Generate(t.Context(), Request{Session: s, Prompt: "x"}).Wait(); !errors.Is(err, ErrSessionKind) {
		t.Errorf("a text in a conversation: %v", err)
	}
	if err := s.Reset(t.Context()); err != nil || s.Positions() != 0 {
		t.Errorf("reset: %v, %d positions", err, s.Positions())
	}
	if _, err := m.Generate(t.Context(), Request{Session: s, Prompt: "x", MaxTokens: 1}).Wait(); err != nil {
		t.Errorf("a text after a reset: %v", err)
	}
}

func TestSessionErrors(t *testing.T) {
	m := openDemo(t, Options{})
	dir := t.TempDir()
	all := openSessions(t, dir)
	s := mustOpen(t, all, "a")
	if err := s.Save(t.Context()); err == nil {
		t.Error("a session in which nothing was asked is saved")
	}
	mustCollect(t, m.Generate(t.Context(), Request{Session: s, Prompt: "package main", MaxTokens: 4, Sampling: greedy}))
	save(t, s)
	closeSession(t, s)
	if err := new(Session).Save(t.Context()); !errors.Is(err, ErrSessionName) {
		t.Errorf("saved without a name: %v", err)
	}
	if _, err := all.Open("a\nb"); !errors.Is(err, ErrSessionName) {
		t.Errorf("a name of two lines: %v", err)
	}
	other, err := Open(t.Context(), fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), Options{Device: "host"})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(t.Context())
	short := openDemo(t, Options{Config: Config{Context: 3}})
	raw, err := os.ReadFile(all.Path("a"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		m    *Model
		file []byte
		want error
	}{
		{"another model", other, raw, ErrSessionModel},
		{"a short context", short, raw, ErrSessionTooLong},
		{"a damaged state", m, flipped(raw, 5000), ErrSessionDamaged},
		{"a file that was cut", m, raw[:1000], ErrSessionDamaged},
	} {
		if err := os.WriteFile(filepath.Join(dir, "b.snapshot"), c.file, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := all.Open("b")
		if err == nil {
			err = s.Attach(t.Context(), c.m)
			closeSession(t, s)
		}
		if e, ok := errors.AsType[*SessionError](err); !errors.Is(err, c.want) || !ok || e.Path != all.Path("b") {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

func flipped(raw []byte, at int) []byte {
	raw = slices.Clone(raw)
	raw[at] ^= 1
	return raw
}

// A snapshot goes on as a text, also one that does not tell its tokens.
func TestLoadSession(t *testing.T) {
	m := openDemo(t, Options{})
	whole := mustCollect(t, m.Generate(t.Context(), Request{Prompt: "package main\n\nimport", MaxTokens: 12, Sampling: greedy}))
	ids, err := m.Tokenizer().Encode("package main\n\n", true)
	if err != nil {
		t.Fatal(err)
	}
	seq, err := m.Engine().NewSequence(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer seq.Close()
	if _, err := seq.Eval(t.Context(), ids); err != nil {
		t.Fatal(err)
	}
	for name, plain := range map[string]bool{"sealed": false, "plain": true} {
		var file bytes.Buffer
		if _, err := seq.Save(t.Context(), &file, actors.SaveOptions{Plain: plain}); err != nil {
			t.Fatal(err)
		}
		accept := LoadOptions{}
		if plain {
			accept.Accept = snapshot.Plain
		}
		s, err := m.LoadSession(t.Context(), bytes.NewReader(file.Bytes()), int64(file.Len()), accept)
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for i, prompt := range []string{"import", "", ""} {
			text += mustCollect(t, m.Generate(t.Context(), Request{Session: s, Prompt: prompt, MaxTokens: 4, Sampling: greedy})).text
			if s.Positions() != len(ids)+1+4*(i+1)-1 {
				t.Errorf("%s: %d positions after part %d", name, s.Positions(), i)
			}
		}
		if text != whole.text {
			t.Errorf("%s goes on %q, want %q", name, text, whole.text)
		}
		closeSession(t, s)
	}
	if _, err := m.LoadSession(t.Context(), strings.NewReader("no"), 2, LoadOptions{}); err == nil {
		t.Error("two bytes are a state")
	}
}
