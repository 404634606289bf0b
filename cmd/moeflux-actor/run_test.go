package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/tokenizer/chat"
)

// e2e is a conversation of the fixture model, as the reference implementation continues it.
type e2e struct {
	Messages   []chat.Message `json:"messages"`
	Text       string         `json:"text"`
	IDs        []int32        `json:"ids"`
	DecodeIDs  []int32        `json:"decode_ids"`
	DecodeText string         `json:"decode_text"`
}

func loadE2E(t *testing.T) (model string, ref e2e) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(fixtures.Dir(t, fixtures.Qwen35MoEQ4), "e2e.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &ref); err != nil {
		t.Fatal(err)
	}
	return fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), ref
}

// parseRun reads what run --json prints, without letting unknown keys pass.
func parseRun(t *testing.T, o outcome) runResult {
	t.Helper()
	var r runResult
	dec := json.NewDecoder(strings.NewReader(o.stdout))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil || strings.Count(o.stdout, "\n") != 1 {
		t.Fatalf("stdout is %q, want one line of JSON: %v", o.stdout, err)
	}
	return r
}

func TestRunContinuesAsTheReference(t *testing.T) {
	model, ref := loadE2E(t)
	for _, c := range []struct {
		name  string
		flags []string
		stdin string
	}{
		{"-p", []string{"-p", ref.Text}, ""},
		{"-f", []string{"-f", writeFile(t, "prompt", ref.Text)}, ""},
		{"stdin", []string{"-"}, ref.Text},
		{"piped without a word", nil, ref.Text},
		{"one expert at a time", []string{"-p", ref.Text, "--expert-io", "buffered", "--expert-memory", "2MiB", "--ring-depth", "1", "--prefetch", "off", "--chunk-rows", "7", "--threads", "1"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"run", "--model", model, "-n", "24", "--json", "--activations", "f32"}, c.flags...)
			o := mustCall(t, c.stdin, args...)
			r := parseRun(t, o)
			if !slices.Equal(r.PromptIDs, ref.IDs) || !slices.Equal(r.NewIDs, ref.DecodeIDs) || r.Text != ref.DecodeText || r.StopReason != "length" {
				t.Errorf("got ids %v, new ids %v, text %q, reason %q\nwant %v, %v, %q, length", r.PromptIDs, r.NewIDs, r.Text, r.StopReason, ref.IDs, ref.DecodeIDs, ref.DecodeText)
			}
			checkFigures(t, o.stderr, r)
		})
	}
	// Without --json the same text is streamed, to the byte.
	if o := mustCall(t, "", "run", "--model", model, "-n", "24", "-p", ref.Text, "--activations", "f32"); o.stdout != ref.DecodeText {
		t.Errorf("streamed %q, want %q", o.stdout, ref.DecodeText)
	}
}

func checkFigures(t *testing.T, stderr string, r runResult) {
	t.Helper()
	s := r.Stats
	if s.PromptTokens != len(r.PromptIDs) || s.DecodeTokens != len(r.NewIDs)-1 || s.PromptTokensPerSecond <= 0 || s.DecodeTokensPerSecond <= 0 ||
		s.TimeToFirstTokenSeconds <= s.PromptSeconds || s.ExpertHits+s.ExpertMisses == 0 || s.ExpertHitRate < 0 || s.ExpertHitRate > 1 || s.Seed != nil {
		t.Errorf("figures %+v do not fit %d and %d tokens", s, len(r.PromptIDs), len(r.NewIDs))
	}
	const picks = 8 * 4 // of a token of the demo model: layers by experts
	if a := s.Account; a == nil || a.Requests == 0 || int(a.Read) != s.PromptTokens+s.DecodeTokens || a.Hit+a.Late+a.Missed != picks*a.Read || a.Total <= 0 {
		t.Errorf("account %+v, want that of %d tokens with %d picks each", a, s.PromptTokens+s.DecodeTokens, picks)
	}
	if !strings.Contains(s.Exactness, "activations=f32 kv=f32") {
		t.Errorf("exactness %q", s.Exactness)
	}
	if demanded := s.BytesRead - s.BytesAhead - s.BytesWarm; (s.ExpertMisses > 0) != (demanded > 0) {
		t.Errorf("%d misses and %d bytes read for them, want both or none", s.ExpertMisses, demanded)
	}
	if s.Compute <= 0 || s.Decode == nil || s.Decode.Compute >= s.Compute || len(s.Layers) == 0 {
		t.Errorf("times %+v, of decoding %+v, of %d layers", s.Times, s.Decode, len(s.Layers))
	}
	if stderr != s.line()+"\n" || !strings.Contains(stderr, "tokens/s") {
		t.Errorf("stderr %q, want the line %q", stderr, s.line())
	}
}

