package actors_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/io/readpool"
	"github.com/moeflux/moeflux-actor/stages"
)

// heldDevice is a device that can be made to tell of nothing it has done.
type heldDevice struct {
	gpu.Device
	mu     sync.Mutex
	held   bool
	untold []func()
}

type heldQueue struct {
	gpu.Queue
	d *heldDevice
}

type heldTicket struct {
	gpu.Ticket
	d *heldDevice
}

func (d *heldDevice) NewQueue() (gpu.Queue, error) {
	q, err := d.Device.NewQueue()
	return &heldQueue{q, d}, err
}

func (q *heldQueue) Submit(c *gpu.Commands) (gpu.Ticket, error) {
	t, err := q.Queue.Submit(c)
	if err != nil {
		return nil, err
	}
	return &heldTicket{t, q.d}, nil
}

func (t *heldTicket) OnDone(f func(error)) {
	t.Ticket.OnDone(func(err error) {
		t.d.mu.Lock()
		held := t.d.held
		if held {
			t.d.untold = append(t.d.untold, func() { f(err) })
		}
		t.d.mu.Unlock()
		if !held {
			f(err)
		}
	})
}

func (d *heldDevice) hold() {
	d.mu.Lock()
	d.held = true
	d.mu.Unlock()
}

func (d *heldDevice) release() {
	d.mu.Lock()
	untold := d.untold
	d.held, d.untold = false, nil
	d.mu.Unlock()
	for _, f := range untold {
		f()
	}
}

// TestPatience asks for every operation on a sequence while the device does not answer: each ends
// with its ctx. What was asked for is done when the device answers, a sequence or a state that
// nobody waits for any more is given back, and nothing is left.
func TestPatience(t *testing.T) {
	dev := &heldDevice{Device: device(t, 1)}
	e := open(t, actors.Config{Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), Device: dev, ExpertIO: actors.ExpertIOMmap})
	ctx := context.Background()
	text := prompt(1, 9, e.Model().VocabSize)
	donor := sequence(t, e)
	eval(t, donor, text[:4]...)
	for _, c := range []struct {
		name string
		do   func(context.Context, *actors.Sequence) error
		len  int  // of the sequence in the end
		free bool // the sequence takes other work meanwhile
	}{
		{"RestoreTo", func(ctx context.Context, s *actors.Sequence) error { return s.RestoreTo(ctx, 3) }, 3, false},
		{"Rewind", func(ctx context.Context, s *actors.Sequence) error { _, err := s.Rewind(ctx, 3); return err }, 3, false},
		{"Resume", func(ctx context.Context, s *actors.Sequence) error { _, err := s.Resume(ctx, text[:5]); return err }, 4, false},
		{"Checkpoint", func(ctx context.Context, s *actors.Sequence) error { return s.Checkpoint(ctx, 7) }, 7, true},
		{"Fork", func(ctx context.Context, s *actors.Sequence) error { _, err := s.Fork(ctx); return err }, 7, true},
		{"Save", func(ctx context.Context, s *actors.Sequence) error {
			_, err := s.Save(ctx, new(bytes.Buffer), actors.SaveOptions{})
			return err
		}, 7, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := sequence(t, e)
			eval(t, s, 9, 8, 7)
			if err := s.Checkpoint(ctx, 3); err != nil {
				t.Fatal(err)
			}
			eval(t, s, 6, 5, 4, 3)
			dev.hold()
			short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- c.do(short, s) }()
			select {
			case err := <-ended:
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v, want its deadline", err)
				}
			case <-time.After(10 * time.Second):
				t.Error("it waits without end")
			}
			if err := s.Truncate(ctx, 7); errors.Is(err, stages.ErrBusy) == c.free {
				t.Errorf("another operation meanwhile: %v, though it takes other work: %v", err, c.free)
			}
			dev.release()
			for late := time.Now().Add(10 * time.Second); s.Len() != c.len; time.Sleep(time.Millisecond) {
				if time.Now().After(late) {
					t.Fatalf("it thinks it stands at %d, want %d", s.Len(), c.len)
				}
			}
			for d, err := s.Describe(ctx); ; d, err = s.Describe(ctx) {
				if err != nil {
					t.Fatal(err)
				}
				if busy := s.Truncate(ctx, 7); !errors.Is(busy, stages.ErrBusy) {
					if d.PosMax != c.len || s.Len() != c.len || s.Err() != nil {
						t.Errorf("it stands at %d, and thinks at %d with error %v, want %d", d.PosMax, s.Len(), s.Err(), c.len)
					}
					break
				}
			}
			eval(t, s, 1)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	if err := donor.Close(); err != nil {
		t.Error(err)
	}
	// What was given back late has been by now: the sequencer gets it before it is asked for
	// figures.
	if st, err := e.Stats(ctx); err != nil || st.PagesUsed != 0 || st.States.Kept != 0 {
		t.Errorf("%d pages are used by nobody, %+v is kept, %v", st.PagesUsed, st.States, err)
	}
}

