package recorder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/internal/durable"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

const ms = 1_000_000

// tokens writes the records of tokens that each took some milliseconds, and of their steps.
type tokens struct {
	log  *record.Log
	now  int64
	step uint64
}

func (x *tokens) token(took int64) {
	x.step++
	x.log.Steps.Add(record.Step{Step: x.step, BeganNS: x.now + ms, Rows: 1, Decode: 1, Urgent: 1})
	x.log.StepsEnded.Add(record.StepEnded{Step: x.step, EndedNS: x.now + took*ms})
	x.log.Requests.Add(record.Request{Request: 100 + x.step, Seq: 7, ArrivedNS: x.now, BeganNS: x.now + ms, EndedNS: x.now + took*ms, Rows: 1, Pos: int32(x.step)})
	x.now += took * ms
}

func (x *tokens) prompt(rows int32, took int64) {
	x.step++
	x.log.Steps.Add(record.Step{Step: x.step, BeganNS: x.now, Rows: rows})
	x.log.StepsEnded.Add(record.StepEnded{Step: x.step, EndedNS: x.now + took*ms})
	x.now += took * ms
}

// What is slow is found by a fixed bound or by what is usual for its kind, once there is a usual;
// the reason names it.
func TestSlow(t *testing.T) {
	for _, c := range []struct {
		name   string
		flight Flight
		make   func(*tokens)
		found  int
		reason string
	}{
		{"all alike", Flight{Times: 5}, func(x *tokens) { x.token(80) }, 0, ""},
		{"four times", Flight{Times: 5}, func(x *tokens) { x.token(320) }, 0, ""},
		{"six times", Flight{Times: 5}, func(x *tokens) { x.token(480) }, 2, "the token at position 61 of sequence 7 (request 161) took 480ms, 6.0 times the usual 80ms"},
		{"the worst of three", Flight{Times: 5}, func(x *tokens) { x.token(480); x.token(900); x.token(600) }, 6, "the token at position 62 of sequence 7 (request 162) took 900ms, 11.2 times the usual 80ms"},
		{"any time", Flight{Times: -1}, func(x *tokens) { x.token(8000) }, 0, ""},
		{"a fixed bound", Flight{Times: -1, After: 400 * time.Millisecond}, func(x *tokens) { x.token(480) }, 2, "the token at position 61 of sequence 7 (request 161) took 480ms, more than 400ms"},
		{"a wait", Flight{Times: -1, After: 400 * time.Millisecond}, func(x *tokens) {
			x.log.Requests.Add(record.Request{Request: 3, Seq: 9, ArrivedNS: x.now, BeganNS: x.now + 1500*ms, EndedNS: x.now + 9000*ms, Rows: 400})
		}, 1, "request 3 of sequence 9 waited 1.5s for its first step"},
		{"one that was refused", Flight{Times: 5, After: 400 * time.Millisecond}, func(x *tokens) {
			x.log.Requests.Add(record.Request{Request: 3, Seq: 9, ArrivedNS: x.now, EndedNS: x.now + 9000*ms, Rows: 1, Outcome: record.Refused})
		}, 0, ""},
		{"a prompt like others", Flight{Times: 5}, func(x *tokens) { x.prompt(500, 2100) }, 0, ""},
		{"a short prompt, of which there was none", Flight{Times: 5}, func(x *tokens) { x.prompt(5, 900) }, 0, ""},
		{"a slow prompt", Flight{Times: 5}, func(x *tokens) { x.prompt(510, 12000) }, 1, "step 61 of 510 rows took 12s, 6.0 times the usual 2s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := &tokens{log: record.NewLog(1 << 20)}
			s := newSlow(c.flight)
			for range 30 {
				x.token(80)
				x.prompt(500, 2000)
			}
			// A bound for tokens is below what prompts of the same engine take.
			if _, n := s.look(x.log); n > 0 && (c.flight.After == 0 || n != 30) {
				t.Fatalf("%d are slow from the beginning", n)
			}
			c.make(x)
			if reason, n := s.look(x.log); n != c.found || reason != c.reason {
				t.Errorf("%d are slow: %q; want %d: %q", n, reason, c.found, c.reason)
			}
			if reason, n := s.look(x.log); n != 0 {
				t.Errorf("nothing is new, and %d are slow: %q", n, reason)
			}
		})
	}
	// Of tiny models a token's noise is many times the token.
	x, s := &tokens{log: record.NewLog(1 << 20)}, newSlow(Flight{Times: 5})
	for range 30 {
		x.token(2)
	}
	s.look(x.log)
	x.token(11)
	if reason, n := s.look(x.log); n != 0 {
		t.Errorf("9 ms more than usual are slow: %q", reason)
	}
}

