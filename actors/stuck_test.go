package actors_test

import (
	"bytes"
	"context"
	"sync"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/io/readpool"
)

// gate is open until it is shut; whatever passes it then hangs until it is opened again.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // nil: open
	held   int           // how often something had to wait
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.opened = make(chan struct{})
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
}

func (g *gate) pass() {
	g.mu.Lock()
	opened := g.opened
	if opened != nil {
		g.held++
	}
	g.mu.Unlock()
	if opened != nil {
		<-opened
	}
}

func (g *gate) waited() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held
}

// stuckSource is a disk behind a gate.
type stuckSource struct {
	readpool.Source
	g *gate
}

func (s stuckSource) ReadExpert(layer, expert int, dst []byte) error {
	s.g.pass()
	return s.Source.ReadExpert(layer, expert, dst)
}

// stuckDevice is a device whose queues do their work behind a gate.
type stuckDevice struct {
	gpu.Device
	g *gate
}

func (d stuckDevice) NewQueue() (gpu.Queue, error) { return stuckBehind(d.Device, d.g) }

// stuckDiscrete is a stuckDevice with memory of its own.
type stuckDiscrete struct {
	gpu.Discrete
	g *gate
}

func (d stuckDiscrete) NewQueue() (gpu.Queue, error) { return stuckBehind(d.Discrete, d.g) }

func stuckBehind(d gpu.Device, g *gate) (gpu.Queue, error) {
	inner, err := d.NewQueue()
	if err != nil {
		return nil, err
	}
	q := &stuckQueue{inner: inner, g: g, done: make(chan error, 1)}
	q.line = gpu.NewLine(q.run)
	return q, nil
}

// stuckQueue gives its work to another queue, one piece after the other.
type stuckQueue struct {
	inner   gpu.Queue
	g       *gate
	line    *gpu.Line[*gpu.Pending[*gpu.Commands]]
	tickets gpu.Tickets[*gpu.Commands]
	done    chan error
}

func (q *stuckQueue) Submit(c *gpu.Commands) (gpu.Ticket, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	t, _ := q.tickets.Get()
	t.Of = c
	q.line.Add(t)
	return t, nil
}

func (q *stuckQueue) run(t *gpu.Pending[*gpu.Commands]) {
	q.g.pass()
	inner, err := q.inner.Submit(t.Of)
	if err == nil {
		inner.OnDone(func(err error) { q.done <- err })
		err = <-q.done
	}
	t.Of = nil
	t.Complete(1, err)
}

func (q *stuckQueue) Close() error {
	q.line.Close()
	return q.inner.Close()
}

// stuckProcessor is an exporter of spans behind a gate.
type stuckProcessor struct {
	sdktrace.SpanProcessor
	g *gate
}

func (stuckProcessor) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (stuckProcessor) Shutdown(context.Context) error                  { return nil }
func (p stuckProcessor) OnEnd(sdktrace.ReadOnlySpan)                   { p.g.pass() }

// stuckWriter and stuckReader are a caller's, behind a gate.
type stuckWriter struct {
	bytes.Buffer
	g *gate
}

func (w *stuckWriter) Write(p []byte) (int, error) {
	w.g.pass()
	return w.Buffer.Write(p)
}

type stuckReader struct {
	*bytes.Reader
	g *gate
}

func (r *stuckReader) ReadAt(p []byte, at int64) (int, error) {
	r.g.pass()
	return r.Reader.ReadAt(p, at)
}
