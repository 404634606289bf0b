package dispatch

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/io/weights"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/model/quant"
	"github.com/moeflux/moeflux-actor/model/route"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// Config sizes the stage. It has no defaults.
type Config struct {
	// Model is the whole model, also on a device of several parts.
	Model *model.Config
	// Layout returns the layout of a layer's records, each of which has RecordBytes.
	Layout      func(layer int) model.ExpertLayout
	RecordBytes int
	TopK        int // picks of a row
	// Borders say which part of a gpu.Split computes which layers. Slots of a layer's experts lie
	// in the memory of its part.
	Borders   stages.Borders
	ChunkRows int          // the most rows of a step
	Lanes     int          // steps in flight
	PageRows  int          // positions of one key-value page
	MaxPages  int          // of all sequences together
	KV        gpu.KVFormat // of the pages
	// WindowPages is how many pages a state has for layers with a window, if that is more than they
	// need. Tests have pages that are never used again.
	WindowPages int
	// Ahead is how many of the next layers have their routers applied to a layer's router input
	// too, 0 to 2; AheadRows is the most rows of a step for which that is done. While every expert
	// of the model is in memory there is nothing to predict, and it is done only with AheadAlways.
	Ahead, AheadRows int
	AheadAlways      bool
	Rule             route.Rule // how scores become picks and weights
	// Resident means that every expert is in memory, in the slots that expertio.Config.Mapped tells
	// of, and that a layer's picks stay on the device.
	Resident bool
	// Far means that the slots of a resident device lie in the host's memory, and that experts move
	// to further slots in the device's and back (stages.MoveExperts).
	Far bool
	// Transit is the first of slots for twice the experts of a layer in the device's memory, to
	// which far experts are copied before large steps need them; 0: there are none.
	Transit stages.SlotID
	// Away means that expert hosts may be asked: the experts' input goes up with the picks.
	Away bool
	// LayerTimes has a resident device mark the end of each layer where several are one submission
	// (gpu.Mark, with the layer as its tag).
	LayerTimes bool
}

// Slots resolves slots to memory.
type Slots interface {
	// View returns where the slot's record begins.
	View(stages.SlotID) gpu.View
}

// Core is the stage.
type Core struct {
	cfg   Config
	dev   gpu.Device
	queue gpu.Queue
	slots Slots

	net    *network
	moe    []int   // layers with routed experts
	tables *tables // nil unless resident
	parts  []*part
	lanes  []*lane

	near    nearby
	transit *transit // nil without Config.Transit

	settled bool // every expert was in memory when the last wave was sent
	picked  picked

	// submitted and perhaps not finished, oldest first: of each part what is not urgent, and what
	// is
	recorded   [][2][]*recording
	spare      []*recording
	lastTicket uint64
	awaited    map[uint64]awaited
}

// recording is a Commands with the memory its operations point to.
type recording struct {
	gpu.Commands
	wave   gpu.ExpertTable // of the experts of a wave
	picks  []int32         // of the plan, as indices into it
	ticket uint64          // of this stage's numbering
}

// awaited is what a ticket of this stage will bring. Without anything else it only counts for its
// lane.
type awaited struct {
	lane   *lane
	step   stages.Step
	part   int
	urgent bool
	picks  *stages.PicksReady // the device fills it
	ahead  *stages.ScoresAhead
	logits *stages.LogitsReady
	routed *stages.StepRouted // with logits, where the device routes
	// All else is zero with these.
	copied   *copying
	exchange *Exchange
	moved    bool // experts, see nearby
}

var _ stages.Core = (*Core)(nil)

