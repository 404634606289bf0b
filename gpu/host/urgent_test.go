package host

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
)

// longWork returns products that take a while, and where their results are.
func longWork(t *testing.T, d *Device) (*gpu.Commands, []float32) {
	const rows, dim, times = 128, 1024, 200
	x, y := benchFloats(t, d, rows*dim), benchFloats(t, d, rows*dim)
	w := benchMatrix(t, d, dim, dim, q4)
	c := new(gpu.Commands)
	for range times {
		gpu.Encode(c, gpu.MatMul{W: w, X: x, Y: y, Rows: rows})
		gpu.Encode(c, gpu.RMSNorm{X: y, W: benchFloats(t, d, dim), Y: x, Vectors: rows, Dim: dim, Eps: 1e-6})
	}
	return c, gpu.Floats(y.Buf.Bytes()[y.Offset:], rows*dim)
}

// TestUrgentGoesAmid submits urgent work while other work is under way. It ends first, what comes
// after it sees it, and the other work has the bits and about the time that it has alone.
func TestUrgentGoesAmid(t *testing.T) {
	d := open(t, 2)
	c, y := longWork(t, d)
	if err := d.Run(c); err != nil {
		t.Fatal(err)
	}
	want := slices.Clone(y)
	c, y = longWork(t, d)
	v, sum := benchFloats(t, d, 64), benchFloats(t, d, 64)
	clear(floatsAt(sum, 64))

	q, err := d.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var log []string
	note := func(s string) {
		mu.Lock()
		defer mu.Unlock()
		log = append(log, s)
	}
	began := make(chan bool, 1)
	q.(gpu.Watched).Watch(func(p gpu.Progress) {
		note(map[bool]string{true: "begin", false: "end"}[p.Working] + map[bool]string{true: " urgent", false: ""}[p.Urgent])
		if p.Working && !p.Urgent {
			select {
			case began <- true:
			default:
			}
		}
	})
	submit := func(name string, c *gpu.Commands) {
		ticket, err := q.Submit(c)
		if err != nil {
			t.Fatal(err)
		}
		ticket.OnDone(func(err error) {
			note(name)
			if err != nil {
				t.Error(err)
			}
		})
	}
	submit("long", c)
	<-began
	hurry := &gpu.Commands{Urgent: true}
	gpu.Encode(hurry, gpu.Add{A: sum, B: v, Y: sum, N: 64})
	submit("urgent", hurry)
	var after gpu.Commands
	gpu.Encode(&after, gpu.Add{A: sum, B: sum, Y: sum, N: 64})
	submit("after", &after)
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	if order := []string{"begin", "begin urgent", "end urgent", "urgent", "end", "long", "begin", "end", "after"}; !slices.Equal(log, order) {
		t.Errorf("got %v, want %v", log, order)
	}
	if !slices.Equal(y, want) {
		t.Error("interrupted work has other bits")
	}
	for i, x := range floatsAt(v, 64) {
		if got := floatsAt(sum, 64)[i]; got != 2*x {
			t.Fatalf("element %d is %v, want %v", i, got, 2*x)
		}
	}
}

// pausing is a task whose chunks want pauses now and then.
type pausing struct {
	pause  *pause
	every  int32
	counts []atomic.Int32
	ran    atomic.Int32
}

func (p *pausing) do(_ *scratch, chunk int) {
	p.counts[chunk].Add(1)
	if p.ran.Add(1)%p.every == 0 {
		p.pause.wanted.Store(true)
	}
}

// TestPoolPauses stops jobs at random chunks and runs other jobs meanwhile. Every chunk runs once.
func TestPoolPauses(t *testing.T) {
	for threads := 1; threads <= 5; threads++ {
		p := newPool(threads - 1)
		rng := rand.New(rand.NewPCG(uint64(threads), 1))
		var s scratch
		pauses := 0
		for range 300 {
			var stop pause
			task := &pausing{pause: &stop, every: 1 + rng.Int32N(9), counts: make([]atomic.Int32, 1+rng.IntN(60))}
			for done := p.run(&s, task, len(task.counts), threads, &stop); !done; done = p.resume(&s, task, &stop) {
				pauses++
				other := &pausing{pause: &stop, every: 1 << 30, counts: make([]atomic.Int32, 7)}
				p.run(&s, other, 7, threads, nil)
				if n := other.ran.Load(); n != 7 {
					t.Fatalf("%d threads: %d chunks of the other job ran, want 7", threads, n)
				}
				stop.wanted.Store(false)
			}
			for i := range task.counts {
				if n := task.counts[i].Load(); n != 1 {
					t.Fatalf("%d threads: chunk %d of %d ran %d times", threads, i, len(task.counts), n)
				}
			}
		}
		if pauses == 0 {
			t.Errorf("%d threads: no job was ever stopped", threads)
		}
		task := &pausing{pause: new(pause), every: 3, counts: make([]atomic.Int32, 20)}
		if n := testing.AllocsPerRun(50, func() {
			for done := p.run(&s, task, 20, threads, task.pause); !done; done = p.resume(&s, task, task.pause) {
				task.pause.wanted.Store(false)
			}
		}); n != 0 {
			t.Errorf("%d threads: %v allocations for a job with pauses", threads, n)
		}
		p.close()
	}
}

// TestMarksPause wants marks to leave out the urgent work amid their Commands, as the time of the
// whole does.
func TestMarksPause(t *testing.T) {
	d := open(t, 2)
	buf, err := d.NewBuffer(4 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer buf.Release()
	q, err := d.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	var within, amid atomic.Int32 // work that is not urgent; urgent work amid it
	begun := make(chan struct{}, 1000)
	q.(gpu.Watched).Watch(func(p gpu.Progress) {
		switch {
		case !p.Urgent && p.Working:
			within.Store(1)
			begun <- struct{}{}
		case !p.Urgent:
			within.Store(0)
		case p.Working:
			amid.Add(within.Load())
		}
	})
	add := func(c *gpu.Commands) {
		v := gpu.View{Buf: buf}
		gpu.Encode(c, gpu.Add{A: v, B: v, Y: v, N: 1 << 20})
	}
	for range 1000 {
		var long gpu.Commands
		for range 20 {
			add(&long)
		}
		gpu.Encode(&long, gpu.Mark{Tag: 0})
		ticket, err := q.Submit(&long)
		if err != nil {
			t.Fatal(err)
		}
		<-begun
		urgent := &gpu.Commands{Urgent: true}
		add(urgent)
		if _, err := q.Submit(urgent); err != nil {
			t.Fatal(err)
		}
		done := make(chan int64, 1)
		ticket.OnDone(func(error) { done <- ticket.DeviceNS() })
		took, mark := <-done, long.Marks()[0].NS
		if mark < 1 || mark > took {
			t.Fatalf("the mark is at %d ns of %d", mark, took)
		}
		if amid.Load() >= 3 {
			return
		}
	}
	t.Error("no urgent work ran amid other work")
}
