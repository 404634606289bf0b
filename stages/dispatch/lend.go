package dispatch

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/io/weights"
	"github.com/moeflux/moeflux-actor/model"
)

// Lender computes experts for rows that come from elsewhere: the part of dispatch that an expert
// host has. It binds what experts have beside their records, and encodes them as a step's wave
// does.
type Lender struct {
	cfg    *model.Config
	layout func(layer int) model.ExpertLayout
	dev    gpu.Device
	net    *network // of which only the experts are bound
}

// NewLender binds what the experts of a model have beside their records. w may be closed
// afterwards. It waits for the device once.
func NewLender(m *model.Config, layout func(layer int) model.ExpertLayout, dev gpu.Device, queue gpu.Queue, w *weights.File) (*Lender, error) {
	l := &Lender{cfg: m, layout: layout, dev: dev, net: &network{layers: make([]layer, len(m.Layers))}}
	at := &place{dev: dev}
	b := &binder{w: w, at: at}
	for _, i := range m.MoELayers() {
		of := &l.net.layers[i]
		of.clamp = clampOf(m.Layers[i].Clamp)
		if m.ExpertBias {
			of.experts.bind(b, m, fmt.Sprintf("model.layers.%d.mlp.switch_mlp.", i))
		}
	}
	l.net.places = []*place{at}
	if b.err != nil || len(at.floats) == 0 {
		return l, b.err
	}
	return l, at.upload(queue)
}

// Close releases the buffers. The queue must be idle.
func (l *Lender) Close() { l.net.release() }

// Lent is some experts of one layer and the rows that each is applied to.
type Lent struct {
	Layer   int
	Experts []LentExpert
	Inputs  []float32 // [rows, hidden]
}

// LentExpert is an expert of a Lent.
type LentExpert struct {
	Expert int
	View   gpu.View // where its record begins
	Rows   []int32  // of Inputs, each at most once
}

// Bench is memory in which a Lender computes one Lent at a time.
type Bench struct {
	l      *Lender
	buffer gpu.Buffer
	floats int
	table  gpu.ExpertTable
	picks  []int32
	counts []int32 // of each row, the picks so far
}

// NewBench returns memory that grows with what is computed.
func (l *Lender) NewBench() *Bench { return &Bench{l: l} }

// Release gives the memory back.
func (b *Bench) Release() {
	if b.buffer != nil {
		b.buffer.Release()
		b.buffer = nil
	}
}

// Encode adds to cmd what computes w, and puts the outputs into out: [rows of the first expert,
// then those of the next …, hidden]. w and out stay alone until the commands are done.
func (b *Bench) Encode(cmd *gpu.Commands, w *Lent, out []float32) error {
	m := b.l.cfg
	rows := len(w.Inputs) / m.HiddenSize
	topK := b.gather(w, rows)
	x, y := rows*m.HiddenSize, rows*topK*m.HiddenSize
	if err := b.reserve(x + y + rows*topK*2*m.MoEIntermediateSize); err != nil {
		return err
	}
	at := gpu.View{Buf: b.buffer}
	op := gpu.Experts{
		X: at, Y: at.Floats(x), Scratch: at.Floats(x + y), Rows: rows, TopK: topK, Table: &b.table, Picks: gpu.List[int32]{Host: b.picks},
		Clamp: b.l.net.layers[w.Layer].clamp,
	}
	gpu.Encode(cmd, gpu.Upload{Dst: op.X, Src: gpu.FloatBytes(w.Inputs)})
	gpu.Encode(cmd, op)
	clear(b.counts)
	for i := range w.Experts {
		for _, r := range w.Experts[i].Rows {
			pair := int(r)*topK + int(b.counts[r])
			b.counts[r]++
			gpu.Encode(cmd, gpu.Download{Src: op.Y.Floats(pair * m.HiddenSize), Dst: gpu.FloatBytes(out[:m.HiddenSize])})
			out = out[m.HiddenSize:]
		}
	}
	return nil
}

// gather makes the table of experts, and of the rows' picks indices into it: each row's picks in
// the order of the experts. It returns how many the row with most has.
func (b *Bench) gather(w *Lent, rows int) (topK int) {
	b.counts = append(b.counts[:0], make([]int32, rows)...)
	for i := range w.Experts {
		for _, r := range w.Experts[i].Rows {
			b.counts[r]++
			topK = max(topK, int(b.counts[r]))
		}
	}
	clear(b.counts)
	b.picks = b.picks[:0]
	for range rows * topK {
		b.picks = append(b.picks, -1)
	}
	b.table.Experts = b.table.Experts[:0]
	for i := range w.Experts {
		e := &w.Experts[i]
		b.table.Experts = append(b.table.Experts, b.l.net.expert(b.l.layout(w.Layer), w.Layer, e.Expert, e.View))
		for _, r := range e.Rows {
			b.picks[int(r)*topK+int(b.counts[r])] = int32(i)
			b.counts[r]++
		}
	}
	return topK
}

// reserve makes room for some float32.
func (b *Bench) reserve(floats int) (err error) {
	if floats <= b.floats {
		return nil
	}
	b.Release()
	b.floats = 0
	if b.buffer, err = b.l.dev.NewBuffer(4 * floats); err == nil {
		b.floats = floats
	}
	return err
}
