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

// matrixPieces returns the parts of a matrix, which begin where offset says. f is its format.
func matrixPieces(x *matrix, f quant.Format, offset func(p quant.Part) int64) []piece {
	var out []piece
	for _, a := range f.Arrays(x.rows, x.cols) {
		p := piece{at: offset(a.Part), unit: int64(f.PartBytes(a.Part, 1, x.cols)), n: x.rows, fill: x.row(a.Part)}
		if f.Layout == quant.Panels {
			p = p.panels(f, a.Part, x.cols)
		}
		out = append(out, p)
	}
	return out
}

// row returns what fills rows of a part.
func (x *matrix) row(p quant.Part) func(dst []byte, block, i int) {
	if p == quant.Weight {
		return x.codeRow
	}
	return func(dst []byte, block, i int) { x.pairRow(dst, block, i, p) }
}

// panels returns the same rows of a part as a piece in panels.
func (p piece) panels(f quant.Format, part quant.Part, cols int) piece {
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
		f.ToPanels(part, dst, src, quant.PanelRows, cols)
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
			role: r, rows: p.Rows, cols: p.Cols, bits: p.Format.Bits(),
		})
		f.pieces = append(f.pieces, matrixPieces(x, p.Format, func(part quant.Part) int64 { return int64(p.Offset(part)) })...)
	}
	return f
}

// weightsImage is model_weights.bin, and the manifest's descriptors of it.
func (m *Model) weightsImage() (*image, map[string]weights.Descriptor) {
	f, l := &image{name: weights.DataName, blocks: 1}, list(m.cfg)
	tensors := map[string]weights.Descriptor{}
	end := int64(0)
	place := func(name string, size, bits int, t safetensors.DType, layout quant.Layout, shape ...int) int64 {
		at := (end + weightsAlign - 1) / weightsAlign * weightsAlign
		tensors[name] = weights.Descriptor{Offset: at, Size: int64(size), Shape: shape, DType: t, Layout: layout, Bits: bits}
		end = at + int64(size)
		return at
	}
	for _, s := range l.matrices {
		q := s.format()
		if !s.byHead {
			q = q.In(m.o.layout(), s.rows)
		}
		var at [quant.NumParts]int64
		for _, a := range q.Arrays(s.rows, s.cols) {
			bits := 0
			if a.Part == quant.Weight && q.Codes() {
				bits = q.Bits()
			}
			at[a.Part] = place(s.name+"."+a.Part.String(), a.Bytes, bits, safetensors.DType(a.DType), q.Layout, a.Shape...)
		}
		f.pieces = append(f.pieces, matrixPieces(m.matrix(s), q, func(p quant.Part) int64 { return at[p] })...)
	}
	for _, s := range l.vectors {
		t := safetensors.BF16
		if s.f32 {
			t = safetensors.F32
		}
		data := m.vector(s)
		at := place(s.name, len(data), 0, t, quant.Rows, s.shape...)
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
