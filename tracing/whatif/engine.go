package whatif

import (
	"container/heap"
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
)

// laws says what things take in simulated time, in nanoseconds.
type laws struct {
	message [stages.NumStages][stages.NumKinds]float64 // to handle one
	disk    diskLaw
	op      func(*operation) float64               // the device's work, while nothing is read
	work    func(*reading) float64                 // a read's work, in usual reads
	start   func(o *operation, woken bool) float64 // from submission to begin on an idle device
	lag     func(r *reading, working bool) float64 // from asking to begin of a read that waits for no worker
	source  func(*stages.Step) uint64              // which recorded step a step is; 0: none
	device  [2]float64                             // from submission to begin on an idle device: in its own goroutine, woken
	wakes   [2]float64                             // from asking to begin of a read that waits for no worker: while the device is idle, and works
	slowed  float64                                // by what share reads slow the device
}

// engine is the stages in simulated time.
type engine struct {
	now    int64
	events events
	count  uint64 // of events, which keeps equal times in order

	cores [stages.NumStages]stages.Core
	out   [stages.NumStages]stages.Outbox
	laws  laws

	line    []post
	running bool   // somebody runs the line
	runner  func() // what goes on when the line is empty; nil: nothing waits for that

	device device
	disk   disk
	linger uint64 // the round whose end is due

	answered func(m stages.Message, at int64) // tells callers; at is when the message was taken that led to it
	watch    watcher
	idle     idle
	bytes    int64 // of a record
	err      error
}

// post is a message on its way to a stage.
type post struct {
	to     stages.StageID
	msg    stages.Message
	sentNS int64
}

// watcher is told of what happens; its functions may be nil.
type watcher struct {
	handled   func(to stages.StageID, m stages.Message, at stages.Step, sent, began, ended int64)
	outbox    func(from stages.StageID, in stages.Message, out *stages.Outbox)
	computed  func(*operation)
	read      func(*reading)
	submitted func(*operation)
}

// event is something that happens at a time.
type event struct {
	at    int64
	order uint64
	do    func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// newEngine returns an engine at rest, at time 0. Its cores come later.
func newEngine(l laws, workers int, preempts bool) *engine {
	e := &engine{laws: l}
	e.device = device{e: e, preempts: preempts}
	e.disk = disk{e: e, workers: workers, speculative: min(2, workers)}
	spent := new(stages.Spent)
	for i := range e.out {
		e.out[i].Share(spent)
	}
	return e
}

// at has something done at a time.
func (e *engine) at(ns int64, do func()) {
	e.count++
	heap.Push(&e.events, event{max(ns, e.now), e.count, do})
}

// run lets things happen until nothing is left to happen, or until a time.
func (e *engine) run(until int64) error {
	for len(e.events) > 0 && e.err == nil {
		if e.events[0].at > until {
			return nil
		}
		ev := heap.Pop(&e.events).(event)
		e.idle.pass(e, ev.at)
		e.now = ev.at
		ev.do()
	}
	return e.err
}

// post sends a message to a stage. If nobody runs the line, the sender does.
func (e *engine) post(to stages.StageID, m stages.Message) {
	if to == stages.ExpertIO || to == stages.Sequencer {
		m.Stamp(e.now)
	}
	e.line = append(e.line, post{to, m, e.now})
	if !e.running {
		e.running = true
		e.next()
	}
}

// whoPosts calls posts, which may post messages, for a goroutine that goes on with then when it has
// run the line to its end, or at once if somebody else runs it.
func (e *engine) whoPosts(posts, then func()) {
	ran := e.running
	posts()
	if !ran && e.running {
		e.runner = then
		return
	}
	then()
}

// next has a core handle the first message of the line.
func (e *engine) next() {
	if len(e.line) == 0 {
		then := e.runner
		e.running, e.runner = false, nil
		if then != nil {
			then()
		}
		return
	}
	p := e.line[0]
	e.line = e.line[1:]
	var head stages.Step
	if h := p.msg.Head(); h != nil {
		head = *h
	}
	out, began := &e.out[p.to], e.now
	out.NowNS = began
	if err := e.cores[p.to].Step(p.msg, out); err != nil {
		e.err = fmt.Errorf("whatif: %T to %s: %w", p.msg, p.to, err)
		return
	}
	e.idle.note(p.msg, out)
	if e.watch.outbox != nil {
		e.watch.outbox(p.to, p.msg, out)
	}
	took := e.laws.message[p.to][p.msg.MessageKind()]
	e.at(e.now+int64(took), func() {
		e.perform(&p, out, began)
		if e.watch.handled != nil {
			e.watch.handled(p.to, p.msg, head, p.sentNS, began, e.now)
		}
		out.Reset()
		out.Spent().Handled(p.msg)
		e.next()
	})
}

// perform does what a core has asked for when it took a message.
func (e *engine) perform(in *post, out *stages.Outbox, began int64) {
	for i := range out.Reads {
		e.disk.ask(&out.Reads[i], began)
	}
	for _, h := range out.Hurries {
		e.disk.hurry(h)
	}
	for _, r := range out.Recalls {
		e.disk.recall(r)
	}
	e.device.flush()
	for i := range out.Awaits {
		a := &out.Awaits[i]
		e.await(in.to, a, out.Spent().TicketDone(a.Step, a.ID))
	}
	for _, s := range out.Sends {
		if f, ok := s.Msg.(*stages.StepFailed); ok && e.err == nil {
			e.err = fmt.Errorf("whatif: %s gives up %v: %w", f.Stage, &f.Step, f.Err)
		}
		e.post(s.To, s.Msg)
	}
	for _, a := range out.Answers {
		if e.answered != nil {
			e.answered(a.Msg, began)
		}
	}
	if l := out.Linger; l.Round != 0 {
		e.lingers(l)
	}
}

// await posts a TicketDone when the tickets are done. The device's goroutine brings it, and goes on
// when the line is empty.
func (e *engine) await(from stages.StageID, a *stages.Await, done *stages.TicketDone) {
	ticket := a.Ticket
	end := func(error) {
		done.DeviceNS = ticket.DeviceNS()
		e.post(from, done)
	}
	if a.After == nil {
		ticket.OnDone(end)
		return
	}
	a.After.OnDone(func(error) { ticket.OnDone(end) })
}

// lingers has a round end in time, unless a later one replaces it.
func (e *engine) lingers(l stages.Linger) {
	e.linger = l.Round
	e.at(l.AtNS, func() {
		if e.linger == l.Round {
			e.linger = 0
			e.post(stages.Sequencer, &stages.LingerOver{Round: l.Round})
		}
	})
}
