package stagetest

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// Config is what a Sim needs.
type Config struct {
	Cores [stages.NumStages]stages.Core
	Queue *Queue // that the dispatch core submits to
	// Read fills a slot with an expert's record. It runs when the simulated read ends.
	Read func(stages.Read) error
	// Tier, if set, is what reads go through. Read is not used then.
	Tier *TierConfig
	// Free, if set, is told of a slot whose memory may go back to the system.
	Free func(stages.SlotID)
	// Park does what the parking store is asked for. It runs when the simulated store gets to it; a
	// state is given up at once.
	Park func(stages.Park) error
	// Answer computes a use of an ask, as an expert host does. It runs at once.
	Answer func(a stages.Ask, use int32) ([]float32, error)
	// Sum makes the outputs of all uses of an ask what a host's sums make of them. nil means that
	// hosts do not answer with sums.
	Sum func(a stages.Ask, all []stages.AnsweredUse)
	// Late is asked before a read ends. If it returns an error, expert-IO is told that the read is
	// late, and it ends some other time. nil means never.
	Late      func(stages.Read) error
	RingDepth int
	// Borders are those of the cores.
	Borders stages.Borders
	// PageRows is the positions of a key-value page, to watch who writes to which, of a model with
	// recurrent state; 0 if that is not to be watched.
	PageRows int
	// ExpertBytes is the size of an expert's record, to watch what requests are charged; 0 if that
	// is not to be watched.
	ExpertBytes int
	// Reads is the bound of expert-IO's reads on demand (expertio.Config), of a model with Layers
	// layers, to watch what is read beside steps that decode; 0 if that is not to be watched.
	Reads, Layers int
	// ExpertLayers is the layers with routed experts, if a device is to route by itself.
	ExpertLayers int
	// Rand picks what happens next. Without it a message goes before the end of a read, and that
	// before the device, so that the order is always the same.
	Rand *rand.Rand
}

// Sim is a pipeline at rest or between two events.
type Sim struct {
	cfg Config
	// from, to; callers are the last sender
	links [stages.NumStages + 1][stages.NumStages][]stages.Message
	// TicketDone, ExpertsRead, ReadOverdue, ExpertsAnswered, AskOverdue, StateParked,
	// StateReturned, LingerOver and StintOver, in no order
	loose   []stages.Send
	reads   []simRead
	asks    []simAsk
	shares  watchedShares
	tier    *hostTier
	parks   []stages.Park
	lingers []uint64
	stint   bool // a StintOver is due
	watch   watch
	costs   watchedCosts
	records watchedRecords
	out     stages.Outbox
	log     func(from, to string, m stages.Message)
	// Answers collects what callers are told, in order.
	Answers []stages.Answer
	// Events counts what has happened, Asked the asks of expert hosts, and Hedged those of them
	// whose uses another host was late with, and Shared what hosts were told of placements.
	Events, Asked, Hedged, Shared int
}

// eventNS is the simulated time from event to event, in nanoseconds.
const eventNS = 50_000

// recordBytes is the memory for the records of a few messages.
const recordBytes = 1 << 18

// now returns the simulated time.
func (s *Sim) now() int64 { return int64(s.Events) * eventNS }

// New returns a pipeline at rest.
func New(cfg Config) *Sim {
	s := &Sim{cfg: cfg, watch: newWatch(&cfg), costs: watchedCosts{bytes: int64(cfg.ExpertBytes), layers: cfg.ExpertLayers}}
	s.out.Log = record.NewLog(recordBytes)
	s.records = newWatchedRecords(s.out.Log, &cfg)
	if cfg.Tier != nil {
		s.tier = newHostTier(*cfg.Tier, s)
	}
	return s
}

// Post gives a caller's message to the sequencer. Messages of callers keep their order.
func (s *Sim) Post(m stages.Message) { s.PostTo(stages.Sequencer, m) }

