package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/gputest"
	"github.com/moeflux/moeflux-actor/internal/converse"
	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/tokenizer/chat"
)

// script plays the person at the terminal: each entry is a line, an error, or a func() to be called
// on the way.
type script struct {
	steps   []any
	prompts []string // what it was asked with
	closed  bool
}

func (s *script) ReadLine(ctx context.Context, prompt string) (string, error) {
	s.prompts = append(s.prompts, prompt)
	for len(s.steps) > 0 {
		step := s.steps[0]
		s.steps = s.steps[1:]
		switch step := step.(type) {
		case string:
			return step, nil
		case error:
			return "", step
		case func():
			step()
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
	}
	return "", io.EOF
}

func (s *script) Close() error {
	s.closed = true
	return nil
}

// chatEnv is a terminal where somebody plays the script.
func chatEnv(s *script) process.Env {
	e := testEnv()
	e.Interrupts = &process.Interrupts{}
	e.Terminal = func(any) bool { return true }
	e.Editor = func() (converse.LineReader, error) { return s, nil }
	return e
}

// talk has a conversation and returns what is on the screen, answers and notes apart.
func talk(t *testing.T, args []string, steps ...any) outcome {
	t.Helper()
	s := &script{steps: steps}
	o := callWith(t.Context(), chatEnv(s), "", append([]string{"run", "--chat"}, args...)...)
	if !s.closed || len(s.steps) > 0 {
		t.Errorf("the terminal was given back: %v; not said: %v; stderr %q", s.closed, s.steps, o.stderr)
	}
	return o
}

// saved is what /save writes.
func saved(t *testing.T, file string) []chat.Message {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	messages, err := chat.ReadMessages(f)
	if err != nil {
		t.Fatal(err)
	}
	return messages
}

var reusedFigure = regexp.MustCompile(`prompt (\d+) tokens(?: \((\d+) reused\))?, `)

// A second turn reads only what is new, and the answer is that of a sequence that reads everything.
// Penalties see what is not read again.
func TestConversation(t *testing.T) {
	t.Run("greedy", func(t *testing.T) { testConversation(t, "-n", "12", "--temperature", "0") })
	t.Run("penalties", func(t *testing.T) {
		testConversation(t, "-n", "12", "--temperature", "0", "--repeat-penalty", "1.5", "--presence-penalty", "1", "--frequency-penalty", "0.5")
	})
}

func testConversation(t *testing.T, args ...string) {
	dir := t.TempDir()
	first, second, both := filepath.Join(dir, "1.json"), filepath.Join(dir, "2.json"), filepath.Join(dir, "3.json")
	o := talk(t, args, "hello", "/stats", "/save "+first, "and then", "/stats", "/save "+both, "/clear", "/load "+first, "and then", "/stats", "/quit")
	fresh := talk(t, args, "/load "+first, "and then", "/stats", "/save "+second, "/quit")
	if o.code != exitOK || fresh.code != exitOK {
		t.Fatalf("exit %d and %d, stderr %q, %q", o.code, fresh.code, o.stderr, fresh.stderr)
	}
	figures := reusedFigure.FindAllStringSubmatch(o.stderr, -1)
	// 13 of the first prompt and 11 of the answer's 12: the last one is not read before the next is
	// wanted. What was cleared is remembered as far as the first prompt went.
	if len(figures) != 3 || figures[0][2] != "" || figures[1][1] != figures[2][1] || figures[1][2] != "24" || figures[2][2] != "13" {
		t.Errorf("figures %q, want 13 tokens, then as many twice, 24 and 13 of them reused", figures)
	}
	if f := reusedFigure.FindStringSubmatch(fresh.stderr); f == nil || f[1] != figures[1][1] || f[2] != "" {
		t.Errorf("figures of a fresh engine %q, want nothing reused", f)
	}
	long, short := saved(t, both), saved(t, second)
	if len(long) != 4 || len(short) != 4 {
		t.Fatalf("%d and %d messages, want 4 and 4", len(long), len(short))
	}
	answers := ""
	for i := range long {
		if !long[i].Equal(short[i]) {
			t.Errorf("message %d is %+v in one go and %+v after loading", i, long[i], short[i])
		}
		if long[i].Role == chat.Assistant {
			answers += strings.TrimSuffix(long[i].Content, "\n") + "\n"
		}
	}
	if last := strings.TrimSuffix(long[3].Content, "\n") + "\n"; o.stdout != answers+last || fresh.stdout != last {
		want := answers + last
		t.Errorf("on the screen %q, want %q", o.stdout, want)
	}
}

// What the model says is not always what encoding its text gives: then the conversation is read
// again from the answer on, and answers stay the same. The fixture's text has parts of characters.
func TestConversationReadsAgain(t *testing.T) {
	model, ref := loadE2E(t)
	dir := t.TempDir()
	first, both, again := filepath.Join(dir, "1.json"), filepath.Join(dir, "2.json"), filepath.Join(dir, "3.json")
	args := []string{"--model", withTemplate(t, model, chatML), "-n", "24", "--system", "Be kind.", "--activations", "f32"}
	o := talk(t, args, ref.Messages[1].Content, "/stats", "/save "+first, "more", "/stats", "/save "+both)
	if messages := saved(t, first); messages[2].Content != ref.DecodeText {
		t.Errorf("the first answer is %q, want that of the reference, %q", messages[2].Content, ref.DecodeText)
	}
	if f := reusedFigure.FindAllStringSubmatch(o.stderr, -1); len(f) != 2 || f[0][2] != "" || f[1][2] != f[0][1] {
		t.Errorf("figures %q, want the first prompt reused", f)
	}
	talk(t, args, "/load "+first, "more", "/save "+again)
	if a, b := saved(t, both), saved(t, again); !a[4].Equal(b[4]) {
		t.Errorf("the second answer is %q, and %q by a fresh sequence", a[4].Content, b[4].Content)
	}
}

// The system message, clearing, trying again.
func TestConversationCommands(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.json")
	o := talk(t, []string{"-n", "3", "--system", "Old."},
		"/system", "/system  New one. ", "/system", "/stats", "/retry", "a", "b", "/retry", "/save "+file, "/clear", "/save "+file, "/system -", "/system",
		"", "  ", "/help", "/nope", "/clear now", "/save", "/load", "/load "+file+".missing", "/load "+file, "//slash", "/save "+file, "/exit")
	if o.code != exitOK {
		t.Fatalf("exit %d, stderr %q", o.code, o.stderr)
	}
	for _, want := range []string{
		"Old.\nNew one.\nthere was no answer yet\nthere is no message to answer again\n", "5 messages in " + file, "1 messages in " + file,
		"there is no system message", "begin a new conversation", "there is no /nope", "/clear takes nothing", "/save FILE\n", "/load FILE\n",
		"c.json.missing: no such file", "1 messages of " + file, "3 messages in " + file,
	} {
		if !strings.Contains(o.stderr, want) {
			t.Errorf("stderr lacks %q:\n%s", want, o.stderr)
		}
	}
	m := saved(t, file)
	if m[0].Content != "New one." || m[1].Content != "/slash" {
		t.Errorf("saved %+v", m)
	}
	if lines := strings.Count(o.stdout, "\n"); lines < 4 {
		t.Errorf("%d answers on the screen, want 4: %q", lines, o.stdout)
	}
}

func TestConversationSavesOverNothing(t *testing.T) {
	file := writeFile(t, "mine", "precious")
	o := talk(t, []string{"-n", "1"}, "/save "+file)
	if data, err := os.ReadFile(file); err != nil || string(data) != "precious" || !strings.Contains(o.stderr, "mine exists") {
		t.Errorf("the file holds %q, %v; stderr %q", data, err, o.stderr)
	}
}

// With a temperature each try is another one, and a seed makes all of them repeatable.
func TestConversationRetries(t *testing.T) {
	args := []string{"-n", "12", "--temperature", "1", "--seed", "5"}
	steps := []any{"hello", "/retry", "/retry"}
	o := talk(t, args, steps...)
	answers := map[string]bool{}
	for line := range strings.SplitSeq(o.stdout, "\n") {
		answers[line] = true
	}
	if len(answers) < 3 {
		t.Errorf("three tries give %q", o.stdout)
	}
	if again := talk(t, args, steps...); again.stdout != o.stdout {
		t.Errorf("the same seed gives %q and %q", o.stdout, again.stdout)
	}
}

func TestConversationLines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.json")
	s := &script{steps: []any{
		`one\`, `two`, `"""`, `/help`, `  three\`, `"""`, `"""four"""`, `half\`, converse.ErrLineDropped, `"""half`, converse.ErrLineDropped, converse.ErrLineDropped, `"""a`, `"""`, "/save " + file, `"""never`, io.EOF,
	}}
	o := callWith(t.Context(), chatEnv(s), "", "run", "--chat", "-n", "1")
	if o.code != exitOK {
		t.Fatalf("exit %d, stderr %q", o.code, o.stderr)
	}
	var said []string
	for _, m := range saved(t, file) {
		if m.Role == chat.User {
			said = append(said, m.Content)
		}
	}
	if got, want := strings.Join(said, "|"), "one\ntwo|/help\n  three\\|four|a"; got != want {
		t.Errorf("said %q, want %q", got, want)
	}
	if got, want := strings.Join(s.prompts, ""), "> . > . . . > > . > . > > . > > . "; got != want {
		t.Errorf("prompts %q, want %q", got, want)
	}
}

// screen is stdout that calls back on the first write of every answer.
type screen struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	press func(written int)
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf.Write(p)
	s.press(s.buf.Len())
	return len(p), nil
}

// Ctrl-C stops the answer and not the conversation, which keeps what was said and goes on from
// there.
func TestConversationInterrupted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.json")
	s := &script{steps: []any{"hello", "/stats", "/save " + file, "and then", "/stats"}}
	e := chatEnv(s)
	out := &screen{press: func(written int) {
		if written > 20 {
			e.Interrupts.Deliver()
		}
	}}
	var errs bytes.Buffer
	code := run(t.Context(), []string{"run", "--chat", "-n", "200"}, strings.NewReader(""), out, &errs, e)
	if code != exitOK || strings.Count(errs.String(), "(stopped)\n") != 2 {
		t.Fatalf("exit %d, stderr %q, want two answers that were stopped", code, errs.String())
	}
	m := saved(t, file)
	if len(m) != 2 || len(m[1].Content) < 15 || len(m[1].Content) > 40 || !strings.HasPrefix(out.buf.String(), m[1].Content) {
		t.Errorf("saved %+v, want the beginning of the answer; on the screen %q", m, out.buf.String())
	}
	// The last token is not read before the next one is wanted, so it is not among the reused ones.
	if f := reusedFigure.FindAllStringSubmatch(errs.String(), -1); len(f) != 2 || f[1][2] == "" {
		t.Errorf("figures %q, want some reused tokens in the second", f)
	}
}

// Ctrl-C before the answer begins takes the message back; where nothing runs it is only a key.
func TestConversationInterruptedEarly(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.json")
	armed := false
	var e process.Env
	s := &script{steps: []any{func() { e.Interrupts.Deliver(); armed = true }, strings.Repeat("package main ", 200), "hello", "/save " + file}}
	e = chatEnv(s)
	now := e.Now
	e.Now = func() time.Time { // it is asked for when an answer is about to begin
		if armed {
			armed = false
			e.Interrupts.Deliver()
		}
		return now()
	}
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"run", "--chat", "-n", "4", "--chunk-rows", "16"}, strings.NewReader(""), &out, &errs, e)
	if code != exitOK || !strings.Contains(errs.String(), "(stopped before the answer began; your message is taken back)") {
		t.Fatalf("exit %d, stderr %q", code, errs.String())
	}
	if m := saved(t, file); len(m) != 2 || m[0].Content != "hello" {
		t.Errorf("saved %+v, want hello and its answer", m)
	}
}

// The second Ctrl-C does not wait for the step under way: what the sequence held is lost, and the
// conversation goes on from what is remembered.
func TestConversationInterruptedTwice(t *testing.T) {
	const stopped = "(stopped; your message is taken back)"
	file := filepath.Join(t.TempDir(), "c.json")
	held := gputest.NewHeld(nil)
	defer time.AfterFunc(time.Minute, held.Release).Stop() // where the answer waits for the step after all
	s := &script{steps: []any{"hello", func() { held.Arm() }, strings.Repeat("package main ", 20), "hello", "/stats", "/save " + file}}
	e := chatEnv(s)
	e.WrapDevice = func(d gpu.Device) gpu.Device {
		held.Device = d
		return held
	}
	var pressing sync.WaitGroup
	pressing.Go(func() {
		<-held.Came
		e.Interrupts.Deliver()
		e.Interrupts.Deliver()
	})
	var out, errs bytes.Buffer
	early := false
	notes := writerFunc(func(p []byte) (int, error) {
		if bytes.Contains(p, []byte(stopped)) {
			select {
			case <-held.Released:
			default:
				early = true
			}
			held.Release()
		}
		return errs.Write(p)
	})
	code := run(t.Context(), []string{"run", "--chat", "-n", "4", "--chunk-rows", "4096"}, strings.NewReader(""), &out, notes, e)
	if code != exitOK || !strings.Contains(errs.String(), stopped) || !early {
		t.Fatalf("exit %d, stopped before the step ended: %v, stderr %q", code, early, errs.String())
	}
	pressing.Wait()
	if f := reusedFigure.FindStringSubmatch(errs.String()); f == nil || f[2] != "13" {
		t.Errorf("figures %q, want the first prompt reused; stderr %q", f, errs.String())
	}
	if m := saved(t, file); len(m) != 4 || m[2].Content != "hello" || m[3].Role != chat.Assistant {
		t.Errorf("saved %+v, want two messages and their answers", m)
	}
}

// A conversation that does not fit ends the turn and not the program.
func TestConversationTooLong(t *testing.T) {
	o := talk(t, []string{"--ctx", "40", "-n", "0"}, strings.Repeat("word ", 50), "hi", "/stats", "again", "/clear", "hi")
	for _, want := range []string{"context of 40", "/clear begins a new one", "(the context is full", "of 40 positions"} {
		if o.code != exitOK || !strings.Contains(o.stderr, want) {
			t.Errorf("exit %d, stderr lacks %q: %s", o.code, want, o.stderr)
		}
	}
}

// SIGTERM ends the conversation wherever it is.
func TestConversationTerminated(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	s := &script{steps: []any{"hello", func() { cancel(process.Signalled{Signal: os.Interrupt}) }, "never"}}
	o := callWith(ctx, chatEnv(s), "", "run", "--chat", "-n", "2")
	if o.code != exitInterrupted || !s.closed || !strings.Contains(o.stderr, "signal received") {
		t.Errorf("exit %d, stderr %q, given back %v; want %d", o.code, o.stderr, s.closed, exitInterrupted)
	}
}

// A terminal that understands no escape sequences gets plain lines. Ctrl-C at the prompt then is a
// signal, and ends.
func TestConversationOnADumbTerminal(t *testing.T) {
	e := testEnv()
	e.Interrupts, e.Dumb = &process.Interrupts{}, true
	e.Terminal = func(any) bool { return true }
	o := callWith(t.Context(), e, "hello\r\n/stats\n", "run", "--chat", "-n", "3")
	if o.code != exitOK || !strings.Contains(o.stderr, "> ") || !strings.Contains(o.stderr, "2 messages") || o.stdout == "" {
		t.Errorf("exit %d, stdout %q, stderr %q", o.code, o.stdout, o.stderr)
	}
	r, w := io.Pipe()
	defer w.Close()
	go func() {
		io.WriteString(w, "hello\n/stats\n")
		io.WriteString(w, "x") // read when the prompt for the third line is there
		e.Interrupts.Deliver()
	}()
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"run", "--chat", "-n", "3"}, r, &out, &errs, e); code != exitInterrupted {
		t.Errorf("exit %d, stderr %q, want %d", code, errs.String(), exitInterrupted)
	}
}

func TestConversationWithJSON(t *testing.T) {
	e := chatEnv(&script{})
	o := callWith(t.Context(), e, "", "run", "--chat", "--json")
	if o.code != exitUsage || !strings.Contains(o.stderr, "--json prints one answer") {
		t.Errorf("exit %d, stderr %q, want %d", o.code, o.stderr, exitUsage)
	}
}

// What is saved is what other programs read.
func TestConversationFile(t *testing.T) {
	model, _ := loadE2E(t)
	file := filepath.Join(t.TempDir(), "c.json")
	talk(t, []string{"--model", withTemplate(t, model, opening), "-n", "24", "--temperature", "1", "--seed", "3", "--logit-bias", "510=5"}, "<é>", "/save "+file)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var messages []map[string]string
	if err := json.Unmarshal(data, &messages); err != nil || len(messages) != 2 {
		t.Fatalf("%s: %v", data, err)
	}
	if !strings.Contains(string(data), `"<é>"`) || messages[1]["reasoning_content"] == "" || messages[1]["content"] == "" || len(messages[0]) != 2 {
		t.Errorf("saved %s, want reasoning and content apart", data)
	}
}
