package dispatch

import (
	"errors"
	"fmt"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages"
)

// pagesPerSlab is how many key-value pages are taken from the device at once.
const pagesPerSlab = 16

// states is the canonical state of every sequence: pages of keys and values, which grow, and recurrent state, which does
// not. A page holds PageRows positions of every full attention layer.
type states struct {
	cfg       Config
	layout    kvLayout
	dev       gpu.Device
	seqs      map[stages.SeqID]*state
	slabs     []gpu.Buffer
	freePages []gpu.View
	made      int          // pages taken from the device
	idle      []gpu.Buffer // recurrent state of closed sequences
}

// state is one sequence's.
type state struct {
	pages     []gpu.View // page p holds positions p·PageRows…; only grows while steps are in flight
	recurrent gpu.Buffer // of all linear layers, nil if there are none
}

func newStates(cfg Config, dev gpu.Device) *states {
	return &states{cfg: cfg, layout: newKVLayout(cfg.Model, cfg.KV, cfg.PageRows), dev: dev, seqs: make(map[stages.SeqID]*state)}
}

// RecurrentBytes returns the size of one sequence's recurrent state.
func RecurrentBytes(m *model.Config) int {
	return m.Count(model.LinearAttention) * (convFloats(m) + deltaFloats(m)) * 4
}

func convFloats(m *model.Config) int { return (m.LinearConvKernelDim - 1) * m.LinearConvDim() }
func deltaFloats(m *model.Config) int {
	return m.LinearNumValueHeads * m.LinearValueHeadDim * m.LinearKeyHeadDim
}

// open makes an empty sequence. clear is set if its recurrent state must be zeroed.
func (s *states) open(id stages.SeqID) (st *state, clear bool, err error) {
	if s.seqs[id] != nil {
		return nil, false, fmt.Errorf("dispatch: sequence %d has a state already", id)
	}
	st = new(state)
	if n := RecurrentBytes(s.cfg.Model); n > 0 {
		if k := len(s.idle); k > 0 {
			st.recurrent, s.idle, clear = s.idle[k-1], s.idle[:k-1], true
		} else if st.recurrent, err = s.dev.NewBuffer(n); err != nil {
			return nil, false, fmt.Errorf("dispatch: recurrent state of a sequence: %w", err)
		}
	}
	s.seqs[id] = st
	return st, clear, nil
}

// empty gives a sequence's pages back.
func (s *states) empty(st *state) {
	s.freePages = append(s.freePages, st.pages...)
	st.pages = nil
}

func (s *states) close(id stages.SeqID) {
	st := s.seqs[id]
	if st == nil {
		return
	}
	delete(s.seqs, id)
	s.empty(st)
	if st.recurrent != nil {
		s.idle = append(s.idle, st.recurrent)
	}
}

// enter makes pages for a step's rows and fills the lane's segments.
func (s *states) enter(l *lane, b *stages.Batch) error {
	for i := range l.kv {
		l.kv[i] = l.kv[i][:0]
	}
	for i := range l.state {
		l.state[i] = l.state[i][:0]
	}
	for i := range l.latent {
		s := &l.latent[i]
		s.all, s.folded, s.expanded = s.all[:0], s.folded[:0], s.expanded[:0]
	}
	for _, g := range b.Segments {
		st := s.seqs[g.Seq]
		if st == nil {
			return fmt.Errorf("dispatch: sequence %d has no state", g.Seq)
		}
		if err := s.grow(st, g.Pos+g.Rows); err != nil {
			return err
		}
		s.addSegment(l, st, g)
	}
	return nil
}

