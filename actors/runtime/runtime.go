package runtime

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/moeflux/moeflux-actor/actors/metering"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// Experts brings experts into memory: what the shells need of package actors/expertmem. Its methods
// are called from the line, one at a time, and must not block.
type Experts interface {
	// Read starts the reads of a group. The end of each goes to expert-IO by Send, as an
	// ExpertsRead.
	Read(g *stages.ReadGroup)
	// Hurry tells that somebody waits for a speculative read.
	Hurry(stages.Hurry)
	// Recall tells that nobody needs a speculative read any more.
	Recall(stages.Recall)
	// Free takes the memory of a slot back, until the next read into it.
	Free(slot stages.SlotID)
	// Resized tells that expert-IO has another number of slots.
	Resized(slots int)
	// Forgotten tells that expert-IO has forgotten all experts.
	Forgotten()
	// AddStats adds the figures that no stage has.
	AddStats(*stages.Stats)
	stages.Leveled
}

// Parking keeps states that have no place in the device's memory: what the shells need of package
// actors/parking. Its methods are called from the line, one at a time, and must not block.
type Parking interface {
	// Park does what the sequencer asks for. The end of it goes to the sequencer by Send, as a
	// StateParked or a StateReturned.
	Park(stages.Park)
	// AddStats adds the figures that no stage has.
	AddStats(*stages.Stats)
}

// Texts is what is kept of texts on disk: what the figures need of package actors/recall.
type Texts interface {
	// AddStats adds the figures that no stage has.
	AddStats(*stages.Stats)
}

// Hosts are processes that compute experts: what the shells need of package actors/remote. Its
// methods are called from the line, one at a time, and must not block.
type Hosts interface {
	// Ask asks a host. Its answer goes to expert-IO by Send, as ExpertsAnswered.
	Ask(*stages.Ask)
	// Share tells a host what is its own.
	Share(*stages.HostShare)
	// AddStats adds the figures that no stage has.
	AddStats(*stages.Stats)
}

// Parts is what a runtime runs.
type Parts struct {
	Cores   [stages.NumStages]stages.Core
	Meter   *metering.Meter
	Experts Experts
	Hosts   Hosts // nil: none, and expert-IO asks none
	Parking Parking
	Texts   Texts
	Explain func(error) error // says what a device's error comes from
	Records *record.Log       // nil: none
	Tracing Tracing
}

// Runtime is the actors of one engine. Its methods may be called from many goroutines.
type Runtime struct {
	system *actor.ActorSystem
	log    *slog.Logger
	epoch  time.Time

	meter   *metering.Meter
	experts Experts
	hosts   Hosts
	parking Parking
	texts   Texts
	leveled []stages.Leveled

	top    *actor.PID // nil until Start
	parent *parent
	pids   [stages.NumStages]*actor.PID
	awaits awaits
	linger linger
	stint  stint

	spans *spanWriter // nil without a tracer

	fate fate
}

// New returns a runtime without actors, whose clock begins now.
func New(system *actor.ActorSystem, log *slog.Logger) *Runtime {
	return &Runtime{system: system, log: log, epoch: time.Now(), fate: newFate()}
}

// Start starts the actors: a supervisor, and below it the stages.
func (r *Runtime) Start(p Parts) {
	r.meter, r.experts, r.hosts, r.parking, r.texts = p.Meter, p.Experts, p.Hosts, p.Parking, p.Texts
	r.parent = &parent{r: r, started: make(chan struct{}), stopped: make(chan struct{})}
	r.awaits.send, r.awaits.explain = r.Send, p.Explain
	r.leveled = append(r.leveled, p.Experts)
	row, spent := new(line), new(stages.Spent)
	stageBox := row.mailboxes()
	for id, core := range p.Cores {
		s := &shell{r: r, line: row, id: stages.StageID(id), core: core}
		s.out.Share(spent)
		s.out.Log = p.Records
		if l, ok := core.(stages.Leveled); ok {
			r.leveled = append(r.leveled, l)
		}
		r.parent.children = append(r.parent.children, child{name: s.id.String(), actor: s, pid: &r.pids[id], mailbox: stageBox})
	}
	if p.Tracing.Provider != nil && p.Records != nil {
		r.spans = r.newSpanWriter(p.Tracing, p.Records)
	}
	props := actor.PropsFromProducer(func() actor.Actor { return r.parent }, actor.WithSupervisor(r.parent))
	r.top = r.system.Root.SpawnPrefix(props, "moeflux")
	<-r.parent.started
}

