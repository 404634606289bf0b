package stages

// Spent keeps the memory of messages that have been handled, of plans and of answers, and makes new
// ones of it: in the steady state a decoded token allocates nothing. What a method returns is empty
// but for its arguments. Stages reach it through their Outbox. It may be shared by stages that
// never run at the same time; it is not for concurrent use.
//
// It has a list for each type of message that is sent for every token.
type Spent struct {
	begins    free[BeginLayer]
	prefetch  free[PrefetchExperts]
	picks     free[PicksReady]
	aheads    free[ScoresAhead]
	routed    free[LayerRouted]
	residents free[WaveResident]
	waves     free[WaveSubmitted]
	submitted free[LayerSubmitted]
	tickets   free[TicketDone]
	releases  free[SlotsReleased]
	retired   free[LayerRetired]
	routings  free[StepRouted]
	counts    free[CountPicks]
	used      free[ExpertsUsed]
	moves     free[MoveExperts]
	vacated   free[SlotsVacated]
	reads     free[ReadLogits]
	lingers   free[LingerOver]
	logits    free[LogitsReady]
	answers   free[ChunkEvaluated]
	plans     free[RoutePlan]
	floats    pool[float32]
	tokens    pool[int32]
}

// free is the spent values of one type.
type free[T any] struct{ items []*T }

// keepMost bounds what is kept of one type: messages that were made elsewhere are spent here too.
const keepMost = 64

func (f *free[T]) take() *T {
	n := len(f.items) - 1
	if n < 0 {
		return new(T)
	}
	v := f.items[n]
	f.items[n] = nil
	f.items = f.items[:n]
	return v
}

func (f *free[T]) put(v *T) {
	if len(f.items) < keepMost {
		f.items = append(f.items, v)
	}
}

// BeginLayer returns a message.
func (s *Spent) BeginLayer(step Step, more int) *BeginLayer {
	m := s.begins.take()
	m.Step, m.More = step, more
	return m
}

// PrefetchExperts returns a message with memory for Experts and Chances.
func (s *Spent) PrefetchExperts(step Step, ahead int) *PrefetchExperts {
	m := s.prefetch.take()
	m.Step, m.Ahead = step, ahead
	return m
}

// PicksReady returns a message with n Picks and Weights and some Inputs, their values undefined.
func (s *Spent) PicksReady(step Step, n, inputs int) *PicksReady {
	m := s.picks.take()
	m.Step, m.Picks, m.Weights, m.Inputs = step, resize(m.Picks, n), resize(m.Weights, n), resize(m.Inputs, inputs)
	return m
}

// ScoresAhead returns a message with n Scores, their values undefined.
func (s *Spent) ScoresAhead(step Step, n int) *ScoresAhead {
	m := s.aheads.take()
	m.Step, m.Scores = step, resize(m.Scores, n)
	return m
}

// LayerRouted returns a message.
func (s *Spent) LayerRouted(step Step, p *RoutePlan) *LayerRouted {
	m := s.routed.take()
	m.Step, m.Plan = step, p
	return m
}

// WaveResident returns a message with memory for Uses.
func (s *Spent) WaveResident(step Step, plan *RoutePlan, wave int) *WaveResident {
	m := s.residents.take()
	m.Step, m.Plan, m.Wave = step, plan, wave
	return m
}

// WaveSubmitted returns a message.
func (s *Spent) WaveSubmitted(w WaveSubmitted) *WaveSubmitted {
	m := s.waves.take()
	*m = w
	return m
}

// LayerSubmitted returns a message.
func (s *Spent) LayerSubmitted(step Step, more int, losses []Loss) *LayerSubmitted {
	m := s.submitted.take()
	m.Step, m.More, m.Losses = step, more, losses
	return m
}

// TicketDone returns a message.
func (s *Spent) TicketDone(step Step, id uint64) *TicketDone {
	m := s.tickets.take()
	m.Step, m.ID = step, id
	return m
}

// SlotsReleased returns a message.
func (s *Spent) SlotsReleased(step Step, wave int, slots []SlotID) *SlotsReleased {
	m := s.releases.take()
	m.Step, m.Wave, m.Slots = step, wave, slots
	return m
}

// LayerRetired returns a message.
func (s *Spent) LayerRetired(step Step, more int) *LayerRetired {
	m := s.retired.take()
	m.Step, m.More = step, more
	return m
}

// StepRouted returns a message with n Picks, their values undefined.
func (s *Spent) StepRouted(step Step, n int) *StepRouted {
	m := s.routings.take()
	m.Step, m.Picks = step, resize(m.Picks, n)
	if b := step.Batch; b != nil {
		m.batch = Batch{
			Rows:     append(m.batch.Rows[:0], b.Rows...),
			Segments: append(m.batch.Segments[:0], b.Segments...),
			Probe:    b.Probe, Lane: b.Lane, Urgent: b.Urgent,
		}
		m.Step.Batch = &m.batch
	}
	return m
}

