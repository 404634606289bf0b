package dispatch

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/gpu"
)

// place is where the weights of a part lie on its device, or are to lie.
type place struct {
	dev  gpu.Device
	part int

	weights gpu.Buffer    // nil while it is being found out what belongs here
	mapped  int           // bytes of the file that are read where it is mapped
	offsets map[piece]int // in weights, of what was gathered; nil: as in the file
	pieces  []piece       // of the file, in the order of weights
	bytes   int           // of all pieces

	vectors gpu.Buffer  // small tensors, widened to float32
	floats  []float32   // of them so far
	uses    []vectorUse // where they go
}

// piece is bytes of the file.
type piece struct{ offset, n int }

// vectorUse is a view to be set once all vectors are on the device.
type vectorUse struct {
	view *gpu.View
	at   int // floats
}

func newPlace(p *part) *place { return &place{dev: p.dev, part: p.index} }

// copyBytes is the size from which weights are copied to the device at the beginning, which takes
// half a second a gigabyte. Every token reads all of them: from large pages that is quicker than
// from a mapped file, and no system reclaims them while the engine idles, as some do with mapped
// pages that were not touched for a few seconds.
const copyBytes = 64 << 20

// whole makes the mapped weights readable for the device, all of them. A device with memory of its
// own gets a copy in any case.
func (p *place) whole(mapping []byte, queue gpu.Queue) (err error) {
	if _, own := p.dev.(gpu.Discrete); !own && len(mapping) < copyBytes {
		p.mapped = len(mapping)
		p.weights, err = p.dev.Wrap(mapping)
	} else if p.weights, err = p.dev.NewBuffer(len(mapping)); err == nil {
		cmd := gpu.Commands{Part: p.part}
		gpu.Encode(&cmd, gpu.Upload{Dst: gpu.View{Buf: p.weights}, Src: mapping})
		err = run(&cmd, queue)
	}
	if err != nil {
		return fmt.Errorf("dispatch: weights: %w", err)
	}
	return nil
}

// gather copies the pieces of the mapped weights that views were asked for to the device.
func (p *place) gather(mapping []byte, queue gpu.Queue) (err error) {
	p.floats, p.uses = nil, nil
	if p.weights, err = p.dev.NewBuffer(p.bytes + 1); err != nil {
		return fmt.Errorf("dispatch: weights: %w", err)
	}
	cmd := gpu.Commands{Part: p.part}
	for _, x := range p.pieces {
		gpu.Encode(&cmd, gpu.Upload{Dst: gpu.View{Buf: p.weights, Offset: p.offsets[x]}, Src: mapping[x.offset : x.offset+x.n]})
	}
	if len(p.pieces) > 0 {
		err = run(&cmd, queue)
	}
	if err != nil {
		return fmt.Errorf("dispatch: weights: %w", err)
	}
	return nil
}

// pieceAlign is what gathered pieces begin at a multiple of, as tensors in the file do.
const pieceAlign = 64

// view returns where n bytes of the file lie. Before gather it notes that they belong here.
func (p *place) view(offset, n int) gpu.View {
	x := piece{offset, n}
	if p.weights == nil && n > 0 {
		if p.offsets == nil {
			p.offsets = map[piece]int{}
		}
		if _, known := p.offsets[x]; !known {
			p.offsets[x] = p.bytes
			p.pieces = append(p.pieces, x)
			p.bytes += (n + pieceAlign - 1) / pieceAlign * pieceAlign
		}
	}
	if p.offsets != nil {
		offset = p.offsets[x]
	}
	return gpu.View{Buf: p.weights, Offset: offset}
}

// vector remembers that *v shall view f on the device.
func (p *place) vector(v *gpu.View, f []float32) {
	p.uses = append(p.uses, vectorUse{v, len(p.floats)})
	p.floats = append(p.floats, f...)
	for len(p.floats)%16 != 0 { // each begins a cache line
		p.floats = append(p.floats, 0)
	}
}

// upload puts the vectors on the device and waits for it.
func (p *place) upload(queue gpu.Queue) (err error) {
	if p.vectors, err = p.dev.NewBuffer(len(p.floats) * 4); err != nil {
		return err
	}
	for _, u := range p.uses {
		*u.view = gpu.View{Buf: p.vectors}.Floats(u.at)
	}
	cmd := gpu.Commands{Part: p.part}
	gpu.Encode(&cmd, gpu.Upload{Dst: gpu.View{Buf: p.vectors}, Src: gpu.FloatBytes(p.floats)})
	if err := run(&cmd, queue); err != nil {
		return fmt.Errorf("dispatch: uploading vectors: %w", err)
	}
	p.floats, p.uses = nil, nil
	return nil
}

func releasePlaces(all []*place) {
	for _, p := range all {
		for _, b := range []gpu.Buffer{p.vectors, p.weights} {
			if b != nil {
				b.Release()
			}
		}
	}
}
