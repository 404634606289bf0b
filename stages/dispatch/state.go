package dispatch

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages"
)

// pagesPerSlab is how many key-value pages are taken from the device at once.
const pagesPerSlab = 16

// states is the memory of states: pages of keys and values, and recurrent state, which does not
// grow; a ring of pages for layers with a window counts as such (see ring). A page holds PageRows
// positions of every layer that keeps positions. Which state has which pages is the sequencer's to
// say; frozen states share theirs.
type states struct {
	cfg    Config
	layout kvLayout
	dev    gpu.Device
	all    map[stages.StateID]*state
	slabs  []gpu.Buffer // [MaxPages/pagesPerSlab]; nil where no page was used yet
	idle   []gpu.Buffer // recurrent states that are not in use

	// leaving is recurrent state that goes back to the device when everything submitted up to
	// leavingAt is done.
	leaving   []gpu.Buffer
	leavingAt uint64
}

// state is one state's memory.
type state struct {
	recurrent gpu.Buffer // of all linear layers, and of those with a window; nil if there are none
	// Of a sequence: its pages in its last step, by name and where they lie. They only change while
	// no step of it is in flight.
	ids   []stages.PageID
	pages gpu.Pages
	// Where the pages of layers with a window lie in recurrent, as far as it went.
	window gpu.Pages
}

func newStates(cfg Config, dev gpu.Device) *states {
	s := &states{
		cfg: cfg, layout: newKVLayout(cfg.Model, cfg.KV, cfg.PageRows, cfg.WindowPages), dev: dev, all: make(map[stages.StateID]*state),
	}
	return s
}

// RecurrentBytes returns the size of one sequence's recurrent state, what layers with a window keep
// of it in pages of pageRows positions included.
func RecurrentBytes(m *model.Config, f gpu.KVFormat, pageRows int) int {
	l := newKVLayout(m, f, pageRows, 0)
	return l.recurrentBytes(m)
}

// linearBytes returns how much of a recurrent state is that of linear attention.
func linearBytes(m *model.Config) int {
	return m.Count(model.LinearAttention) * (convFloats(m) + deltaFloats(m)) * 4
}

// recurrentAt returns where a linear attention layer begins in a recurrent state: its convolution,
// followed by its recurrence.
func recurrentAt(m *model.Config, index int) int { return index * (convFloats(m) + deltaFloats(m)) * 4 }

// deltaAt returns where the recurrence of a linear attention layer begins.
func deltaAt(m *model.Config, index int) int { return recurrentAt(m, index) + convFloats(m)*4 }

func convFloats(m *model.Config) int { return (m.LinearConvKernelDim - 1) * m.LinearConvDim() }
func deltaFloats(m *model.Config) int {
	return m.LinearNumValueHeads * m.LinearValueHeadDim * m.LinearKeyHeadDim
}

// enterStates fills the lane's segments on all parts.
func (c *Core) enterStates(l *lane, b *stages.Batch) error {
	if err := checkChoices(c.cfg.Model, b); err != nil {
		return err
	}
	for _, p := range c.parts {
		if err := p.states.enter(l.benches[p.index], b); err != nil {
			return err
		}
	}
	return nil
}

// enter fills the segments of a part and lists the pages to be copied first.
func (s *states) enter(l *bench, b *stages.Batch) error {
	l.copies = l.copies[:0]
	for i := range l.full {
		l.full[i].reset()
	}
	for i := range l.windows {
		l.windows[i].reset()
	}
	l.state = l.state[:0]
	l.latent.reset()
	l.index.reset()
	for _, g := range b.Segments {
		st := s.all[g.Seq.State()]
		if st == nil {
			return fmt.Errorf("dispatch: sequence %d has no state", g.Seq)
		}
		if err := s.turn(st, g.Pages); err != nil {
			return err
		}
		if err := s.addCopy(l, g.Copy); err != nil {
			return err
		}
		s.addSegment(l, st, g)
	}
	return nil
}

// turn sets a sequence's pages.
func (s *states) turn(st *state, ids []stages.PageID) error {
	n := 0
	for n < len(st.ids) && n < len(ids) && st.ids[n] == ids[n] {
		n++
	}
	st.ids, st.pages = st.ids[:n], st.pages.First(n)
	for _, id := range ids[n:] {
		v, err := s.page(id)
		if err != nil {
			return err
		}
		st.ids, st.pages = append(st.ids, id), st.pages.Append(v)
	}
	return nil
}