// New binds the weights and makes the scratch buffers. w must stay open until Close. It waits for
// the device once.
func New(cfg Config, dev gpu.Device, queue gpu.Queue, w *weights.File, slots Slots) (c *Core, err error) {
	c = &Core{cfg: cfg, dev: dev, queue: queue, slots: slots, awaited: make(map[uint64]awaited), moe: cfg.Model.MoELayers(), picked: newPicked(cfg.Model.NumExperts)}
	defer func() {
		if err != nil {
			c.Close()
			c = nil
		}
	}()
	parts, err := newParts(cfg, dev)
	if err != nil {
		return c, err
	}
	if c.net, err = bind(cfg.Model, parts, queue, w); err != nil {
		return c, err
	}
	c.net.rope = newRope(cfg.Model, model.FullAttention, cfg.PageRows*cfg.MaxPages)
	if windowRotary(cfg.Model) > 0 {
		c.net.windowRope = newRope(cfg.Model, model.WindowAttention, cfg.PageRows*cfg.MaxPages)
	}
	if cfg.Resident {
		home := func(layer, expert int) gpu.View { return slots.View(c.home(layer, expert)) }
		if c.tables, err = newTables(cfg, c.net, parts, queue, home); err != nil {
			return c, err
		}
	}
	if cfg.Transit > 0 {
		if c.transit, err = newTransit(cfg, c.net, parts, queue, slots); err != nil {
			return c, err
		}
	}
	if cfg.Far {
		words := len(c.moe) * stages.NearWords(cfg.Model.NumExperts)
		c.near.sets, c.near.sure = make(stages.NearSets, words), make(stages.NearSets, words)
	}
	c.parts, c.recorded = parts, make([][2][]*recording, len(parts))
	for range cfg.Lanes {
		l, err := newLane(cfg, parts)
		if err != nil {
			return c, err
		}
		c.lanes = append(c.lanes, l)
	}
	return c, nil
}

// MappedBytes returns how many bytes of the weights other than experts the device reads in the
// mapped file, so that the page cache must keep them. Weights that were copied to the device's
// memory do not count.
func (c *Core) MappedBytes() (n int) {
	for _, p := range c.net.places {
		n += p.mapped
	}
	return n
}

// Formats returns how the matrices other than experts are stored, each format once.
func (c *Core) Formats() []quant.Format { return c.net.formats }

// Close releases the buffers. The queue must be idle.
func (c *Core) Close() {
	for _, l := range c.lanes {
		l.release()
	}
	for _, p := range c.parts {
		p.states.release()
	}
	if c.tables != nil {
		c.tables.release()
	}
	if c.transit != nil && c.transit.tables != nil {
		c.transit.tables.release()
	}
	if c.net != nil {
		c.net.release()
	}
}

// Step handles one message.
func (c *Core) Step(in stages.Message, out *stages.Outbox) error {
	switch m := in.(type) {
	case *stages.BeginLayer:
		return c.beginLayer(m, out)
	case *stages.TicketDone:
		return c.ticketDone(m, out)
	case *stages.WaveResident:
		return c.waveResident(m, out)
	case *stages.ReadLogits:
		return c.readLogits(m, out)
	case *stages.DrainStep:
		return c.drainStep(m, out)
	case *stages.CopyState:
		return c.copyState(m, out)
	case *stages.DropState:
		for _, p := range c.parts {
			p.states.drop(m.State)
		}
		c.trim()
	case *stages.MoveExperts:
		return c.moveExperts(m)
	case *Exchange:
		c.exchange(m, out)
	case *stages.CollectStats:
		out.Send(stages.Combine, m)
	default:
		return fmt.Errorf("dispatch: unexpected message %T", in)
	}
	return nil
}

// record returns an empty recording of a part of a step's work, or, without a step, of urgent work.
func (c *Core) record(of *stages.Step, part record.Part) *recording {
	var r *recording
	if n := len(c.spare); n > 0 {
		r, c.spare = c.spare[n-1], c.spare[:n-1]
	} else {
		r = new(recording)
	}
	r.Urgent, r.Plain, r.Tag = of == nil || of.Batch.Urgent, of != nil && of.Batch.Plain, uint8(part)
	return r
}