// TestCloseHung closes a sequence whose step waits for a read that does not end, alone and together
// with another: Close lets go after a while, the chunk ends with ErrClosed, and when the read comes
// back the other sequence gets its logits and no page is left.
func TestCloseHung(t *testing.T) {
	release := make(chan struct{})
	e, faulty := streamed(t, actors.Config{StepsInFlight: 1, Prefetch: actors.PrefetchOff},
		readpool.Fault{Kind: readpool.Slow, Release: release})
	first, closing, other := sequence(t, e), sequence(t, e), sequence(t, e)
	var wg sync.WaitGroup
	errs := make([]error, 3)
	for i, s := range []*actors.Sequence{first, closing, other} {
		wg.Go(func() { _, errs[i] = s.Eval(context.Background(), []int32{int32(i)}) })
		for i == 0 && (*faulty).Reads() == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	// the others wait for the next step by then, or the test shows less
	time.Sleep(20 * time.Millisecond)
	began := time.Now()
	for _, s := range []*actors.Sequence{first, closing} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("Close took %v", took)
	}
	close(release)
	wg.Wait()
	if !errors.Is(errs[0], stages.ErrClosed) || !errors.Is(errs[1], stages.ErrClosed) || errs[2] != nil {
		t.Errorf("the chunks end with %v, %v and %v", errs[0], errs[1], errs[2])
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	if st, err := e.Stats(context.Background()); err != nil || st.PagesUsed != 0 {
		t.Errorf("%d pages are used by nobody, %v", st.PagesUsed, err)
	}
}

// TestOpenHung opens an engine while the device hangs: Open returns in time, and what it has opened
// is closed when the hang is over.
func TestOpenHung(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	synctest.Test(t, func(t *testing.T) {
		g, d := new(gate), device(t, 1)
		g.shut()
		ctx, cancel := context.WithTimeout(t.Context(), callPatience)
		defer cancel()
		began := time.Now()
		// Experts and weights are brought to it before there are stages.
		stuck := stuckDiscrete{&discrete{Device: d, free: 1 << 30}, g}
		e, err := actors.Open(ctx, actors.Config{Model: dir, Device: stuck})
		if took := time.Since(began); e != nil || !errors.As(err, new(*actors.UnfinishedError)) || took > callPatience+callGrace || g.waited() == 0 {
			t.Errorf("%v after %v", err, took)
		}
		if err := actors.CloseDevice(d, err); err != nil {
			t.Error(err)
		}
		g.open()
		time.Sleep(time.Second)
		if _, err := d.NewQueue(); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("%v, want a device that was closed after what was opened", err)
		}
	})
}

// closeCount counts how often the device is closed.
type closeCount struct {
	gpu.Device
	n atomic.Int32
}

func (c *closeCount) Close() error {
	c.n.Add(1)
	return nil
}

// TestCloseThatFrees closes an engine whose memory takes a while to be freed, and nothing else: the
// error says so, and the log does not warn of it.
func TestCloseThatFrees(t *testing.T) {
	dev := &slowToFree{discrete: &discrete{Device: device(t, 2), free: 1 << 30}}
	var log testenv.Log
	e := open(t, actors.Config{
		Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), Device: dev, ExpertIO: actors.ExpertIOBuffered,
		HostMemory: 4 * pageSlot, ExpertMemory: 40 * pageSlot, Logger: log.Logger(),
	})
	eval(t, sequence(t, e), 1, 2, 3)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	err := e.Close(ended)
	if left := (*actors.LeftBehindError)(nil); !errors.As(err, &left) || !left.Freeing() {
		t.Errorf("Close: %v, want that memory is being freed", err)
	}
	if !log.Has("level=INFO", "closed but not freed") || log.Has("level=WARN") {
		t.Errorf("the log has %s", &log)
	}
	if err := e.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// slowToFree is a device whose pinned memory takes a while to be freed.
type slowToFree struct{ *discrete }

func (d *slowToFree) NewPinned(n int) (gpu.Buffer, error) {
	b, err := d.discrete.NewPinned(n)
	return slowBuffer{b}, err
}

type slowBuffer struct{ gpu.Buffer }

func (b slowBuffer) Release() {
	time.Sleep(500 * time.Millisecond)
	b.Buffer.Release()
}

// TestCloseDevice: a device is closed at once, unless an engine still uses it.
func TestCloseDevice(t *testing.T) {
	freed := make(chan struct{})
	for _, c := range []struct {
		err  error
		once bool
	}{
		{nil, true},
		{errors.New("no such model"), true},
		// of a call within an opening that has failed
		{&actors.UnfinishedError{Err: context.Canceled}, true},
		{fmt.Errorf("opening: %w", &actors.UnfinishedError{Err: context.Canceled, Ended: freed}), false},
		{&actors.LeftBehindError{Err: context.Canceled, Freed: freed}, false},
		{&actors.LeftBehindError{Err: context.Canceled, Freed: freed, Device: true}, false},
		{&actors.LeftBehindError{Err: context.Canceled, Freed: freed, Spans: true}, true},
	} {
		d := new(closeCount)
		if err := actors.CloseDevice(d, c.err); err != nil || (d.n.Load() == 1) != c.once {
			t.Errorf("%v: closed %d times, %v", c.err, d.n.Load(), err)
		}
	}
	close(freed)
}
