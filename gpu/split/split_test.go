package split_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/gpu/split"
)

var errPart = errors.New("the part fails")

// part is a device of the processor whose queue takes its time, and fails where it is told to.
type part struct {
	gpu.Device
	mu     sync.Mutex
	random *rand.Rand
	fails  int           // the how-manieth completion from now on; 0: none
	stuck  chan struct{} // nil, or nothing is told before it is closed
}

func (p *part) NewQueue() (gpu.Queue, error) {
	q, err := p.Device.NewQueue()
	return &slowQueue{q, p}, err
}

type slowQueue struct {
	gpu.Queue
	p *part
}

// Watch passes on what the queue tells.
func (q *slowQueue) Watch(f func(gpu.Progress)) { q.Queue.(gpu.Watched).Watch(f) }

func (q *slowQueue) Submit(c *gpu.Commands) (gpu.Ticket, error) {
	t, err := q.Queue.Submit(c)
	return &slowTicket{Ticket: t, p: q.p}, err
}

// slowTicket tells late, and perhaps later than what was submitted after it.
type slowTicket struct {
	gpu.Ticket
	p  *part
	ns int64
}

// DeviceNS returns what the ticket said when it was done.
func (t *slowTicket) DeviceNS() int64 { return t.ns }

func (t *slowTicket) OnDone(f func(error)) {
	t.Ticket.OnDone(func(err error) {
		t.p.mu.Lock()
		pause := time.Duration(t.p.random.IntN(200)) * time.Microsecond
		if t.p.fails--; t.p.fails == 0 {
			err = errPart
		}
		stuck := t.p.stuck
		t.p.mu.Unlock()
		t.ns = t.Ticket.DeviceNS()
		go func() {
			if stuck != nil {
				<-stuck
			}
			time.Sleep(pause)
			f(err)
		}()
	})
}

