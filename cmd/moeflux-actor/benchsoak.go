package main

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/moeflux/moeflux-actor/internal/sysmem"
)

const (
	soakLeast  = time.Second
	soakWindow = time.Minute // or a tenth of a shorter soak
	soakTick   = time.Second // the interval of the bar, and at which windows may end
)

// soak decodes for the requested time and prints the figures of every minute and the verdict.
func (c *benchCmd) soak(ctx context.Context, inv *invocation, s *session) error {
	warmPrompt, warm, err := c.fits(s)
	if err != nil {
		return err
	}
	prompts, err := newBenchPrompts(s, c.PromptTokens[0]+c.GenTokens)
	if err != nil {
		return err
	}
	r := &soakResult{PromptTokens: c.PromptTokens[0], GenTokens: c.GenTokens, Sequences: c.Sequences[0], Asked: c.Soak.Seconds()}
	if r.benchSetting, err = settingOf(s, &c.engineFlags); err != nil {
		return err
	}
	r.Prompts, r.WarmupTokens = prompts.kind, warm
	b, err := newBenchRunner(ctx, inv, s, &r.benchSetting, r.Sequences)
	if err != nil {
		return err
	}
	defer b.close()
	b.total = int64(warmPrompt + warm)
	if err := b.warmUp(ctx, prompts.of(0, r.Sequences, warmPrompt), warm); err != nil {
		return err
	}
	k := &soaker{b: b, r: r, prompts: prompts, json: c.JSON}
	k.next.Store(int64(r.Sequences))
	err = k.run(ctx, c.Soak)
	if r.Interrupted = err != nil && stopped(ctx, err); err != nil && (!r.Interrupted || len(r.Windows) == 0) {
		return err
	}
	r.judge()
	if err := c.print(inv, r, func() string { return r.verdict() + "\n" }); err != nil {
		return err
	}
	if r.Interrupted {
		return errInterrupted
	}
	return nil
}

// soaker runs the runner's sequences and watches them.
type soaker struct {
	b       *benchRunner
	r       *soakResult
	prompts *benchPrompts
	json    bool

	next              atomic.Int64 // the number of the next prompt
	decoded, prompted atomic.Int64 // tokens since the last window
	texts             atomic.Int64 // that are complete
	over              atomic.Bool  // decode no further token
}

