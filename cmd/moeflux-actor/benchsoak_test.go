package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/internal/bench"
)

// soaked soaks two sequences whose texts have 4 and 6 tokens, until new texts have been started. On
// a slow machine it tries again with more time.
func soaked(t *testing.T, args []string) (*bench.SoakResult, outcome) {
	for seconds := 1; ; seconds *= 2 {
		o := mustCall(t, "", append(args, "--json", "--soak", fmt.Sprintf("%ds", seconds))...)
		var r bench.SoakResult
		dec := json.NewDecoder(strings.NewReader(o.stdout))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&r); err != nil {
			t.Fatalf("stdout %q: %v", o.stdout, err)
		}
		if r.Asked != float64(seconds) || r.Seconds < r.Asked {
			t.Fatalf("%g s of %g, want %d and more", r.Seconds, r.Asked, seconds)
		}
		if r.Texts > 2 {
			return &r, o
		}
		t.Logf("%d texts in %g s: again with more time", r.Texts, r.Seconds)
	}
}

// A short soak prints a line for every window, restarts texts, and ends with the verdict.
func TestSoak(t *testing.T) {
	args := []string{"bench", "--sequences", "2", "--prompt-tokens", "4", "--gen-tokens", "6", "--warmup", "2", "--threads", "1"}
	r, o := soaked(t, args)
	if r.Sequences != 2 || r.PromptTokens != 4 || r.GenTokens != 6 || r.Threads != 1 || r.WarmupTokens != 2 || r.Interrupted {
		t.Errorf("the setting is %+v", r)
	}
	// before it there may be a line that says that the model is unpacked
	_, lines, headed := strings.Cut(o.stderr, bench.SoakHeads)
	if len(r.Windows) < 1 || len(r.Windows) > 11 || !headed || strings.Count(lines, "\n") != 1+len(r.Windows) {
		t.Errorf("%d windows and stderr %q, want up to 10 and a line for each", len(r.Windows), o.stderr)
	}
	tokens, prompted, seconds := int64(0), int64(0), 0.0
	for i, w := range r.Windows {
		tokens, prompted, seconds = tokens+w.Tokens, prompted+w.PromptTokens, seconds+w.Seconds
		if w.Seconds < r.Asked/20 || math.Abs(w.TokensPerSecond*w.Seconds-float64(w.Tokens)) > 1e-6*float64(w.Tokens) || w.Heap < 1<<10 || w.Goroutines < 2 || w.Allocations < 0 {
			t.Errorf("window %d: %+v, want tokens and what they cost", i, w)
		}
		if w.Own != nil && (*w.Own < 1<<20 || *w.Resident < *w.Own) {
			t.Errorf("window %d: %d bytes resident, %d its own", i, *w.Resident, *w.Own)
		}
	}
	// Windows follow one another from the beginning, and leave out less than half of one at the
	// end.
	const rounding = 1e-6 // seconds
	if rest := r.Seconds - seconds; rest < -rounding || rest > r.Asked/20+rounding {
		t.Errorf("%d windows of %g s in all in a soak of %g s", len(r.Windows), seconds, r.Seconds)
	} else if tokens > r.Tokens || rest < rounding && tokens != r.Tokens {
		t.Errorf("windows have %d of %d tokens and leave out %g s", tokens, r.Tokens, rest)
	}
	// Each text had 6 tokens, except for the first one of a sequence, which had 3. The last of each
	// sequence may be incomplete.
	if least, most := 6*r.Texts-3, 6*r.Texts-3+2*5; r.Tokens < least || r.Tokens > most {
		t.Errorf("%d texts ended and %d tokens, want %d to %d", r.Texts, r.Tokens, least, most)
	}
	// A prompt follows each complete text, except the last of each sequence. Prompts that the
	// windows leave out may follow one text of each sequence within them; the others follow texts
	// that ended later, with at most 5 tokens within the windows, or shorter by 3.
	if prompted%4 != 0 || prompted > 4*r.Texts || r.Texts-prompted/4 > 2+2+(r.Tokens-tokens+2*5+3)/6 {
		t.Errorf("%d prompt tokens for %d texts, with %d tokens left out", prompted, r.Texts, r.Tokens-tokens)
	}
	again := &bench.SoakResult{Windows: r.Windows}
	if again.Judge(); !reflect.DeepEqual(again.Verdict, r.Verdict) || r.Verdict.Allocations <= 0 {
		t.Errorf("verdict %+v, want that of the windows, %+v", r.Verdict, again.Verdict)
	}
	args = append(args, "--soak", "1s")
	// Without --gen-tokens a text has 256 tokens, or as many as the context allows.
	if o := mustCall(t, "", "bench", "--soak", "1s", "--ctx", "20", "--prompt-tokens", "4", "--warmup", "0"); !strings.Contains(o.stdout, "1 text of 4 random prompt tokens and 16 decoded") {
		t.Errorf("a context of 20: %s", o.stdout)
	}
	if o := mustCall(t, "", args...); !regexp.MustCompile(`(?s)^model .*\nsoak +1 s, 2 texts of 4 random prompt tokens and 6 decoded; .*tokens/s.*\nverdict: .*texts?\n$`).MatchString(o.stdout) || o.stderr != "" {
		t.Errorf("stdout %q, stderr %q", o.stdout, o.stderr)
	}
}

