package snapshot

import (
	"slices"

	"github.com/moeflux/moeflux-actor/model"
)

// Info is what a snapshot says of itself.
type Info struct {
	Version   int
	Positions int // that the state holds

	// The header.
	Layers, FullAttnInterval, KVHeads, HeadDim int
	LinearConvBytes, LinearRecurrenceBytes     int // of one layer of linear attention
	KVLoraRank, RopeDim                        int // 0 without latent attention
	IndexDim                                   int // 0 without indexers
	VHeadDim                                   int // 0 where values are as wide as keys
	Window, WindowKVHeads                      int // 0 without windows

	Kinds []model.Mixer // of each layer

	// Sizes in bytes; they add up to FileBytes.
	HeaderBytes    int64
	GrowingBytes   int64 // all that is kept of positions, with the words that count them
	RecurrentBytes int64
	SealBytes      int64
	TrailingBytes  int64 // after the body, other than a readable seal
	FileBytes      int64

	PositionBytes int64 // what one more position would take

	// nil: another program's file, or one whose seal is damaged. Its tokens and note are shared and
	// read-only.
	Seal   *Seal
	Damage error // of a seal, nil if there is none; never of the body, which Verify reads
}

// Count returns how many layers are of the kind.
func (i *Info) Count(k model.Mixer) int {
	n := 0
	for _, l := range i.Kinds {
		if l == k {
			n++
		}
	}
	return n
}

// Positions returns how many positions the state holds.
func (f *File) Positions() int { return f.positions }

// Seal returns what the seal says, nil if there is none. Its tokens and note are shared and
// read-only.
func (f *File) Seal() *Seal {
	if f.seal == nil {
		return nil
	}
	return &f.seal.Seal
}

// Info returns what is known without reading the body.
func (f *File) Info() Info {
	w := f.fields
	i := Info{
		Version: f.version, Positions: f.positions, Layers: int(w[0]), FullAttnInterval: int(w[1]), KVHeads: int(w[2]), HeadDim: int(w[3]),
		LinearConvBytes: int(w[4]), LinearRecurrenceBytes: int(w[5]), KVLoraRank: int(w[6]), RopeDim: int(w[7]), IndexDim: int(w[8]),
		VHeadDim: int(w[9]), Window: int(w[10]), WindowKVHeads: int(w[11]), Kinds: slices.Clone(f.shape.Layers),
		HeaderBytes: headerBytes(f.version), FileBytes: f.in.size, Seal: f.Seal(), Damage: f.damage,
	}
	for layer, k := range f.shape.Layers {
		bytes := f.shape.layerBytes(layer, 1)
		if grows(k) {
			if k != model.WindowAttention { // which keeps some positions and no more
				i.PositionBytes += bytes
			}
			i.GrowingBytes += lenBytes + f.shape.layerBytes(layer, f.positions)
		} else {
			i.RecurrentBytes += bytes
		}
	}
	if behind := f.in.size - f.body; f.seal != nil {
		i.SealBytes = behind
	} else {
		i.TrailingBytes = behind
	}
	return i
}
