package snapshot

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/model"
)

const (
	lin = model.LinearAttention
	ful = model.FullAttention
	lat = model.LatentAttention
	win = model.WindowAttention
)

// The shapes of the tests: one of each kind of model, and those that only a seal can describe.
var shapes = map[string]*Shape{
	"hybrid":    {Layers: []model.Mixer{lin, lin, ful, lin, lin, ful}, KVHeads: 2, HeadDim: 4, ConvRows: 3, ConvDim: 7, ValueHeads: 4, ValueDim: 3, KeyDim: 5},
	"softmax":   {Layers: []model.Mixer{ful, ful, ful}, KVHeads: 1, HeadDim: 6},
	"latent":    {Layers: []model.Mixer{lat, lat}, KVHeads: 8, HeadDim: 5, KVLoraRank: 6, RopeDim: 2},
	"irregular": {Layers: []model.Mixer{ful, lin, lin, ful, lin}, KVHeads: 2, HeadDim: 2, ConvRows: 1, ConvDim: 3, ValueHeads: 2, ValueDim: 2, KeyDim: 2},
	"recurrent": {Layers: []model.Mixer{lin, lin}, KVHeads: 1, HeadDim: 1, ConvRows: 2, ConvDim: 4, ValueHeads: 1, ValueDim: 2, KeyDim: 3},
	"indexed": {Layers: []model.Mixer{lat, lat, lat}, KVHeads: 2, HeadDim: 5, KVLoraRank: 4, RopeDim: 2,
		Indexers: []bool{true, false, true}, IndexDim: 3},
	"blocks": {Layers: []model.Mixer{ful, ful, lin}, KVHeads: 2, HeadDim: 3, Indexers: []bool{false, true, false}, IndexDim: 3,
		ConvRows: 1, ConvDim: 3, ValueHeads: 2, ValueDim: 2, KeyDim: 2},
	"windowed": {Layers: []model.Mixer{win, ful, win}, KVHeads: 1, HeadDim: 6, VHeadDim: 4, Window: 4, WindowKVHeads: 2},
	"mixed":    {Layers: []model.Mixer{lat, ful}, KVHeads: 2, HeadDim: 2, KVLoraRank: 3, RopeDim: 2},
}

// sealOnly are the shapes that no plain file can hold.
var sealOnly = []string{"blocks", "indexed", "irregular", "mixed", "recurrent", "windowed"}

// paged is a state as the engine has it: pages of some positions of all layers, within which each
// layer of full attention has keys and then values, each of latent attention rows of latent and
// rotated key, and each indexer its keys; and one block of recurrent state.
type paged struct {
	s         *Shape
	pageRows  int
	positions int
	pages     [][]float32
	recurrent []float32
}

func newPaged(s *Shape, pageRows, positions int) *paged {
	st := &paged{s: s, pageRows: pageRows, positions: positions}
	perRow := count(s, win)*s.WindowKVHeads*(s.HeadDim+valueDim(s)) + count(s, ful)*s.KVHeads*(s.HeadDim+valueDim(s)) + count(s, lat)*(s.KVLoraRank+s.RopeDim) + indexers(s, len(s.Layers))*s.IndexDim
	for n := 0; n < positions; n += pageRows {
		st.pages = append(st.pages, make([]float32, pageRows*perRow))
	}
	st.recurrent = make([]float32, count(s, lin)*(s.ConvRows*s.ConvDim+s.ValueHeads*s.ValueDim*s.KeyDim))
	return st
}

// valueDim returns the channels of a value.
func valueDim(s *Shape) int { return cmp.Or(s.VHeadDim, s.HeadDim) }

func count(s *Shape, k model.Mixer) int {
	n := 0
	for _, l := range s.Layers {
		if l == k {
			n++
		}
	}
	return n
}

// indexers returns how many of the first n layers have indexers.
func indexers(s *Shape, n int) (count int) {
	for i := range n {
		if s.Indexers != nil && s.Indexers[i] {
			count++
		}
	}
	return count
}