func TestRunStops(t *testing.T) {
	model, ref := loadE2E(t)
	text := ref.DecodeText
	base := []string{"run", "--model", model, "-p", ref.Text, "-n", "24", "--activations", "f32"}
	for _, c := range []struct {
		name, want, reason string
		flags              []string
	}{
		{"stop string across tokens", text[:strings.Index(text, "p5 j")], "stop", []string{"--stop", "p5 j"}},
		{"first of two", text[:strings.Index(text, "top5")], "stop", []string{"--stop", "<tool_call>", "--stop", "top5"}},
		{"a comma in it", text, "length", []string{"--stop", "t,o"}},
		{"never met", text, "length", []string{"--stop", " k and more"}},
		{"context", "", "context", []string{"--ctx", "50", "-n", "0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := parseRun(t, mustCall(t, "", slices.Concat(base, c.flags, []string{"--json"})...))
			if string(r.StopReason) != c.reason || c.want != "" && r.Text != c.want || !strings.HasPrefix(text, r.Text[:len(r.Text)/2]) {
				t.Errorf("text %q, reason %q; want %q, %q", r.Text, r.StopReason, c.want, c.reason)
			}
			if c.reason == "context" && len(ref.IDs)+len(r.NewIDs)-1 != 50 {
				t.Errorf("%d + %d ids in a context of 50", len(ref.IDs), len(r.NewIDs))
			}
			if o := mustCall(t, "", slices.Concat(base, c.flags)...); o.stdout != r.Text {
				t.Errorf("streamed %q, want %q", o.stdout, r.Text)
			}
		})
	}
	o := call(t, "", append(base, "--ctx", "10")...)
	if o.code != exitFailed || !strings.Contains(o.stderr, "context of 10") {
		t.Errorf("a prompt of %d ids in a context of 10: exit %d, stderr %q", len(ref.IDs), o.code, o.stderr)
	}
	checkErrorLine(t, o)
}

func TestRunSampling(t *testing.T) {
	model, ref := loadE2E(t)
	draw := func(flags ...string) runResult {
		return parseRun(t, mustCall(t, "", append([]string{"run", "--model", model, "-p", ref.Text, "-n", "12", "--json", "--temperature", "1.5", "--activations", "f32"}, flags...)...))
	}
	a, b, c, d := draw("--seed", "1"), draw("--seed", "1"), draw("--seed", "2"), draw()
	if !slices.Equal(a.NewIDs, b.NewIDs) || slices.Equal(a.NewIDs, c.NewIDs) {
		t.Errorf("seed 1 gives %v and %v, seed 2 %v", a.NewIDs, b.NewIDs, c.NewIDs)
	}
	if d.Stats.Seed == nil || *d.Stats.Seed != 42 || !slices.Equal(d.NewIDs, draw("--seed", "42").NewIDs) {
		t.Errorf("a drawn seed is reported as %v and gives %v, want 42 and what --seed 42 gives", d.Stats.Seed, d.NewIDs)
	}
	if k := draw("--top-k", "1", "--seed", "3"); !slices.Equal(k.NewIDs, ref.DecodeIDs[:12]) {
		t.Errorf("top-k 1 gives %v, want the greedy %v", k.NewIDs, ref.DecodeIDs[:12])
	}
}