// Each step has its end and is judged, even if a look falls between the two.
func TestSlowWhileSteps(t *testing.T) {
	x, s := &tokens{log: record.NewLog(64 << 20)}, newSlow(Flight{Times: 5})
	for range 200 {
		var writer sync.WaitGroup
		writer.Go(func() {
			for range 200 {
				x.token(80)
			}
		})
		for range 10 {
			s.look(x.log)
		}
		writer.Wait()
		s.look(x.log)
		if len(s.steps) != 0 {
			t.Fatalf("of %d steps %d have no end", x.step, len(s.steps))
		}
	}
}

func dumps(t *testing.T, dir string) (paths []string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		paths = append(paths, filepath.Join(dir, e.Name()))
	}
	return paths
}

// A slow token leaves a file with the records around it, what is usual leaves none, and a burst of
// slow ones leaves one.
func TestFlight(t *testing.T) {
	c, said := config(1 << 20)
	c.Flight = Flight{Dir: filepath.Join(t.TempDir(), "made", "here")}
	r := start(t, c)
	x := &tokens{log: c.Log}
	for range 40 {
		x.token(80)
	}
	time.Sleep(20 * time.Millisecond)
	if got := dumps(t, c.Flight.Dir); len(got) != 0 {
		t.Fatalf("nothing was slow, and there is %v", got)
	}
	x.token(1000)
	until(t, "the file", func() bool { return r.Stats().Dumps == 1 })
	x.token(2000)
	until(t, "the count of the next", func() bool { return r.Stats().Missed > 0 })
	path, err := r.Dump(context.Background(), "somebody asked")
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	got := dumps(t, c.Flight.Dir)
	if len(got) != 2 || got[1] != path {
		t.Fatalf("there are %v, want two, %s the last", got, path)
	}
	rec := read(t, got[0])
	// The recorder may look when the step is there and the token is not. Then the token is missed.
	token, step := "the token at position 41 of sequence 7 (request 141) took 1s, 12.5 times the usual 80ms", "step 41 of 1 rows took 999ms, 12.6 times the usual 79ms"
	missed := int64(2) // the next token and its step
	if rec.Meta.Reason == step {
		missed++
	}
	if rec.Meta.Reason != token && rec.Meta.Reason != step || rec.Meta.Program != "test" || len(rec.Requests) != 41 {
		t.Errorf("reason %q of %d requests, want %q or %q of 41", rec.Meta.Reason, len(rec.Requests), token, step)
	}
	if rec := read(t, path); rec.Meta.Reason != "somebody asked" || len(rec.Requests) != 42 {
		t.Errorf("reason %q, %d requests", rec.Meta.Reason, len(rec.Requests))
	}
	if s := r.Stats(); s.Dumps != 2 || s.Missed != missed || said.String() != "" {
		t.Errorf("figures %+v, said %q", s, said)
	}
	if _, err := r.Dump(context.Background(), "too late"); !errors.Is(err, ErrClosed) {
		t.Errorf("a dump after the end: %v", err)
	}
}

// What is slow just before the end has its file, too.
func TestFlightAtTheEnd(t *testing.T) {
	c, _ := config(1 << 20)
	c.Flight, c.Every = Flight{Dir: t.TempDir(), After: 500 * time.Millisecond}, time.Hour
	r := start(t, c)
	(&tokens{log: c.Log}).token(1000)
	r.Close()
	if got := dumps(t, c.Flight.Dir); len(got) != 1 {
		t.Errorf("there are %v, want one", got)
	}
}

