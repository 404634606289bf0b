package snapshot

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/moeflux/moeflux-actor/model"
)

// image is a file that is put together by hand, at offsets that are written out.
type image []byte

func (m image) word(at int, v uint32)   { binary.LittleEndian.PutUint32(m[at:], v) }
func (m image) float(at int, v float32) { m.word(at, math.Float32bits(v)) }

// version1 is a hybrid of one layer of linear attention and one of full attention, after two
// positions.
func version1() (image, *Shape, *paged) {
	s := &Shape{Layers: []model.Mixer{lin, ful}, KVHeads: 2, HeadDim: 3, ConvRows: 3, ConvDim: 5, ValueHeads: 2, ValueDim: 2, KeyDim: 4}
	st := newPaged(s, 64, 2)
	m := make(image, 256)
	copy(m, "XLFM")
	m.word(4, 1)   // version
	m.word(8, 2)   // num_layers
	m.word(12, 2)  // full_attn_interval
	m.word(16, 2)  // num_kv_heads
	m.word(20, 3)  // head_dim
	m.word(24, 60) // linear_conv_bytes: 3 rows, 5 channels, 4 bytes
	m.word(28, 64) // linear_ssm_bytes: 2 heads, 2 values, 4 keys, 4 bytes
	// Layer 0: convolution at 32, recurrence at 92.
	for r := range 3 {
		for c := range 5 {
			v := float32(100 + 10*r + c)
			m.float(32+20*r+4*c, v)
			st.recurrent[5*r+c] = v
		}
	}
	for h := range 2 {
		for i := range 2 {
			for j := range 4 {
				v := float32(1000 + 100*h + 10*i + j)
				m.float(92+32*h+16*i+4*j, v)
				st.recurrent[15+8*h+4*i+j] = v
			}
		}
	}
	// Layer 1: len at 156, both rows of keys at 160, both rows of values at 208. A page has 64 rows
	// of 6 keys, then as many values.
	m.word(156, 2)
	for p := range 2 {
		for c := range 6 {
			k, v := float32(-1-10*p-c), float32(-100-10*p-c)
			m.float(160+24*p+4*c, k)
			m.float(208+24*p+4*c, v)
			st.pages[0][6*p+c] = k
			st.pages[0][64*6+6*p+c] = v
		}
	}
	return m, s, st
}

// version2 is a model of two layers of latent attention, after three positions.
func version2() (image, *Shape, *paged) {
	s := &Shape{Layers: []model.Mixer{lat, lat}, KVHeads: 7, HeadDim: 5, KVLoraRank: 3, RopeDim: 2}
	st := newPaged(s, 64, 3)
	m := make(image, 168)
	copy(m, "XLFM")
	m.word(4, 2)  // version
	m.word(8, 2)  // num_layers
	m.word(12, 1) // full_attn_interval
	m.word(16, 7) // num_kv_heads
	m.word(20, 5) // head_dim
	m.word(24, 0) // linear_conv_bytes
	m.word(28, 0) // linear_ssm_bytes
	m.word(32, 3) // kv_lora_rank
	m.word(36, 2) // qk_rope_head_dim
	// Layers 64 bytes apart: len at 40, three latents at 44, three rotated keys at 80. A page has
	// 64 rows of latent and rotated key together, per layer.
	for layer := range 2 {
		m.word(40+64*layer, 3)
		for p := range 3 {
			for c := range 3 {
				v := float32(100*layer + 10*p + c + 1)
				m.float(44+64*layer+12*p+4*c, v)
				st.pages[0][64*5*layer+5*p+c] = v
			}
			for c := range 2 {
				v := -float32(100*layer + 10*p + c + 1)
				m.float(80+64*layer+8*p+4*c, v)
				st.pages[0][64*5*layer+5*p+3+c] = v
			}
		}
	}
	return m, s, st
}

// TestLayout holds both directions against files made by hand.
func TestLayout(t *testing.T) {
	for name, parts := range map[string]func() (image, *Shape, *paged){"version 1": version1, "version 2": version2} {
		t.Run(name, func(t *testing.T) {
			file, s, st := parts()
			got, f, err := load(file, s, ReadOptions{Accept: Plain}, 64)
			if err != nil {
				t.Fatal(err)
			}
			if f.Positions() != st.positions || !got.equal(st) {
				t.Errorf("another state came out than the file has: %+v, want %+v", got, st)
			}
			if ours := mustWrite(t, st, WriteOptions{}); !bytes.Equal(ours, file) {
				t.Errorf("wrote\n%x, want\n%x", ours, []byte(file))
			}
			sealed := mustWrite(t, st, WriteOptions{Seal: &Seal{Tokens: tokens(st.positions)}})
			if !bytes.HasPrefix(sealed, file) {
				t.Error("a sealed file does not begin with the plain one")
			}
		})
	}
}

// TestVersion2OfSoftmax checks that version 2 of a model without latent attention is version 1 with
// two more words.
func TestVersion2OfSoftmax(t *testing.T) {
	file, s, st := version1()
	want := append(append(image{}, file[:32]...), make([]byte, 8)...)
	want = append(want, file[32:]...)
	want.word(4, 2)
	if got := mustWrite(t, st, WriteOptions{Version: 2}); !bytes.Equal(got, want) {
		t.Errorf("wrote\n%x, want\n%x", got, []byte(want))
	}
	if got, _, err := load(want, s, ReadOptions{Accept: Plain}, 64); err != nil || !got.equal(st) {
		t.Errorf("loaded %+v, %v", got, err)
	}
}

// The models whose sizes the format's description lists.
func hybrid(layers, valueHeads, convDim int) *Shape {
	return &Shape{Layers: regular(layers, 4, ful), KVHeads: 2, HeadDim: 256, ConvRows: 3, ConvDim: convDim, ValueHeads: valueHeads, ValueDim: 128, KeyDim: 128}
}

func TestSizes(t *testing.T) {
	a17b, a3b := hybrid(60, 64, 12288), hybrid(40, 32, 8192)
	cogito := &Shape{Layers: regular(61, 1, lat), KVHeads: 128, HeadDim: 192, KVLoraRank: 512, RopeDim: 64}
	for _, c := range []struct {
		name           string
		s              *Shape
		version        int
		base, perToken int64
	}{
		{"A17B", a17b, 1, 195_379_292, 61_440},
		{"A17B", a17b, 2, 195_379_300, 61_440},
		{"A3B", a3b, 1, 65_863_752, 40_960},
		{"A3B", a3b, 2, 65_863_760, 40_960},
		{"Cogito", cogito, 2, 284, 140_544},
	} {
		for _, n := range []int{0, 1, 100_000, MaxPositions} {
			got, err := Size(c.s, WriteOptions{Version: c.version, Positions: n})
			if want := c.base + c.perToken*int64(n); got != want || err != nil {
				t.Errorf("%s, version %d, %d positions: %d bytes, %v, want %d", c.name, c.version, n, got, err, want)
			}
		}
	}
	if f := a3b.fields(); f != (fields{40, 4, 2, 256, 98_304, 2_097_152, 0, 0}) {
		t.Errorf("header of A3B: %v", f)
	}
	if f := cogito.fields(); f != (fields{61, 1, 128, 192, 0, 0, 512, 64}) {
		t.Errorf("header of Cogito: %v", f)
	}
}
