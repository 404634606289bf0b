package readpool

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A read that fails once is read again and counted, one that fails twice has failed.
func TestRetry(t *testing.T) {
	for _, kind := range []FaultKind{Fail, Short} {
		for again := range 3 {
			f := NewFaulty(stamp{}, Fault{Read: 2, Kind: kind, Again: again})
			p := New(f, Config{Workers: 1})
			reqs := requests(3, 4)
			errs := readAll(p, reqs, Demand)
			p.Close()
			for i := range reqs {
				failed := errs[i] != nil
				if failed != (i == 1 && again > 0) {
					t.Errorf("%v %d times: request %d: %v", kind, again+1, i, errs[i])
				}
				if !failed && !slices.Equal(reqs[i].Dst, want(3, i, 64)) {
					t.Errorf("%v %d times: request %d has other bytes", kind, again+1, i)
				}
			}
			if s := p.Stats(); s.Retried != 1 || s.Reads != 4 || s.Errors != int64(min(again, 1)) {
				t.Errorf("%v %d times: stats %+v, want 4 reads, 1 retry, %d errors", kind, again+1, s, min(again, 1))
			}
		}
	}
	p := New(NewFaulty(stamp{}, Fault{Read: 1, Kind: Short, Again: 1}), Config{})
	defer p.Close()
	if errs := readAll(p, requests(0, 1), Demand); !errors.Is(errs[0], io.ErrUnexpectedEOF) {
		t.Errorf("short twice: %v, want io.ErrUnexpectedEOF", errs[0])
	}
}

// recorder is a Source that notes the order of reads, each of which waits for its turn.
type recorder struct {
	mu    sync.Mutex
	order []string
	step  chan struct{}
}

func (r *recorder) ReadExpert(layer, expert int, _ []byte) error {
	r.mu.Lock()
	r.order = append(r.order, fmt.Sprintf("%d.%d", layer, expert))
	r.mu.Unlock()
	<-r.step
	return nil
}

func (r *recorder) begun() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.order, " ")
}

// tagged gives requests tags: layer·100 + expert.
func tagged(layer, n int) []Request {
	reqs := requests(layer, n)
	for i := range reqs {
		reqs[i].Tag = uint64(100*layer + i)
	}
	return reqs
}

// Guesses never take all workers: demand finds one free, and guesses begin only while few reads
// run.
func TestSpeculationLeavesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{step: make(chan struct{})}
		p := New(r, Config{Workers: 4, Speculative: 2})
		nothing := func([]End) {}
		check := func(running int, reads string) {
			t.Helper()
			synctest.Wait()
			// Reads that begin at once reach the Source in any order.
			begun := strings.Fields(r.begun())
			slices.Sort(begun)
			if got := strings.Join(begun, " "); p.Stats().Running != running || got != reads {
				t.Errorf("%d running, begun %q; want %d and %q", p.Stats().Running, got, running, reads)
			}
		}
		p.Submit(tagged(1, 5), Guess, nothing)
		check(2, "1.0 1.1")
		p.Submit(tagged(2, 1), Demand, nothing)
		check(3, "1.0 1.1 2.0")
		r.step <- struct{}{} // any of the three ends: two run, which is as many as guesses may be
		check(2, "1.0 1.1 2.0")
		r.step <- struct{}{}
		check(2, "1.0 1.1 1.2 2.0")
		p.Submit(tagged(3, 3), Demand, nothing)
		synctest.Wait()
		if s := p.Stats(); s.Running != 4 || s.RunningHigh != 4 {
			t.Errorf("%d running, at most %d; want 4", s.Running, s.RunningHigh)
		}
		for range 4 {
			r.step <- struct{}{}
		}
		synctest.Wait()
		// the last of the demand, and a guess; or two guesses
		if s := p.Stats(); s.Running != 2 {
			t.Errorf("%d running, want 2", s.Running)
		}
		close(r.step)
		synctest.Wait()
		if s := p.Stats(); s.Reads != 9 || s.Queued != 0 || s.QueuedHigh < 5 {
			t.Errorf("stats %+v, want 9 reads and nothing left", s)
		}
		p.Close()
	})
}

