package stagetest

import (
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/tier"
)

// TierConfig puts a tier between reads and slots. Its memory, reads and uploads are simulated.
type TierConfig struct {
	Core *tier.Core
	// RecordBytes is the size of a record, BlockRecords how many there are in the first block.
	RecordBytes, BlockRecords int
	Limit                     int // that the core has at first
	// Fill reads a record, when its simulated read ends.
	Fill func(r stages.Read, record []byte) error
	// Upload copies a record to a slot, when its simulated upload ends.
	Upload func(slot stages.SlotID, record []byte) error
	// Pin, if set, is asked before memory is pinned. If it returns an error, there is none.
	Pin func() error
}

// hostTier is the simulated shell of a tier.Core, and watches what the core wants.
type hostTier struct {
	cfg     TierConfig
	sim     *Sim
	asked   map[stages.SlotID]*askedRead // that have not ended
	fills   []tier.Fill
	uploads []tier.Upload
	order   tier.Order
	limits  []int // that the core is to be told
	forgets int
	limit   int // that it was told
	pinned  int // records
	blocks  map[int32][]byte
	uses    map[tier.Record]*recordUse
	figures TierFigures
}

// TierFigures counts what a simulated tier has done.
type TierFigures struct {
	From                         [3]int // reads, by tier.Source
	Hurried, Late                int    // reads
	Pinned, Unpinned, FailedPins int    // blocks
}

// Add adds the figures of another life.
func (f *TierFigures) Add(g TierFigures) {
	for i := range f.From {
		f.From[i] += g.From[i]
	}
	f.Hurried, f.Late = f.Hurried+g.Hurried, f.Late+g.Late
	f.Pinned, f.Unpinned, f.FailedPins = f.Pinned+g.Pinned, f.Unpinned+g.Unpinned, f.FailedPins+g.FailedPins
}

// askedRead is a read that has not ended.
type askedRead struct {
	group stages.ReadGroup // of this read alone
	begun bool             // a fill or an upload was asked for it
	fills bool             // a fill was
	// when its fill began and ended; without one, when it found the record of another
	beganNS, endedNS int64
}

// recordUse is what is done with a record.
type recordUse struct {
	filling bool
	uploads int
	layer   int // of the expert whose bytes it has
	expert  int
	whole   bool
}

func newHostTier(cfg TierConfig, s *Sim) *hostTier {
	h := &hostTier{cfg: cfg, sim: s, limit: cfg.Limit, asked: map[stages.SlotID]*askedRead{}, blocks: map[int32][]byte{}, uses: map[tier.Record]*recordUse{}}
	h.pin(0, cfg.BlockRecords)
	return h
}

func (h *hostTier) pin(block int32, records int) {
	h.blocks[block] = make([]byte, records*h.cfg.RecordBytes)
	h.pinned += records
	h.figures.Pinned++
	for i := range records {
		h.uses[tier.Record{Block: block, Index: int32(i)}] = new(recordUse)
	}
}

func (h *hostTier) record(r tier.Record) []byte {
	return h.blocks[r.Block][int(r.Index)*h.cfg.RecordBytes:][:h.cfg.RecordBytes]
}

// ask gives the core a read.
func (h *hostTier) ask(g stages.ReadGroup) error {
	slot := g.Reads[0].Slot
	h.asked[slot] = &askedRead{group: g}
	return h.step(&tier.Ask{Read: g.Reads[0], Rank: g.Rank})
}

// step gives the core an event, and takes what it wants.
func (h *hostTier) step(in tier.Event) error {
	var out tier.Effects
	err := h.cfg.Core.Step(in, &out)
	if err == nil {
		err = h.take(&out)
	}
	if err == nil {
		err = h.cfg.Core.Check()
	}
	if err != nil {
		return fmt.Errorf("%T %+v: %w", in, in, err)
	}
	return nil
}

func (h *hostTier) take(out *tier.Effects) error {
	for _, f := range out.Fills {
		if err := h.fill(f); err != nil {
			return err
		}
	}
	for _, u := range out.Uploads {
		if err := h.upload(u); err != nil {
			return err
		}
	}
	h.figures.Hurried += len(out.Hurries)
	h.figures.Late += len(out.Overdue)
	for i := range out.Overdue {
		h.sim.loose = append(h.sim.loose, stages.Send{To: stages.ExpertIO, Msg: &out.Overdue[i]})
	}
	for _, e := range out.Ended {
		if err := h.ended(e); err != nil {
			return err
		}
	}
	return h.ordered(out.Memory)
}

// choices returns what can happen next.
func (h *hostTier) choices() (choices []func() error) {
	for i := range h.fills {
		choices = append(choices, func() error { return h.endFill(i) })
	}
	for i := range h.uploads {
		choices = append(choices, func() error { return h.endUpload(i) })
	}
	if h.order.Kind != tier.NoOrder {
		choices = append(choices, h.endOrder)
	}
	if len(h.limits) > 0 {
		choices = append(choices, h.setLimit)
	}
	if h.forgets > 0 {
		choices = append(choices, func() error { h.forgets--; return h.step(new(tier.Forget)) })
	}
	return choices
}

func (h *hostTier) endFill(i int) error {
	f := h.fills[i]
	a := h.asked[f.Slot]
	r := a.group.Reads[0]
	if late := h.sim.cfg.Late; late != nil {
		if err := late(r); err != nil {
			return h.step(&tier.Overdue{Slot: r.Slot, Gen: r.Gen, Err: err})
		}
	}
	h.fills = slices.Delete(h.fills, i, i+1)
	a.endedNS = h.sim.now()
	err := h.cfg.Fill(r, h.record(f.Record))
	use := h.uses[f.Record]
	use.filling, use.whole = false, err == nil
	return h.step(&tier.Filled{Slot: f.Slot, Err: err})
}

func (h *hostTier) endUpload(i int) error {
	u := h.uploads[i]
	h.uploads = slices.Delete(h.uploads, i, i+1)
	h.uses[u.Record].uploads--
	return h.step(&tier.Uploaded{Slot: u.Slot, Err: h.cfg.Upload(u.Slot, h.record(u.Record))})
}

func (h *hostTier) endOrder() error {
	o := h.order
	h.order = tier.Order{}
	if o.Kind == tier.Free {
		h.spoil(h.blocks[o.Block])
		delete(h.blocks, o.Block)
		h.pinned -= o.Records
		h.figures.Unpinned++
		for i := range o.Records {
			delete(h.uses, tier.Record{Block: o.Block, Index: int32(i)})
		}
		return h.step(new(tier.Freed))
	}
	if h.cfg.Pin != nil {
		if err := h.cfg.Pin(); err != nil {
			h.figures.FailedPins++
			return h.step(&tier.Pinned{Err: err})
		}
	}
	h.pin(o.Block, o.Records)
	return h.step(new(tier.Pinned))
}

func (h *hostTier) setLimit() error {
	h.limit = h.limits[0]
	h.limits = h.limits[1:]
	return h.step(&tier.Limit{Records: h.limit})
}

// atRest reports what is still out.
func (h *hostTier) atRest() error {
	if len(h.asked)+len(h.fills)+len(h.uploads) > 0 {
		return fmt.Errorf("tier: %d reads never ended; %d fills, %d uploads", len(h.asked), len(h.fills), len(h.uploads))
	}
	if most := max(h.limit, h.cfg.BlockRecords); h.pinned > most {
		return fmt.Errorf("tier: %d records are pinned, %d may be", h.pinned, most)
	}
	return h.cfg.Core.AtRest()
}
