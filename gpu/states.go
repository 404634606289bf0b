package gpu

import "sync"

// StateSegment is the rows of one sequence in an operation with a recurrent state of fixed size.
// The operation says where in State its own part begins, so all layers of a step share their
// segments.
type StateSegment struct {
	Row, Rows int
	State     View
}

// stateEnds finds out whether states that lie apart do so without comparing each with each: the
// end of the last state in each buffer. The pool holds memory and nothing else.
type stateEnds map[Buffer]int

var stateEndsPool = sync.Pool{New: func() any { return stateEnds{} }}

// fewStates is how many states are compared each with each.
const fewStates = 8

// stateSegments requires at least one segment, none sharing a row or a state with another, each
// with a state of stateFloats float32 from at bytes on. It returns how many rows the operands have.
func (c *checker) stateSegments(segs []StateSegment, at, stateFloats int) (rows int) {
	c.positive("number of Segments", len(segs))
	if c.ok() && at < 0 {
		c.fail("StateAt is %d", at)
	}
	var ends stateEnds
	if len(segs) > fewStates && stateFloats > 0 {
		ends = stateEndsPool.Get().(stateEnds)
		defer func() { clear(ends); stateEndsPool.Put(ends) }()
	}
	for i := range segs {
		if !c.ok() {
			return rows
		}
		s := &segs[i]
		c.positive("Rows", s.Rows)
		if c.ok() && s.Row < 0 {
			c.fail("row %d", s.Row)
		}
		if stateFloats > 0 {
			c.floats("State", s.State.At(at), stateFloats)
		}
		apart := stateFloats == 0
		if ends != nil && c.ok() {
			end, known := ends[s.State.Buf]
			apart = !known || s.State.Offset >= end
			ends[s.State.Buf] = max(end, s.State.Offset+4*stateFloats)
		}
		if apart && s.Row >= rows {
			rows = sum(s.Row, s.Rows)
			c.within("segment", i)
			continue
		}
		for j := range segs[:i] {
			c.rowsApart(j, segs[j].Row, segs[j].Rows, s.Row, s.Rows)
			if c.ok() && overlap(stateSpan(&segs[j], stateFloats), stateSpan(s, stateFloats)) {
				c.fail("shares its state with segment %d", j)
			}
		}
		c.within("segment", i)
		rows = max(rows, sum(s.Row, s.Rows))
	}
	return rows
}

func stateSpan(s *StateSegment, floats int) span {
	return span{s.State, 1, 4 * floats, 4 * floats}
}