// A guess that somebody now waits for overtakes everything. Hurrying a read that runs, has ended,
// or never existed changes nothing.
func TestHurry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{step: make(chan struct{})}
		p := New(r, Config{Workers: 1})
		ended := map[int][]error{}
		var mu sync.Mutex
		submit := func(layer, n int, rank Rank) {
			p.Submit(tagged(layer, n), rank, func(ends []End) {
				mu.Lock()
				defer mu.Unlock()
				if ended[layer] != nil {
					t.Errorf("group %d ended twice", layer)
				}
				ended[layer] = failures(ends)
			})
		}
		submit(1, 4, Guess)
		synctest.Wait() // 1.0 is being read
		submit(2, 1, Guess)
		submit(3, 1, Demand)
		p.Hurry(100, Demand) // is being read
		p.Hurry(103, Demand)
		p.Hurry(103, Demand) // once is enough
		p.Hurry(200, Demand) // a whole group
		p.Hurry(300, Demand) // is demand already
		p.Hurry(999, Demand) // never was
		for range 6 {
			r.step <- struct{}{}
			synctest.Wait()
		}
		if want := "1.0 1.3 2.0 3.0 1.1 1.2"; r.begun() != want {
			t.Errorf("order of reads\n got %s\nwant %s", r.begun(), want)
		}
		if s := p.Stats(); s.Hurried != 2 || s.Reads != 6 || s.Queued != 0 || len(ended) != 3 {
			t.Errorf("stats %+v and %d groups ended, want 2 hurried of 6 reads and 3 groups", s, len(ended))
		}
		p.Close()
	})
}

// What is urgent goes first: what somebody waits for, then guesses; and so does what has come to be
// urgent, even if it was hurried before.
func TestUrgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{step: make(chan struct{})}
		p := New(r, Config{Workers: 1})
		nothing := func([]End) {}
		p.Submit(tagged(0, 1), Demand, nothing)
		synctest.Wait() // 0.0 is being read
		p.Submit(tagged(1, 3), Demand, nothing)
		p.Submit(tagged(2, 2), Guess, nothing)
		p.Submit(tagged(3, 1), UrgentGuess, nothing)
		p.Submit(tagged(4, 1), UrgentDemand, nothing)
		p.Hurry(102, UrgentDemand)
		p.Hurry(201, Demand)
		p.Hurry(201, UrgentDemand)
		p.Hurry(200, Demand)
		p.Hurry(400, Demand) // is more than that already
		for range 8 {
			r.step <- struct{}{}
			synctest.Wait()
		}
		if want := "0.0 1.2 2.1 4.0 3.0 2.0 1.0 1.1"; r.begun() != want {
			t.Errorf("order of reads\n got %s\nwant %s", r.begun(), want)
		}
		if s := p.Stats(); s.Hurried != 2 || s.Reads != 8 || s.Speculative != 3 || s.Queued != 0 {
			t.Errorf("stats %+v, want 2 hurried of 3 guesses, 8 reads", s)
		}
		p.Close()
	})
}

// Beside an urgent read, and for a moment after it, nothing begins that is not urgent; then all
// workers have work.
func TestUrgentHasTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{step: make(chan struct{})}
		p := New(r, Config{Workers: 4, Speculative: 2})
		nothing := func([]End) {}
		running := func(want, urgent int) {
			t.Helper()
			synctest.Wait()
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.stats.Running != want || p.urgent != urgent {
				t.Errorf("%d reads run, %d of them urgent; want %d and %d", p.stats.Running, p.urgent, want, urgent)
			}
		}
		p.Submit(tagged(1, 1), UrgentDemand, nothing)
		running(1, 1)
		p.Submit(tagged(2, 6), Demand, nothing)
		p.Submit(tagged(4, 2), Guess, nothing)
		running(1, 1)
		r.step <- struct{}{}
		running(0, 0)
		time.Sleep(urgentPause - 1) // of the bubble
		running(0, 0)
		time.Sleep(time.Nanosecond)
		running(4, 0)
		p.Submit(tagged(3, 2), UrgentDemand, nothing)
		p.Submit(tagged(5, 2), UrgentGuess, nothing)
		r.step <- struct{}{}
		r.step <- struct{}{}
		running(4, 2) // two that had begun
		r.step <- struct{}{}
		running(3, 2) // a guess waits, and so does what is not urgent
		close(r.step)
		synctest.Wait()
		time.Sleep(2 * urgentPause)
		running(0, 0)
		p.Close()
	})
}