func TestRunWithFewerExperts(t *testing.T) {
	model, ref := loadE2E(t)
	o := mustCall(t, "", "run", "--model", model, "-p", ref.Text, "-n", "4", "--experts-per-token", "2")
	if !strings.Contains(o.stderr, "2 experts per token in place of the model's 4: results differ") {
		t.Errorf("stderr %q does not say that results differ", o.stderr)
	}
	if o := mustCall(t, "", "inspect", model, "--experts-per-token", "2"); !strings.Contains(o.stderr, "2 experts per token in place of the model's") {
		t.Errorf("inspect says %q of fewer experts", o.stderr)
	}
	if o := call(t, "", "run", "--model", model, "-p", ref.Text, "--experts-per-token", "-1"); o.code != exitUsage {
		t.Errorf("-1 experts per token: exit %d, stderr %q, want %d", o.code, o.stderr, exitUsage)
	}
}

// writerFunc calls back on every write.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestRunInterrupted(t *testing.T) {
	model, ref := loadE2E(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var text, errs bytes.Buffer
	out := writerFunc(func(p []byte) (int, error) { cancel(); return text.Write(p) })
	code := run(ctx, []string{"run", "--model", model, "-p", ref.Text, "-n", "0", "--ctx", "4000", "--activations", "f32"}, strings.NewReader(""), out, &errs, testEnv())
	if code != exitInterrupted || !strings.HasPrefix(text.String(), "J") || utf8.RuneCountInString(text.String()) > 50 {
		t.Errorf("exit %d, text %q, want %d and the beginning of the text", code, text.String(), exitInterrupted)
	}
	if strings.Count(errs.String(), "\n") != 1 || !strings.HasPrefix(errs.String(), "prompt 44 tokens, ") {
		t.Errorf("stderr %q, want the line of figures alone", errs.String())
	}
	o := callWith(ctx, testEnv(), "", "run", "--model", model, "-p", ref.Text)
	if o.code != exitInterrupted {
		t.Errorf("interrupted before it began: exit %d, stderr %q, want %d", o.code, o.stderr, exitInterrupted)
	}
}

func TestRunIntoAClosedPipe(t *testing.T) {
	model, ref := loadE2E(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	seen := make(chan struct{})
	go func() {
		defer close(seen)
		io.ReadFull(r, make([]byte, 3))
		r.Close()
	}()
	out := writerFunc(func(p []byte) (int, error) {
		n, err := w.Write(p)
		if n >= 3 {
			<-seen
		}
		return n, err
	})
	var errs bytes.Buffer
	code := run(t.Context(), []string{"run", "--model", model, "-p", ref.Text, "-n", "24"}, strings.NewReader(""), out, &errs, testEnv())
	if code != exitOK || errs.Len() != 0 {
		t.Errorf("exit %d, stderr %q, want %d and silence", code, errs.String(), exitOK)
	}
}

// On a terminal the text ends with a line feed, and only there.
func TestRunOnATerminal(t *testing.T) {
	model, ref := loadE2E(t)
	e := testEnv()
	e.Terminal = func(stream any) bool { _, isOut := stream.(*bytes.Buffer); return isOut }
	o := callWith(t.Context(), e, "", "run", "--model", model, "-p", ref.Text, "-n", "24", "--activations", "f32")
	if o.code != exitOK || o.stdout != ref.DecodeText+"\n" {
		t.Errorf("exit %d, text %q, want %q", o.code, o.stdout, ref.DecodeText+"\n")
	}
}

func TestRunTraced(t *testing.T) {
	model, ref := loadE2E(t)
	o := mustCall(t, "", "run", "--model", model, "-p", ref.Text, "-n", "8", "--json", "--trace", "stdout")
	names, results := map[string]int{}, 0
	for line := range strings.Lines(o.stdout) {
		var span struct{ Name string }
		if err := json.Unmarshal([]byte(line), &span); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		if span.Name == "" {
			results++
		}
		names[span.Name]++
	}
	if results != 1 || names["moeflux.run"] != 1 || names["moeflux.eval"] != 8 || names["moeflux.step"] != 8 || names["moeflux.layer"] != 8*8 {
		t.Errorf("spans %v and %d results, want one run, 8 evaluations of a step of 8 layers each and one result", names, results)
	}
	o = mustCall(t, "", "run", "--model", model, "-p", ref.Text, "-n", "8", "--trace", "stdout")
	for line := range strings.Lines(o.stdout) {
		if strings.Contains(line, `"SpanContext"`) && !json.Valid([]byte(line)) {
			t.Errorf("a span does not stand on a line of its own: %.80q", line)
		}
	}
}
