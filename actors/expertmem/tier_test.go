package expertmem

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/invariants"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/tier"
)

// pinning is a device that counts what it has pinned, and pins no more than it may. What is
// released has other bytes.
type pinning struct {
	gpu.Discrete
	mu         sync.Mutex
	held, most int // bytes
}

type pinnedBuffer struct {
	d   *pinning
	mem []byte
}

func (b *pinnedBuffer) Len() int      { return len(b.mem) }
func (b *pinnedBuffer) Bytes() []byte { return b.mem }
func (b *pinnedBuffer) Release() {
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	b.d.held -= len(b.mem)
	for i := 0; i < len(b.mem); i += 4096 {
		b.mem[i] = 0xdd
	}
}

func (d *pinning) pinned() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.held
}

func (d *pinning) NewPinned(n int) (gpu.Buffer, error) {
	time.Sleep(10 * time.Millisecond)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.held+n > d.most {
		return nil, fmt.Errorf("pinning %d bytes: %w", n, gpu.ErrOutOfMemory)
	}
	d.held += n
	return &pinnedBuffer{d, make([]byte, n)}, nil
}

// tierRun is a disk and a device's queue around a tier, with goroutines of their own that take
// random times.
type tierRun struct {
	*testing.T
	h      *hostTier
	failed bool // fills and uploads may fail

	mu      sync.Mutex
	rng     *rand.Rand
	key     []byte        // [slots] of the expert that is being read; 0: none
	records map[*byte]int // users of a record
	idle    chan stages.SlotID
	errs    int
}

func (r *tierRun) later(do func(fails bool)) {
	r.mu.Lock()
	wait, fails := time.Duration(1+r.rng.IntN(3000))*time.Microsecond, r.failed && r.rng.IntN(8) == 0
	r.mu.Unlock()
	go func() {
		time.Sleep(wait)
		do(fails)
	}()
}

// hold counts a use of a record. A fill must be the only one.
func (r *tierRun) hold(record []byte, fill bool, by int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if fill && by > 0 && r.records[&record[0]] > 0 {
		r.Error("a record in use is filled")
	}
	r.records[&record[0]] += by
}

func (r *tierRun) fill(slot stages.SlotID, record []byte, _ stages.Rank) {
	r.hold(record, true, 1)
	r.later(func(fails bool) {
		r.mu.Lock()
		record[0], record[len(record)-1] = r.key[slot], r.key[slot]
		r.mu.Unlock()
		var err error
		if fails {
			err = errors.New("the disk is round")
			record[0] = 0xff
		}
		r.hold(record, true, -1)
		r.h.step(&tier.Filled{Slot: slot, Err: err})
	})
}

func (r *tierRun) upload(slot stages.SlotID, record []byte) {
	r.hold(record, false, 1)
	r.later(func(fails bool) {
		r.mu.Lock()
		if record[0] != r.key[slot] || record[len(record)-1] != r.key[slot] {
			r.Errorf("slot %d gets the bytes %d, %d, want %d", slot, record[0], record[len(record)-1], r.key[slot])
		}
		r.mu.Unlock()
		var err error
		if fails {
			err = errUploadFailed
		}
		r.hold(record, false, -1)
		r.h.step(&tier.Uploaded{Slot: slot, Err: err})
	})
}

var errUploadFailed = errors.New("the bus is broken")

func (r *tierRun) hurry(stages.Hurry)         {}
func (r *tierRun) overdue(stages.ReadOverdue) { r.Error("a read is said to be late") }
func (r *tierRun) broken(err error)           { r.Error(err) }
func (r *tierRun) ended(e tier.Ended) {
	slot, err := e.Slot, e.Err
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.key[slot] == 0 {
		r.Errorf("the read into slot %d ends twice", slot)
	}
	r.key[slot] = 0
	if err != nil {
		r.errs++
	}
	r.idle <- slot
}