// A guess that is recalled ends at once if it has not begun, and its group when the others have
// ended. What has begun, is hurried or is unknown goes on.
func TestRecall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{step: make(chan struct{})}
		p := New(r, Config{Workers: 1})
		defer p.Close()
		ended := map[int][]error{}
		submit := func(layer, n int, rank Rank) {
			p.Submit(tagged(layer, n), rank, func(ends []End) { ended[layer] = append(ended[layer], failures(ends)...) })
			synctest.Wait()
		}
		submit(1, 2, Guess) // the first begins
		submit(2, 1, Guess)
		submit(3, 1, UrgentGuess)
		submit(4, 1, Guess)
		submit(5, 1, Demand)
		submit(6, 1, Guess)
		p.Hurry(600, Demand)
		for _, tag := range []uint64{100, 101, 300, 200, 200, 500, 600, 700} {
			p.Recall(tag)
		}
		recalled := []error{ErrRecalled}
		if len(ended) != 2 || !slices.Equal(ended[2], recalled) || !slices.Equal(ended[3], recalled) || p.Stats().Queued != 3 || p.Stats().Recalled != 3 {
			t.Fatalf("ended %v, stats %+v; want groups 2 and 3, and one request of the first recalled", ended, p.Stats())
		}
		close(r.step)
		synctest.Wait()
		if !slices.Equal(ended[1], []error{nil, ErrRecalled}) || !slices.Equal(ended[4], []error{nil}) || !slices.Equal(ended[5], []error{nil}) || !slices.Equal(ended[6], []error{nil}) || p.Stats().Queued != 0 || p.Stats().Reads != 4 {
			t.Errorf("ended %v, stats %+v", ended, p.Stats())
		}
		// The list of groups is whole: more come and go.
		submit(8, 1, Guess)
		if !slices.Equal(ended[8], []error{nil}) {
			t.Errorf("a guess after recalls ended with %v", ended[8])
		}
	})
}

// Closing ends hurried requests like all others, and every group once.
func TestHurryAndClose(t *testing.T) {
	for hurried := range 4 {
		synctest.Test(t, func(t *testing.T) {
			r := &recorder{step: make(chan struct{})}
			p := New(r, Config{Workers: 1})
			calls, unread := 0, 0
			p.Submit(tagged(0, 1), Demand, func([]End) {})
			synctest.Wait()
			p.Submit(tagged(1, 3), Guess, func(ends []End) {
				calls++
				for _, end := range ends {
					if errors.Is(end.Err, ErrClosed) && end.Began.IsZero() && end.Ended.IsZero() {
						unread++
					}
				}
			})
			for i := range hurried {
				p.Hurry(uint64(100+i), Demand)
			}
			go p.Close()
			synctest.Wait()
			close(r.step)
			p.Close()
			if s := p.Stats(); calls != 1 || unread != 3 || s.Unread != 3 || s.Queued != 0 {
				t.Errorf("%d hurried: done called %d times with %d unread, stats %+v; want once with 3", hurried, calls, unread, s)
			}
		})
	}
}

