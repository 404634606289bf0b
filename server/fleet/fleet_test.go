package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/server/models"
)

// garage is a disk with models: it notes what is loaded, and what that takes.
type garage struct {
	mu     sync.Mutex
	events []string
	bytes  int64 // of what is loaded now
	most   int64
	fail   error // of the next loading
	slow   time.Duration
}

func (g *garage) note(bytes int64, format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if format != "" {
		g.events = append(g.events, fmt.Sprintf(format, args...))
	}
	g.bytes += bytes
	g.most = max(g.most, g.bytes)
}

func (g *garage) told() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.events)
}

// car is a model in memory that answers a request with its name, after a while.
type car struct {
	g      *garage
	need   Need
	name   string
	slots  int64
	closed bool
}

func (c *car) Info() moeflux.Info { return moeflux.Info{Name: c.name, Context: 7} }
func (c *car) ChatPrompt(moeflux.Request) (moeflux.Prompt, error) {
	return moeflux.Prompt{Text: c.name}, nil
}
func (c *car) Tokenizer() *moeflux.Tokenizer                              { return new(moeflux.Tokenizer) }
func (c *car) Chat(ctx context.Context, r moeflux.Request) moeflux.Events { return c.Generate(ctx, r) }
func (c *car) Generate(ctx context.Context, r moeflux.Request) moeflux.Events {
	return func(yield func(moeflux.Event, error) bool) {
		if c.closed {
			yield(moeflux.Event{}, moeflux.ErrClosed)
			return
		}
		select {
		case <-time.After(time.Duration(r.MaxTokens) * time.Second):
			yield(moeflux.Event{Text: c.name}, nil)
		case <-ctx.Done():
			yield(moeflux.Event{}, ctx.Err())
		}
	}
}

func (c *car) Watched() models.Engine { return nil }

func (c *car) ResizeExperts(_ context.Context, bytes int64) (int64, error) {
	c.g.note(bytes-c.slots, "%s gets %d", c.name, bytes/gib)
	c.slots = bytes
	return bytes, nil
}

func (c *car) Close(context.Context) error {
	c.closed = true
	c.g.note(-c.need.Fixed-c.slots, "%s goes", c.name)
	return nil
}

func (g *garage) entry(name string, need Need) Entry {
	return Entry{
		Spec: Spec{Name: name, Need: need}, Info: moeflux.Info{Name: name, Context: 5},
		Open: func(ctx context.Context) (Loaded, error) {
			select {
			case <-time.After(max(g.slow, time.Second)):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			g.mu.Lock()
			err := g.fail
			g.fail = nil
			g.mu.Unlock()
			if err != nil {
				return nil, err
			}
			g.note(need.Fixed, "%s comes", name)
			return &car{g: g, need: need, name: name}, nil
		},
	}
}

// open returns a fleet of 10 GiB, and its models.
func (g *garage) open(t *testing.T, o Options) (*Fleet, []*Model) {
	t.Helper()
	o.Memory = 10 * gib
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if g.bytes != 0 {
			t.Errorf("%d bytes are left in memory", g.bytes)
		}
	})
	return f, f.Models()
}

// ask returns what a model says to a request that takes so long.
func ask(ctx context.Context, m *Model, seconds int) (text string, err error) {
	for e, problem := range m.Chat(ctx, moeflux.Request{MaxTokens: seconds}) {
		text += e.Text
		err = errors.Join(err, problem)
	}
	return text, err
}

func mustSay(t *testing.T, m *Model, seconds int, want string) {
	t.Helper()
	if text, err := ask(t.Context(), m, seconds); text != want || err != nil {
		t.Errorf("said %q, %v; want %q", text, err, want)
	}
}

func wantEvents(t *testing.T, g *garage, want ...string) {
	t.Helper()
	if got := g.told(); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// Models that do not fit together take turns, and share expert memory where they do.
func TestFleetLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := new(garage)
		_, m := g.open(t, Options{Entries: []Entry{g.entry("a", Need{1 * gib, 1 * gib, 6 * gib}), g.entry("b", Need{1 * gib, 1 * gib, 6 * gib}), g.entry("c", Need{Fixed: 8 * gib})}})
		if m[0].Status() != models.Unloaded || m[0].Info().Context != 5 || m[0].Tokenizer() != nil {
			t.Errorf("away: %v, %+v", m[0].Status(), m[0].Info())
		}
		mustSay(t, m[0], 1, "a")
		if m[0].Status() != models.Loaded || m[0].Info().Context != 7 || m[0].Tokenizer() == nil {
			t.Errorf("in memory: %v, %+v", m[0].Status(), m[0].Info())
		}
		var together sync.WaitGroup
		together.Go(func() { mustSay(t, m[0], 60, "a") })
		together.Go(func() { mustSay(t, m[1], 60, "b") })
		together.Wait()
		if p, err := m[2].ChatPrompt(moeflux.Request{}); p.Text != "c" || err != nil {
			t.Errorf("a prompt of c: %q, %v", p.Text, err)
		}
		wantEvents(t, g, "a comes", "a gets 6", "a gets 4", "b comes", "b gets 4", "a goes", "b gets 1", "c comes")
		if g.most > 10*gib {
			t.Errorf("%d MiB were in memory at once", g.most>>20)
		}
	})
}

