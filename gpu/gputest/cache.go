package gputest

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/moeflux/moeflux-actor/gpu"
)

// cacheShape is what a cache's pages look like. With a group of 0 it holds float32, else 8 bits and
// a scale for so many channels. With a vDim of 0 values have as many channels as keys.
type cacheShape struct{ pageRows, dim, group, vDim int }

func (c cacheShape) kv() gpu.KV {
	kv := gpu.KV{KVLayout: gpu.KVLayout{PageRows: c.pageRows, Dim: c.dim, VDim: c.vDim, VOffset: 8}}
	if c.group > 0 {
		kv.Format, kv.Group = gpu.KVInt8, c.group
	}
	values := kv.Values()
	kv.KOffset = kv.VOffset + values.PartBytes() + 12
	return kv
}

// cache is one sequence's paged keys and values, on the device and as the host knows them.
// Positions from filled on hold the guard's NaNs.
type cache struct {
	kv     gpu.KV
	pages  []*operand
	k, v   [][]float32 // [positions, dim] and [positions, vDim], as the cache holds them
	before [][]byte    // pages as placed
}

// cache makes pages for n positions, of which the first filled have random rows. Pages begin at odd
// places of their buffers, or where operands are aligned at even ones, hold values before keys, and
// have room between them.
func (s *setup) cache(name string, shape cacheShape, n, filled int) *cache {
	return s.cacheOf(name, shape, n, filled, s.normal)
}

// cacheOf is cache with rows that draw draws.
func (s *setup) cacheOf(name string, shape cacheShape, n, filled int, draw func(n int) []float32) *cache {
	c := &cache{kv: shape.kv()}
	if s.aligned {
		c.kv.VOffset, c.kv.KOffset = 0, (c.kv.PartBytes()+64+63)&^63
	}
	for p := 0; p*shape.pageRows < n; p++ {
		page := make([]byte, c.kv.KOffset+c.kv.PartBytes()+12)
		for i := 0; i < len(page); i += 4 {
			binary.LittleEndian.PutUint32(page[i:], guard)
		}
		for r := 0; r < shape.pageRows && p*shape.pageRows+r < filled; r++ {
			c.k = append(c.k, c.put(page, c.kv.KOffset, r, draw(shape.dim)))
			c.v = append(c.v, c.put(page, c.kv.VOffset, r, draw(cmp.Or(shape.vDim, shape.dim))))
		}
		o := s.place(fmt.Sprintf("%s page %d", name, p), page, 4)
		c.pages, c.before = append(c.pages, o), append(c.before, page)
		c.kv.Pages = c.kv.Pages.Append(o.view())
	}
	return c
}

// expect says which rows are to be in the pages afterwards: k at the positions from pos on, and v,
// if there is one.
func (c *cache) expect(pos int, k, v [][]float32) {
	for r := range k {
		page, row := c.before[(pos+r)/c.kv.PageRows], (pos+r)%c.kv.PageRows
		c.put(page, c.kv.KOffset, row, k[r])
		if v != nil {
			c.put(page, c.kv.VOffset, row, v[r])
		}
	}
	for p, o := range c.pages {
		o.expectBytes(c.before[p])
	}
}

// put writes a row to a page's keys or values, which begin at offset, and returns it as the cache
// holds it.
func (c *cache) put(page []byte, offset, row int, x []float32) []float32 {
	part := c.kv
	if offset == part.VOffset {
		part = part.Values()
	}
	float := func(at int, v float32) { binary.LittleEndian.PutUint32(page[at:], math.Float32bits(v)) }
	if c.kv.Format == gpu.KVF32 {
		for i, v := range x {
			float(offset+4*(row*len(x)+i), v)
		}
		return x
	}
	held := make([]float32, len(x))
	n := c.kv.Group
	for g := 0; g < len(x); g += n {
		codes, scale := rounded8(x[g : g+n])
		float(offset+part.ScalesAt()+4*(g/n*c.kv.PageRows+row), scale)
		for i, q := range codes {
			page[offset+row*len(x)+g+i] = byte(int8(q))
			held[g+i] = float32(q * float64(scale))
		}
	}
	return held
}

// rounded8 is gpu.KV's definition of the format with 8 bits.
func rounded8(x []float32) (codes []float64, scale float32) {
	most, codes := 0.0, make([]float64, len(x))
	for _, v := range x {
		if d := math.Abs(float64(v)); !(d <= math.MaxFloat32) {
			return codes, math.Float32frombits(0x7fc00000)
		} else {
			most = max(most, d)
		}
	}
	if most < math.Ldexp(127, -126) {
		return codes, 0
	}
	scale = math.Float32frombits(math.Float32bits(float32(most/127)) &^ 255)
	for i, v := range x {
		codes[i] = math.RoundToEven(float64(float32(float64(v) / float64(scale))))
	}
	return codes, scale
}
