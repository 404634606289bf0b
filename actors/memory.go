package actors

import (
	"cmp"
	"fmt"

	"github.com/moeflux/moeflux-actor/actors/expertmem"
	"github.com/moeflux/moeflux-actor/model"
)

// MemoryError reports that a model cannot run in the memory that is there. Need is the sum of the
// fields after Available.
type MemoryError struct {
	Need, Available int64 // bytes
	Weights         int64 // all but the experts
	State           int64 // of one sequence of one page of positions
	Slots           int64 // experts of two tokens in one layer
	Reserve         int64
	Parked          int64 // for parked states (Config.ParkedMemory)
	Records         int64 // of what the engine does (Config.RecordMemory)
}

func (e *MemoryError) Error() string {
	mib := func(n int64) int64 { return (n + 1<<20 - 1) >> 20 }
	parked, advice := "", "free some, raise the limit"
	if e.Parked > 0 {
		parked, advice = fmt.Sprintf(", parked states %d", mib(e.Parked)), advice+", lower Config.ParkedMemory"
	}
	return fmt.Sprintf("actors: the model needs %d MiB of memory at least (weights %d, state %d, expert slots %d, reserve %d, records %d%s), %d are available, limits "+
		"counted; %s, or set Config.ExpertMemory to try with less than that", mib(e.Need), mib(e.Weights), mib(e.State), mib(e.Slots),
		mib(e.Reserve), mib(e.Records), parked, e.Available>>20, advice)
}

// ContextMemoryError reports that the memory for states does not hold one sequence of the context.
type ContextMemoryError struct {
	Context         int   // positions
	Need, Available int64 // bytes
	Int8            bool  // keys and values in 8 bits would take less
}

func (e *ContextMemoryError) Error() string {
	advice := "lower Config.Context or raise Config.StateMemory"
	if e.Int8 {
		advice += ", or keep keys and values in 8 bits with Config.KV"
	}
	return fmt.Sprintf("a context of %d positions needs %d bytes, but only %d are available; %s", e.Context, e.Need, e.Available, advice)
}

// stateShares is the default share of available memory that is set aside for the state of a
// sequence: one part in stateShares.
const stateShares = 16

// stateShare returns what is set aside for the state of a sequence: all of a context that was asked
// for, otherwise at most a sixteenth of the memory. Longer texts take memory from the expert slots
// later.
func (i *Info) stateShare(cfg Config, m *model.Config) int64 {
	positions := cmp.Or(cfg.Context, m.MaxPositionEmbeddings)
	share := i.KVBytesPerPos * int64(positions)
	if cfg.Context == 0 {
		share = min(share, i.Available/stateShares)
	}
	if cfg.StateMemory > 0 {
		share = min(share, cfg.StateMemory)
	}
	return i.StateBytes + share
}

// hostShare returns what parked states, or records, take of the memory where the slots are: nothing
// of a device's own, and of memory that a device shares with the host what does not fit beside it.
// beside is the memory there that is left; what is taken of it is not for others any more.
func hostShare(bytes int64, f files, beside *int64) int64 {
	if f.host > 0 {
		return 0
	}
	fits := min(bytes, *beside)
	*beside -= fits
	return bytes - fits
}

// checkLeast reports that not even a least number of bytes for slots is available beside those for
// parked states and for records.
func (i *Info) checkLeast(slots, parked, records int64) error {
	e := &MemoryError{
		Available: i.Available, Weights: i.WeightBytes, State: i.StateBytes + i.KVBytesPerPos*pageRows, Slots: slots,
		Reserve: min(i.Reserve, expertmem.LeastReserve/4), Parked: parked, Records: records,
	}
	e.Need = e.Weights + e.State + e.Slots + e.Reserve + e.Parked + e.Records
	if e.Need > e.Available {
		return e
	}
	return nil
}