// CountPicks returns a message.
func (s *Spent) CountPicks() *CountPicks { return s.counts.take() }

// ExpertsUsed returns a message without uses.
func (s *Spent) ExpertsUsed() *ExpertsUsed { return s.used.take() }

// MoveExperts returns a message without moves.
func (s *Spent) MoveExperts() *MoveExperts { return s.moves.take() }

// SlotsVacated returns a message without slots.
func (s *Spent) SlotsVacated() *SlotsVacated { return s.vacated.take() }

// ReadLogits returns a message.
func (s *Spent) ReadLogits(step Step) *ReadLogits {
	m := s.reads.take()
	m.Step = step
	return m
}

// LingerOver returns a message.
func (s *Spent) LingerOver(round uint64) *LingerOver {
	m := s.lingers.take()
	m.Round = round
	return m
}

// LogitsReady returns a message with room for some logits and for some of the largest ones, the
// values undefined.
func (s *Spent) LogitsReady(step Step, all, largest int) *LogitsReady {
	m := s.logits.take()
	m.Step = step
	if all > 0 {
		m.Logits = s.Floats(all)
	}
	if largest > 0 {
		m.Largest = s.Largest(largest)
	}
	return m
}

// ChunkEvaluated returns a message.
func (s *Spent) ChunkEvaluated(a ChunkEvaluated) *ChunkEvaluated {
	m := s.answers.take()
	*m = a
	return m
}

// RoutePlan returns a plan of n picks of k a row, with memory for uses. Its values are undefined
// and its uses empty.
func (s *Spent) RoutePlan(n, k int) *RoutePlan {
	p := s.plans.take()
	p.TopK, p.Picks, p.Weights = k, resize(p.Picks, n), resize(p.Weights, n)
	return p
}

// PlanDone takes a plan back. The device must be done with it, and no stage look at it again.
func (s *Spent) PlanDone(p *RoutePlan) {
	*p = RoutePlan{Picks: p.Picks[:0], Weights: p.Weights[:0], Uses: p.Uses[:0], Pairs: p.Pairs[:0], Inputs: p.Inputs[:0]}
	s.plans.put(p)
}

// keepSlices bounds the slices of a pool.
const keepSlices = 8

// pool is slices that are used again.
type pool[T any] struct{ kept [][]T }

// take returns n items, their values undefined. A slice that is much longer is left for others.
func (p *pool[T]) take(n int) []T {
	for i, f := range p.kept {
		if cap(f) >= n && cap(f)/4 <= n {
			last := len(p.kept) - 1
			p.kept[i], p.kept[last] = p.kept[last], nil
			p.kept = p.kept[:last]
			return f[:n]
		}
	}
	return make([]T, n)
}

// put keeps a slice. The oldest goes when there are many.
func (p *pool[T]) put(f []T) {
	if cap(f) == 0 {
		return
	}
	if len(p.kept) == keepSlices {
		copy(p.kept, p.kept[1:])
		p.kept = p.kept[:keepSlices-1]
	}
	p.kept = append(p.kept, f)
}

// Floats returns n float32, their values undefined.
func (s *Spent) Floats(n int) []float32 { return s.floats.take(n) }

// FloatsDone takes a slice back for Floats.
func (s *Spent) FloatsDone(f []float32) { s.floats.put(f) }

// Largest returns room for n logits and their tokens, the values undefined.
func (s *Spent) Largest(n int) Largest { return Largest{s.floats.take(n), s.tokens.take(n)} }

// LargestDone takes memory back for Largest.
func (s *Spent) LargestDone(l Largest) {
	s.floats.put(l.Logits)
	s.tokens.put(l.Tokens)
}

// LogitsDone takes back a LogitsReady whose slices were passed on or taken back.
func (s *Spent) LogitsDone(m *LogitsReady) {
	*m = LogitsReady{}
	s.logits.put(m)
}

// AnswerDone takes back an answer that its caller is done with.
func (s *Spent) AnswerDone(m *ChunkEvaluated) {
	*m = ChunkEvaluated{}
	s.answers.put(m)
}

// Handled takes back a message that a stage has handled, unless it is of a kind that stages keep or
// pass on. Whoever runs the stages calls it when everything the stage asked for in return is done.
func (s *Spent) Handled(m Message) { m.spend(s) }

// resize returns n items, their values undefined, in the memory of v if it is large enough.
func resize[T any](v []T, n int) []T {
	if cap(v) < n {
		return make([]T, n)
	}
	return v[:n]
}