// addSegment appends a sequence's part of every layer's state.
func (s *states) addSegment(l *lane, st *state, g stages.Segment) {
	m := s.cfg.Model
	for i := range l.kv {
		l.kv[i] = append(l.kv[i], gpu.KVSegment{Row: g.Row, Rows: g.Rows, Pos: g.Pos, KV: s.layout.fullKV(i, st.pages)})
	}
	expanded := expands(m, &g, s.cfg.ChunkRows)
	for i := range l.latent {
		seg := gpu.KVSegment{Row: g.Row, Rows: g.Rows, Pos: g.Pos, KV: s.layout.latentKV(i, st.pages)}
		form := &l.latent[i].folded
		if expanded {
			form = &l.latent[i].expanded
		}
		*form = append(*form, seg)
		l.latent[i].all = append(l.latent[i].all, seg)
	}
	at := gpu.View{Buf: st.recurrent}
	for i := 0; i < len(l.state); i += 2 {
		l.state[i] = append(l.state[i], gpu.StateSegment{Row: g.Row, Rows: g.Rows, State: at})
		at = at.Floats(convFloats(m))
		l.state[i+1] = append(l.state[i+1], gpu.StateSegment{Row: g.Row, Rows: g.Rows, State: at})
		at = at.Floats(deltaFloats(m))
	}
}

// grow makes a sequence's pages reach the number of positions.
func (s *states) grow(st *state, positions int) error {
	if s.layout.bytes == 0 {
		return nil
	}
	for len(st.pages)*s.cfg.PageRows < positions {
		if len(s.freePages) == 0 {
			if err := s.newSlab(); err != nil {
				return err
			}
		}
		n := len(s.freePages) - 1
		st.pages = append(st.pages, s.freePages[n])
		s.freePages = s.freePages[:n]
	}
	return nil
}

func (s *states) newSlab() error {
	n := min(pagesPerSlab, s.cfg.MaxPages-s.made)
	if n <= 0 {
		return errors.New("dispatch: the sequencer let more key-value pages in than the pool has")
	}
	bytes := s.layout.bytes
	buf, err := s.dev.NewBuffer(n * bytes)
	if err != nil {
		return fmt.Errorf("dispatch: %d key-value pages: %w", n, err)
	}
	s.slabs = append(s.slabs, buf)
	s.made += n
	for i := n - 1; i >= 0; i-- {
		s.freePages = append(s.freePages, gpu.View{Buf: buf, Offset: i * bytes})
	}
	return nil
}

func (s *states) release() {
	for _, st := range s.seqs {
		if st.recurrent != nil {
			st.recurrent.Release()
		}
	}
	for _, b := range s.idle {
		b.Release()
	}
	for _, b := range s.slabs {
		b.Release()
	}
}

func (c *Core) openSequence(m *stages.OpenSequence, out *stages.Outbox) {
	done := &stages.SequenceDone{Seq: m.Seq, Kind: stages.Opened, Caller: m.Caller}
	st, clear, err := c.states.open(m.Seq)
	if err == nil && clear {
		c.zero(st, done, out)
		return
	}
	done.Err = err
	out.Send(stages.Sequencer, done)
}

func (c *Core) resetSequence(m *stages.ResetSequence, out *stages.Outbox) {
	done := &stages.SequenceDone{Seq: m.Seq, Kind: stages.WasReset, Caller: m.Caller}
	st := c.states.seqs[m.Seq]
	if st == nil {
		done.Err = stages.ErrUnknownSequence
		out.Send(stages.Sequencer, done)
		return
	}
	c.states.empty(st)
	c.zero(st, done, out)
}

func (c *Core) closeSequence(m *stages.CloseSequence, out *stages.Outbox) {
	c.states.close(m.Seq)
	out.Send(stages.Sequencer, &stages.SequenceDone{Seq: m.Seq, Kind: stages.Closed, Caller: m.Caller})
}

// zero clears a sequence's recurrent state. done is sent once the device has done so.
func (c *Core) zero(st *state, done *stages.SequenceDone, out *stages.Outbox) {
	if st.recurrent == nil {
		out.Send(stages.Sequencer, done)
		return
	}
	r := c.record()
	r.EncodeFill(gpu.Fill{Dst: gpu.View{Buf: st.recurrent}, Bytes: st.recurrent.Len()})
	if err := c.await(r, awaited{done: done}, out); err != nil {
		c.zeroed(done, err, out)
	}
}

// zeroed ends an operation on a sequence. What was to be opened and could not be cleared is not open.
func (c *Core) zeroed(done *stages.SequenceDone, err error, out *stages.Outbox) {
	if done.Err = err; err != nil && done.Kind == stages.Opened {
		c.states.close(done.Seq)
	}
	out.Send(stages.Sequencer, done)
}