// list returns the recordings of one order of a part.
func (c *Core) list(part int, urgent bool) *[]*recording {
	if urgent {
		return &c.recorded[part][1]
	}
	return &c.recorded[part][0]
}

// submit hands a recording to the device.
func (c *Core) submit(r *recording) (gpu.Ticket, error) {
	list := c.list(r.Part, r.Urgent)
	t, err := c.queue.Submit(&r.Commands)
	if err != nil {
		c.recycle(r)
		return nil, err
	}
	c.lastTicket++
	r.ticket = c.lastTicket
	*list = append(*list, r)
	return t, nil
}

// await submits a recording and asks to be told when it is finished.
func (c *Core) await(r *recording, a awaited, out *stages.Outbox) error {
	a.part, a.urgent = r.Part, r.Urgent
	t, err := c.submit(r)
	if err != nil {
		return err
	}
	c.tellOf(t, r.ticket, a, out)
	return nil
}

// tellOf asks to be told when a ticket is finished.
func (c *Core) tellOf(t gpu.Ticket, id uint64, a awaited, out *stages.Outbox) {
	switch {
	case a.lane == nil:
	case a.ahead != nil: // a step can end without predictions
		a.lane.aheads++
	default:
		a.lane.outstanding++
	}
	c.awaited[id] = a
	out.Awaits = append(out.Awaits, stages.Await{Step: a.step, ID: id, Ticket: t})
}

func (c *Core) recycle(r *recording) {
	r.Reset()
	clear(r.wave.Experts)
	r.wave.Experts = r.wave.Experts[:0]
	c.spare = append(c.spare, r)
}

// finished takes back every recording up to a finished ticket, of those in its order, and of those
// that what moved there came after.
func (c *Core) finished(ticket uint64, part int, urgent bool) {
	c.takeBack(ticket, part, urgent)
	c.letGo()
}

func (c *Core) takeBack(ticket uint64, part int, urgent bool) {
	list := c.list(part, urgent)
	all, n, moved := *list, 0, uint64(0)
	for n < len(all) && all[n].ticket <= ticket {
		if len(all[n].Moves) > 0 {
			moved = all[n].ticket
		}
		c.recycle(all[n])
		n++
	}
	rest := copy(all, all[n:])
	clear(all[rest:])
	*list = all[:rest]
	if moved > 0 {
		c.takeBack(moved, part-1, urgent)
	}
}

// fail reports that a step cannot go on.
func (c *Core) fail(s stages.Step, err error, out *stages.Outbox) {
	out.Send(stages.Sequencer, &stages.StepFailed{Step: s, Stage: stages.Dispatch, Err: err})
}

// lane returns the lane of a message's step.
func (c *Core) lane(s *stages.Step) (*lane, error) {
	if s.Batch == nil || s.Batch.Lane < 0 || s.Batch.Lane >= len(c.lanes) {
		return nil, fmt.Errorf("dispatch: message for %v, which is in none of %d lanes", s, len(c.lanes))
	}
	l := c.lanes[s.Batch.Lane]
	if l.step != s.ID {
		return nil, fmt.Errorf("dispatch: message for %v, but its lane belongs to step %d", s, l.step)
	}
	return l, nil
}

// enterLane gives a step its lane.
func (c *Core) enterLane(s *stages.Step) error {
	b := s.Batch
	if b == nil || b.Lane < 0 || b.Lane >= len(c.lanes) || len(b.Rows) == 0 || len(b.Rows) > c.cfg.ChunkRows {
		return fmt.Errorf("dispatch: %v does not fit any of the %d lanes (%d rows each)", s, len(c.lanes), c.cfg.ChunkRows)
	}
	l := c.lanes[b.Lane]
	if l.outstanding != 0 {
		return fmt.Errorf("dispatch: %v begins, but its lane still works for step %d", s, l.step)
	}
	l.begin(s.ID, b, c.cfg)
	return nil
}
