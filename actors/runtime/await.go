package runtime

import (
	"sync"

	"github.com/moeflux/moeflux-actor/stages"
)

// awaits turns the completion of tickets into TicketDone messages. It reuses its memory, so that a
// ticket costs no new callback.
type awaits struct {
	send    func(stages.StageID, stages.Message)
	explain func(error) error // what a device's error comes from; nil: it says so itself

	mu   sync.Mutex
	free []*awaiting
}

// awaiting waits for the tickets of one Await.
type awaiting struct {
	of             *awaits
	to             stages.StageID
	done           *stages.TicketDone
	ticket         stages.Ticket
	onAfter, onEnd func(error)
}

// await sends done to a stage when the tickets are done. If both fail, done has the earlier
// ticket's error.
func (a *awaits) await(to stages.StageID, w *stages.Await, done *stages.TicketDone) {
	g := a.get()
	g.to, g.done, g.ticket = to, done, w.Ticket
	if w.After != nil {
		w.After.OnDone(g.onAfter)
	} else {
		w.Ticket.OnDone(g.onEnd)
	}
}

func (a *awaits) get() *awaiting {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.free) - 1; n >= 0 {
		g := a.free[n]
		a.free = a.free[:n]
		return g
	}
	g := &awaiting{of: a}
	g.onAfter, g.onEnd = g.afterDone, g.end
	return g
}

func (g *awaiting) afterDone(err error) {
	g.done.Err = err
	g.ticket.OnDone(g.onEnd)
}

func (g *awaiting) end(err error) {
	to, done, a := g.to, g.done, g.of
	if done.Err == nil {
		done.Err = err
	}
	if done.Err != nil && a.explain != nil {
		done.Err = a.explain(done.Err)
	}
	done.DeviceNS = g.ticket.DeviceNS()
	g.done, g.ticket = nil, nil
	a.mu.Lock()
	a.free = append(a.free, g)
	a.mu.Unlock()
	a.send(to, done)
}