// PostTo gives a caller's message to a stage.
func (s *Sim) PostTo(to stages.StageID, m stages.Message) {
	s.watch.answers.asked(m)
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
	for i := range s.asks {
		choices = append(choices, func() error { s.endAsk(i); return nil })
	}
	if s.tier != nil {
		choices = append(choices, s.tier.choices()...)
	}
	for i := range s.parks {
		choices = append(choices, func() error { s.endPark(i); return nil })
	}
	for _, i := range s.cfg.Queue.Ready() {
		choices = append(choices, func() error { s.cfg.Queue.Run(i); return nil })
	}
	for i := range s.lingers {
		choices = append(choices, func() error { s.endLinger(i); return nil })
	}
	if s.stint {
		choices = append(choices, func() error { s.endStint(); return nil })
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

// stamp sets the time at which a message was sent, where a core has use for it.
func (s *Sim) stamp(to stages.StageID, m stages.Message) {
	if to == stages.ExpertIO || to == stages.Sequencer {
		m.Stamp(s.now())
	}
}

// handle runs a core on a message and does what it asks for.
func (s *Sim) handle(to stages.StageID, m stages.Message) error {
	s.stamp(to, m)
	s.out.NowNS = s.now()
	err := s.step(to, m)
	if err == nil {
		err = s.perform(to)
	}
	if err != nil {
		return fmt.Errorf("event %d, %T to %s: %w", s.Events, m, to, err)
	}
	s.out.Reset()
	s.out.Spent().Handled(m)
	return nil
}

// step runs a core on a message and compares its outbox, records and costs with what it was told.
func (s *Sim) step(to stages.StageID, m stages.Message) error {
	core := s.cfg.Cores[to]
	s.costs.received(to, m)
	if err := s.watch.received(to, m); err != nil {
		return err
	}
	if routed, ok := m.(*stages.StepRouted); ok { // which the router takes over
		s.records.stepRouted(routed)
	}
	if err := core.Step(m, &s.out); err != nil {
		return err
	}
	if b, ok := core.(interface{ Bounded() error }); ok {
		if err := b.Bounded(); err != nil {
			return err
		}
	}
	if err := s.records.handled(to, m, &s.out); err != nil {
		return err
	}
	for _, sent := range s.out.Sends {
		s.costs.sent(sent.Msg)
	}
	s.watch.reads.sent(s.out.Sends)
	return s.costs.check(&s.cfg.Cores)
}

// perform does what the outbox of a stage asks for.
func (s *Sim) perform(from stages.StageID) error {
	for _, id := range s.out.Frees {
		if err := s.watch.freed(id); err != nil {
			return err
		}
		if s.cfg.Free != nil {
			s.cfg.Free(id)
		}
	}
	if err := s.startReads(); err != nil {
		return err
	}
	if err := s.startAsks(); err != nil {
		return err
	}
	for _, p := range s.out.Parks {
		if p.Do != stages.ParkForget {
			s.parks = append(s.parks, p)
		} else if err := s.cfg.Park(p); err != nil {
			return err
		}
	}
	for _, a := range s.out.Awaits {
		s.await(from, a)
	}
	for _, m := range s.out.Sends {
		if err := s.watch.sent(from, m); err != nil {
			return fmt.Errorf("it sends %T to %s: %w", m.Msg, m.To, err)
		}
		s.links[from][m.To] = append(s.links[from][m.To], m.Msg)
	}
	for _, a := range s.out.Answers {
		s.note(from.String(), "caller", a.Msg)
		if err := s.watch.answers.answered(a); err != nil {
			return err
		}
	}
	s.Answers = append(s.Answers, s.out.Answers...)
	s.forgetTier()
	if round := s.out.Linger.Round; round != 0 {
		s.lingers = append(s.lingers, round)
	}
	s.stint = s.stint || s.out.Stint > 0
	return nil
}

// await has a stage told when its ticket is done, and the one before it if there is one.
func (s *Sim) await(to stages.StageID, a stages.Await) {
	done := s.out.Spent().TicketDone(a.Step, a.ID)
	last := func(err error) {
		if done.Err == nil {
			done.Err = err
		}
		s.loose = append(s.loose, stages.Send{To: to, Msg: done})
	}
	if a.After == nil {
		a.Ticket.OnDone(last)
		return
	}
	a.After.OnDone(func(err error) {
		done.Err = err
		a.Ticket.OnDone(last)
	})
}

// endPark lets the parking store take or fill a state.
func (s *Sim) endPark(i int) {
	p := s.parks[i]
	s.parks = append(s.parks[:i], s.parks[i+1:]...)
	var done stages.Message
	if err := s.cfg.Park(p); p.Do == stages.ParkWrite {
		done = &stages.StateParked{ID: p.ID, Err: err}
	} else {
		done = &stages.StateReturned{ID: p.ID, Err: err}
	}
	s.loose = append(s.loose, stages.Send{To: stages.Sequencer, Msg: done})
}

func (s *Sim) endLinger(i int) {
	round := s.lingers[i]
	s.lingers = append(s.lingers[:i], s.lingers[i+1:]...)
	s.loose = append(s.loose, stages.Send{To: stages.Sequencer, Msg: &stages.LingerOver{Round: round}})
}

// endStint ends the time for which a StintOver was asked for, or some time before.
func (s *Sim) endStint() {
	s.stint = false
	s.loose = append(s.loose, stages.Send{To: stages.Sequencer, Msg: new(stages.StintOver)})
}

// AtRest reports, as an error, what a quiet pipeline still holds: by the messages that passed, and
// by the books of every core that has an AtRest method of its own.
func (s *Sim) AtRest() error {
	errs := []error{s.watch.atRest()}
	if s.tier != nil {
		errs = append(errs, s.tier.atRest())
	}
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
