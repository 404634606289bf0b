package launch

import "github.com/moeflux/moeflux-actor/gpu"

type convRow struct {
	state                    uint64
	row, before, first, rows uint32
}

type convParams struct{ channels uint32 }

func (x *encoder) conv(o *gpu.CausalConv) {
	l := &x.lists
	l.conv, l.last = l.conv[:0], l.last[:0]
	single := true
	for i := range o.Segments {
		s := &o.Segments[i]
		r := convRow{first: uint32(s.Row), rows: uint32(s.Rows)}
		if !s.State.IsZero() {
			r.state = address(s.State)
		}
		for t := range s.Rows {
			r.row, r.before = uint32(s.Row+t), uint32(t)
			l.conv = append(l.conv, r)
		}
		l.last = append(l.last, r)
		single = single && s.Rows == 1
	}
	x.begin(o, "conv", o.Kernel, flag(single))
	x.views(o.X, o.W)
	x.tableAt(table(x, l.conv))
	x.views(o.Y)
	constants(x, convParams{uint32(o.Channels)})
	x.end(elementThreads, ceil(o.Channels, elementThreads), len(l.conv))
	if single || o.Kernel == 1 {
		return
	}
	x.begin(o, "conv_state", o.Kernel)
	x.views(o.X)
	x.tableAt(table(x, l.last))
	constants(x, convParams{uint32(o.Channels)})
	x.end(elementThreads, ceil(o.Channels, elementThreads), len(l.last))
}

type deltaParams struct{ keyHeads, valueHeads, valueDim, width, rows uint32 }

type deltaSegment struct {
	state               uint64
	row, rows, entry, _ uint32
}

const (
	deltaSimdgroups = 4 // of a threadgroup
	deltaValues     = 4 // rows of a state that a simdgroup takes
)

func (x *encoder) deltaRule(o *gpu.DeltaRule) {
	l := &x.lists
	l.delta, l.numbers = l.delta[:0], l.numbers[:0]
	for i := range o.Segments {
		s := &o.Segments[i]
		l.delta = append(l.delta, deltaSegment{state: address(s.State), row: uint32(s.Row), rows: uint32(s.Rows), entry: uint32(len(l.numbers))})
		for t := range s.Rows {
			l.numbers = append(l.numbers, uint32(s.Row+t))
		}
	}
	rows, at := len(l.numbers), 0
	qk := x.reserve(&at, rows*2*o.KeyHeads*o.KeyDim)
	gb := x.reserve(&at, rows*2*o.ValueHeads)
	p := deltaParams{uint32(o.KeyHeads), uint32(o.ValueHeads), uint32(o.ValueDim), uint32(2*o.KeyHeads*o.KeyDim + o.ValueHeads*o.ValueDim), uint32(rows)}
	x.begin(o, "delta_prepare", o.KeyDim)
	x.views(o.QKV, o.Alpha, o.Beta, o.ALog, o.DtBias)
	x.tableAt(table(x, l.numbers))
	x.places(qk, gb)
	constants(x, p)
	x.end(32*deltaSimdgroups, ceil(2*o.KeyHeads+ceil(o.ValueHeads, 32), deltaSimdgroups), rows)
	x.begin(o, "delta_rule", o.KeyDim)
	x.views(o.QKV)
	x.places(qk, gb)
	x.tableAt(table(x, l.delta))
	x.views(o.Y)
	constants(x, p)
	x.end(32*deltaSimdgroups, ceil(o.ValueDim, deltaSimdgroups*deltaValues), o.ValueHeads, len(l.delta))
}