// A model is not unloaded while a request runs, however its context is about to end.
func TestFleetKeepsUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := new(garage)
		_, m := g.open(t, Options{UnloadAfter: 10 * time.Second, Entries: []Entry{g.entry("a", Need{Fixed: 6 * gib}), g.entry("b", Need{Fixed: 6 * gib})}})
		done := make(chan struct{})
		go func() {
			defer close(done)
			mustSay(t, m[0], 300, "a")
		}()
		time.Sleep(100 * time.Second)
		mustSay(t, m[1], 1, "b") // waits
		<-done
		wantEvents(t, g, "a comes", "a goes", "b comes")
		time.Sleep(11 * time.Second)
		wantEvents(t, g, "a comes", "a goes", "b comes", "b goes")
	})
}

// Who waits may leave; the others, and the loading, go on.
func TestFleetWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &garage{slow: 100 * time.Second}
		_, m := g.open(t, Options{UnloadAfter: 10 * time.Second, Entries: []Entry{g.entry("a", Need{Fixed: 6 * gib})}})
		ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, errors.New("no patience"))
		defer cancel()
		go mustSay(t, m[0], 1, "a")
		began := time.Now()
		if _, err := ask(ctx, m[0], 1); err == nil || err.Error() != "no patience" || time.Since(began) != 5*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if m[0].Status() != models.Loading {
			t.Errorf("status %v", m[0].Status())
		}
		mustSay(t, m[0], 1, "a")
		if d := time.Since(began); d != 101*time.Second {
			t.Errorf("after %v", d)
		}
		time.Sleep(20 * time.Second)
		if m[0].Status() != models.Unloaded { // who left is not counted any more
			t.Errorf("status %v", m[0].Status())
		}
	})
}

// All that wait for a model that cannot be loaded are told why; the next request tries again.
func TestFleetLoadFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &garage{fail: errors.New("a bad file")}
		_, m := g.open(t, Options{Entries: []Entry{g.entry("a", Need{Fixed: 6 * gib})}})
		var together sync.WaitGroup
		for range 3 {
			together.Go(func() {
				_, err := ask(t.Context(), m[0], 1)
				if e, ok := errors.AsType[*models.LoadError](err); !ok || e.Model != "a" || e.Err.Error() != "a bad file" {
					t.Errorf("%v", err)
				}
			})
		}
		together.Wait()
		mustSay(t, m[0], 1, "a")
	})
}

// Close tells those that wait, and takes nobody new.
func TestFleetClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &garage{slow: 100 * time.Second}
		f, m := g.open(t, Options{Entries: []Entry{g.entry("a", Need{Fixed: 6 * gib})}})
		go func() {
			time.Sleep(time.Second)
			if err := f.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		for range 2 {
			if _, err := ask(t.Context(), m[0], 1); !errors.Is(err, moeflux.ErrClosed) {
				t.Errorf("%v", err)
			}
		}
	})
}

// Many goroutines use models that do not fit together; whoever has one finds it open.
func TestFleetCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := new(garage)
		_, m := g.open(t, Options{UnloadAfter: 20 * time.Second, Entries: []Entry{
			g.entry("a", Need{2 * gib, 1 * gib, 6 * gib}), g.entry("b", Need{4 * gib, 1 * gib, 2 * gib}), g.entry("c", Need{Fixed: 6 * gib}),
		}})
		var all sync.WaitGroup
		for i := range 60 {
			all.Go(func() {
				for k := range 10 {
					time.Sleep(time.Duration((i*7+k*13)%50) * time.Second)
					n := (i + k) % 3
					mustSay(t, m[n], (i+k)%7, string(rune('a'+n)))
				}
			})
		}
		all.Wait()
		if g.most > 10*gib {
			t.Errorf("%d MiB were in memory at once", g.most>>20)
		}
	})
}
