package dispatch

import (
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/snapshot"
)

// latentGroup is the most channels of a compressed vector that share a scale.
const latentGroup = 64

// kvLayout says where in a page of keys and values each layer's lie: those of the full attention
// layers, one after the other, then those of the latent ones, then the keys of indexers. Layers
// with a window have pages of their own.
type kvLayout struct {
	full, window, latent, index gpu.KVLayout // of the first layer of each kind
	bytes                       int          // of a page
	ring                        ring
}

// newKVLayout is for pages of pageRows positions. With 8 bits there is a scale for each head of
// full attention; latent and rotated key of latent attention are in groups of their own, and so are
// the rotated channels of an indexer's key and the others. Scores of the indexer are then of
// rounded keys.
func newKVLayout(m *model.Config, f gpu.KVFormat, pageRows, windowPages int) kvLayout {
	var l kvLayout
	if n := m.Count(model.FullAttention); n > 0 {
		l.full = softmaxKV(m.Attention(model.FullAttention), f, pageRows)
		l.bytes = n * bothBytes(&l.full)
	}
	if m.Count(model.WindowAttention) > 0 {
		l.window = softmaxKV(m.Attention(model.WindowAttention), f, pageRows)
		l.ring = newRing(m, &l.window, linearBytes(m), windowPages)
	}
	if n := m.Count(model.LatentAttention); n > 0 {
		l.latent = gpu.KVLayout{PageRows: pageRows, Dim: m.LatentDim(), Format: f, KOffset: l.bytes, VOffset: l.bytes}
		if f == gpu.KVInt8 {
			l.latent.Group = divisor(latentGroup, divisor(m.KVLoraRank, m.QKRopeHeadDim))
		}
		l.bytes += n * l.latent.PartBytes()
	}
	if n := m.Indexers(); n > 0 {
		l.index = gpu.KVLayout{PageRows: pageRows, Dim: m.IndexHeadDim, Format: f, KOffset: l.bytes, VOffset: l.bytes}
		if f == gpu.KVInt8 {
			l.index.Group = divisor(latentGroup, divisor(m.IndexHeadDim, m.RotaryDim))
		}
		l.bytes += n * l.index.PartBytes()
	}
	return l
}

// softmaxKV is the cache of a layer of softmax attention at the beginning of a page: values follow
// keys.
func softmaxKV(a model.Attention, f gpu.KVFormat, pageRows int) gpu.KVLayout {
	kv := gpu.KVLayout{PageRows: pageRows, Dim: a.KeyDim(), Format: f}
	if a.ValueDim != a.HeadDim {
		kv.VDim = a.ValuesDim()
	}
	if f == gpu.KVInt8 {
		kv.Group = divisor(a.HeadDim, a.ValueDim)
	}
	kv.VOffset = kv.PartBytes()
	return kv
}

// bothBytes returns how many bytes of a page a layer's keys and values take.
func bothBytes(kv *gpu.KVLayout) int {
	values := kv.Values()
	return kv.PartBytes() + values.PartBytes()
}

// shifted returns the same layout some bytes further on in the page.
func shifted(kv gpu.KVLayout, bytes int) gpu.KVLayout {
	kv.KOffset, kv.VOffset = kv.KOffset+bytes, kv.VOffset+bytes
	return kv
}

// fullKV returns the layout of the i-th full attention layer.
func (l *kvLayout) fullKV(i int) gpu.KVLayout { return shifted(l.full, i*bothBytes(&l.full)) }

// windowKV returns the layout of the i-th layer with a window.
func (l *kvLayout) windowKV(i int) gpu.KVLayout { return shifted(l.window, i*bothBytes(&l.window)) }

// latentKV returns the layout of the i-th latent attention layer.
func (l *kvLayout) latentKV(i int) gpu.KVLayout { return shifted(l.latent, i*l.latent.PartBytes()) }

// indexKV returns the layout of the i-th indexer.
func (l *kvLayout) indexKV(i int) gpu.KVLayout { return shifted(l.index, i*l.index.PartBytes()) }

// divisor returns the largest number that divides both.
func divisor(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// recurrentBytes returns the size of a recurrent state.
func (l *kvLayout) recurrentBytes(m *model.Config) int { return l.ring.bytes(linearBytes(m)) }

// PageBytes returns the size of one key-value page of pageRows positions.
func PageBytes(m *model.Config, f gpu.KVFormat, pageRows int) int {
	l := newKVLayout(m, f, pageRows, 0)
	return l.bytes
}

// PackedShape returns what a state of the model consists of if its keys and values are as its pages
// have them (Image.Packed).
func PackedShape(m *model.Config, f gpu.KVFormat) *snapshot.Shape {
	s, l := snapshot.ShapeOf(m), newKVLayout(m, f, 1, 0)
	s.KVGroup, s.LatentGroup, s.IndexGroup = max(l.full.Group, l.window.Group), l.latent.Group, l.index.Group
	return s
}