// run soaks for d. If ctx ends earlier, run returns its error.
func (k *soaker) run(ctx context.Context, d time.Duration) error {
	if err := k.header(); err != nil {
		return err
	}
	if err := k.begin(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	length := min(soakWindow, d/10)
	start, done := k.b.inv.env.now(), make(chan error, 1)
	w := startWindow(start)
	go func() { done <- together(ctx, k.r.Sequences, k.decode) }()
	tick := time.NewTicker(min(length/4, soakTick))
	defer tick.Stop()
	var failed error // of writing
	for {
		select {
		case <-tick.C:
			now := k.b.inv.env.now()
			if k.b.inv.stderrTerminal {
				k.b.bar.update("soak", int64(now.Sub(start).Seconds()), int64(d.Seconds()), formatCount)
			}
			if now.Sub(start) >= d {
				k.over.Store(true)
			} else if now.Sub(w.start) >= length && failed == nil {
				if w, failed = k.end(w, now); failed != nil {
					cancel()
				}
			}
		case err := <-done:
			if failed != nil {
				return failed
			}
			now := k.b.inv.env.now()
			k.r.Seconds, k.r.Texts = now.Sub(start).Seconds(), k.texts.Load()
			k.r.Tokens = k.decoded.Load()
			for _, w := range k.r.Windows {
				k.r.Tokens += w.Tokens
			}
			// A short last window would show nothing but chance.
			if (err == nil || stopped(ctx, err)) && (2*now.Sub(w.start) >= length || len(k.r.Windows) == 0 && k.decoded.Load() > 0) {
				_, failed = k.end(w, now)
				err = errors.Join(err, failed)
			}
			return err
		}
	}
}

// begin evaluates the first prompts, before the time begins.
func (k *soaker) begin(ctx context.Context) error {
	err := together(ctx, k.r.Sequences, k.prompt)
	k.prompted.Store(0)
	return err
}

// prompt empties sequence i and evaluates the next prompt with it.
func (k *soaker) prompt(ctx context.Context, i int) error {
	t := k.b.texts[i]
	if err := t.Reset(ctx); err != nil {
		return err
	}
	if err := t.read(ctx, k.prompts.prompt(int(k.next.Add(1)-1), k.r.PromptTokens)); err != nil {
		return err
	}
	k.prompted.Add(int64(k.r.PromptTokens))
	return nil
}

// decode decodes one text after another with sequence i, whose first prompt has been evaluated,
// until the soak is over.
func (k *soaker) decode(ctx context.Context, i int) error {
	limit := max(1, k.r.GenTokens*(i+1)/k.r.Sequences) // so that texts end at different times
	for {
		if err := k.text(ctx, i, limit); err != nil || k.over.Load() {
			return err
		}
		if err := k.prompt(ctx, i); err != nil {
			return err
		}
		limit = k.r.GenTokens
	}
}

// text decodes limit tokens after a prompt, or fewer if the soak ends.
func (k *soaker) text(ctx context.Context, i, limit int) error {
	ctx, end := k.b.s.span(ctx, "moeflux.bench")
	defer end()
	t := k.b.texts[i]
	for n := 0; n < limit; n++ {
		if k.over.Load() {
			return nil
		}
		if err := t.read(ctx, t.next); err != nil {
			return err
		}
		k.decoded.Add(1)
	}
	k.texts.Add(1)
	return nil
}

// openWindow is a window that has begun.
type openWindow struct {
	start   time.Time
	mallocs uint64
}

func startWindow(now time.Time) openWindow {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return openWindow{now, m.Mallocs}
}

// end measures a window, prints its line and begins the next one, in which its own few allocations
// count.
func (k *soaker) end(w openWindow, now time.Time) (openWindow, error) {
	next := startWindow(now)
	v := soakFigures{Tokens: k.decoded.Swap(0), PromptTokens: k.prompted.Swap(0), Goroutines: runtime.NumGoroutine()}
	v.Seconds, v.TokensPerSecond = speed(int(v.Tokens), w.start, now)
	v.Allocations = float64(next.mallocs-w.mallocs) / float64(max(v.Tokens, 1))
	var m runtime.MemStats
	runtime.GC() // so that only live objects count
	runtime.ReadMemStats(&m)
	v.Heap = int64(m.HeapAlloc)
	resident, err := sysmem.ReadResident()
	switch {
	case err == nil:
		v.Resident, v.Own = &resident.All, &resident.Own
	case !errors.Is(err, sysmem.ErrUnknown):
		return next, err
	}
	k.r.Windows = append(k.r.Windows, v)
	return next, k.line(v.line(k.r.elapsed()))
}

// header prints the setting and the column heads.
func (k *soaker) header() error {
	var b strings.Builder
	if !k.json {
		k.r.head(&b)
		figureLine(&b, "soak", "%.0f s, %s of %d %s prompt tokens and %d decoded; %s, %s decoded before",
			k.r.Asked, counted(int64(k.r.Sequences), "text"), k.r.PromptTokens, k.r.Prompts, k.r.GenTokens, k.r.State, counted(int64(k.r.WarmupTokens), "token"))
		b.WriteByte('\n')
	}
	b.WriteString(soakColumns)
	return k.line(b.String())
}

// line prints a line at once: to stdout, or to stderr if stdout is for JSON.
func (k *soaker) line(text string) error {
	k.b.bar.clear()
	if k.json {
		k.b.inv.say("%s", text)
		return nil
	}
	_, err := k.b.inv.stdout.Write([]byte(text + "\n"))
	return err
}
