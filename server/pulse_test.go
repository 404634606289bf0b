package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/gpu/gputest"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/scripted"
	"github.com/moeflux/moeflux-actor/server/models"
)

// isReady reports what GET /readyz says, from a look at the engines that is not an earlier one's.
func isReady(t *testing.T, s *Server) bool {
	t.Helper()
	s.pulse.mu.Lock()
	s.pulse.asked = time.Time{}
	s.pulse.mu.Unlock()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/readyz", nil)
	r.Host = "localhost"
	s.ServeHTTP(w, r)
	return w.Code == 200
}

// silent is an engine that does not answer as long as it is told so.
type silent struct {
	counting
	deaf bool
}

func (s *silent) Stats(ctx context.Context) (*moeflux.Stats, error) {
	if s.deaf {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.counting.Stats(ctx)
}

// A server is ready as long as one engine answers and does something for what it is asked.
func TestReadyEngines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		a, b := new(silent), new(silent)
		s, err := New(Options{Models: []Served{
			{Name: "a", Model: held(goOn), Engine: func() Engine { return a }},
			{Name: "b", Model: new(scripted.Model), Engine: func() Engine { return b }},
		}})
		if err != nil {
			t.Fatal(err)
		}
		expect := func(when string, want bool) {
			t.Helper()
			if began := time.Now(); isReady(t, s) != want {
				t.Errorf("%s: ready is %v", when, !want)
			} else if took := time.Since(began); took > models.StatsTime {
				t.Errorf("%s: it takes %v", when, took)
			}
		}
		expect("at first", true)
		a.deaf = true
		expect("one engine hangs", true)
		b.deaf = true
		expect("both hang", false)
		if err := s.Alive(timeout(t, time.Second)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Alive says %v", err)
		}
		b.deaf, b.err = false, errors.New("a stage panicked")
		expect("one hangs, one is broken", false)
		b.err = moeflux.ErrClosed
		expect("one hangs, one is closed", false)
		s.models = append(s.models, Served{Name: "away", Model: new(shelf), Engine: func() Engine { return nil }})
		expect("a third one is not in memory", true)
		s.models[2].Engine = func() Engine { return &silent{counting: counting{err: moeflux.ErrClosed}} }
		expect("it is being unloaded", true)

		// An engine that answers, and does nothing for a request that it has.
		s.models, a.deaf = s.models[:1], false
		done := make(chan struct{})
		go func() {
			ask(t.Context(), s, "/v1/completions", `{"prompt":"x"}`)
			close(done)
		}()
		synctest.Wait()
		for past := time.Duration(0); past < s.pulse.hung; past += 10 * time.Second {
			expect("before it has done nothing for long", true)
			time.Sleep(10 * time.Second)
		}
		expect("it has done nothing for long", false)
		a.stats.Rows++
		expect("it goes on", true)
		time.Sleep(2 * s.pulse.hung)
		expect("it has done nothing again", false)
		close(goOn)
		<-done
		synctest.Wait()
		expect("nobody wants anything of it", true)
	})
}

func timeout(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// However many ask, engines are asked once a second.
func TestReadyAsksSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		e := new(silent)
		s, err := New(Options{Models: []Served{{Name: "a", Model: new(scripted.Model), Engine: func() Engine { asked++; return e }}}})
		if err != nil {
			t.Fatal(err)
		}
		for range 40 {
			s.ill()
			time.Sleep(100 * time.Millisecond)
		}
		if asked != 4 {
			t.Errorf("in 4 s the engine was asked %d times", asked)
		}
	})
}

// So it is with real engines: one whose device hangs with a request, and one whose actors have been
// stopped from outside.
func TestReadyRealEngines(t *testing.T) {
	d, err := host.New(host.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	device := gputest.NewHeld(d)
	m := demoModel(t, func(c *moeflux.Config) { c.Device = device })
	s := watched(t, m)
	s.pulse.hung = 20 * time.Millisecond
	base := startHandler(t, s)
	if !isReady(t, s) {
		t.Fatal("it is not ready at first")
	}
	device.Arm()
	status := make(chan int)
	go func() {
		code, _ := post(t, base+"/v1/completions", `{"prompt":"package main","max_tokens":4}`)
		status <- code
	}()
	<-device.Came
	eventually(t, "a device that hangs makes the server not ready", func() bool { return !isReady(t, s) })
	device.Release()
	if code := <-status; code != 200 {
		t.Errorf("once the device goes on the request ends with %d", code)
	}
	eventually(t, "it is ready again", func() bool { return isReady(t, s) })
}

func TestReadyStoppedEngine(t *testing.T) {
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	dir, err := moeflux.DemoDir(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	m, err := moeflux.Open(t.Context(), dir, moeflux.Options{Threads: 1, System: system})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(context.Background())
	s := watched(t, m)
	if !isReady(t, s) {
		t.Fatal("it is not ready at first")
	}
	system.Shutdown()
	eventually(t, "an engine that has stopped makes the server not ready", func() bool { return !isReady(t, s) })
	if err := s.Alive(t.Context()); err == nil {
		t.Error("Alive says nothing")
	}
}
