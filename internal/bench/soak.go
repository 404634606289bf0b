package bench

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/moeflux/moeflux-actor/internal/figures"
	"github.com/moeflux/moeflux-actor/internal/sysmem"
)

const (
	soakGen    = 256         // tokens decoded after a prompt, or what the context leaves
	soakWindow = time.Minute // or a tenth of a shorter soak
	soakTick   = time.Second // the interval of progress, and at which windows may end
)

// Watch is told of a soak under way. Its error ends the soak.
type Watch interface {
	Begin(*SoakResult) error                       // the setting is known, and texts begin
	Window(end time.Duration, w *SoakWindow) error // a window has ended, so long after the beginning
}

// Soak lets texts decode for d and tells what every minute brought. A text that has decoded all its
// tokens begins anew with the next prompt. Options have one length of prompts and one number of
// sequences.
func Soak(ctx context.Context, h *Host, m *Model, o Options, d time.Duration, watch Watch) (*SoakResult, error) {
	info := m.Engine.Info()
	warmPrompt, warm, err := o.fit(&info, max(1, min(soakGen, info.Context-o.PromptTokens[0])))
	if err != nil {
		return nil, err
	}
	k := &soak{r: &SoakResult{PromptTokens: o.PromptTokens[0], GenTokens: o.GenTokens, Sequences: o.Sequences[0], Asked: d.Seconds()}, watch: watch}
	if k.prompts, err = newPrompts(m, o.PromptTokens[0]+o.GenTokens); err != nil {
		return nil, err
	}
	if k.r.Setting, err = settingOf(m); err != nil {
		return nil, err
	}
	k.r.Prompts, k.r.WarmupTokens = k.prompts.kind, warm
	if k.runner, err = newRunner(ctx, h, m, &k.r.Setting, k.r.Sequences); err != nil {
		return nil, err
	}
	defer k.runner.close()
	k.runner.total = int64(warmPrompt + warm)
	if err := k.runner.warmUp(ctx, k.prompts.of(0, k.r.Sequences, warmPrompt), warm); err != nil {
		return nil, err
	}
	k.next.Store(int64(k.r.Sequences))
	err = k.run(ctx, d)
	if k.r.Interrupted = err != nil && stopped(ctx, err); err != nil && (!k.r.Interrupted || len(k.r.Windows) == 0) {
		return nil, err
	}
	k.r.Judge()
	return k.r, nil
}

// soak runs the runner's sequences and watches them.
type soak struct {
	runner  *runner
	r       *SoakResult
	prompts *prompts
	watch   Watch

	next              atomic.Int64 // the number of the next prompt
	decoded, prompted atomic.Int64 // tokens since the last window
	texts             atomic.Int64 // that are complete
	over              atomic.Bool  // decode no further token

	start  time.Time
	length time.Duration // of a window
	open   openWindow
}

// run soaks for d. If ctx ends earlier, run returns its error.
func (k *soak) run(ctx context.Context, d time.Duration) error {
	if err := k.watch.Begin(k.r); err != nil {
		return err
	}
	if err := k.begin(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	now, done := k.runner.host.Now, make(chan error, 1)
	k.length, k.start = min(soakWindow, d/10), now()
	k.open = startWindow(k.start)
	go func() { done <- together(ctx, k.r.Sequences, k.decode) }()
	tick := time.NewTicker(min(k.length/4, soakTick))
	defer tick.Stop()
	var failed error // of the watch
	for {
		select {
		case <-tick.C:
			t := now()
			k.runner.host.progress("soak", int64(t.Sub(k.start).Seconds()), int64(d.Seconds()))
			if t.Sub(k.start) >= d {
				k.over.Store(true)
			} else if t.Sub(k.open.start) >= k.length && failed == nil {
				if failed = k.end(t); failed != nil {
					cancel()
				}
			}
		case err := <-done:
			if failed != nil {
				return failed
			}
			return k.finish(ctx, err, now())
		}
	}
}

// finish fills in the whole soak, which ended with err, and its last window.
func (k *soak) finish(ctx context.Context, err error, now time.Time) error {
	k.r.Seconds, k.r.Texts = now.Sub(k.start).Seconds(), k.texts.Load()
	k.r.Tokens = k.decoded.Load()
	for _, w := range k.r.Windows {
		k.r.Tokens += w.Tokens
	}
	// A short last window would show nothing but chance.
	if (err == nil || stopped(ctx, err)) && (2*now.Sub(k.open.start) >= k.length || len(k.r.Windows) == 0 && k.decoded.Load() > 0) {
		err = errors.Join(err, k.end(now))
	}
	return err
}

// begin evaluates the first prompts, before the time begins.
func (k *soak) begin(ctx context.Context) error {
	err := together(ctx, k.r.Sequences, k.prompt)
	k.prompted.Store(0)
	return err
}

// prompt empties sequence i and evaluates the next prompt with it.
func (k *soak) prompt(ctx context.Context, i int) error {
	t := k.runner.texts[i]
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
func (k *soak) decode(ctx context.Context, i int) error {
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
func (k *soak) text(ctx context.Context, i, limit int) error {
	ctx, end := k.runner.m.Span(ctx, "moeflux.bench")
	defer end()
	t := k.runner.texts[i]
	for range limit {
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

// end measures the open window, tells of it and begins the next one, in which its own few
// allocations count.
func (k *soak) end(now time.Time) error {
	w, next := k.open, startWindow(now)
	k.open = next
	v := SoakWindow{Tokens: k.decoded.Swap(0), PromptTokens: k.prompted.Swap(0), Goroutines: runtime.NumGoroutine()}
	v.Seconds, v.TokensPerSecond = figures.Speed(int(v.Tokens), w.start, now)
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
		return err
	}
	k.r.Windows = append(k.r.Windows, v)
	return k.watch.Window(k.r.elapsed(), &v)
}
