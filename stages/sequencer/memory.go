package sequencer

import (
	"cmp"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
)

// There are two budgets. StateBytes is for all pages in use, and for the recurrent states of
// sequences, of drafts, and of states that callers read. CheckpointBytes is for what is kept:
// recurrent states, and pages that nobody else holds. What is kept gives way, in the order of
// victims; nothing goes before it is known that its going helps.

// tally is what the books say, or would say if some of what is kept were gone.
type tally struct {
	pages     []holders // the ledger's until they are changed
	own       bool      // pages is a copy
	used      int       // pages with a holder
	only      int       // pages that are kept and not live
	recurrent int       // kept recurrent states
	states    int       // other recurrent states
}

// tally returns what the books say. It is the caller's to change.
func (c *Core) tally() *tally {
	return &tally{pages: c.pages.pages, used: c.pages.used(), only: c.pages.only, recurrent: c.recurrent, states: c.states()}
}

// states returns how many recurrent states count against StateBytes.
func (c *Core) states() int { return len(c.seqs) + len(c.exchanged) - c.lent }

// add adds n holders, 1 or -1, to each page.
func (t *tally) add(by holder, n int32, pages []stages.PageID) {
	if !t.own {
		t.pages, t.own = slices.Clone(t.pages), true
	}
	for _, id := range pages {
		h := &t.pages[id]
		was := *h
		if by == kept {
			h.kept += n
		} else {
			h.live += n
		}
		t.used += h.inUse() - was.inUse()
		t.only += h.keptOnly() - was.keptOnly()
	}
}

// change adds a kept frozen state n times, 1 or -1.
func (t *tally) change(f *frozen, n int) {
	t.add(kept, int32(n), f.pages)
	if f.id != 0 {
		t.recurrent += n
	}
}

// sharesTail is Core.sharesTail by these books.
func (t *tally) sharesTail(s *sequence, pageRows int) bool {
	if s.len%pageRows == 0 {
		return false
	}
	h := t.pages[s.pages[s.len/pageRows]]
	return h.live+h.kept > 1
}

// inUse returns 1 for a page that has a holder.
func (h holders) inUse() int { return min(int(h.live+h.kept), 1) }

// keptOnly returns 1 for a page that is kept and not live.
func (h holders) keptOnly() int {
	if h.live > 0 {
		return 0
	}
	return min(int(h.kept), 1)
}

// keptBytes returns what all that is kept takes.
func (c *Core) keptBytes() int64 { return c.keptBytesOf(c.recurrent, c.pages.only) }

func (c *Core) keptBytesOf(recurrent, only int) int64 {
	return int64(recurrent)*c.cfg.RecurrentBytes + int64(only)*c.cfg.PageBytes
}

// stateBytes returns what pages and recurrent states take of StateBytes.
func (c *Core) stateBytes(pages, states int) int64 {
	return int64(pages)*c.cfg.PageBytes + int64(states)*c.cfg.RecurrentBytes
}

// recurrentBytes returns what a frozen state of a number of positions takes besides pages.
func (c *Core) recurrentBytes(positions int) int64 {
	if positions == 0 {
		return 0
	}
	return c.cfg.RecurrentBytes
}

// victims returns what may go for lack of memory, in order: what is remembered, least recently used
// first; then checkpoints, oldest first. A sequence's newest checkpoint, the one at position 0,
// those being made, and those that they replace are protected.
func (c *Core) victims() (all []*frozen) {
	newest := make(map[stages.SeqID]*frozen)
	for _, f := range c.kept {
		if f.owner == 0 {
			all = append(all, f)
		} else if f.ready {
			newest[f.owner] = f
		}
	}
	slices.SortFunc(all, func(a, b *frozen) int { return cmp.Compare(a.used, b.used) })
	for _, f := range c.kept {
		if f.owner != 0 && f.ready && f != newest[f.owner] && f.pos() > 0 && !c.beingReplaced(f) {
			all = append(all, f)
		}
	}
	return all
}

// texts returns those of victims that are only remembered.
func (c *Core) texts() []*frozen {
	return slices.DeleteFunc(c.victims(), func(f *frozen) bool { return f.owner != 0 })
}

// evictFor gives up victims, in their order, until enough holds, sparing those that make no
// difference. If enough does not hold even without all of them, it gives up none and reports false;
// t is then what the books would say without them.
func (c *Core) evictFor(t *tally, victims []*frozen, enough func(*tally) bool, out *stages.Outbox) bool {
	n := 0
	for ; !enough(t) && n < len(victims); n++ {
		t.change(victims[n], -1)
	}
	if !enough(t) {
		return false
	}
	going := victims[:n]
	for i := n - 2; i >= 0; i-- { // spare what makes no difference
		t.change(going[i], 1)
		if enough(t) {
			going = slices.Delete(going, i, i+1)
		} else {
			t.change(going[i], -1)
		}
	}
	for _, f := range going {
		c.evict(f, out)
	}
	return true
}

func (c *Core) evict(f *frozen, out *stages.Outbox) {
	c.evicted++
	c.forget(f, out)
}

// room makes room within StateBytes for pages and recurrent states, giving up what is remembered
// if necessary. How many pages are needed may depend on what is given up, because a page that is no
// longer shared need not be copied. t is what the books say before.
func (c *Core) room(t *tally, pages func(*tally) int, states int, out *stages.Outbox) error {
	enough := func(t *tally) bool { return c.stateBytes(t.used+pages(t), t.states+states) <= c.cfg.StateBytes }
	if enough(t) || c.evictFor(t, c.texts(), enough, out) {
		return nil
	}
	n := pages(t)
	return &stages.StateMemoryError{
		Pages: n, States: states, Need: c.stateBytes(n, states), Used: c.stateBytes(t.used, t.states), Max: c.cfg.StateBytes,
	}
}

// roomToGrow makes room for a sequence to reach a number of positions.
func (c *Core) roomToGrow(s *sequence, positions int, out *stages.Outbox) error {
	need := func(shares bool) int {
		n := c.pages.count(positions) - len(s.pages)
		if shares {
			n++
		}
		return n
	}
	if need(c.sharesTail(s)) == 0 {
		return nil
	}
	return c.room(c.tally(), func(t *tally) int { return need(t.sharesTail(s, c.pages.rows)) }, 0, out)
}

// fit makes room for a number of bytes within CheckpointBytes. If it cannot, it gives up nothing
// and reports false.
func (c *Core) fit(need int64, out *stages.Outbox) bool {
	if c.keptBytes()+need <= c.cfg.CheckpointBytes {
		return true
	}
	return c.evictFor(c.tally(), c.victims(), c.fits(need), out)
}

func (c *Core) fits(need int64) func(*tally) bool {
	return func(t *tally) bool { return c.keptBytesOf(t.recurrent, t.only)+need <= c.cfg.CheckpointBytes }
}

// settle gives up what exceeds CheckpointBytes, as far as it may: a sequence that moves elsewhere
// leaves pages that only kept states hold.
func (c *Core) settle(out *stages.Outbox) {
	if c.fit(0, out) {
		return
	}
	for _, f := range c.victims() {
		if f.id != 0 || slices.ContainsFunc(f.pages, func(id stages.PageID) bool { return c.pages.pages[id] == holders{kept: 1} }) {
			c.evict(f, out)
		}
	}
}
