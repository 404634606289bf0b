package launch

import "github.com/moeflux/moeflux-actor/gpu"

// joins make one launch of operations that follow one another. Each looks at the operations that
// come next, of which the first is given, and returns how many it has encoded: 0 where they are not
// what it joins, or where one of them would see in memory what another one wrote, other than as the
// join computes it. They are tried in order, before the operations' own encoders. What a join
// computes has the bits of the operations one after the other: its kernel adds in the same order
// and writes every result that they write.
var joins = [...]func(x *encoder, ops []gpu.Op) int{
	(*encoder).joinProducts,
	(*encoder).joinAddNorm,
	(*encoder).joinCombineNorm,
	(*encoder).joinHeads,
}

// join encodes the first of ops together with what follows, if there is a join for them, and
// returns how many operations that were.
func (x *encoder) join(ops []gpu.Op) int {
	if len(ops) < 2 {
		return 0
	}
	for _, j := range joins {
		if n := j(x, ops); n > 0 {
			return n
		}
	}
	return 0
}

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
