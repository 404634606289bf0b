package stagetest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
)

// simAsk is an ask under way. What the host makes of it is known at once, and told some time later.
type simAsk struct {
	id      uint64
	answers []stages.AnsweredUse
	over    bool // expert-IO was told that it has failed
	late    bool // expert-IO was told that it is late
}

// errAsk is what becomes of some asks.
var errAsk = errors.New("the host did not answer")

// startAsks takes the asks that a core wants.
func (s *Sim) startAsks() error {
	for _, a := range s.out.Asks {
		if err := s.shares.asked(&a); err != nil {
			return err
		}
		if s.Asked++; a.Hedge {
			s.Hedged++
		}
		one := simAsk{id: a.ID}
		for _, use := range a.Uses {
			rows, err := s.cfg.Answer(a, use)
			if err != nil {
				return err
			}
			one.answers = append(one.answers, stages.AnsweredUse{Use: use, Rows: rows})
		}
		if s.cfg.Sum != nil {
			s.cfg.Sum(a, one.answers)
		}
		s.asks = append(s.asks, one)
	}
	for i := range s.out.Shares {
		s.Shared++
		if err := s.shares.tell(&s.out.Shares[i]); err != nil {
			return err
		}
	}
	return nil
}

// watchedShares checks that placements change between steps alone: all asks of a step are of one
// epoch, and none is of an earlier one than its host was told.
type watchedShares struct {
	told  map[int]uint32 // of each host
	steps map[stages.StepID]uint32
}

func (w *watchedShares) asked(a *stages.Ask) error {
	if w.steps == nil {
		w.steps = make(map[stages.StepID]uint32)
	}
	if e, ok := w.steps[a.Step.ID]; ok && e != a.Epoch {
		return fmt.Errorf("%v asks by epoch %d and by %d", &a.Step, e, a.Epoch)
	}
	w.steps[a.Step.ID] = a.Epoch
	if a.Epoch < w.told[a.Host] {
		return fmt.Errorf("%v asks host %d by epoch %d, which was told of %d", &a.Step, a.Host, a.Epoch, w.told[a.Host])
	}
	return nil
}

func (w *watchedShares) tell(s *stages.HostShare) error {
	if w.told == nil {
		w.told = make(map[int]uint32)
	}
	if s.Epoch <= w.told[s.Host] {
		return fmt.Errorf("host %d is told of epoch %d after %d", s.Host, s.Epoch, w.told[s.Host])
	}
	w.told[s.Host] = s.Epoch
	return nil
}

// endAsk has a host do one of the things that hosts do: answer all, or a part, or the same thing
// twice; be late, and answer some time after that; or be given up, after which it may answer all
// the same. With sums there are no parts.
func (s *Sim) endAsk(i int) {
	a := &s.asks[i]
	tell := func(m *stages.ExpertsAnswered) {
		m.Ask, m.Summed = a.id, s.cfg.Sum != nil
		s.loose = append(s.loose, stages.Send{To: stages.ExpertIO, Msg: m})
	}
	n := len(a.answers)
	switch s.cfg.Rand.IntN(9) {
	case 0:
		if !a.over {
			a.over = true
			tell(&stages.ExpertsAnswered{Err: errAsk})
		}
		if s.cfg.Rand.IntN(2) == 0 {
			return // the answer comes late
		}
		n = 0
	case 1:
		some := a.answers[:1]
		if s.cfg.Sum != nil {
			some = a.answers
		}
		again := slices.Clone(some)
		for i := range again {
			again[i].Rows = slices.Clone(again[i].Rows)
		}
		tell(&stages.ExpertsAnswered{Uses: again})
		return
	case 8:
		if !a.late && !a.over {
			a.late = true
			s.loose = append(s.loose, stages.Send{To: stages.ExpertIO, Msg: &stages.AskOverdue{Ask: a.id}})
			return
		}
	case 2, 3:
		if s.cfg.Sum == nil {
			n = 1 + s.cfg.Rand.IntN(n)
		}
	}
	if n > 0 {
		part := slices.Clone(a.answers[len(a.answers)-n:])
		a.answers = a.answers[:len(a.answers)-n]
		tell(&stages.ExpertsAnswered{Uses: part})
	} else {
		a.answers = nil
	}
	if len(a.answers) == 0 {
		s.asks = slices.Delete(s.asks, i, i+1)
	}
}