// page returns where a page lies.
func (s *states) page(id stages.PageID) (gpu.View, error) {
	bytes := s.layout.bytes
	if bytes == 0 {
		return gpu.View{}, nil
	}
	if id < 0 || int(id) >= s.cfg.MaxPages {
		return gpu.View{}, fmt.Errorf("dispatch: page %d of %d", id, s.cfg.MaxPages)
	}
	slab := int(id) / pagesPerSlab
	for len(s.slabs) <= slab {
		s.slabs = append(s.slabs, nil)
	}
	if s.slabs[slab] == nil {
		n := min(pagesPerSlab, s.cfg.MaxPages-slab*pagesPerSlab)
		buf, err := s.dev.NewBuffer(n * bytes)
		if err != nil {
			return gpu.View{}, fmt.Errorf("dispatch: %d key-value pages: %w", n, err)
		}
		s.slabs[slab] = buf
	}
	return gpu.View{Buf: s.slabs[slab], Offset: int(id) % pagesPerSlab * bytes}, nil
}

// addCopy adds a page to be copied.
func (s *states) addCopy(l *bench, c stages.PageCopy) error {
	if c.From == c.To || s.layout.bytes == 0 {
		return nil
	}
	from, err := s.page(c.From)
	if err != nil {
		return err
	}
	to, err := s.page(c.To)
	l.copies = append(l.copies, pageCopy{from, to})
	return err
}

// pageCopy is a copy of a page.
type pageCopy struct{ from, to gpu.View }

// addSegment appends a sequence's rows and state, once for all layers of a kind.
func (s *states) addSegment(l *bench, st *state, g stages.Segment) {
	m, seg := s.cfg.Model, gpu.KVSegment{Row: g.Row, Rows: g.Rows, Pos: g.Pos, Pages: st.pages}
	if s.layout.full.Dim > 0 {
		l.full[attendsAll].add(seg, 0)
		if s.layout.index.Dim > 0 {
			l.full[choosesBlocks].add(seg, m.IndexBudget())
		}
	}
	s.addWindows(l, st, g)
	if s.layout.latent.Dim > 0 {
		l.latent.add(seg, expands(m, &g, s.cfg.ChunkRows), m.IndexBudget())
	}
	if s.layout.index.Dim > 0 {
		l.index.add(seg, m.IndexBudget())
	}
	if st.recurrent != nil {
		l.state = append(l.state, gpu.StateSegment{Row: g.Row, Rows: g.Rows, State: gpu.View{Buf: st.recurrent}})
	}
}

// make returns a state's memory; fresh reports that it is new and zero.
func (s *states) make(id stages.StateID) (st *state, fresh bool, err error) {
	if st := s.all[id]; st != nil {
		return st, false, nil
	}
	st, fresh = new(state), true
	if n := s.recurrentBytes(); n > 0 {
		if k := len(s.idle); k > 0 {
			st.recurrent, s.idle, fresh = s.idle[k-1], s.idle[:k-1], false
		} else if st.recurrent, err = s.dev.NewBuffer(n); err != nil {
			return nil, false, fmt.Errorf("dispatch: recurrent state of a sequence: %w", err)
		}
	}
	s.all[id] = st
	return st, fresh, nil
}

func (s *states) recurrentBytes() int { return s.layout.recurrentBytes(s.cfg.Model) }

// take gives a state's memory to another one, whose own it gives up.
func (s *states) take(from, to stages.StateID) {
	s.drop(to)
	st := s.all[from]
	delete(s.all, from)
	st.ids, st.pages = nil, gpu.Pages{}
	s.all[to] = st
}

// drop gives a state's memory back. Submitted work may still use it: the next user comes after that
// in the queue, and the device gets it back later (Core.trim).
func (s *states) drop(id stages.StateID) {
	st := s.all[id]
	if st == nil {
		return
	}
	delete(s.all, id)
	if st.recurrent != nil {
		s.idle = append(s.idle, st.recurrent)
	}
}

func (s *states) release() {
	for _, st := range s.all {
		if st.recurrent != nil {
			st.recurrent.Release()
		}
	}
	for _, b := range s.idle {
		b.Release()
	}
	for _, b := range s.leaving {
		b.Release()
	}
	for _, b := range s.slabs {
		if b != nil {
			b.Release()
		}
	}
}
