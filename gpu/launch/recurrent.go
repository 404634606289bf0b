package launch

import "github.com/moeflux/moeflux-actor/gpu"

type convRow struct {
	state             uint64
	row, n, before, _ uint32
}

type convParams struct{ channels uint32 }

// convRows is how many rows of a sequence a thread takes through the convolution.
const convRows = 8

func (x *encoder) conv(o *gpu.CausalConv) {
	l := &x.lists
	l.conv, l.last = l.conv[:0], l.last[:0]
	single := true // every sequence has one entry
	for i := range o.Segments {
		s := &o.Segments[i]
		r := convRow{}
		if !s.State.IsZero() {
			r.state = address(s.State.At(o.StateAt))
		}
		for t := 0; t < s.Rows; t += convRows {
			r.row, r.before, r.n = uint32(s.Row+t), uint32(t), uint32(min(convRows, s.Rows-t))
			l.conv = append(l.conv, r)
		}
		r.row, r.before, r.n = uint32(s.Row+s.Rows-1), uint32(s.Rows-1), 1
		l.last = append(l.last, r)
		single = single && s.Rows <= convRows
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

type deltaParams struct{ keyHeads, valueHeads, valueDim, width uint32 }

type deltaSegment struct {
	state     uint64
	row, rows uint32
}

const (
	deltaThreads = 128 // of a threadgroup
	deltaValues  = 16  // rows of a state that a threadgroup takes
)

func (x *encoder) deltaRule(o *gpu.DeltaRule) {
	l := &x.lists
	l.delta = l.delta[:0]
	wide := o.KeyDim%4 == 0
	for i := range o.Segments {
		s := &o.Segments[i]
		state := s.State.At(o.StateAt)
		l.delta = append(l.delta, deltaSegment{state: address(state), row: uint32(s.Row), rows: uint32(s.Rows)})
		wide = wide && aligned(16, state)
	}
	x.begin(o, "delta_rule", o.KeyDim, flag(wide))
	x.views(o.QKV, o.Alpha, o.Beta, o.ALog, o.DtBias)
	x.tableAt(table(x, l.delta))
	x.views(o.Y)
	constants(x, deltaParams{uint32(o.KeyHeads), uint32(o.ValueHeads), uint32(o.ValueDim), uint32(2*o.KeyHeads*o.KeyDim + o.ValueHeads*o.ValueDim)})
	x.end(deltaThreads, ceil(o.ValueDim, deltaValues), o.ValueHeads, len(l.delta))
}
