package snapshot

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/moeflux/moeflux-actor/model"
)

// Bounds of what a file may claim, so that no arithmetic on its sizes can overflow.
const (
	maxLayers   = 1 << 12
	maxRowBytes = 1 << 28
)

// Shape is what a model's state is made of. A file's header must match it.
type Shape struct {
	// Layers is what each layer keeps: full and latent attention something for every position,
	// linear attention a recurrent state of fixed size.
	Layers []model.Mixer

	// KVHeads and HeadDim are those of full attention. With latent attention they are in the header
	// only: its attention heads, and the channels of a query.
	KVHeads, HeadDim int

	// VHeadDim is the channels of a value of a head; 0: HeadDim. Layers with a window have the same
	// heads, WindowKVHeads of them, and keep the last Window-1 positions, which the next one
	// attends to. 0 without. Such states have versions of their own.
	VHeadDim, Window, WindowKVHeads int

	// Latent attention; 0 without.
	KVLoraRank, RopeDim int

	// Indexers says which layers keep the keys of an indexer, too, of IndexDim channels; nil: none
	// does. Such states have versions of their own.
	Indexers []bool
	IndexDim int

	// Channels that share a scale, if keys and values are codes of 8 bits, and if what latent
	// attention and indexers keep is: a row is its codes, int8, and then its scales. 0: it is
	// float32. Such states have a version of their own, which nobody else reads.
	KVGroup, LatentGroup, IndexGroup int

	// Linear attention; 0 without.
	// kept inputs of the convolution (its kernel less one), their channels
	ConvRows, ConvDim            int
	ValueHeads, ValueDim, KeyDim int // recurrence
}

// ShapeOf returns the shape of a model's state.
func ShapeOf(m *model.Config) *Shape {
	s := &Shape{KVHeads: m.NumKeyValueHeads, HeadDim: m.HeadDim}
	if a := m.Attention(model.FullAttention); m.KVLoraRank == 0 && a.ValueDim != a.HeadDim {
		s.VHeadDim = a.ValueDim
	}
	if m.Sliding != nil {
		s.Window, s.WindowKVHeads = m.Sliding.Window, m.Sliding.NumKeyValueHeads
	}
	for _, l := range m.Layers {
		s.Layers = append(s.Layers, l.Mixer)
	}
	if m.Count(model.LatentAttention) > 0 {
		s.KVLoraRank, s.RopeDim = m.KVLoraRank, m.QKRopeHeadDim
	}
	if m.Indexers() > 0 {
		s.IndexDim = m.IndexHeadDim
		for _, l := range m.Layers {
			s.Indexers = append(s.Indexers, l.Indexer == model.OwnIndexer)
		}
	}
	if m.Count(model.LinearAttention) > 0 {
		s.ConvRows, s.ConvDim = m.LinearConvKernelDim-1, m.LinearConvDim()
		s.ValueHeads, s.ValueDim, s.KeyDim = m.LinearNumValueHeads, m.LinearValueHeadDim, m.LinearKeyHeadDim
	}
	return s
}

// Validate reports every bad field, joined in one error.
func (s *Shape) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("shape: "+format, args...))
		}
	}
	check(len(s.Layers) > 0 && len(s.Layers) <= maxLayers, "%d layers, want 1 to %d", len(s.Layers), maxLayers)
	for i, k := range s.Layers {
		check(k <= model.WindowAttention, "layer %d is of unknown kind %d", i, k)
	}
	// product reports a product of sizes that is not between low and a row's limit.
	product := func(what string, low int64, limit int64, sizes ...int) {
		n := int64(1)
		for _, v := range sizes {
			if v < 0 || v > 0 && n > limit/int64(v) {
				check(false, "%s of %v take more than %d bytes, or fewer than none", what, sizes, limit)
				return
			}
			n *= int64(v)
		}
		check(n >= low, "%s of %v are none", what, sizes)
	}
	// atLeast is 1 if there are layers of the kind.
	atLeast := func(k model.Mixer) int64 {
		if slices.Contains(s.Layers, k) {
			return 1
		}
		return 0
	}
	product("keys", atLeast(model.FullAttention), maxRowBytes, s.KVHeads, s.HeadDim, 4)
	windows := atLeast(model.WindowAttention)
	product("keys of layers with a window", windows, maxRowBytes, s.WindowKVHeads, s.HeadDim, 4)
	check(windows == 1 == (s.Window > 0) && s.Window >= 0 && s.Window <= math.MaxInt32, "a window of %d positions, and %d kinds of layers with one", s.Window, windows)
	check(windows == 1 || s.WindowKVHeads == 0, "%d heads with a window, but no layer has one", s.WindowKVHeads)
	check(s.VHeadDim >= 0 && s.VHeadDim <= s.HeadDim, "values of %d channels, keys of %d", s.VHeadDim, s.HeadDim)
	linear := atLeast(model.LinearAttention)
	product("kept inputs of the convolution", 0, math.MaxUint32, s.ConvRows, s.ConvDim, 4)
	product("channels of the convolution", 0, maxRowBytes, s.ConvDim, 4)
	product("values of the recurrence", linear, math.MaxUint32, s.ValueHeads, s.ValueDim, s.KeyDim, 4)
	product("values of a head's recurrence", linear, maxRowBytes, s.ValueDim, s.KeyDim, 4)
	latent := atLeast(model.LatentAttention)
	product("latents", latent, maxRowBytes, s.KVLoraRank, 4)
	product("rotated keys", latent, maxRowBytes, s.RopeDim, 4)
	groups := func(n int, channels ...int) {
		for _, c := range channels {
			check(n >= 0 && (n == 0 || c%n == 0), "%d channels in groups of %d", c, n)
		}
	}
	groups(s.KVGroup, s.KVHeads*s.HeadDim, s.KVHeads*s.VHeadDim, s.WindowKVHeads*s.HeadDim, s.WindowKVHeads*s.VHeadDim)
	groups(s.LatentGroup, s.KVLoraRank, s.RopeDim)
	groups(s.IndexGroup, s.IndexDim)
	product("keys of indexers", 0, maxRowBytes, s.IndexDim, 4)
	s.validateIndexers(check)
	check(latent == 1 || s.KVLoraRank == 0 && s.RopeDim == 0, "latent attention of rank %d, but no layer has it", s.KVLoraRank)
	return errors.Join(errs...)
}

