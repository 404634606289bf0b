package synth

import (
	"fmt"
	"sort"
	"sync"

	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/io/weights"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// weightsAlign is where every tensor of model_weights.bin begins.
const weightsAlign = 64

// piece is part of a block: n units of equal size, made one by one.
type piece struct {
	at, unit int64 // bytes
	n        int
	fill     func(dst []byte, block, i int)
}

// image is the content of a file, which can be computed from any byte on. It consists of blocks of
// equal size with the same pieces in order and zeros between them.
type image struct {
	name   string // path in the model directory, with slashes
	block  int64  // bytes
	blocks int
	pieces []piece
	sums   *recordSums // of the blocks, or nil
}

func (f *image) size() int64 { return f.block * int64(f.blocks) }

// render fills dst with the bytes from offset on.
func (f *image) render(dst []byte, offset int64) {
	for len(dst) > 0 {
		block, at := int(offset/f.block), offset%f.block
		n := f.part(dst[:min(int64(len(dst)), f.block-at)], block, at)
		dst = dst[n:]
		offset += int64(n)
	}
}

// part fills the beginning of dst with the block's bytes from at on. It returns how many bytes it
// filled, at least one.
func (f *image) part(dst []byte, block int, at int64) int {
	// The first piece that ends after at.
	i := sort.Search(len(f.pieces), func(i int) bool { p := &f.pieces[i]; return p.at+p.unit*int64(p.n) > at })
	if i == len(f.pieces) || at < f.pieces[i].at {
		gap := dst
		if i < len(f.pieces) {
			gap = dst[:min(int64(len(dst)), f.pieces[i].at-at)]
		}
		clear(gap)
		return len(gap)
	}
	p := &f.pieces[i]
	done := 0
	for done < len(dst) {
		u, within := int((at-p.at)/p.unit), (at-p.at)%p.unit
		if u == p.n {
			break
		}
		n := 0
		if rest := dst[done:]; within == 0 && int64(len(rest)) >= p.unit {
			p.fill(rest[:p.unit], block, u)
			n = int(p.unit)
		} else { // a unit that the range covers in part
			whole := make([]byte, p.unit)
			p.fill(whole, block, u)
			n = copy(rest, whole[within:])
		}
		done += n
		at += int64(n)
	}
	return done
}

// matrixPieces returns the codes, scales and biases of a matrix at the given offsets. f is its
// format.
func matrixPieces(x *matrix, f quant.Format, weight, scales, biases int64) []piece {
	width := f.WeightBytes(1, x.cols)
	if f.Kind != quant.Affine {
		return []piece{{at: weight, unit: int64(width), n: x.rows, fill: x.codeRow}}
	}
	unit := f.ScaleBytes(1, x.cols)
	pairs := func(which int) func([]byte, int, int) {
		return func(dst []byte, block, i int) { x.pairRow(dst, block, i, which) }
	}
	out := []piece{
		{at: weight, unit: int64(width), n: x.rows, fill: x.codeRow},
		{at: scales, unit: int64(unit), n: x.rows, fill: pairs(0)},
		{at: biases, unit: int64(unit), n: x.rows, fill: pairs(1)},
	}
	if f.Layout == quant.Panels {
		for i := range out {
			out[i] = out[i].panels(f, x.cols, i == 0)
		}
	}
	return out
}

// panels returns the same rows as a piece in panels.
func (p piece) panels(f quant.Format, cols int, codes bool) piece {
	rows := p
	p.unit, p.n = rows.unit*quant.PanelRows, rows.n/quant.PanelRows
	scratch := sync.Pool{New: func() any {
		b := make([]byte, p.unit)
		return &b
	}}
	p.fill = func(dst []byte, block, i int) {
		mem := scratch.Get().(*[]byte)
		src := *mem
		for r := range quant.PanelRows {
			rows.fill(src[int64(r)*rows.unit:][:rows.unit], block, i*quant.PanelRows+r)
		}
		d, s := quant.Codes{Scales: dst}, quant.Codes{Scales: src}
		if codes {
			d, s = quant.Codes{Weight: dst}, quant.Codes{Weight: src}
		}
		f.ToPanels(d, s, quant.PanelRows, cols)
		scratch.Put(mem)
	}
	return p
}

// expertImage is the file of one layer's experts.
func (m *Model) expertImage(layer int) *image {
	f := &image{name: expertfile.DirName + "/" + expertfile.LayerName(layer), block: int64(m.layout.Bytes), blocks: m.cfg.NumExperts}
	f.sums = &recordSums{record: f.block, parts: map[int64]sumPart{}}
	for i, p := range []model.ExpertPart{m.layout.Gate, m.layout.Up, m.layout.Down} {
		r := inner
		if i == 2 {
			r = writes
		}
		x := m.matrix(matrixSpec{
			name: fmt.Sprintf("model.layers.%d.mlp.switch_mlp.%s", layer, [...]string{"gate_proj", "up_proj", "down_proj"}[i]),
			role: r, rows: p.Rows, cols: p.Cols, bits: p.Format.Bits,
		})
		f.pieces = append(f.pieces, matrixPieces(x, p.Format, int64(p.WeightOffset), int64(p.ScalesOffset), int64(p.BiasesOffset))...)
	}
	return f
}

// weightsImage is model_weights.bin, and the manifest's descriptors of it.
func (m *Model) weightsImage() (*image, map[string]weights.Descriptor) {
	f, l := &image{name: weights.DataName, blocks: 1}, list(m.cfg)
	tensors := map[string]weights.Descriptor{}
	end := int64(0)
	place := func(name string, size int, t safetensors.DType, q quant.Format, shape ...int) int64 {
		at := (end + weightsAlign - 1) / weightsAlign * weightsAlign
		d := weights.Descriptor{Offset: at, Size: int64(size), Shape: shape, DType: t, Layout: q.Layout}
		if t == safetensors.U32 {
			d.Bits = q.Bits
		}
		tensors[name] = d
		end = at + int64(size)
		return at
	}
	for _, s := range l.matrices {
		x := m.matrix(s)
		if s.bits == 16 {
			q := quant.Format{Kind: quant.BF16}
			at := place(s.name+".weight", q.WeightBytes(s.rows, s.cols), safetensors.BF16, q, s.rows, s.cols)
			f.pieces = append(f.pieces, matrixPieces(x, q, at, 0, 0)...)
			continue
		}
		q := quant.Format{Kind: quant.Affine, Bits: s.bits, Group: groupSize}
		if !s.byHead {
			q = q.In(m.o.layout(), s.rows)
		}
		w := place(s.name+".weight", q.WeightBytes(s.rows, s.cols), safetensors.U32, q, s.rows, s.cols*s.bits/32)
		sc := place(s.name+".scales", q.ScaleBytes(s.rows, s.cols), safetensors.BF16, q, s.rows, s.cols/groupSize)
		b := place(s.name+".biases", q.ScaleBytes(s.rows, s.cols), safetensors.BF16, q, s.rows, s.cols/groupSize)
		f.pieces = append(f.pieces, matrixPieces(x, q, w, sc, b)...)
	}
	for _, s := range l.vectors {
		t := safetensors.BF16
		if s.f32 {
			t = safetensors.F32
		}
		data := m.vector(s)
		at := place(s.name, len(data), t, quant.Format{}, s.shape...)
		f.pieces = append(f.pieces, piece{at: at, unit: int64(len(data)), n: 1, fill: func(dst []byte, _, _ int) { copy(dst, data) }})
	}
	f.block = end
	return f, tensors
}

// Size returns the bytes of all weights but the routed experts, and of the experts.
func (m *Model) Size() (resident, experts int64) {
	f, _ := m.weightsImage()
	return f.size(), int64(m.layout.Bytes) * int64(m.cfg.NumExperts) * int64(len(m.routers))
}

// layers returns the indexes of the layers with experts, shared, read-only.
func (m *Model) layers() []int { return m.cfg.MoELayers() }
