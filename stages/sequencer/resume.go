package sequencer

import (
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
)

// source holds the beginning of a text.
type source struct {
	pos    int
	pages  []stages.PageID
	tokens []int32
	from   stages.StateID // its recurrent state
	frozen *frozen        // nil: a sequence
}

// resumeSequence makes a sequence hold as much of the beginning of a text as the engine has.
func (c *Core) resumeSequence(m *stages.ResumeSequence, out *stages.Outbox) {
	s, err := c.idle(m.Seq)
	if err == nil {
		err = c.checkText(m.Tokens)
	}
	if err != nil {
		c.refuse(m.Caller, m.Seq, stages.Resumed, err, out)
		return
	}
	most := len(m.Tokens) - 1 // the last one's logits are wanted
	own := c.ownPart(s, m.Tokens, most)
	if own < s.len && c.worthIt(s, out) { // its text is left
		c.keep(s, 0, nil, out)
	}
	best := c.deepest(s, m.Tokens, most)
	c.resumed++
	o := &operation{kind: stages.Resumed, caller: m.Caller}
	switch {
	case own >= best.pos && own == s.len && s.poison == nil:
		c.answer(m.Caller, &stages.SequenceDone{Seq: s.id, Kind: stages.Resumed, Pos: s.len}, out)
	case own >= best.pos && own > 0:
		c.cut(s, own)
		c.moved(s, out)
		c.answer(m.Caller, &stages.SequenceDone{Seq: s.id, Kind: stages.Resumed, Pos: s.len}, out)
	case best.pos == 0:
		c.clear(s, o, out)
	default:
		if best.frozen != nil {
			c.use(best.frozen)
		}
		c.follow(s, best.pages, best.tokens[:best.pos], best.from, o, out)
	}
	c.reused += int64(s.len)
}

// checkText checks a text that is to be read.
func (c *Core) checkText(tokens []int32) error {
	switch {
	case c.draining:
		return stages.ErrClosed
	case len(tokens) == 0:
		return stages.ErrEmptyChunk
	case len(tokens) > c.cfg.MaxPositions:
		return &stages.ContextError{Tokens: len(tokens), Max: c.cfg.MaxPositions}
	}
	return c.checkTokens(tokens)
}

// ownPart returns how many positions of a sequence are the beginning of a text, at most most; 0 if
// its recurrent state is that of another position.
func (c *Core) ownPart(s *sequence, text []int32, most int) int {
	if s.poison != nil {
		return 0
	}
	n := min(common(s.tokens, text), most)
	if n < s.len && c.cfg.RecurrentBytes > 0 {
		return 0
	}
	return n
}

// deepest returns the kept state or other sequence that has the most of the beginning of a text, up
// to most positions. With recurrent state it must match as a whole; without, its own beginning is
// enough.
func (c *Core) deepest(s *sequence, text []int32, most int) (best source) {
	for _, f := range c.kept {
		if n := c.usable(f.tokens, text, most); f.ready && n > best.pos {
			best = source{pos: n, pages: f.pages, tokens: f.tokens, from: f.id, frozen: f}
		}
	}
	for _, t := range c.inOrder() {
		if t == s || t.poison != nil || t.op != nil {
			continue
		}
		n := c.usable(t.tokens[:t.len], text, most)
		if t.req != nil { // a step may be writing to their last page, after these positions
			if n -= n % c.pages.rows; c.cfg.RecurrentBytes > 0 {
				n = 0
			}
		}
		if n > best.pos {
			best = source{pos: n, pages: t.pages, tokens: t.tokens, from: t.id.State()}
		}
	}
	return best
}

// usable returns how many positions of a state a text can use.
func (c *Core) usable(tokens, text []int32, most int) int {
	if c.cfg.RecurrentBytes > 0 && (len(tokens) > most || len(tokens) == 0 || tokens[len(tokens)-1] != text[len(tokens)-1]) {
		return 0
	}
	n := min(common(tokens, text), most)
	if n < len(tokens) && c.cfg.RecurrentBytes > 0 {
		return 0
	}
	return n
}

// inOrder returns the sequences by their names, so that nothing depends on the order of a
// map.
func (c *Core) inOrder() []*sequence {
	list := make([]*sequence, 0, len(c.seqs))
	for _, s := range c.seqs {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *sequence) int { return int(a.id) - int(b.id) })
	return list
}

// mostOnTheWay is the most states that are remembered of one text before its end.
const mostOnTheWay = 8

// remember keeps where a sequence stands for texts that begin alike, if its caller wants that: at
// the end of what it gave us, and, where a recurrent state cannot be taken back, on the way there,
// at borders between steps, as far apart as makes half of the budget suffice.
func (c *Core) remember(r *request, out *stages.Outbox) {
	s := r.seq
	if !r.msg.Remember || r.Left() > 0 && (s.len < r.border || c.cfg.RecurrentBytes == 0) {
		return
	}
	r.border = c.nextBorder(r)
	// the next step writes to a page that is kept now: to a copy
	onTheWay := r.Left() > 0 && s.len%c.pages.rows != 0
	if !c.worthIt(s, out) || onTheWay && c.room(c.tally(), func(*tally) int { return 1 }, 0, out) != nil {
		return
	}
	c.keep(s, 0, nil, out)
	if onTheWay {
		r.copy = c.grow(s, s.len)
	}
}

// worthIt reports whether to remember where a sequence stands: its caller gives texts for that, it
// is not remembered already, and there is, or worthIt has made, room in the budget.
func (c *Core) worthIt(s *sequence, out *stages.Outbox) bool {
	if !s.remembers || s.poison != nil || s.len == 0 {
		return false
	}
	for _, f := range c.kept {
		if f.owner == 0 && c.serves(f.tokens, s.tokens) { // a checkpoint goes with its sequence
			c.use(f)
			return false
		}
	}
	need := c.recurrentBytes(s.len)
	return need <= c.cfg.CheckpointBytes && c.fit(need, out)
}

// serves reports whether one state can replace another for every text: it has the same tokens or,
// without recurrent state, the same and more.
func (c *Core) serves(tokens, other []int32) bool {
	n := common(tokens, other)
	return n == len(other) && (n == len(tokens) || c.cfg.RecurrentBytes == 0)
}

// nextBorder returns the position from which on a text that is being read is remembered next: a
// multiple of a distance that depends on the length of the text alone, so that texts that begin
// alike are remembered in the same places.
func (c *Core) nextBorder(r *request) int {
	if c.cfg.RecurrentBytes == 0 {
		return 0
	}
	states := min(c.cfg.CheckpointBytes/(2*c.cfg.RecurrentBytes), mostOnTheWay)
	if states == 0 {
		return c.cfg.MaxPositions + 1
	}
	end := r.pos + len(r.msg.Tokens)
	distance := c.cfg.ChunkRows
	for int64(end) > int64(distance)*states {
		distance *= 2
	}
	return (r.seq.len/distance + 1) * distance
}
