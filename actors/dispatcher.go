package actors

import "github.com/asynkron/protoactor-go/actor"

// goroutine is a protoactor dispatcher that runs one actor's mailbox on one long-lived goroutine: 0.4 µs a round trip
// between two actors, where a goroutine per batch of messages costs 3 µs (docs/experiments.md).
type goroutine struct {
	work chan func()
	stop chan struct{}
	done chan struct{}
}

var _ actor.Dispatcher = (*goroutine)(nil)

func newGoroutine() *goroutine {
	// A mailbox schedules itself once at a time, so one place is enough never to block the sender.
	g := &goroutine{work: make(chan func(), 1), stop: make(chan struct{}), done: make(chan struct{})}
	go g.run()
	return g
}

func (g *goroutine) run() {
	defer close(g.done)
	for {
		select {
		case f := <-g.work:
			f()
		case <-g.stop:
			return
		}
	}
}

// Schedule runs f on the goroutine.
func (g *goroutine) Schedule(f func()) {
	select {
	case g.work <- f:
	case <-g.stop: // the actor has stopped; what is still sent to it goes nowhere
	}
}

// Throughput returns how many messages are handled between two calls of Gosched.
func (g *goroutine) Throughput() int { return 300 }

// close ends the goroutine and waits for it. The actor must have stopped.
func (g *goroutine) close() {
	close(g.stop)
	<-g.done
}