// The oldest files give way, to a number and to bytes, and nothing else in the folder does.
func TestFlightBounds(t *testing.T) {
	c, _ := config(1 << 20)
	dir := t.TempDir()
	other := filepath.Join(dir, "flight-notes.txt")
	if err := os.WriteFile(other, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	x := &tokens{log: c.Log}
	for range 100 {
		x.token(80)
	}
	size := c.Log.Recording().Bytes()
	for _, bound := range []Flight{{Dir: dir, MaxFiles: 3}, {Dir: dir, MaxBytes: 3*size + size/2}} {
		c.Flight = bound
		r := start(t, c)
		var made []string
		for i := range 6 {
			path, err := r.Dump(context.Background(), fmt.Sprint(i))
			if err != nil {
				t.Fatal(err)
			}
			made = append(made, path)
		}
		r.Close()
		if got, want := dumps(t, dir), append(made[3:], other); !slices.Equal(got, want) {
			t.Errorf("%+v: there are %v, want %v", bound, got, want)
		}
	}
	c.Flight = Flight{Dir: dir, MaxBytes: size / 2}
	r := start(t, c)
	if _, err := r.Dump(context.Background(), "too large"); err == nil {
		t.Error("a file larger than all files may be was written")
	}
	r.Close()
}

// full is a file system on which some calls fail.
type full struct {
	durable.OS
	fails func() bool
}

type fullFile struct {
	durable.File
	f *full
}

func (f *full) Create(path string, perm fs.FileMode) (durable.File, error) {
	file, err := f.OS.Create(path, perm)
	return &fullFile{file, f}, err
}

func (f *fullFile) Write(p []byte) (int, error) {
	if f.f.fails() {
		return 0, syscall.ENOSPC
	}
	return f.File.Write(p)
}

// A full disk costs the file, leaves nothing behind, and is said once.
func TestFlightFullDisk(t *testing.T) {
	c, said := config(1 << 20)
	c.Flight = Flight{Dir: t.TempDir(), Pause: time.Nanosecond}
	c.files = &full{fails: func() bool { return true }}
	r := start(t, c)
	x := &tokens{log: c.Log}
	for range 40 {
		x.token(80)
	}
	time.Sleep(10 * time.Millisecond)
	for i := range 3 {
		x.token(1000)
		until(t, "the failure", func() bool { return r.Stats().Missed > int64(i) })
	}
	if _, err := r.Dump(context.Background(), "mine"); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a dump on a full disk: %v", err)
	}
	r.Close()
	if got := dumps(t, c.Flight.Dir); len(got) != 0 {
		t.Errorf("there are %v", got)
	}
	if got := said.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "no space left") {
		t.Errorf("said %q", got)
	}
}

// A folder that goes away is said once, and a hung disk holds up neither the log nor who looks at
// it.
func TestFlightFolderGone(t *testing.T) {
	c, said := config(1 << 20)
	c.Flight = Flight{Dir: t.TempDir(), After: time.Millisecond, Times: -1, Pause: time.Nanosecond}
	r := start(t, c)
	if err := os.Remove(c.Flight.Dir); err != nil {
		t.Fatal(err)
	}
	x := &tokens{log: c.Log}
	for i := range 3 {
		x.token(1000)
		until(t, "the failure", func() bool { return r.Stats().Missed > int64(i) })
	}
	r.Close()
	if got := said.String(); strings.Count(got, "\n") != 1 || r.Stats().Dumps != 0 {
		t.Errorf("said %q, figures %+v", got, r.Stats())
	}
}

func TestFlightHungDisk(t *testing.T) {
	c, _ := config(1 << 20)
	let := make(chan struct{})
	c.Flight = Flight{Dir: t.TempDir(), After: time.Millisecond, Times: -1, Pause: time.Nanosecond}
	c.files = &full{fails: func() bool { <-let; return false }}
	r := start(t, c)
	x := &tokens{log: c.Log}
	for i := range 5 {
		x.token(1000)
		if i > 1 { // one is being written, one waits
			until(t, "the count", func() bool { return r.Stats().Missed > int64(i-2) })
		} else {
			time.Sleep(10 * time.Millisecond)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := r.Dump(ctx, "mine"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a dump on a hung disk: %v", err)
	}
	close(let)
	r.Close()
	if got := dumps(t, c.Flight.Dir); len(got) != 2 {
		t.Errorf("there are %v, want two", got)
	}
}
