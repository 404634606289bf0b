package readpool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stamp is a Source whose records identify themselves.
type stamp struct{}

func (stamp) ReadExpert(layer, expert int, dst []byte) error {
	for i := 0; i+8 <= len(dst); i += 8 {
		binary.LittleEndian.PutUint32(dst[i:], uint32(layer))
		binary.LittleEndian.PutUint32(dst[i+4:], uint32(expert))
	}
	return nil
}

// want returns the record that stamp writes.
func want(layer, expert, n int) []byte {
	b := make([]byte, n)
	_ = stamp{}.ReadExpert(layer, expert, b)
	return b
}

// sourceFunc is a Source made of a function.
type sourceFunc func(layer, expert int, dst []byte) error

func (f sourceFunc) ReadExpert(layer, expert int, dst []byte) error { return f(layer, expert, dst) }

func requests(layer, n int) []Request {
	reqs := make([]Request, n)
	for i := range reqs {
		reqs[i] = Request{Layer: layer, Expert: i, Dst: make([]byte, 64)}
	}
	return reqs
}

// readAll submits one group and waits for its end.
func readAll(p *Pool, reqs []Request, rank Rank) []error {
	ch := make(chan []error, 1)
	p.Submit(reqs, rank, func(ends []End) { ch <- failures(ends) })
	return <-ch
}

// failures returns the errors of requests, nil where they did not fail.
func failures(ends []End) []error {
	errs := make([]error, len(ends))
	for i := range ends {
		errs[i] = ends[i].Err
	}
	return errs
}

func TestReadsEveryRequestOnce(t *testing.T) {
	for _, workers := range []int{0, 1, 3, 16} {
		for _, n := range []int{0, 1, 2, 7, 64} {
			t.Run(fmt.Sprintf("workers=%d/reqs=%d", workers, n), func(t *testing.T) {
				f := NewFaulty(stamp{})
				p := New(f, Config{Workers: workers})
				reqs := requests(5, n)
				errs := readAll(p, reqs, Rank(n%ranks)-1)
				p.Close()
				if len(errs) != n {
					t.Fatalf("got %d errors, want one a request: %d", len(errs), n)
				}
				for i, r := range reqs {
					if errs[i] != nil || !slices.Equal(r.Dst, want(5, i, 64)) {
						t.Errorf("request %d: error %v, bytes %x", i, errs[i], r.Dst)
					}
				}
				s := p.Stats()
				if f.Reads() != n || s.Reads != int64(n) || s.Bytes != int64(64*n) || s.Errors != 0 || s.Queued != 0 || s.Running != 0 {
					t.Errorf("%d reads, stats %+v; want %d reads of 64 bytes and nothing left", f.Reads(), s, n)
				}
			})
		}
	}
}

// All reads of a group run at once if there are workers, and a second group fills the rest.
func TestParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		p := New(NewFaulty(stamp{}, Fault{Kind: Slow, Release: release}), Config{Workers: 6})
		var ended atomic.Int32
		done := func([]End) { ended.Add(1) }
		synctest.Wait() // all workers sleep
		p.Submit(requests(0, 4), Demand, done)
		p.Submit(requests(1, 4), Demand, done)
		synctest.Wait()
		if s := p.Stats(); s.Running != 6 || s.Queued != 2 || ended.Load() != 0 {
			t.Errorf("6 workers, 8 requests: %d running, %d queued, %d groups ended", s.Running, s.Queued, ended.Load())
		}
		close(release)
		synctest.Wait()
		if ended.Load() != 2 {
			t.Errorf("%d groups ended, want 2", ended.Load())
		}
		p.Close()
	})
}

// Demand overtakes speculation, even the rest of a group that has begun; within a class order is
// order of Submit.
func TestDemandFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		step := make(chan struct{})
		p := New(sourceFunc(func(layer, expert int, _ []byte) error {
			// one worker, and it waits below
			order = append(order, fmt.Sprintf("%d.%d", layer, expert))
			<-step
			return nil
		}), Config{Workers: 1})
		nothing := func([]End) {}
		p.Submit(requests(1, 3), Guess, nothing)
		synctest.Wait() // 1.0 is being read
		p.Submit(requests(2, 1), Guess, nothing)
		p.Submit(requests(3, 2), Demand, nothing)
		p.Submit(requests(4, 1), Demand, nothing)
		for range 4 { // 1.0, and all of the demand
			step <- struct{}{}
		}
		synctest.Wait()
		p.Submit(requests(5, 1), Demand, nothing) // while 1.1 is being read
		close(step)
		synctest.Wait()
		p.Close()
		wantOrder := "1.0 3.0 3.1 4.0 1.1 5.0 1.2 2.0"
		if got := strings.Join(order, " "); got != wantOrder {
			t.Errorf("order of reads\n got %s\nwant %s", got, wantOrder)
		}
		if s := p.Stats(); s.Speculative != 4 || s.Reads != 8 {
			t.Errorf("got %d speculative of %d reads, want 4 of 8", s.Speculative, s.Reads)
		}
	})
}

func TestCloseEndsWhatIsQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		f := NewFaulty(stamp{}, Fault{Kind: Slow, Release: release})
		p := New(f, Config{Workers: 2})
		results := make([][]error, 4)
		calls := make([]int, 4)
		submit := func(i, n int, rank Rank) {
			p.Submit(requests(i, n), rank, func(ends []End) { results[i] = failures(ends); calls[i]++ })
		}
		submit(0, 3, Demand) // two of it are running, one is queued
		submit(1, 2, Demand)
		submit(2, 2, Guess)
		synctest.Wait()
		var closed atomic.Int32
		for range 2 {
			go func() { p.Close(); closed.Add(1) }()
		}
		synctest.Wait()
		if closed.Load() != 0 || calls[0] != 0 {
			t.Fatalf("with reads running: %d Close calls returned, done called %d times", closed.Load(), calls[0])
		}
		submit(3, 2, Demand) // after Close
		if calls[3] != 1 {
			t.Errorf("Submit on a closed pool called done %d times, want once before it returns", calls[3])
		}
		close(release)
		synctest.Wait()
		p.Close()
		if closed.Load() != 2 {
			t.Errorf("%d of 2 Close calls returned", closed.Load())
		}
		for i, pattern := range []string{"..x", "xx", "xx", "xx"} {
			got := ""
			for _, err := range results[i] {
				switch {
				case err == nil:
					got += "."
				case errors.Is(err, ErrClosed):
					got += "x"
				default:
					got += "?"
				}
			}
			if got != pattern || calls[i] != 1 {
				t.Errorf("group %d: results %q after %d calls, want %q after 1", i, got, calls[i], pattern)
			}
		}
		if s := p.Stats(); f.Reads() != 2 || s.Reads != 2 || s.Unread != 7 || s.Queued != 0 {
			t.Errorf("%d reads, stats %+v; want 2 read and 7 unread", f.Reads(), s)
		}
	})
}

func TestPanicBecomesError(t *testing.T) {
	p := New(NewFaulty(stamp{}, Fault{Read: 2, Kind: Panic}), Config{Workers: 1})
	defer p.Close()
	errs := readAll(p, requests(7, 3), Demand)
	pe, ok := errors.AsType[*PanicError](errs[1])
	if !ok || pe.Layer != 7 || pe.Expert != 1 || len(pe.Stack) == 0 || !errors.Is(errs[1], ErrInjected) {
		t.Fatalf("got %v, want a PanicError of layer 7 expert 1", errs[1])
	}
	if errs[0] != nil || errs[2] != nil {
		t.Errorf("neighbours of the panic: %v, %v", errs[0], errs[2])
	}
	if errs := readAll(p, requests(7, 1), Demand); errs[0] != nil {
		t.Errorf("the worker did not survive: %v", errs[0])
	}
}

func TestStatsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(NewFaulty(stamp{}, Fault{Kind: Slow, Delay: time.Second}, Fault{Read: 2, Kind: Fail, Again: 1}), Config{Workers: 3})
		errs := readAll(p, requests(0, 3), Demand)
		p.Close()
		failed := 0
		for _, err := range errs {
			if err != nil {
				failed++
			}
		}
		if s := p.Stats(); s.Time != 4*time.Second || s.Busy != 2*time.Second || s.Errors != 1 || s.Retried != 1 || failed != 1 || s.Bytes != 128 {
			t.Errorf("stats %+v, want 4 s of workers in 2 s, 1 error after 1 retry, 128 bytes; errors %v", s, errs)
		}
	})
}

// Any mix of Submit and Close from many goroutines calls every done exactly once, each with one
// error a request.
func TestSubmitRacesClose(t *testing.T) {
	for round := range 50 {
		p := New(NewFaulty(stamp{}, Fault{Read: 3, Kind: Fail}, Fault{Read: 9, Kind: Panic}), Config{Workers: 1 + round%5})
		const submitters, each = 4, 12
		var calls [submitters * each]atomic.Int32
		var wg sync.WaitGroup
		for s := range submitters {
			wg.Go(func() {
				for i := range each {
					id, n := s*each+i, i%4
					p.Submit(requests(s, n), Rank(i%ranks)-1, func(ends []End) {
						calls[id].Add(1)
						if len(ends) != n {
							t.Errorf("group of %d got %d ends", n, len(ends))
						}
					})
				}
			})
		}
		if round%2 == 0 {
			wg.Wait()
		}
		for range 2 {
			wg.Go(p.Close)
		}
		wg.Wait()
		for id := range calls {
			if c := calls[id].Load(); c != 1 {
				t.Fatalf("round %d: done of group %d was called %d times", round, id, c)
			}
		}
		if s := p.Stats(); s.Queued != 0 || s.Running != 0 {
			t.Fatalf("round %d: stats %+v after Close", round, s)
		}
	}
}

// Neither a read nor a group costs an allocation.
func TestNoAllocationPerRead(t *testing.T) {
	p := New(stamp{}, Config{Workers: 2})
	defer p.Close()
	ch := make(chan struct{})
	done := func([]End) { ch <- struct{}{} }
	allocs := func(n int) float64 {
		reqs := requests(0, n)
		return testing.AllocsPerRun(200, func() {
			p.Submit(reqs, Demand, done)
			<-ch
		})
	}
	one, many := allocs(1), allocs(64)
	if one != 0 || many != 0 {
		t.Errorf("a group of 1 makes %v allocations, one of 64 %v; want none", one, many)
	}
}

func BenchmarkGroup(b *testing.B) {
	for _, n := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("reqs=%d", n), func(b *testing.B) {
			p := New(sourceFunc(func(int, int, []byte) error { return nil }), Config{Workers: 2})
			defer p.Close()
			reqs := requests(0, n)
			ch := make(chan struct{}, 1)
			done := func([]End) { ch <- struct{}{} }
			b.ReportAllocs()
			for b.Loop() {
				p.Submit(reqs, Demand, done)
				<-ch
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/read")
		})
	}
}