func newSplit(t *testing.T, n int) (gpu.Split, []*part) {
	t.Helper()
	var parts []*part
	var all []gpu.Device
	for i := range n {
		d, err := host.New(host.Config{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, &part{Device: d, random: rand.New(rand.NewPCG(uint64(i), 1))})
		all = append(all, parts[i])
	}
	d, err := split.New(all...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d, parts
}

// rows are the memory of one step: a buffer on each part.
type rows struct {
	at   []gpu.View
	sent []byte
	got  []byte
	cmds []gpu.Commands
}

const rowBytes = 512

func newRows(t *testing.T, d gpu.Split) *rows {
	r := &rows{sent: make([]byte, rowBytes), got: make([]byte, rowBytes), cmds: make([]gpu.Commands, len(d.Parts()))}
	for _, p := range d.Parts() {
		b, err := p.NewBuffer(rowBytes)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Release)
		r.at = append(r.at, gpu.View{Buf: b})
	}
	return r
}

// encode makes commands that take bytes through all parts.
func (r *rows) encode() {
	last := len(r.cmds) - 1
	for p := range r.cmds {
		c := &r.cmds[p]
		c.Reset()
		if c.Part = p; p > 0 {
			c.Moves = append(c.Moves, gpu.Move{Dst: r.at[p], Src: r.at[p-1], Bytes: rowBytes, From: p - 1})
		}
		switch p {
		case 0:
			gpu.Encode(c, gpu.Upload{Dst: r.at[0], Src: r.sent})
		case last:
			gpu.Encode(c, gpu.Download{Src: r.at[p], Dst: r.got})
		default: // each part leaves a mark
			gpu.Encode(c, gpu.Fill{Dst: r.at[p].At(4 * p), Bytes: 4})
		}
	}
}

// want returns what arrives.
func (r *rows) want() []byte {
	b := bytes.Clone(r.sent)
	for p := 1; p < len(r.cmds)-1; p++ {
		clear(b[4*p : 4*p+4])
	}
	return b
}

// TestOrder sends several steps at once through two and through four parts, which take their time:
// every step has its bytes, tickets of each part are done in the order of Submit, and none before
// those of the part before that its rows came from. Each part's work is reported, transfers are
// not.
func TestOrder(t *testing.T) {
	for _, n := range []int{2, 4} {
		d, _ := newSplit(t, n)
		q, err := d.NewQueue()
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		working, calls := make([]bool, n), make([]int, n)
		q.(gpu.Watched).Watch(func(p gpu.Progress) {
			mu.Lock()
			defer mu.Unlock()
			if working[p.Part] == p.Working || !p.Working && p.DeviceNS == 0 {
				t.Errorf("part %d: work begins or ends twice, or has taken %d ns", p.Part, p.DeviceNS)
			}
			working[p.Part] = p.Working
			calls[p.Part]++
		})
		const steps, rounds = 3, 20
		var all [steps]*rows
		for i := range all {
			all[i] = newRows(t, d)
		}
		type end struct{ part, step int }
		done := make(chan end, steps*n)
		for round := range rounds {
			for i, r := range all {
				for k := range r.sent {
					r.sent[k] = byte(round + 7*i + k)
				}
				r.encode()
			}
			for p := range n {
				for i := range all {
					ticket, err := q.Submit(&all[i].cmds[p])
					if err != nil {
						t.Fatal(err)
					}
					ticket.OnDone(func(err error) {
						if err != nil {
							t.Error(err)
						}
						done <- end{p, i}
					})
				}
			}
			told := make([]int, n)
			for range steps * n {
				e := <-done
				if told[e.part] != e.step || e.part > 0 && told[e.part-1] < steps {
					t.Fatalf("%d parts: step %d of part %d is done after %d of it, and %v of all", n, e.step, e.part, told[e.part], told)
				}
				told[e.part]++
			}
			for i, r := range all {
				if !bytes.Equal(r.got, r.want()) {
					t.Fatalf("%d parts, round %d, step %d: other bytes arrive", n, round, i)
				}
			}
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
		for p := range n {
			if calls[p] != 2*steps*rounds || working[p] {
				t.Errorf("part %d: %d reports of work for %d Submits", p, calls[p], steps*rounds)
			}
		}
		if _, err := q.Submit(&all[0].cmds[0]); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("after Close, Submit says %v", err)
		}
	}
}

// TestSideBySide has the second part take long: what the first part has done meanwhile, and nobody
// needs of the second, is told at once.
func TestSideBySide(t *testing.T) {
	d, parts := newSplit(t, 2)
	q, err := d.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	r, free := newRows(t, d), make(chan struct{})
	r.encode()
	parts[1].mu.Lock()
	parts[1].stuck = free
	parts[1].mu.Unlock()
	end := func(c *gpu.Commands) chan error {
		ticket, err := q.Submit(c)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		ticket.OnDone(func(err error) { done <- err })
		return done
	}
	first, second := end(&r.cmds[0]), end(&r.cmds[1])
	if err := <-first; err != nil {
		t.Error(err)
	}
	var next gpu.Commands
	gpu.Encode(&next, gpu.Fill{Dst: r.at[0], Bytes: rowBytes})
	if err := <-end(&next); err != nil {
		t.Error(err)
	}
	select {
	case <-second:
		t.Error("the second part is said to be done while it stands still")
	default:
	}
	close(free)
	if err := <-second; err != nil {
		t.Error(err)
	}
}

// TestRefusedLater has the first part fail what moves, so that the second is never given its work:
// that is reported as begun and ended in its turn.
func TestRefusedLater(t *testing.T) {
	d, parts := newSplit(t, 2)
	q, err := d.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var seen [2][]bool
	q.(gpu.Watched).Watch(func(p gpu.Progress) {
		mu.Lock()
		defer mu.Unlock()
		seen[p.Part] = append(seen[p.Part], p.Working)
	})
	r := newRows(t, d)
	r.encode()
	parts[0].mu.Lock()
	parts[0].fails = 2 // the download of what moves
	parts[0].mu.Unlock()
	var plain gpu.Commands
	plain.Part = 1
	gpu.Encode(&plain, gpu.Fill{Dst: r.at[1], Bytes: rowBytes})
	for _, c := range []*gpu.Commands{&r.cmds[0], &r.cmds[1], &plain} {
		if _, err := q.Submit(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.Close(); err != nil {
		t.Error(err)
	}
	if want := [2][]bool{{true, false}, {true, false, true, false}}; !slices.Equal(seen[0], want[0]) || !slices.Equal(seen[1], want[1]) {
		t.Errorf("the parts' work begins and ends %v, want %v", seen, want)
	}
}

// TestFailure has work of the first part fail, and then the download of what moves from there: the
// ticket of that work fails, or of the work that needs the move, and later ones do not.
func TestFailure(t *testing.T) {
	d, parts := newSplit(t, 2)
	q, err := d.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	r := newRows(t, d)
	for _, c := range []struct {
		fails int // completions of the first part: its own work, and the download of what moves
		want  [2]bool
	}{{1, [2]bool{true, false}}, {2, [2]bool{false, true}}, {0, [2]bool{}}} {
		parts[0].mu.Lock()
		parts[0].fails = c.fails
		parts[0].mu.Unlock()
		r.encode()
		var tickets [2]gpu.Ticket
		for p := range tickets {
			if tickets[p], err = q.Submit(&r.cmds[p]); err != nil {
				t.Fatal(err)
			}
		}
		for p := range tickets {
			done := make(chan error, 1)
			tickets[p].OnDone(func(err error) { done <- err })
			if err := <-done; errors.Is(err, errPart) != c.want[p] {
				t.Errorf("completion %d fails: part %d says %v", c.fails, p, err)
			}
		}
	}
}

// TestRefused has Submit refuse what does not fit.
func TestRefused(t *testing.T) {
	d, _ := newSplit(t, 3)
	q, err := d.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	r := newRows(t, d)
	move := gpu.Move{Dst: r.at[2], Src: r.at[1], Bytes: rowBytes, From: 1}
	for name, change := range map[string]func(*gpu.Commands){
		"no such part":      func(c *gpu.Commands) { c.Part = 3 },
		"a part is skipped": func(c *gpu.Commands) { c.Moves[0].From = 0 },
		"a move is long":    func(c *gpu.Commands) { c.Moves[0].Bytes++ },
		"a move is empty":   func(c *gpu.Commands) { c.Moves[0].Bytes = 0 },
		"an operation":      func(c *gpu.Commands) { gpu.Encode(c, gpu.Fill{Dst: r.at[2], Bytes: rowBytes + 1}) },
	} {
		c := gpu.Commands{Part: 2, Moves: []gpu.Move{move}}
		change(&c)
		if _, err := q.Submit(&c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestNew refuses one device, and names several.
func TestNew(t *testing.T) {
	d, parts := newSplit(t, 2)
	if want := "2 × " + parts[0].Name(); d.Name() != want {
		t.Errorf("the name is %q, want %q", d.Name(), want)
	}
	if _, err := split.New(parts[0]); err == nil {
		t.Error("one device is made one of several")
	}
	if got := gpu.PartsOf(d); len(got) != 2 || len(gpu.PartsOf(got[0])) != 1 {
		t.Errorf("%d parts", len(got))
	}
	if _, err := split.New(parts[0], discrete{parts[1]}); err == nil {
		t.Error("a device with memory of its own is made one with another")
	}
}

// discrete says that it has memory of its own.
type discrete struct{ gpu.Device }

func (discrete) Memory() (free, total int64, err error) { return 1, 1, nil }
func (discrete) NewPinned(n int) (gpu.Buffer, error)    { return nil, gpu.ErrOutOfMemory }
