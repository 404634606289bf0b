package dispatch

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// copying is a state that is being made, on all parts of the device.
type copying struct {
	done *stages.StateCopied
	left int // parts that are not done
	err  error
}

// copyState makes a state of another one's recurrent state, or of zeros.
func (c *Core) copyState(m *stages.CopyState, out *stages.Outbox) error {
	done := &stages.StateCopied{Op: m.Op}
	if m.From != 0 && c.parts[0].states.all[m.From] == nil {
		return fmt.Errorf("dispatch: state %d is to be copied, but does not exist", m.From)
	}
	var err error
	x := &copying{done: done, left: 1} // 1: this function
	for _, p := range c.parts {
		if m.Take {
			p.states.take(m.From, m.To)
		} else if err == nil {
			err = c.copyPart(m, p, x, out)
		}
	}
	if m.Take {
		c.trim()
	}
	if err == nil && m.Expose {
		done.Memory, err = c.expose(m.To, m.Pages)
	}
	c.copied(x, err, out)
	return nil
}

// copyPart is copyState for what one part has.
func (c *Core) copyPart(m *stages.CopyState, p *part, x *copying, out *stages.Outbox) error {
	to, fresh, err := p.states.make(m.To)
	bytes := p.states.recurrentBytes()
	if err != nil || bytes == 0 || m.From == 0 && fresh {
		return err
	}
	r := c.record(nil, record.State) // no step under way writes to either state
	r.Part = p.index
	dst := gpu.View{Buf: to.recurrent}
	if m.From == 0 {
		gpu.Encode(&r.Commands, gpu.Fill{Dst: dst, Bytes: bytes})
	} else {
		encodeCopy(&r.Commands, gpu.View{Buf: p.states.all[m.From].recurrent}, dst, bytes)
	}
	if err := c.await(r, awaited{copied: x}, out); err != nil {
		return err
	}
	x.left++
	return nil
}

// copied notes that a part of making a state is done, and reports when all are, with what failed
// first.
func (c *Core) copied(x *copying, err error, out *stages.Outbox) {
	if x.left--; x.err == nil {
		x.err = err
	}
	if x.left > 0 {
		return
	}
	if x.done.Err = x.err; x.err != nil {
		x.done.Memory = nil
	}
	out.Send(stages.Sequencer, x.done)
}

// Unused recurrent states are kept for reuse: two of any size, and as many as fit in idleBytes.
const (
	keptIdle  = 2
	idleBytes = 64 << 20
)

// trim releases the others: remembered texts come and go, and the memory of large states is better
// spent on expert slots. New memory is slow at its first touch, which a small model feels in the
// speed of prompts.
func (c *Core) trim() {
	for _, p := range c.parts {
		s := p.states
		bytes := s.recurrentBytes()
		if bytes == 0 {
			continue
		}
		if keep := max(keptIdle, idleBytes/bytes); len(s.idle) > keep {
			s.leaving = append(s.leaving, s.idle[keep:]...)
			clear(s.idle[keep:])
			s.idle, s.leavingAt = s.idle[:keep], c.lastTicket
		}
	}
	c.letGo()
}

// letGo gives back what leaves, once no submitted work can use it.
func (c *Core) letGo() {
	for _, p := range c.parts {
		s := p.states
		if len(s.leaving) == 0 || c.usesUpTo(s.leavingAt) {
			continue
		}
		for _, b := range s.leaving {
			b.Release()
		}
		clear(s.leaving)
		s.leaving = s.leaving[:0]
	}
}

// usesUpTo reports whether anything that was submitted up to a ticket is perhaps not done.
func (c *Core) usesUpTo(ticket uint64) bool {
	for _, orders := range c.recorded {
		for _, list := range orders {
			if len(list) > 0 && list[0].ticket <= ticket {
				return true
			}
		}
	}
	return false
}

// copyFloats is the length of a row of a copy: devices split work among threads by rows.
const copyFloats = 4096

// encodeCopy copies bytes, a multiple of 4, from one place to another.
func encodeCopy(cmd *gpu.Commands, from, to gpu.View, bytes int) {
	floats := bytes / 4
	if rows := floats / copyFloats; rows > 0 {
		gpu.Encode(cmd, gpu.CopyHeads{
			X: from, Y: to, Rows: rows, Heads: 1, Dim: copyFloats, XRowStride: copyFloats, XHeadStride: copyFloats, YRowStride: copyFloats, YHeadStride: copyFloats,
		})
		from, to, floats = from.Floats(rows*copyFloats), to.Floats(rows*copyFloats), floats-rows*copyFloats
	}
	if floats > 0 {
		gpu.Encode(cmd, gpu.CopyHeads{
			X: from, Y: to, Rows: 1, Heads: 1, Dim: floats, XRowStride: floats, XHeadStride: floats, YRowStride: floats, YHeadStride: floats,
		})
	}
}

// Exchange copies between host memory and memory of the device that the host cannot address, after
// all copies and before all steps that are yet to come. Caller to dispatch, who answers with the
// same message when it is done. The host's memory belongs to the device until then.
type Exchange struct {
	stages.Outside
	Pieces []Piece
	Up     bool // to the device
	Caller stages.Caller
	Err    error // of the answer
}

// MessageKind returns KindOther: only this package and its callers know Exchange.
func (*Exchange) MessageKind() stages.Kind { return stages.KindOther }

// Piece is memory that is copied.
type Piece struct {
	Device gpu.View
	Host   []byte
	part   int // whose memory it is, the same for all pieces of an Exchange
}

func (c *Core) exchange(m *Exchange, out *stages.Outbox) {
	r := c.record(nil, record.State)
	for _, p := range m.Pieces {
		r.Part = p.part
		if m.Up {
			gpu.Encode(&r.Commands, gpu.Upload{Dst: p.Device, Src: p.Host})
		} else {
			gpu.Encode(&r.Commands, gpu.Download{Src: p.Device, Dst: p.Host})
		}
	}
	if err := c.await(r, awaited{exchange: m}, out); err != nil {
		m.Err = err
		out.Answer(m.Caller, m)
	}
}
