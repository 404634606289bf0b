package split_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
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
	fails  int // the how-manieth completion from now on; 0: none
}

func (p *part) NewQueue() (gpu.Queue, error) {
	q, err := p.Device.NewQueue()
	return &slowQueue{q, p}, err
}

type slowQueue struct {
	gpu.Queue
	p *part
}

func (q *slowQueue) Submit(c *gpu.Commands) (gpu.Ticket, error) {
	t, err := q.Queue.Submit(c)
	return &slowTicket{t, q.p}, err
}

// slowTicket tells late.
type slowTicket struct {
	gpu.Ticket
	p *part
}

func (t *slowTicket) OnDone(f func(error)) {
	t.Ticket.OnDone(func(err error) {
		t.p.mu.Lock()
		pause := time.Duration(t.p.random.IntN(200)) * time.Microsecond
		if t.p.fails--; t.p.fails == 0 {
			err = errPart
		}
		t.p.mu.Unlock()
		time.Sleep(pause)
		f(err)
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
// every step has its bytes, and tickets are done in the order of Submit.
func TestOrder(t *testing.T) {
	for _, n := range []int{2, 4} {
		d, _ := newSplit(t, n)
		q, err := d.NewQueue()
		if err != nil {
			t.Fatal(err)
		}
		var working, calls int
		q.(gpu.Watched).Watch(func(begins, urgent bool, ns, _ int64) {
			calls++
			if working += 2*map[bool]int{true: 1}[begins] - 1; working < 0 || working > 1 {
				t.Error("work begins or ends twice")
			}
		})
		const steps, rounds = 3, 20
		var all [steps]*rows
		for i := range all {
			all[i] = newRows(t, d)
		}
		done, order := make(chan int, steps*n), 0
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
					number := order
					order++
					ticket.OnDone(func(err error) {
						if err != nil {
							t.Error(err)
						}
						done <- number
					})
				}
			}
			for i := range steps * n {
				if got := <-done; got != order-steps*n+i {
					t.Fatalf("%d parts: ticket %d is done after %d others", n, got, order-steps*n+i)
				}
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
		if calls != 2*order || working != 0 {
			t.Errorf("%d reports of work for %d Submits", calls, order)
		}
		if _, err := q.Submit(&all[0].cmds[0]); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("Submit after Close: %v", err)
		}
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
