package dispatch

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/snapshot"
	"github.com/moeflux/moeflux-actor/stages"
)

// Image is where a frozen state or a draft lies. Until the state is released, one goroutine at a
// time may use it, whichever that is.
type Image struct {
	m        *model.Config
	pageRows int
	parts    []imagePart

	// Packed says that rows of 8 bits come and go as they are, as PackedShape has them, and not as
	// float32. The user of the image sets it.
	Packed bool
	// Move copies pieces that the host cannot address, and returns when that is done. The user of
	// the image sets it.
	Move func(pieces []Piece, up bool) error

	part   int // whose memory is being copied
	pieces []Piece
	spare  codeRows
}

// imagePart is what of a state lies in the memory of one part.
type imagePart struct {
	*part
	pages     []gpu.View
	recurrent gpu.View
}

var (
	_ snapshot.Source = (*Image)(nil)
	_ snapshot.Target = (*Image)(nil)
)

// expose returns the image of a state with these pages.
func (c *Core) expose(id stages.StateID, ids []stages.PageID) (*Image, error) {
	x := &Image{m: c.cfg.Model, pageRows: c.cfg.PageRows}
	for _, p := range c.parts {
		of := imagePart{part: p, recurrent: gpu.View{Buf: p.states.all[id].recurrent}}
		for _, id := range ids {
			v, err := p.states.page(id)
			if err != nil {
				return nil, err
			}
			of.pages = append(of.pages, v)
		}
		x.parts = append(x.parts, of)
	}
	return x, nil
}

// of returns the part that has a layer.
func (x *Image) of(layer int) *imagePart {
	for i := range x.parts {
		if layer < x.parts[i].end {
			return &x.parts[i]
		}
	}
	return nil
}

// ReadRows fills dst with rows of a part, see snapshot.Source.
func (x *Image) ReadRows(layer int, p snapshot.Part, first int, dst []byte) error {
	return x.move(layer, p, first, dst, false)
}

// WriteRows takes rows of a part, see snapshot.Target.
func (x *Image) WriteRows(layer int, p snapshot.Part, first int, src []byte) error {
	return x.move(layer, p, first, src, true)
}

// strip is the layout of a part's rows in a page, or in the recurrent state.
type strip struct {
	at, stride, width int // bytes
	codes             *codeStrip
}

// strip returns how the rows of a part of a layer lie.
func (x *imagePart) strip(layer int, p snapshot.Part) (s strip, err error) {
	m, layout := x.model, &x.states.layout
	l := m.Layers[layer-x.first]
	a := m.Attention(l.Mixer)
	full, latent := layout.fullKV(l.MixerIndex), layout.latentKV(l.MixerIndex)
	conv, head := m.LinearConvDim()*4, m.LinearValueHeadDim*m.LinearKeyHeadDim*4
	switch {
	case l.Mixer == model.WindowAttention && (p == snapshot.Keys || p == snapshot.Values):
		full = layout.windowKV(l.MixerIndex)
		fallthrough
	case l.Mixer == model.FullAttention && (p == snapshot.Keys || p == snapshot.Values):
		if p == snapshot.Keys {
			return stripOf(&full, full.KOffset, 0, a.KeyDim()), nil
		}
		values := full.Values()
		return stripOf(&values, values.VOffset, 0, a.ValuesDim()), nil
	case l.Mixer == model.LatentAttention && p == snapshot.Latents:
		return stripOf(&latent, latent.KOffset, 0, m.KVLoraRank), nil
	case l.Mixer == model.LatentAttention && p == snapshot.RotatedKeys:
		return stripOf(&latent, latent.KOffset, m.KVLoraRank, m.QKRopeHeadDim), nil
	case l.Indexer == model.OwnIndexer && p == snapshot.IndexKeys:
		index := layout.indexKV(l.IndexerIndex)
		return stripOf(&index, index.KOffset, 0, m.IndexHeadDim), nil
	case l.Mixer == model.LinearAttention && p == snapshot.Convolution:
		return strip{at: recurrentAt(m, l.MixerIndex), stride: conv, width: conv}, nil
	case l.Mixer == model.LinearAttention && p == snapshot.Recurrence:
		return strip{at: deltaAt(m, l.MixerIndex), stride: head, width: head}, nil
	}
	return s, fmt.Errorf("dispatch: layer %d is of %v and has no %v", layer, l.Mixer, p)
}

// move copies rows between a state and host memory, where they are float32, or codes and scales.
// Only move and strip know how values lie in memory.
func (x *Image) move(layer int, p snapshot.Part, first int, host []byte, up bool) error {
	if layer < 0 || layer >= len(x.m.Layers) {
		return fmt.Errorf("dispatch: layer %d of %d", layer, len(x.m.Layers))
	}
	of := x.of(layer)
	s, err := of.strip(layer, p)
	if err != nil {
		return err
	}
	if s.codes != nil && x.Packed {
		s.width = s.codes.packedBytes()
	}
	x.part, x.pieces = of.index, x.pieces[:0]
	for at := 0; at < len(host); {
		in, from, room := of.recurrent, first, len(host)/s.width
		if p != snapshot.Convolution && p != snapshot.Recurrence {
			page := first / x.pageRows
			if page >= len(of.pages) {
				return fmt.Errorf("dispatch: row %d of a state of %d pages of %d", first, len(of.pages), x.pageRows)
			}
			in, from, room = of.pages[page], first%x.pageRows, x.pageRows-first%x.pageRows
			if x.m.Layers[layer].Mixer == model.WindowAttention {
				in = of.states.layout.ring.page(of.recurrent.Buf, page)
			}
		}
		rows := min((len(host)-at)/s.width, room)
		if rows == 0 {
			return fmt.Errorf("dispatch: %d bytes of %v, whose rows have %d", len(host), p, s.width)
		}
		if part := host[at : at+rows*s.width]; s.codes != nil {
			err = x.moveCodes(in, &s, from, rows, part, up)
		} else {
			x.addRows(in.At(s.at+from*s.stride), s, rows, part)
		}
		if err != nil {
			return err
		}
		at, first = at+rows*s.width, first+rows
	}
	return x.exchange(up)
}

// addRows lists the pieces of rows: one where they lie side by side.
func (x *Image) addRows(v gpu.View, s strip, rows int, host []byte) {
	if s.stride == s.width {
		x.pieces = append(x.pieces, Piece{Device: v, Host: host})
		return
	}
	for r := range rows {
		x.pieces = append(x.pieces, Piece{Device: v.At(r * s.stride), Host: host[r*s.width:][:s.width]})
	}
}

// exchange copies the pieces.
func (x *Image) exchange(up bool) error {
	far := x.pieces[:0]
	for _, p := range x.pieces {
		mem := p.Device.Buf.Bytes()
		switch {
		case mem == nil:
			p.part = x.part
			far = append(far, p)
		case up:
			copy(mem[p.Device.Offset:][:len(p.Host)], p.Host)
		default:
			copy(p.Host, mem[p.Device.Offset:][:len(p.Host)])
		}
	}
	if len(far) == 0 {
		return nil
	}
	if err := x.Move(far, up); err != nil {
		return fmt.Errorf("dispatch: exchange of %d pieces of a state with the device: %w", len(far), err)
	}
	return nil
}