// Late requests are reported once a timeout, whether they run or wait for a worker; guesses that
// have not begun are not late. Their memory stays with the pool until they end.
func TestOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var mu sync.Mutex
		var told []string
		p := New(NewFaulty(stamp{}, Fault{Kind: Slow, Release: release}), Config{
			Workers: 1, Timeout: 8 * time.Second,
			Overdue: func(r Request, err *TimeoutError) {
				mu.Lock()
				defer mu.Unlock()
				if err.Expert != r.Expert || r.Tag != uint64(100*r.Layer+r.Expert) {
					t.Errorf("request %+v with %v", r, err)
				}
				told = append(told, fmt.Sprintf("%d.%d after %v begun %v", r.Layer, r.Expert, err.Waited, err.Begun))
			},
		})
		var ended []error
		p.Submit(tagged(1, 1), Demand, func(ends []End) { ended = failures(ends) })
		synctest.Wait()
		p.Submit(tagged(2, 1), Guess, func([]End) {})
		time.Sleep(4 * time.Second)
		p.Submit(tagged(3, 1), Demand, func([]End) {})
		time.Sleep(9 * time.Second)
		p.Hurry(200, Demand)
		time.Sleep(9500 * time.Millisecond) // 22.5 s
		want := []string{"1.0 after 8s begun true", "3.0 after 8s begun false", "1.0 after 16s begun true", "3.0 after 16s begun false", "2.0 after 9s begun false"}
		mu.Lock()
		got := slices.Clone(told)
		mu.Unlock()
		if !slices.Equal(got, want) {
			t.Errorf("reports\n got %q\nwant %q", got, want)
		}
		if s := p.Stats(); s.Overdue != int64(len(want)) || ended != nil {
			t.Errorf("stats %+v, ended %v; want %d reports and nothing ended", s, ended, len(want))
		}
		close(release)
		p.Close()
		if len(ended) != 1 || ended[0] != nil {
			t.Errorf("the late read ended with %v, want none", ended)
		}
		time.Sleep(time.Hour) // nothing is told of a closed pool
		if !slices.Equal(told, got) {
			t.Errorf("after Close: %q", told[len(got):])
		}
	})
}

// A pool that answers in time arms its timer now and then and reports nothing.
func TestNotOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(NewFaulty(stamp{}, Fault{Kind: Slow, Delay: time.Second}), Config{
			Workers: 2, Timeout: 8 * time.Second, Overdue: func(r Request, err *TimeoutError) { t.Errorf("%+v: %v", r, err) },
		})
		for range 49 {
			if errs := readAll(p, tagged(0, 1), Demand); errs[0] != nil {
				t.Error(errs[0])
			}
		}
		p.mu.Lock()
		armed := p.watching
		p.mu.Unlock()
		time.Sleep(3 * time.Second)
		p.mu.Lock()
		idle := p.watching
		p.mu.Unlock()
		if !armed || idle {
			t.Errorf("timer armed %v while reading and %v at rest, want true and false", armed, idle)
		}
		p.Close()
	})
}

// The end of a request says when a worker took it, which may be long after it was asked for, and
// when it was done, which is after the second try if there was one.
func TestEndTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFaulty(stamp{}, Fault{Kind: Slow, Delay: time.Second}, Fault{Read: 2, Kind: Fail}, Fault{Read: 4, Kind: Panic})
		p := New(f, Config{Workers: 1})
		asked := time.Now()
		var ends []End
		p.Submit(requests(1, 3), Demand, func(e []End) { ends = slices.Clone(e) })
		synctest.Wait()
		time.Sleep(10 * time.Second)
		p.Close()
		for i, want := range [][2]time.Duration{{0, 1}, {1, 3}, {3, 4}} {
			began, ended := ends[i].Began.Sub(asked), ends[i].Ended.Sub(asked)
			if began != want[0]*time.Second || ended != want[1]*time.Second || (ends[i].Err != nil) != (i == 2) {
				t.Errorf("request %d was read from %v to %v, error %v; want from %d s to %d s", i, began, ended, ends[i].Err, want[0], want[1])
			}
		}
		p.Submit(requests(2, 1), Demand, func(e []End) { ends = slices.Clone(e) })
		if len(ends) != 1 || ends[0] != (End{Err: ErrClosed}) {
			t.Errorf("on a closed pool: %+v", ends)
		}
	})
}
