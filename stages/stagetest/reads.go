package stagetest

import (
	"cmp"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/tier"
)

// simRead is a read under way.
type simRead struct {
	stages.ReadGroup // of one read
	beganNS          int64
}

// startReads takes the reads that a core wants, and hurries others.
func (s *Sim) startReads() error {
	s.watch.reads.hurried(s.out.Hurries, true) // then others may begin
	for _, g := range s.out.Reads {
		for _, r := range g.Reads {
			if err := cmp.Or(s.watch.reading(r.Slot), s.watch.reads.asked(&g, r)); err != nil {
				return err
			}
			one := stages.ReadGroup{Step: g.Step, Reads: []stages.Read{r}, Rank: g.Rank}
			if s.tier == nil {
				s.reads = append(s.reads, simRead{one, s.now()})
			} else if err := s.tier.ask(one); err != nil {
				return err
			}
		}
	}
	s.recallReads()
	s.watch.reads.hurried(s.out.Hurries, false)
	for _, h := range s.out.Hurries {
		if s.tier == nil {
			break
		}
		if err := s.tier.step((*tier.Hurry)(&h)); err != nil {
			return err
		}
	}
	return nil
}

// recallReads ends reads that nobody needs any more, unless they have begun. Here that is left to
// chance.
func (s *Sim) recallReads() {
	for _, h := range s.out.Recalls {
		is := func(r simRead) bool { return r.Reads[0].Slot == h.Slot && r.Reads[0].Gen == h.Gen }
		if i := slices.IndexFunc(s.reads, is); i >= 0 && s.cfg.Rand.IntN(2) == 0 {
			g := s.reads[i]
			s.reads = slices.Delete(s.reads, i, i+1)
			s.readEnded(&g.ReadGroup, stages.ReadResult{Err: stages.ErrRecalled})
		}
	}
}

// forgetTier has the tier emptied when expert-IO says that experts are forgotten.
func (s *Sim) forgetTier() {
	for _, a := range s.out.Answers {
		if _, ok := a.Msg.(*stages.ExpertsForgotten); ok && s.tier != nil {
			s.tier.forgets++
		}
	}
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
	s.readEnded(&g.ReadGroup, stages.ReadResult{BeganNS: g.beganNS, EndedNS: s.now(), Err: s.cfg.Read(g.Reads[0])})
}

// readEnded tells expert-IO of the end of a read, which is now.
func (s *Sim) readEnded(g *stages.ReadGroup, end stages.ReadResult) {
	r := g.Reads[0]
	s.watch.read(r.Slot)
	if end.Slot, end.Gen = r.Slot, r.Gen; end.Err == nil {
		end.PlacedNS = s.now()
	}
	end.EndedNS = cmp.Or(end.EndedNS, s.now())
	s.loose = append(s.loose, stages.Send{To: stages.ExpertIO, Msg: &stages.ExpertsRead{
		Step: g.Step, Speculative: g.Rank.Speculative(), Results: []stages.ReadResult{end},
	}})
}

// LimitTier has the tier's core told a limit of records, some time later. Without a tier it does
// nothing.
func (s *Sim) LimitTier(records int) {
	if s.tier != nil {
		s.tier.limits = append(s.tier.limits, records)
	}
}

// TierFigures returns what the tier has counted.
func (s *Sim) TierFigures() TierFigures {
	if s.tier == nil {
		return TierFigures{}
	}
	return s.tier.figures
}
