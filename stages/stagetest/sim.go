package stagetest

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/stages"
)

// Config is what a Sim needs.
type Config struct {
	Cores [stages.NumStages]stages.Core
	Queue *Queue // that the dispatch core submits to
	// Read fills a slot with an expert's record. It runs when the simulated read ends.
	Read func(stages.Read) error
	// Free, if set, is told of a slot whose memory may go back to the system.
	Free func(stages.SlotID)
	// Late is asked before a read ends. If it returns an error, expert-IO is told that the read is
	// late, and it ends some other time. nil means never.
	Late      func(stages.Read) error
	RingDepth int
	// PageRows is the positions of a key-value page, to watch who writes to which, of a model with
	// recurrent state; 0 if that is not to be watched.
	PageRows int
	// Rand picks what happens next. Without it a message goes before the end of a read, and that
	// before the device, so that the order is always the same.
	Rand *rand.Rand
}

// Sim is a pipeline at rest or between two events.
type Sim struct {
	cfg Config
	// from, to; callers are the last sender
	links [stages.NumStages + 1][stages.NumStages][]stages.Message
	// TicketDone, ExpertsRead, ReadOverdue and LingerOver, in no order
	loose   []stages.Send
	reads   []stages.ReadGroup // of one read each
	lingers []uint64
	watch   watch
	out     stages.Outbox
	log     func(from, to string, m stages.Message)
	// Answers collects what callers are told, in order.
	Answers []stages.Answer
	// Events counts what has happened.
	Events int
}

// eventNS is the simulated time from event to event, in nanoseconds.
const eventNS = 50_000

// New returns a pipeline at rest.
func New(cfg Config) *Sim {
	return &Sim{cfg: cfg, watch: newWatch(cfg.RingDepth, cfg.PageRows)}
}

// Post gives a caller's message to the sequencer. Messages of callers keep their order.
func (s *Sim) Post(m stages.Message) { s.PostTo(stages.Sequencer, m) }

// PostTo gives a caller's message to a stage.
func (s *Sim) PostTo(to stages.StageID, m stages.Message) {
	link := &s.links[stages.NumStages][to]
	*link = append(*link, m)
}

// Run lets things happen until nothing is left to happen, or until stop says so.
func (s *Sim) Run(stop func() bool) error {
	for stop == nil || !stop() {
		if busy, err := s.event(); err != nil || !busy {
			return err
		}
	}
	return nil
}

// event makes one thing happen.
func (s *Sim) event() (bool, error) {
	var choices []func() error
	for from := range s.links {
		for to := range s.links[from] {
			if len(s.links[from][to]) > 0 {
				choices = append(choices, func() error { return s.deliver(from, to) })
			}
		}
	}
	for i := range s.loose {
		choices = append(choices, func() error { return s.deliverLoose(i) })
	}
	for i := range s.reads {
		choices = append(choices, func() error { s.endRead(i); return nil })
	}
	if s.cfg.Queue.Pending() > 0 {
		choices = append(choices, func() error { s.cfg.Queue.RunOne(); return nil })
	}
	for i := range s.lingers {
		choices = append(choices, func() error { s.endLinger(i); return nil })
	}
	if len(choices) == 0 {
		return false, nil
	}
	s.Events++
	next := 0
	if s.cfg.Rand != nil {
		next = s.cfg.Rand.IntN(len(choices))
	}
	return true, choices[next]()
}

func (s *Sim) deliver(from, to int) error {
	link := &s.links[from][to]
	m := (*link)[0]
	*link = (*link)[1:]
	s.note(stageName(from), stageName(to), m)
	return s.handle(stages.StageID(to), m)
}

func (s *Sim) deliverLoose(i int) error {
	m := s.loose[i]
	s.loose = append(s.loose[:i], s.loose[i+1:]...)
	s.note(looseSender(m.Msg), m.To.String(), m.Msg)
	return s.handle(m.To, m.Msg)
}

