package dispatch

import (
	"math"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages"
)

// dump is what a step brings to the host beside its logits. Buffers are copied when they hold what
// is wanted and before anything else is written to them. The copies stand between operations that
// no device computes together, so that what is computed is the same with and without them.
type dump struct {
	tensors []stages.Tensor
	apart   []apart
}

// apart is vectors that lie apart on the device, and come with what is between them.
type apart struct {
	vectors
	raw []float32
	to  *stages.Tensor
}

// vectors are those of some rows of a buffer: heads of dim float32, of which the next one is head
// float32 on, and that of the next row is row float32 on.
type vectors struct {
	heads, dim, row, head int
	first, rows           int // rows of the step; 0, 0 means all
}

// newDump makes room for what a batch wants. What the model does not have is empty.
func newDump(b *stages.Batch, cfg Config) *dump {
	d := &dump{tensors: make([]stages.Tensor, len(b.Wants))}
	for i, w := range b.Wants {
		width, rows := 0, len(b.Rows)
		if shape := w.Quantity.Shape(cfg.Model, w.Layer, cfg.TopK); shape != nil {
			width = 1
			for _, n := range shape {
				width *= n
			}
		}
		if w.Quantity.OfChunk() {
			rows = len(b.Segments)
		}
		t := stages.NewTensor(w, width, rows)
		if w.Quantity.OfFoldedForm() {
			for i := range t.Floats {
				t.Floats[i] = float32(math.NaN())
			}
		}
		if w.Quantity == stages.DumpPositions {
			fillPositions(&t, b, cfg.Model)
		}
		d.tensors[i] = t
	}
	return d
}

// fillPositions writes what rows attend to that do not choose: all positions or blocks.
func fillPositions(t *stages.Tensor, b *stages.Batch, m *model.Config) {
	for i := range t.Ints {
		at := i % m.IndexTopK
		t.Ints[i] = -1
		if at <= int(b.Rows[i/t.Width].Pos)/max(m.IndexBlock, 1) {
			t.Ints[i] = int32(at)
		}
	}
}

// wanted returns where a quantity of the layer that is being encoded goes, or nil.
func (l *lane) wanted(q stages.Quantity) *stages.Tensor {
	if l.dump == nil {
		return nil
	}
	t := stages.FindTensor(l.dump.tensors, stages.Want{Quantity: q, Layer: l.layer})
	if t == nil || t.Len() == 0 {
		return nil
	}
	return t
}

// tap collects a quantity of all rows, which lie one after the other, if the batch wants it.
func (l *lane) tap(cmd *gpu.Commands, q stages.Quantity, from gpu.View) {
	l.tapRows(cmd, q, 0, l.rows, from)
}

// tapRows is tap for n rows from row first on.
func (l *lane) tapRows(cmd *gpu.Commands, q stages.Quantity, first, n int, from gpu.View) {
	t := l.wanted(q)
	switch {
	case t == nil:
	case q.Ints():
		gpu.Encode(cmd, gpu.Download{Src: from, Dst: gpu.IntBytes(t.Ints[first*t.Width : (first+n)*t.Width])})
	default:
		gpu.Encode(cmd, gpu.Download{Src: from, Dst: gpu.FloatBytes(t.Floats[first*t.Width : (first+n)*t.Width])})
	}
}

// tapVectors is tap for vectors that do not lie one after the other.
func (l *lane) tapVectors(cmd *gpu.Commands, q stages.Quantity, from gpu.View, at vectors) {
	if at.rows == 0 {
		at.rows = l.rows
	}
	if at.row == at.heads*at.dim && at.head == at.dim {
		l.tapRows(cmd, q, at.first, at.rows, from)
		return
	}
	t := l.wanted(q)
	if t == nil {
		return
	}
	raw := make([]float32, (at.rows-1)*at.row+(at.heads-1)*at.head+at.dim)
	gpu.Encode(cmd, gpu.Download{Src: from, Dst: gpu.FloatBytes(raw)})
	l.dump.apart = append(l.dump.apart, apart{at, raw, t})
}

// tapRoute collects what the router has made of the rows.
func (l *lane) tapRoute(cmd *gpu.Commands, picks, weights gpu.View) {
	l.tap(cmd, stages.DumpScores, l.scores)
	l.tap(cmd, stages.DumpPicks, picks)
	l.tap(cmd, stages.DumpWeights, weights)
}

// tapMoE collects what the experts have made of the rows, after the combine that ends their layer.
// The sums alone are nowhere: they are computed once more, and added to nothing.
func (l *lane) tapMoE(cmd *gpu.Commands, op gpu.Combine) {
	l.tap(cmd, stages.DumpOutput, l.hidden)
	l.tap(cmd, stages.DumpExperts, l.routed)
	if !op.Shared.IsZero() {
		l.tap(cmd, stages.DumpShared, l.shared)
	}
	if !op.SharedGate.IsZero() {
		l.tap(cmd, stages.DumpSharedGate, l.sharedGate)
	}
	l.tapSum(cmd, stages.DumpSum, op)
	op.Shared, op.SharedGate = gpu.View{}, gpu.View{}
	l.tapSum(cmd, stages.DumpRouted, op)
}

// tapSum collects what a combine adds to the residual stream. The mixer's output is not needed any
// more.
func (l *lane) tapSum(cmd *gpu.Commands, q stages.Quantity, op gpu.Combine) {
	if l.wanted(q) == nil {
		return
	}
	gpu.Encode(cmd, gpu.Fill{Dst: l.mixed, Bytes: 4 * op.Rows * op.Dim})
	op.Residual, op.Y = l.mixed, l.mixed
	gpu.Encode(cmd, op)
	l.tap(cmd, q, l.mixed)
}

// result returns what was collected. The device must be done.
func (d *dump) result() []stages.Tensor {
	for i := range d.apart {
		a := &d.apart[i]
		for r := range a.rows {
			for h := range a.heads {
				to := ((a.first+r)*a.heads + h) * a.dim
				copy(a.to.Floats[to:to+a.dim], a.raw[r*a.row+h*a.head:])
			}
		}
	}
	d.apart = nil
	return d.tensors
}