func TestSoakJSON(t *testing.T) {
	r := &bench.SoakResult{Windows: []bench.SoakWindow{{}}}
	for _, c := range []struct{ path, want string }{
		{"", sortedWords(settingKeys, "gen_tokens interrupted prompt_tokens seconds sequences soak_seconds texts tokens verdict windows")},
		{"windows", "allocations_per_token goroutines heap_bytes own_bytes prompt_tokens resident_bytes seconds tokens tokens_per_second"},
		{"verdict", "allocations_per_token findings first_tokens_per_second goroutine_growth heap_growth_bytes last_tokens_per_second own_growth_bytes steady"},
	} {
		if got := keysOf(t, r, strings.Fields(c.path)...); got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.path, got, c.want)
		}
	}
}

// Ctrl-C ends a soak early and cleanly; the windows until then and the verdict are printed.
func TestSoakInterrupted(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines int // of columns and windows, before it
		want  string
	}{{"in the warm-up", 0, "warming up"}, {"while it runs", 2, "verdict: interrupted after "}} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			out := &cancelAt{lines: c.lines, cancel: cancel}
			if c.lines == 0 {
				cancel()
			}
			var errs strings.Builder
			code := run(ctx, []string{"bench", "--soak", "10s", "--sequences", "2", "--prompt-tokens", "4", "--warmup", "2"}, strings.NewReader(""), out, &errs, testEnv())
			if all := out.text.String() + errs.String(); code != exitInterrupted || c.lines > 0 && !strings.Contains(all, c.want) {
				t.Errorf("exit %d, stdout %q, stderr %q; want %d and %q", code, out.text.String(), errs.String(), exitInterrupted, c.want)
			}
		})
	}
}

// cancelAt is a stdout that cancels after some writes.
type cancelAt struct {
	text   strings.Builder
	lines  int
	cancel func()
}

func (c *cancelAt) Write(p []byte) (int, error) {
	if c.lines--; c.lines == 0 {
		c.cancel()
	}
	return c.text.Write(p)
}

// A soak whose output goes nowhere stops at once.
func TestSoakStdoutFails(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
	}{{io.ErrClosedPipe, exitOK}, {errors.New("no space left on device"), exitFailed}} {
		var errs strings.Builder
		begin := time.Now()
		code := run(t.Context(), []string{"bench", "--soak", "10m", "--prompt-tokens", "4", "--warmup", "2"}, strings.NewReader(""), badWriter{c.err}, &errs, testEnv())
		if code != c.code || time.Since(begin) > time.Minute {
			t.Errorf("%v: exit %d after %v, stderr %q; want %d", c.err, code, time.Since(begin), errs.String(), c.code)
		}
	}
}

func TestSoakVerdict(t *testing.T) {
	window := func(speed float64, own, heap int64, goroutines int) bench.SoakWindow {
		return bench.SoakWindow{Seconds: 60, Tokens: 100, TokensPerSecond: speed, Own: &own, Heap: heap, Goroutines: goroutines, Allocations: 3}
	}
	still := window(50, 100<<20, 10<<20, 20)
	for _, c := range []struct {
		name     string
		windows  []bench.SoakWindow
		findings []string
		says     string
	}{
		{"one window", []bench.SoakWindow{still}, nil, "verdict: steady; first 50.00, last 50.00 tokens/s (+0.0%); own memory +0 B, heap +0 B, goroutines +0; 3.0 allocations a token"},
		{"steady", []bench.SoakWindow{still, window(45, 110<<20, 11<<20, 22), still, window(48, 110<<20, 9<<20, 24)}, nil, "last 48.00 tokens/s (-4.0%); own memory +10.0 MiB, heap -1.00 MiB, goroutines +4"},
		{"slower", []bench.SoakWindow{still, still, still, window(47, 100<<20, 10<<20, 20)}, []string{"slower by 6.0%"}, "not steady, slower by 6.0%; first"},
		{"a slow minute in the middle", []bench.SoakWindow{still, window(30, 100<<20, 10<<20, 20), still, still}, nil, "steady"},
		{"grows", []bench.SoakWindow{still, still, still, window(50, 150<<20, 20<<20, 30)},
			[]string{"own memory grew by 50.0 MiB", "the Go heap grew by 10.0 MiB", "10 more goroutines"}, "not steady, own memory grew by 50.0 MiB, "},
	} {
		r := &bench.SoakResult{Windows: c.windows}
		r.Judge()
		if strings.Join(r.Verdict.Findings, ", ") != strings.Join(c.findings, ", ") || r.Verdict.Steady != (len(c.findings) == 0) || !strings.Contains(r.Text(), c.says) {
			t.Errorf("%s: %+v\n%s\nwant %q and %q", c.name, r.Verdict, r.Text(), c.findings, c.says)
		}
	}
	still.Own = nil
	r := &bench.SoakResult{Windows: []bench.SoakWindow{still, still}, Interrupted: true, Seconds: 77}
	r.Judge()
	if got := r.Text(); r.Verdict.Own != nil || !strings.Contains(got, "own memory unknown") || !strings.Contains(got, "interrupted after 77 s; steady until then") {
		t.Errorf("if the system does not say: %s", got)
	}
}
