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
	m         *model.Config
	pageRows  int
	layout    *kvLayout
	pages     []gpu.View
	recurrent gpu.View

	// Packed says that rows of 8 bits come and go as they are, as PackedShape has them, and not as
	// float32. The user of the image sets it.
	Packed bool
	// Move copies pieces that the host cannot address, and returns when that is done. The user of
	// the image sets it.
	Move func(pieces []Piece, up bool) error

	pieces []Piece
	spare  codeRows
}

var (
	_ snapshot.Source = (*Image)(nil)
	_ snapshot.Target = (*Image)(nil)
)

// expose returns the image of a state with these pages.
func (c *Core) expose(st *state, ids []stages.PageID) (*Image, error) {
	x := &Image{m: c.cfg.Model, pageRows: c.cfg.PageRows, layout: &c.states.layout, recurrent: gpu.View{Buf: st.recurrent}}
	for _, id := range ids {
		v, err := c.states.page(id)
		if err != nil {
			return nil, err
		}
		x.pages = append(x.pages, v)
	}
	return x, nil
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

// strip returns how the rows of a part lie.
func (x *Image) strip(layer int, p snapshot.Part) (s strip, err error) {
	m := x.m
	if layer < 0 || layer >= len(m.Layers) {
		return s, fmt.Errorf("dispatch: layer %d of %d", layer, len(m.Layers))
	}
	l := m.Layers[layer]
	a := m.Attention(l.Mixer)
	full, latent := x.layout.fullKV(l.MixerIndex, gpu.Pages{}), x.layout.latentKV(l.MixerIndex, gpu.Pages{})
	conv, head := m.LinearConvDim()*4, m.LinearValueHeadDim*m.LinearKeyHeadDim*4
	switch {
	case l.Mixer == model.WindowAttention && (p == snapshot.Keys || p == snapshot.Values):
		full = x.layout.windowKV(l.MixerIndex, gpu.Pages{})
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
		index := x.layout.indexKV(l.IndexerIndex, gpu.Pages{})
		return stripOf(&index, index.KOffset, 0, m.IndexHeadDim), nil
	case l.Mixer == model.LinearAttention && p == snapshot.Convolution:
		return strip{at: recurrentAt(m, l.MixerIndex), stride: conv, width: conv}, nil
	case l.Mixer == model.LinearAttention && p == snapshot.Recurrence:
		return strip{at: recurrentAt(m, l.MixerIndex) + convFloats(m)*4, stride: head, width: head}, nil
	}
	return s, fmt.Errorf("dispatch: layer %d is of %v and has no %v", layer, l.Mixer, p)
}

// move copies rows between a state and host memory, where they are float32, or codes and scales.
// Only move and strip know how values lie in memory.
func (x *Image) move(layer int, p snapshot.Part, first int, host []byte, up bool) error {
	s, err := x.strip(layer, p)
	if err != nil {
		return err
	}
	if s.codes != nil && x.Packed {
		s.width = s.codes.packedBytes()
	}
	x.pieces = x.pieces[:0]
	for at := 0; at < len(host); {
		in, from, room := x.recurrent, first, len(host)/s.width
		if p != snapshot.Convolution && p != snapshot.Recurrence {
			page := first / x.pageRows
			if page >= len(x.pages) {
				return fmt.Errorf("dispatch: row %d of a state of %d pages of %d", first, len(x.pages), x.pageRows)
			}
			in, from, room = x.pages[page], first%x.pageRows, x.pageRows-first%x.pageRows
			if x.m.Layers[layer].Mixer == model.WindowAttention {
				in = x.layout.ring.page(x.recurrent.Buf, page)
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
		x.pieces = append(x.pieces, Piece{v, host})
		return
	}
	for r := range rows {
		x.pieces = append(x.pieces, Piece{v.At(r * s.stride), host[r*s.width:][:s.width]})
	}
}

// exchange copies the pieces.
func (x *Image) exchange(up bool) error {
	far := x.pieces[:0]
	for _, p := range x.pieces {
		mem := p.Device.Buf.Bytes()
		switch {
		case mem == nil:
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
