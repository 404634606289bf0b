package launch

import "github.com/moeflux/moeflux-actor/gpu"

// extent is the addresses of an operand, from its first byte to the one past its last. Operands of
// different buffers that are one memory overlap, too.
type extent struct{ from, to uint64 }

// extentOf is the extent of n bytes; that of the zero View is empty.
func extentOf(v gpu.View, n int) extent {
	if v.IsZero() || n <= 0 {
		return extent{}
	}
	a := address(v)
	return extent{a, a + uint64(n)}
}

// floatsAt is the extent of rows of width float32, stride float32 apart.
func floatsAt(v gpu.View, rows, width, stride int) extent {
	return extentOf(v, 4*((rows-1)*stride+width))
}

func (e extent) overlaps(o extent) bool { return e.from < o.to && o.from < e.to }

// hull is the least extent around all that are not empty.
func hull(all []extent) (h extent) {
	for _, e := range all {
		switch {
		case e.from == e.to:
		case h.from == h.to:
			h = e
		default:
			h = extent{min(h.from, e.from), max(h.to, e.to)}
		}
	}
	return h
}

// apart reports whether e shares no byte with any of all.
func (e extent) apart(all ...extent) bool {
	for _, o := range all {
		if e.overlaps(o) {
			return false
		}
	}
	return true
}

// sameOrApart reports whether e is each of all or shares no byte with it: then a thread that reads
// an element before it writes that element may compute both.
func (e extent) sameOrApart(all ...extent) bool {
	for _, o := range all {
		if e != o && e.overlaps(o) {
			return false
		}
	}
	return true
}