// PID returns the sequencer's address.
func (r *Runtime) PID() *actor.PID { return r.pids[stages.Sequencer] }

// Now returns the time on the engine's clock, in nanoseconds since New.
func (r *Runtime) Now() int64 { return int64(time.Since(r.epoch)) }

// At returns a moment on the engine's clock.
func (r *Runtime) At(t time.Time) int64 { return int64(t.Sub(r.epoch)) }

// Epoch returns when the engine's clock began.
func (r *Runtime) Epoch() time.Time { return r.epoch }

// Send sends a message to a stage, from any goroutine. The message carries the time.
func (r *Runtime) Send(to stages.StageID, m stages.Message) { r.sendAt(to, m, r.Now()) }

func (r *Runtime) sendAt(to stages.StageID, m stages.Message, now int64) {
	m.Stamp(now)
	r.system.Root.Send(r.pids[to], m)
}

// answer delivers a core's answer to its caller.
func (r *Runtime) answer(to stages.Caller, m stages.Message) {
	r.spans.message(m)
	if c, ok := m.(*stages.CollectStats); ok && c.Stats != nil {
		r.addStats(c.Stats)
	}
	switch c := to.(type) {
	case chan stages.Message:
		select {
		case c <- m: // the engine's own have a place for their only answer
		default:
			r.log.Warn("an answer was dropped: its channel has no room", "answer", fmt.Sprintf("%T", m))
		}
	case *Reply:
		c.deliver(m)
	case *actor.PID:
		r.system.Root.Send(c, m)
	case nil: // nobody asked for one
	default:
		r.log.Warn("an answer was dropped: its caller is neither a channel of stages.Message nor a PID", "answer", fmt.Sprintf("%T", m), "caller", fmt.Sprintf("%T", c))
	}
}

// addStats adds the figures that no stage has.
func (r *Runtime) addStats(s *stages.Stats) {
	r.experts.AddStats(s)
	if r.hosts != nil {
		r.hosts.AddStats(s)
	}
	r.parking.AddStats(s)
	r.texts.AddStats(s)
	r.spans.addTo(s)
}

// StopIfBroken stops the actors of an engine that has stopped by itself, so that stages that still
// run do not use a device that is being closed. Others still have to hear of its last work.
func (r *Runtime) StopIfBroken() {
	select {
	case <-r.fate.broken:
		r.stopActors()
	default:
	}
}

// Stop stops the actors and returns when they have stopped. Nothing sends messages any more: reads
// and the device have come to an end.
func (r *Runtime) Stop() {
	r.linger.stop()
	r.stint.stop()
	if r.top == nil {
		return
	}
	r.stopActors()
}

// EndSpans returns when all spans are made, after Stop, and writes their number into last, which
// may be nil.
func (r *Runtime) EndSpans(last *stages.Stats) {
	r.spans.close()
	if last != nil {
		r.spans.addTo(last)
	}
}

// stopActors returns when all actors have stopped.
func (r *Runtime) stopActors() {
	if r.top == nil {
		return
	}
	r.parent.stopping.Store(true)
	select {
	case <-r.parent.stopped:
	default:
		r.system.Root.Stop(r.top)
		<-r.parent.stopped
	}
}

// LastStats collects the figures after Stop; the cores belong to the caller then. A core that has
// failed may be in any state: if it panics again there are no figures, and the result is nil.
func (r *Runtime) LastStats() (last *stages.Stats) {
	if r.top == nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			r.log.Debug("there are no last figures", "reason", fmt.Sprint(p))
			last = nil
		}
	}()
	m := &stages.CollectStats{Stats: new(stages.Stats)}
	for _, c := range r.parent.children {
		s, ok := c.actor.(*shell)
		if !ok {
			continue
		}
		s.out.Reset()
		if err := s.core.Step(m, &s.out); err != nil {
			panic(err)
		}
		r.meter.After(s.id, m, &s.out)
	}
	r.addStats(m.Stats)
	return m.Stats
}
