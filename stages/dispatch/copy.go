package dispatch

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// copyState makes a state of another one's recurrent state, or of zeros.
func (c *Core) copyState(m *stages.CopyState, out *stages.Outbox) error {
	done := &stages.StateCopied{Op: m.Op}
	if m.From != 0 && c.states.all[m.From] == nil {
		return fmt.Errorf("dispatch: state %d is to be copied, but does not exist", m.From)
	}
	if m.Take {
		c.states.take(m.From, m.To)
		c.trim()
		var err error
		if m.Expose {
			done.Memory, err = c.expose(c.states.all[m.To], m.Pages)
		}
		c.copied(done, err, out)
		return nil
	}
	to, fresh, err := c.states.make(m.To)
	if err == nil && m.Expose {
		done.Memory, err = c.expose(to, m.Pages)
	}
	if err != nil || c.recurrentBytes() == 0 || m.From == 0 && fresh {
		c.copied(done, err, out)
		return nil
	}
	r := c.record(nil, record.State) // no step under way writes to either state
	dst := gpu.View{Buf: to.recurrent}
	if m.From == 0 {
		gpu.Encode(&r.Commands, gpu.Fill{Dst: dst, Bytes: c.recurrentBytes()})
	} else {
		encodeCopy(&r.Commands, gpu.View{Buf: c.states.all[m.From].recurrent}, dst, c.recurrentBytes())
	}
	if err := c.await(r, awaited{copied: done}, out); err != nil {
		c.copied(done, err, out)
	}
	return nil
}

// copied reports that a state is made, or why it is not.
func (c *Core) copied(done *stages.StateCopied, err error, out *stages.Outbox) {
	if done.Err = err; err != nil {
		done.Memory = nil
	}
	out.Send(stages.Sequencer, done)
}

func (c *Core) recurrentBytes() int { return c.states.layout.recurrentBytes(c.cfg.Model) }

// Unused recurrent states are kept for reuse: two of any size, and as many as fit in idleBytes.
const (
	keptIdle  = 2
	idleBytes = 64 << 20
)

// trim releases the others: remembered texts come and go, and the memory of large states is better
// spent on expert slots. New memory is slow at its first touch, which a small model feels in the
// speed of prompts.
func (c *Core) trim() {
	s, bytes := c.states, c.recurrentBytes()
	if bytes == 0 {
		return
	}
	if keep := max(keptIdle, idleBytes/bytes); len(s.idle) > keep {
		s.leaving = append(s.leaving, s.idle[keep:]...)
		clear(s.idle[keep:])
		s.idle, s.leavingAt = s.idle[:keep], c.lastTicket
	}
	c.letGo()
}

// letGo gives back what leaves, once no submitted work can use it.
func (c *Core) letGo() {
	s := c.states
	if len(s.leaving) == 0 {
		return
	}
	for _, list := range c.recorded {
		if len(list) > 0 && list[0].ticket <= s.leavingAt {
			return
		}
	}
	for _, b := range s.leaving {
		b.Release()
	}
	clear(s.leaving)
	s.leaving = s.leaving[:0]
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
}

func (c *Core) exchange(m *Exchange, out *stages.Outbox) {
	r := c.record(nil, record.State)
	for _, p := range m.Pieces {
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