// row returns one row of a part of a layer, in place.
func (st *paged) row(layer int, p Part, i int) []float32 {
	s := st.s
	index := 0 // among the layers of its kind
	for _, k := range s.Layers[:layer] {
		if k == s.Layers[layer] {
			index++
		}
	}
	heads, before, kept := s.KVHeads, 0, s.KVLoraRank+s.RopeDim
	if s.Layers[layer] == win { // behind the layers of full attention
		heads, before = s.WindowKVHeads, count(s, ful)*s.KVHeads*(s.HeadDim+valueDim(s))*st.pageRows
	}
	k, v := heads*s.HeadDim, heads*valueDim(s)
	before += index * (k + v) * st.pageRows
	page := i / st.pageRows
	in := i % st.pageRows
	conv, delta := s.ConvRows*s.ConvDim, s.ValueHeads*s.ValueDim*s.KeyDim
	latents := count(s, ful) * s.KVHeads * (s.HeadDim + valueDim(s)) * st.pageRows
	switch p {
	case Keys:
		return st.pages[page][before+in*k:][:k]
	case Values:
		return st.pages[page][before+k*st.pageRows+in*v:][:v]
	case Latents:
		return st.pages[page][latents+index*kept*st.pageRows+in*kept:][:s.KVLoraRank]
	case RotatedKeys:
		return st.pages[page][latents+index*kept*st.pageRows+in*kept+s.KVLoraRank:][:s.RopeDim]
	case IndexKeys:
		at := (latents + count(s, lat)*kept*st.pageRows) + (indexers(s, layer)*st.pageRows+in)*s.IndexDim
		return st.pages[page][at:][:s.IndexDim]
	case Convolution:
		return st.recurrent[index*(conv+delta)+i*s.ConvDim:][:s.ConvDim]
	default:
		return st.recurrent[index*(conv+delta)+conv+i*s.ValueDim*s.KeyDim:][:s.ValueDim*s.KeyDim]
	}
}

func (st *paged) rowBytes(layer int, p Part) int { return 4 * len(st.row(layer, p, 0)) }

func (st *paged) ReadRows(layer int, p Part, first int, dst []byte) error {
	for n := st.rowBytes(layer, p); len(dst) > 0; dst = dst[n:] {
		for j, v := range st.row(layer, p, first) {
			binary.LittleEndian.PutUint32(dst[4*j:], math.Float32bits(v))
		}
		first++
	}
	return nil
}

func (st *paged) WriteRows(layer int, p Part, first int, src []byte) error {
	n := st.rowBytes(layer, p)
	if len(src)%n != 0 || len(src) == 0 {
		return fmt.Errorf("%d bytes are no rows of %d", len(src), n)
	}
	for ; len(src) > 0; src = src[n:] {
		row := st.row(layer, p, first)
		for j := range row {
			row[j] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*j:]))
		}
		first++
	}
	return nil
}

// randomState returns a state of arbitrary bits, NaNs of all kinds among them.
func randomState(rng *rand.Rand, s *Shape, pageRows, positions int) *paged {
	st := newPaged(s, pageRows, positions)
	for layer := range s.Layers {
		for _, b := range s.blocks(layer, positions) {
			for i := range b.rows {
				for j := range st.row(layer, b.part, b.first+i) {
					st.row(layer, b.part, b.first+i)[j] = math.Float32frombits(rng.Uint32())
				}
			}
		}
	}
	return st
}

func equalBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

func (st *paged) equal(o *paged) bool {
	return st.positions == o.positions && equalBits(st.recurrent, o.recurrent) && slices.EqualFunc(st.pages, o.pages, equalBits)
}

// tokens returns n ids.
func tokens(n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(i*7919 + 13)
	}
	return out
}

// mustWrite returns the snapshot of a state.
func mustWrite(t testing.TB, st *paged, o WriteOptions) []byte {
	t.Helper()
	o.Positions = st.positions
	var b bytes.Buffer
	n, err := Write(&b, st.s, st, o)
	if err != nil {
		t.Fatal(err)
	}
	if want, err := Size(st.s, o); err != nil || n != want || int64(b.Len()) != want {
		t.Fatalf("wrote %d bytes and says %d, Size says %d, %v", b.Len(), n, want, err)
	}
	return b.Bytes()
}

// load fills a fresh state from a snapshot.
func load(raw []byte, s *Shape, o ReadOptions, pageRows int) (*paged, *File, error) {
	f, err := Open(bytes.NewReader(raw), int64(len(raw)), s, o)
	if err != nil {
		return nil, nil, err
	}
	st := newPaged(s, pageRows, f.Positions())
	return st, f, f.Fill(st)
}

// wantError checks an error's kind, field and layer.
func wantError(t *testing.T, err, kind error, field string, layer int) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || !errors.Is(err, kind) || e.Field != field || e.Layer != layer {
		t.Errorf("got %v, want %v in %s of layer %d", err, kind, field, layer)
	}
}
