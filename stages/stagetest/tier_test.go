package stagetest_test

import (
	"math/rand/v2"
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/stagetest"
	"github.com/moeflux/moeflux-actor/stages/tier"
)

// hostTuning is the host's memory that reads go through. Without records they go to slots.
type hostTuning struct{ records, block int }

// tier makes the host's memory, if the tuning has any.
func (p *pack) tier(tu *tuning, f faults, slot func(stages.SlotID) []byte, read func(stages.Read, []byte) error) *stagetest.TierConfig {
	if tu.host.records == 0 || tu.resident {
		return nil
	}
	block := min(tu.host.block, tu.host.records)
	return &stagetest.TierConfig{
		Core: tier.New(tier.Config{
			Layers: len(p.cfg.Layers), Experts: p.cfg.NumExperts, Slots: tu.slots, BlockRecords: block, Limit: tu.host.records,
		}),
		RecordBytes: p.experts.Layout().Bytes, BlockRecords: block, Limit: tu.host.records, Fill: read, Pin: f.pin,
		Upload: func(id stages.SlotID, record []byte) error {
			if f.upload != nil {
				if err := f.upload(); err != nil {
					return err
				}
			}
			copy(slot(id), record)
			return nil
		},
	}
}

// TestHostMemory holds conversations as TestRough does, on a device whose experts come through
// host memory of one record to a few, whose limit rises and falls: uploads end in any order, reads,
// uploads and pins fail, experts are forgotten, and the disk hangs until all who waited are told. A
// record is never filled while it is in use, every upload has the bytes of its read's expert, every
// read ends once, and what is pinned keeps to the limit.
func TestHostMemory(t *testing.T) {
	_, sum := runRough(t, openPack(t, "qwen3_moe/bf16"), func(r *rand.Rand, tu *tuning) {
		tu.resident, tu.resize = false, true
		tu.host = hostTuning{records: 1 + r.IntN(6), block: 1 + r.IntN(3)}
	})
	for what, n := range map[string]int{
		"from the disk": sum.From[tier.FromDisk], "from the host": sum.From[tier.FromHost], "hurried": sum.Hurried, "late": sum.Late,
		"blocks freed": sum.Unpinned, "failed pins": sum.FailedPins,
	} {
		if n == 0 {
			t.Errorf("%s: none, the test shows nothing of them", what)
		}
	}
	// It keeps an expert in one slot, and asks for it again only when that read has ended.
	if n := sum.From[tier.FromOthers]; n != 0 {
		t.Errorf("expert-IO asked %d times for an expert that was on its way", n)
	}
}