// TestTier sends random reads of 40 experts through tiers of one block to all that there is, from a
// disk and a bus with goroutines of their own that fail, while the limit falls and rises and
// experts are forgotten: every read ends once with the right bytes, no record is filled while it is
// in use, the memory follows the limit, and in the end all is given back.
func TestTier(t *testing.T) {
	const experts, layers, slots, stride = 20, 2, 12, recordBlockBytes / 4
	for seed := range uint64(testenv.Rounds(1, 3, 16)) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 1))
				dev := &pinning{most: (9 + int(seed)*4) * stride}
				r := &tierRun{T: t, failed: seed%2 == 0, rng: rand.New(rand.NewPCG(seed, 2)), key: make([]byte, slots), records: map[*byte]int{}, idle: make(chan stages.SlotID, slots)}
				h, err := newHostTier(dev, tier.Config{Layers: layers, Experts: experts, Slots: slots, Limit: experts * layers}, stride, 16, r, slog.New(slog.DiscardHandler))
				if err != nil {
					t.Fatal(err)
				}
				r.h = h
				for slot := range stages.SlotID(slots) {
					r.idle <- slot
				}
				limit := experts * layers
				for i := range 3000 {
					slot := <-r.idle
					read := stages.Read{Slot: slot, Gen: uint32(i), Layer: rng.IntN(layers), Expert: rng.IntN(experts)}
					r.mu.Lock()
					r.key[slot] = byte(1 + read.Layer*experts + read.Expert)
					r.mu.Unlock()
					guess := rng.IntN(2) == 0
					h.step(&tier.Ask{Read: read, Rank: stages.RankOf(rng.IntN(2) == 0, guess)})
					if guess && rng.IntN(3) == 0 {
						h.step(&tier.Hurry{Slot: slot, Gen: uint32(i), Rank: stages.UrgentRead})
					}
					if rng.IntN(100) == 0 {
						limit = rng.IntN(experts * layers)
						h.resize(limit)
					}
					if rng.IntN(100) == 0 {
						h.forgetAll()
					}
				}
				for range slots {
					<-r.idle
				}
				synctest.Wait()
				time.Sleep(time.Second) // pins and frees end
				synctest.Wait()
				if err := h.core.AtRest(); err != nil {
					t.Error(err)
				}
				if most := max(limit, h.perBlock) * stride; dev.held > most || int64(dev.held) != h.heldBytes() {
					t.Errorf("%d bytes are pinned, %d by the tier's account, where %d may be", dev.held, h.heldBytes(), most)
				}
				if r.failed != (r.errs > 0) || h.hits() == 0 {
					t.Errorf("%d reads failed, %d were hits: the test shows nothing", r.errs, h.hits())
				}
				h.close()
				if dev.held != 0 {
					t.Errorf("%d bytes stay pinned", dev.held)
				}
			})
		})
	}
}

// A tier that is closed while it pins gives that block back too.
func TestTierClosesWhilePinning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const stride = recordBlockBytes
		dev := &pinning{most: 10 * stride}
		r := &tierRun{T: t, rng: rand.New(rand.NewPCG(1, 1)), key: []byte{1}, records: map[*byte]int{}, idle: make(chan stages.SlotID, 1)}
		h, err := newHostTier(dev, tier.Config{Layers: 1, Experts: 10, Slots: 1, Limit: 10}, stride, 16, r, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		r.h = h
		h.step(&tier.Ask{})
		<-r.idle
		before := dev.pinned()
		h.close()
		if before != stride || dev.held != 0 {
			t.Errorf("%d bytes were pinned before the end, %d stay", before, dev.held)
		}
	})
}

// A host that gives nothing is an error that says what was wanted.
func TestTierWithoutMemory(t *testing.T) {
	_, err := newHostTier(&pinning{}, tier.Config{Layers: 1, Experts: 8, Slots: 8, Limit: 8}, 4096, 4000, nil, slog.New(slog.DiscardHandler))
	if !errors.Is(err, gpu.ErrOutOfMemory) {
		t.Errorf("a host without memory: %v", err)
	}
}

// nothing performs nothing, and remembers which reads want what.
type nothing struct{ fills, uploads []stages.SlotID }

func (n *nothing) fill(s stages.SlotID, _ []byte, _ stages.Rank) { n.fills = append(n.fills, s) }
func (n *nothing) upload(s stages.SlotID, _ []byte)              { n.uploads = append(n.uploads, s) }
func (n *nothing) hurry(stages.Hurry)                            {}
func (n *nothing) overdue(stages.ReadOverdue)                    {}
func (n *nothing) ended(tier.Ended)                              {}
func (n *nothing) broken(err error)                              { panic(err) }

// BenchmarkTier takes reads through the shell, without their bytes: what the tier adds to each.
func BenchmarkTier(b *testing.B) {
	const experts, records = 256, 64
	n := new(nothing)
	h, err := newHostTier(&pinning{most: 1 << 30}, tier.Config{Layers: 1, Experts: experts, Slots: 1, Limit: records}, 4096, 4000, n, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer h.close()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		n.fills, n.uploads = n.fills[:0], n.uploads[:0]
		h.step(&tier.Ask{Read: stages.Read{Expert: i % experts}})
		h.step(new(tier.Filled))
		h.step(new(tier.Uploaded))
	}
}

// In the steady state a read through the tier allocates nothing, neither from the disk nor from a
// record.
func TestTierAllocatesNothing(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the race detector and the checks allocate")
	}
	n := new(nothing)
	h, err := newHostTier(&pinning{most: 1 << 30}, tier.Config{Layers: 1, Experts: 8, Slots: 2, Limit: 2}, 4096, 4000, n, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	expert := 0
	got := testing.AllocsPerRun(100, func() {
		expert = (expert + 1) % 8
		n.fills, n.uploads = n.fills[:0], n.uploads[:0]
		h.step(&tier.Ask{Read: stages.Read{Expert: expert}, Rank: stages.GuessRead})
		h.step(&tier.Ask{Read: stages.Read{Slot: 1, Expert: expert}})
		h.step(new(tier.Filled))
		h.step(new(tier.Uploaded))
		h.step(&tier.Uploaded{Slot: 1})
		h.step(&tier.Ask{Read: stages.Read{Expert: expert}})
		h.step(new(tier.Uploaded))
	})
	if got != 0 || !slices.Equal(n.fills, []stages.SlotID{0}) || !slices.Equal(n.uploads, []stages.SlotID{0, 1, 0}) {
		t.Errorf("%v allocations in four reads, fills %v, uploads %v", got, n.fills, n.uploads)
	}
}
