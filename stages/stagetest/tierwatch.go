package stagetest

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/tier"
)

// fill begins a fill: nobody may use the record, or want it still.
func (h *hostTier) fill(f tier.Fill) error {
	a, use := h.asked[f.Slot], h.uses[f.Record]
	switch {
	case a == nil || a.begun:
		return fmt.Errorf("slot %d is filled for nobody, or twice", f.Slot)
	case use == nil:
		return fmt.Errorf("record %v is filled, but is not pinned", f.Record)
	case use.filling || use.uploads > 0:
		return fmt.Errorf("record %v is filled while it is filled (%v) or in %d uploads", f.Record, use.filling, use.uploads)
	}
	a.begun, a.fills, a.beganNS = true, true, h.sim.now()
	*use = recordUse{filling: true, layer: a.group.Reads[0].Layer, expert: a.group.Reads[0].Expert}
	h.spoil(h.record(f.Record))
	h.fills = append(h.fills, f)
	return nil
}

// spoil makes bytes those of no expert.
func (h *hostTier) spoil(b []byte) {
	for i := range b {
		b[i] = 0xff
	}
}

// upload begins an upload: the record must have the read's expert.
func (h *hostTier) upload(u tier.Upload) error {
	a, use := h.asked[u.Slot], h.uses[u.Record]
	if a == nil || use == nil || !use.whole {
		return fmt.Errorf("record %v is uploaded to slot %d, asked for: %v, but is not filled", u.Record, u.Slot, a != nil)
	}
	if r := a.group.Reads[0]; use.layer != r.Layer || use.expert != r.Expert {
		return fmt.Errorf("slot %d wants layer %d expert %d and gets layer %d expert %d", u.Slot, r.Layer, r.Expert, use.layer, use.expert)
	}
	if a.begun = true; a.endedNS == 0 {
		a.endedNS = h.sim.now()
	}
	use.uploads++
	h.uploads = append(h.uploads, u)
	return nil
}

// ended tells expert-IO of the end of a read.
func (h *hostTier) ended(e tier.Ended) error {
	a := h.asked[e.Slot]
	if a == nil {
		return fmt.Errorf("the read into slot %d ends, but none is under way", e.Slot)
	}
	delete(h.asked, e.Slot)
	h.figures.From[e.From]++
	if a.fills != (e.From == tier.FromDisk) {
		return fmt.Errorf("the read into slot %d has source %d, was its record filled for it: %v", e.Slot, e.From, a.fills)
	}
	h.sim.readEnded(&a.group, stages.ReadResult{FromHost: e.From != tier.FromDisk, BeganNS: a.beganNS, EndedNS: a.endedNS, Err: e.Err})
	return nil
}

// ordered takes an order: never a second one, never more than the limit, never memory in use.
func (h *hostTier) ordered(o tier.Order) error {
	if o.Kind == tier.NoOrder {
		return nil
	}
	if h.order.Kind != tier.NoOrder {
		return fmt.Errorf("%+v is ordered while %+v is under way", o, h.order)
	}
	if o.Kind == tier.Pin && (h.pinned+o.Records > h.limit || h.blocks[o.Block] != nil) {
		return fmt.Errorf("%+v is ordered while %d records are pinned of %d, that block: %v", o, h.pinned, h.limit, h.blocks[o.Block] != nil)
	}
	for r, use := range h.uses {
		if o.Kind == tier.Free && r.Block == o.Block && (use.filling || use.uploads > 0) {
			return fmt.Errorf("%+v is ordered while %v is filled (%v) or in %d uploads", o, r, use.filling, use.uploads)
		}
	}
	h.order = o
	return nil
}
