package expertio

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/expertio/policy"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

const (
	// nearBetter is how much likelier than the least likely near expert a far one must be to take
	// its slot. The device reads a far expert where it lies, so a move is a copy that nothing needs
	// at once, on the same bus; it pays if the expert is used a few times before it leaves.
	nearBetter = 4
	// nearMoves bounds the slots that change their expert at once, so that what is copied hardly
	// slows down the device's own reads over the bus.
	nearMoves = 128
)

// near is which experts have slots in the device's own memory, where all lie in the host's. No step
// waits for it: it learns from what steps have used, and the steps after its answer profit.
type near struct {
	first  stages.SlotID // slots below lie in the host's memory
	order  *policy.Order // has the experts that may leave
	of     []int32       // [keys]: the number of a slot + 1; 0 for a far expert that is not coming
	slots  []nearSlot
	free   []int32 // numbers of slots
	moving int     // slots that are left, or filled after that

	wanted []farExpert // far experts of the present message
}

// nearSlot is one slot of the device's memory.
type nearSlot struct {
	key   int // whose bytes it has or gets; -1: nobody's
	next  int // who comes when the device has left it; -1: nobody
	gen   uint32
	state nearState
	moved bool // it counts in moving

	askedNS int64 // that it be filled
}

type nearState uint8

const (
	nearFree nearState = iota
	nearFilling
	nearShown   // the device reads it
	nearLeaving // the device may still read it
)

// farExpert is one that a step has used, and how likely its layer's next row picks it.
type farExpert struct {
	key    int32
	chance float64
}

func (n *near) init(cfg *Config) error {
	if cfg.Near == 0 {
		return nil
	}
	order, err := policy.New(policy.Config{Layers: cfg.Layers, Experts: cfg.Experts})
	if err != nil {
		return err
	}
	keys := cfg.Layers * cfg.Experts
	n.order, n.first = order, stages.SlotID(keys)
	n.of, n.slots = make([]int32, keys), make([]nearSlot, cfg.Near)
	for i := len(n.slots) - 1; i >= 0; i-- {
		n.slots[i] = nearSlot{key: -1, next: -1}
		n.free = append(n.free, int32(i))
	}
	for k, p := range cfg.Chances {
		n.order.Seed(k, p)
	}
	return nil
}

// slot returns a slot by its id.
func (n *near) slot(id stages.SlotID) (*nearSlot, error) {
	if i := id - n.first; n.of != nil && i >= 0 && int(i) < len(n.slots) {
		return &n.slots[i], nil
	}
	return nil, fmt.Errorf("expertio: slot %d is none of the device's %d", id, len(n.slots))
}

// warmNear fills the free slots: first with what earlier runs used most, then with the same number
// of each layer's experts.
func (c *Core) warmNear(out *stages.Outbox) {
	n, all := &c.near, c.everything()
	from := c.cfg.First * c.cfg.Experts
	keys := make([]int, 0, all)
	for i := range all { // expert by expert, so that the first ones are of all layers
		keys = append(keys, from+i%(all/c.cfg.Experts)*c.cfg.Experts+i/(all/c.cfg.Experts))
	}
	if p := c.cfg.Chances; p != nil {
		slices.SortStableFunc(keys, func(a, b int) int { return cmp.Compare(p[b], p[a]) })
	}
	for _, key := range keys {
		if len(n.free) == 0 {
			return
		}
		if n.of[key] == 0 {
			c.fillNear(n.takeFree(), key, out)
		}
	}
}

func (n *near) takeFree() int32 {
	last := len(n.free) - 1
	i := n.free[last]
	n.free = n.free[:last]
	return i
}

// fillNear has an expert copied into a slot that nothing reads.
func (c *Core) fillNear(i int32, key int, out *stages.Outbox) {
	n := &c.near
	s := &n.slots[i]
	s.key, s.next, s.state, s.askedNS = key, -1, nearFilling, c.notes.now
	s.gen++
	n.of[key] = i + 1
	first, layer := len(c.reads), key/c.cfg.Experts
	c.reads = append(c.reads, stages.Read{
		Slot: n.first + stages.SlotID(i), Gen: s.gen, Layer: layer, Expert: key % c.cfg.Experts,
	})
	c.group(out, stages.Step{Layer: layer}, first, stages.GuessRead)
}

// expertsUsed learns from a step, and lets far experts that it has used come near.
func (c *Core) expertsUsed(m *stages.ExpertsUsed, out *stages.Outbox) error {
	n, side := &c.near, policy.Ordinary
	if m.Urgent {
		side = policy.Urgent
	}
	layer := -1
	n.wanted = n.wanted[:0]
	for _, u := range m.Uses {
		if u.Key < 0 || int(u.Key) >= len(n.of) {
			return fmt.Errorf("expertio: expert %d was used, there are %d", u.Key, len(n.of))
		}
		if at := int(u.Key) / c.cfg.Experts; at != layer {
			layer = at
			n.order.Visit(side, layer, m.Rows)
		}
		n.order.Use(int(u.Key), int(u.Rows))
		if n.of[u.Key] == 0 {
			n.wanted = append(n.wanted, farExpert{key: u.Key})
		}
	}
	for i := range n.wanted {
		n.wanted[i].chance = n.order.Chance(int(n.wanted[i].key))
	}
	slices.SortFunc(n.wanted, func(a, b farExpert) int {
		return cmp.Or(cmp.Compare(b.chance, a.chance), cmp.Compare(a.key, b.key))
	})
	c.comeNear(out)
	return nil
}