// handle runs a core on a message and takes what it asks for.
func (s *Sim) handle(to stages.StageID, m stages.Message) error {
	if h := m.Head(); h != nil && to == stages.ExpertIO {
		h.SentNS = int64(s.Events) * eventNS
	}
	if err := s.watch.received(to, m); err != nil {
		return fmt.Errorf("event %d, %T to %s: %w", s.Events, m, to, err)
	}
	if err := s.cfg.Cores[to].Step(m, &s.out); err != nil {
		return fmt.Errorf("event %d, %T to %s: %w", s.Events, m, to, err)
	}
	for _, id := range s.out.Frees {
		if err := s.watch.freed(id); err != nil {
			return fmt.Errorf("event %d, %T to %s: %w", s.Events, m, to, err)
		}
		if s.cfg.Free != nil {
			s.cfg.Free(id)
		}
	}
	for _, g := range s.out.Reads {
		for _, r := range g.Reads {
			if err := s.watch.reading(r.Slot); err != nil {
				return fmt.Errorf("event %d, %T to %s: %w", s.Events, m, to, err)
			}
			s.reads = append(s.reads, stages.ReadGroup{Step: g.Step, Reads: []stages.Read{r}, Speculative: g.Speculative})
		}
	}
	for _, a := range s.out.Awaits {
		done := s.out.Spent().TicketDone(a.Step, a.ID)
		last := func(err error) {
			if done.Err == nil {
				done.Err = err
			}
			s.loose = append(s.loose, stages.Send{To: to, Msg: done})
		}
		if a.After == nil {
			a.Ticket.OnDone(last)
			continue
		}
		a.After.OnDone(func(err error) {
			done.Err = err
			a.Ticket.OnDone(last)
		})
	}
	for _, m := range s.out.Sends {
		if err := s.watch.sent(to, m); err != nil {
			return fmt.Errorf("event %d, %s sends %T to %s: %w", s.Events, to, m.Msg, m.To, err)
		}
		s.links[to][m.To] = append(s.links[to][m.To], m.Msg)
	}
	for _, a := range s.out.Answers {
		s.note(to.String(), "caller", a.Msg)
	}
	s.Answers = append(s.Answers, s.out.Answers...)
	if s.out.Linger != 0 {
		s.lingers = append(s.lingers, s.out.Linger)
	}
	s.out.Reset()
	s.out.Spent().Handled(m)
	return nil
}

// endRead fills a slot and tells expert-IO.
func (s *Sim) endRead(i int) {
	g := s.reads[i]
	if s.cfg.Late != nil {
		if err := s.cfg.Late(g.Reads[0]); err != nil {
			late := &stages.ReadOverdue{Slot: g.Reads[0].Slot, Gen: g.Reads[0].Gen, Err: err}
			s.loose = append(s.loose, stages.Send{To: stages.ExpertIO, Msg: late})
			return
		}
	}
	s.reads = append(s.reads[:i], s.reads[i+1:]...)
	s.watch.read(g.Reads[0].Slot)
	done := &stages.ExpertsRead{Step: g.Step, Speculative: g.Speculative}
	for _, r := range g.Reads {
		done.Results = append(done.Results, stages.ReadResult{Slot: r.Slot, Gen: r.Gen, Err: s.cfg.Read(r)})
	}
	s.loose = append(s.loose, stages.Send{To: stages.ExpertIO, Msg: done})
}

func (s *Sim) endLinger(i int) {
	round := s.lingers[i]
	s.lingers = append(s.lingers[:i], s.lingers[i+1:]...)
	s.loose = append(s.loose, stages.Send{To: stages.Sequencer, Msg: &stages.LingerOver{Round: round}})
}

// AtRest reports, as an error, what a quiet pipeline still holds: by the messages that passed, and
// by the books of every core that has an AtRest method of its own.
func (s *Sim) AtRest() error {
	errs := []error{s.watch.atRest()}
	for _, c := range s.cfg.Cores {
		if r, ok := c.(interface{ AtRest() error }); ok {
			errs = append(errs, r.AtRest())
		}
	}
	return errors.Join(errs...)
}

// Spared returns how often a layer went on for a sequence although it could not for another of the
// step.
func (s *Sim) Spared() int { return s.watch.spared }

// Queue is a device queue whose commands run when the simulator says so, or at once until Hold is
// called.
type Queue struct {
	// Refuse, if set, is asked by Submit, which fails with what it returns.
	Refuse func(*gpu.Commands) error

	run     func(*gpu.Commands) error
	held    bool
	pending []*ticket
}

// ticket is one submitted Commands.
type ticket struct {
	commands *gpu.Commands
	onDone   func(error)
	done     bool
	err      error
}

var _ gpu.Queue = (*Queue)(nil)

// NewQueue returns a queue that executes with run.
func NewQueue(run func(*gpu.Commands) error) *Queue { return &Queue{run: run} }

// Hold makes commands wait for RunOne.
func (q *Queue) Hold() { q.held = true }

// Submit appends c.
func (q *Queue) Submit(c *gpu.Commands) (gpu.Ticket, error) {
	if q.Refuse != nil {
		if err := q.Refuse(c); err != nil {
			return nil, err
		}
	}
	t := &ticket{commands: c}
	q.pending = append(q.pending, t)
	if !q.held {
		q.RunOne()
	}
	return t, nil
}

// Pending returns the number of Commands that have not run.
func (q *Queue) Pending() int { return len(q.pending) }

// RunOne runs the oldest Commands and completes its ticket.
func (q *Queue) RunOne() {
	t := q.pending[0]
	q.pending = q.pending[1:]
	t.err, t.done = q.run(t.commands), true
	if t.onDone != nil {
		t.onDone(t.err)
	}
}

// Close runs what is left.
func (q *Queue) Close() error {
	for len(q.pending) > 0 {
		q.RunOne()
	}
	return nil
}

// OnDone calls f when the commands have run.
func (t *ticket) OnDone(f func(error)) {
	if t.done {
		f(t.err)
		return
	}
	t.onDone = f
}

// DeviceNS returns 0: simulated time does not pass.
func (t *ticket) DeviceNS() int64 { return 0 }