// validateIndexers checks which layers keep keys of an indexer.
func (s *Shape) validateIndexers(check func(ok bool, format string, args ...any)) {
	check((s.Indexers == nil) == (s.IndexDim == 0), "keys of %d channels for %d layers with and without indexers", s.IndexDim, len(s.Indexers))
	check(s.Indexers == nil || len(s.Indexers) == len(s.Layers), "%d layers with and without indexers, want %d", len(s.Indexers), len(s.Layers))
	for i, own := range s.Indexers {
		check(!own || i < len(s.Layers) && grows(s.Layers[i]), "layer %d has an indexer, but no attention to positions", i)
	}
}

// grows reports whether a layer of the kind keeps something of every position.
func grows(k model.Mixer) bool { return k != model.LinearAttention }

// hasGrowing reports whether any layer tells how many positions the state holds.
func (s *Shape) hasGrowing() bool { return slices.ContainsFunc(s.Layers, grows) }

// interval returns full_attn_interval: the n such that every n-th layer, and no other, keeps
// positions. It is 0 if there is no such n, or if these layers are of two kinds, have indexers or
// windows:
// only this program has such models.
func (s *Shape) interval() int {
	if s.Indexers != nil || s.Window > 0 {
		return 0
	}
	n := slices.IndexFunc(s.Layers, grows) + 1
	if n > 0 && slices.Equal(s.Layers, regular(len(s.Layers), n, s.Layers[n-1])) {
		return n
	}
	return 0
}

// regular returns layers of which every n-th is of the kind, and all others are linear attention.
func regular(layers, n int, kind model.Mixer) []model.Mixer {
	out := make([]model.Mixer, layers)
	for i := range out {
		out[i] = model.LinearAttention
		if (i+1)%n == 0 {
			out[i] = kind
		}
	}
	return out
}

// block is one part of one layer: consecutive rows of the body, which are those of the state from
// row first on.
type block struct {
	part     Part
	rows     int
	rowBytes int
	first    int
}

func (b block) bytes() int64 { return int64(b.rows) * int64(b.rowBytes) }

// coded reports whether some rows are codes and scales.
func (s *Shape) coded() bool { return s.KVGroup > 0 || s.LatentGroup > 0 || s.IndexGroup > 0 }

// rowBytes returns the size of a row of channels that share a scale in groups, or are float32.
func rowBytes(channels, group int) int {
	if group == 0 {
		return 4 * channels
	}
	return channels + 4*(channels/group)
}

// blocks returns the two or three parts of a layer, in the order of the body. The third of two has
// no rows.
func (s *Shape) blocks(layer, positions int) (b [3]block) {
	switch s.Layers[layer] {
	case model.FullAttention:
		b[0], b[1] = s.softmaxBlocks(s.KVHeads, positions, 0)
	case model.WindowAttention:
		kept := min(positions, s.Window-1)
		b[0], b[1] = s.softmaxBlocks(s.WindowKVHeads, kept, positions-kept)
	case model.LatentAttention:
		b[0], b[1] = block{Latents, positions, rowBytes(s.KVLoraRank, s.LatentGroup), 0}, block{RotatedKeys, positions, rowBytes(s.RopeDim, s.LatentGroup), 0}
	default:
		b[0], b[1] = block{Convolution, s.ConvRows, s.ConvDim * 4, 0}, block{Recurrence, s.ValueHeads, s.ValueDim * s.KeyDim * 4, 0}
	}
	if s.Indexers != nil && s.Indexers[layer] {
		b[2] = block{IndexKeys, positions, rowBytes(s.IndexDim, s.IndexGroup), 0}
	}
	return b
}

// softmaxBlocks returns the parts of a layer of softmax attention.
func (s *Shape) softmaxBlocks(heads, rows, first int) (keys, values block) {
	v := s.HeadDim
	if s.VHeadDim > 0 {
		v = s.VHeadDim
	}
	return block{Keys, rows, rowBytes(heads*s.HeadDim, s.KVGroup), first}, block{Values, rows, rowBytes(heads*v, s.KVGroup), first}
}

// layerBytes returns the size of all parts of a layer.
func (s *Shape) layerBytes(layer, positions int) (n int64) {
	for _, b := range s.blocks(layer, positions) {
		n += b.bytes()
	}
	return n
}

// bufferBytes returns the size of the buffer through which a state of this size goes.
func (s *Shape) bufferBytes(positions int, bodyBytes int64) int {
	n := int(min(BufferBytes, bodyBytes))
	for i := range s.Layers {
		for _, b := range s.blocks(i, positions) {
			if b.rows > 0 {
				n = max(n, b.rowBytes)
			}
		}
	}
	return n
}

// bodyBytes returns the size of header and body.
func (s *Shape) bodyBytes(version, positions int) int64 {
	n := headerBytes(version)
	for i, k := range s.Layers {
		if grows(k) {
			n += lenBytes
		}
		n += s.layerBytes(i, positions)
	}
	return n
}