// comeNear gives slots to the wanted experts, the likeliest first, as long as that pays.
func (c *Core) comeNear(out *stages.Outbox) {
	n := &c.near
	var leave *stages.MoveExperts
	for _, w := range n.wanted {
		if len(n.free) > 0 {
			c.fillNear(n.takeFree(), int(w.key), out)
			continue
		}
		old, ok := n.order.Next()
		if !ok || n.moving >= nearMoves || w.chance <= nearBetter*n.order.Chance(old) {
			break
		}
		n.order.Evict()
		i := n.of[old] - 1
		s := &n.slots[i]
		s.state, s.next, s.moved = nearLeaving, int(w.key), true
		n.of[old], n.of[w.key] = 0, i+1
		n.moving++
		c.noteFar(old, i)
		if leave == nil {
			leave = out.Spent().MoveExperts()
		}
		leave.Leave = append(leave.Leave, c.nearExpert(old, i))
	}
	if leave != nil {
		out.Send(stages.Dispatch, leave)
	}
}

func (c *Core) nearExpert(key int, i int32) stages.NearExpert {
	return stages.NearExpert{
		Layer: int32(key / c.cfg.Experts), Expert: int32(key % c.cfg.Experts),
		Slot: c.near.first + stages.SlotID(i),
	}
}

// slotsVacated lets who was to come into slots come.
func (c *Core) slotsVacated(m *stages.SlotsVacated, out *stages.Outbox) error {
	for _, id := range m.Slots {
		s, err := c.near.slot(id)
		if err != nil {
			return err
		}
		if s.state != nearLeaving {
			return fmt.Errorf("expertio: slot %d was vacated, but nobody was to leave it", id)
		}
		c.fillNear(int32(id-c.near.first), s.next, out)
	}
	return nil
}

// nearFilled has the device read what was copied. Of a copy that failed the expert stays far.
func (c *Core) nearFilled(m *stages.ExpertsRead, out *stages.Outbox) error {
	n := &c.near
	come := out.Spent().MoveExperts()
	for i := range m.Results {
		r := &m.Results[i]
		s, err := n.slot(r.Slot)
		if err != nil {
			return err
		}
		if s.gen != r.Gen || s.state != nearFilling {
			return fmt.Errorf("expertio: a copy to slot %d generation %d ended, but the slot "+
				"is in generation %d and not being filled", r.Slot, r.Gen, s.gen)
		}
		if s.moved {
			s.moved = false
			n.moving--
		}
		number := int32(r.Slot - n.first)
		c.noteNear(s, r, number)
		if r.Err != nil {
			c.readErrors++
			n.of[s.key] = 0
			s.key, s.state = -1, nearFree
			n.free = append(n.free, number)
			continue
		}
		s.state = nearShown
		n.order.Add(s.key)
		l, bytes := &c.layers[s.key/c.cfg.Experts], int64(c.cfg.ExpertBytes)
		l.BytesRead, l.BytesWarm = l.BytesRead+bytes, l.BytesWarm+bytes
		c.nobody.HostBytes += bytes
		come.Come = append(come.Come, c.nearExpert(s.key, number))
	}
	if len(come.Come) > 0 {
		out.Send(stages.Dispatch, come)
	}
	return nil
}

// noteNear notes the end of a copy to a slot as that of a read for no step, as in a warm start.
func (c *Core) noteNear(s *nearSlot, r *stages.ReadResult, slot int32) {
	n := record.Read{
		AskedNS: s.askedNS, BeganNS: r.BeganNS, EndedNS: r.EndedNS, PlacedNS: r.PlacedNS,
		Layer: int32(s.key / c.cfg.Experts), Expert: int32(s.key % c.cfg.Experts), Slot: slot,
		Tier: record.FromHost, Bytes: int64(c.cfg.ExpertBytes),
	}
	if r.Err != nil {
		n.Failed, n.Bytes = 1, 0
	}
	c.notes.log.Reads.Add(n)
}

// noteFar notes that an expert is to leave its slot.
func (c *Core) noteFar(key int, slot int32) {
	layer, expert := key/c.cfg.Experts, key%c.cfg.Experts
	c.layers[layer].Evictions++
	c.notes.log.Evictions.Add(record.Eviction{
		AtNS: c.notes.now, Layer: int32(layer), Expert: int32(expert), Slot: slot,
	})
}

// used returns how many slots hold an expert or get one.
func (n *near) used() int { return len(n.slots) - len(n.free) }

// places returns where each expert of a layer is.
func (c *Core) nearPlaces(layer int) []stages.Place {
	places := make([]stages.Place, c.cfg.Experts)
	for e, slot := range c.near.of[layer*c.cfg.Experts : (layer+1)*c.cfg.Experts] {
		switch {
		case slot == 0:
		case c.near.slots[slot-1].state == nearShown:
			places[e] = stages.InSlot
		default:
			places[e] = stages.BeingRead
		}
	}
	return places
}
