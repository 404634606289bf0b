package actors

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/io/readpool"
	"github.com/moeflux/moeflux-actor/stages"
)

// pinning is a device that counts what it has pinned, and pins no more than it may.
type pinning struct {
	gpu.Discrete
	held, most int // bytes
}

type pinnedBuffer struct {
	d   *pinning
	mem []byte
}

func (b *pinnedBuffer) Len() int      { return len(b.mem) }
func (b *pinnedBuffer) Bytes() []byte { return b.mem }
func (b *pinnedBuffer) Release()      { b.d.held -= len(b.mem) }

func (d *pinning) NewPinned(n int) (gpu.Buffer, error) {
	if d.held+n > d.most {
		return nil, fmt.Errorf("pinning %d bytes: %w", n, gpu.ErrOutOfMemory)
	}
	d.held += n
	return &pinnedBuffer{d, make([]byte, n)}, nil
}

// tierRun drives a tier as reads do, and holds what it says against a plain account.
type tierRun struct {
	*testing.T
	h       *tier
	reading []*slotRead // have room, their bytes are on the way
	upload  []*slotRead // their record is there
	waiting int

	mu      sync.Mutex
	started []*slotRead     // that had to wait, and do not any more
	owner   map[*record]int // whose bytes a record has
}

// go1 takes a read on as far as it gets by itself.
func (r *tierRun) go1(t *slotRead) {
	key := t.reqs[0].Layer*r.h.experts + t.reqs[0].Expert
	switch r.h.take(t) {
	case foundThere:
		if got, ok := r.owner[t.record]; !ok || got != key || t.record.mem[0] != byte(key) {
			r.Fatalf("expert %d is said to be in a record of %d with bytes of %d", key, got, t.record.mem[0])
		}
		r.upload = append(r.upload, t)
	case foundRoom:
		r.h.mu.Lock()
		if t.record.block.leaving || !slices.Contains(r.h.blocks, t.record.block) {
			r.Errorf("room for expert %d lies in memory that goes or is gone", key)
		}
		r.h.mu.Unlock()
		for _, u := range append(r.upload[:len(r.upload):len(r.upload)], r.reading...) {
			if u.record == t.record {
				r.Fatalf("a record that is in use is room for expert %d", key)
			}
		}
		delete(r.owner, t.record)
		r.reading = append(r.reading, t)
	case foundNone:
		r.waiting++
	}
}

// arrive ends one of the reads under way.
func (r *tierRun) arrive(i int, err error) {
	t := r.reading[i]
	r.reading = append(r.reading[:i], r.reading[i+1:]...)
	key := t.reqs[0].Layer*r.h.experts + t.reqs[0].Expert
	if err == nil {
		t.record.mem[0] = byte(key)
		r.owner[t.record] = key
	}
	rec := t.record
	for _, f := range append([]*slotRead{t}, r.h.arrived(rec, err)...) {
		if f.record != rec {
			r.Fatalf("who waited for expert %d has another record", key)
		}
		if err != nil {
			r.end(f)
			continue
		}
		r.upload = append(r.upload, f)
	}
}

func (r *tierRun) end(t *slotRead) {
	if next := r.h.release(t); next != nil {
		r.start(next)
	}
	r.settle()
}

func (r *tierRun) start(t *slotRead) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started = append(r.started, t)
}

// settle waits until the tier's own goroutine rests, and goes on with what it and others have
// started.
func (r *tierRun) settle() {
	synctest.Wait()
	r.mu.Lock()
	started := r.started
	r.started = nil
	r.mu.Unlock()
	for _, t := range started {
		r.waiting--
		r.go1(t)
	}
}

// TestTier sends 20,000 random reads of 40 experts through tiers of one block to all that there is,
// with failing reads and limits that fall and rise: a record is never two experts' at once nor
// taken from who uses it, every read ends, the memory follows the limit, and in the end is given
// back.
func TestTier(t *testing.T) {
	const experts, layers, stride = 20, 2, recordBlockBytes / 4
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 1))
				dev := &pinning{most: (9 + int(seed)*4) * stride}
				h, err := newTier(dev, layers, experts, stride, 16, experts*layers, slog.New(slog.DiscardHandler))
				if err != nil {
					t.Fatal(err)
				}
				r := &tierRun{T: t, h: h, owner: map[*record]int{}}
				h.start = r.start
				defer func() { // close must come, or the bubble never ends
					if !h.closed {
						h.close()
					}
				}()
				limit := experts * layers
				for range 5000 {
					switch k := rng.IntN(10); {
					case k < 4:
						read := &slotRead{done: stages.ExpertsRead{Speculative: rng.IntN(2) == 0}}
						read.reqs[0] = readpool.Request{Layer: rng.IntN(layers), Expert: rng.IntN(experts)}
						r.go1(read)
					case k < 6 && len(r.reading) > 0:
						var err error
						if rng.IntN(5) == 0 {
							err = errors.New("the disk is round")
						}
						r.arrive(rng.IntN(len(r.reading)), err)
					case k < 9 && len(r.upload) > 0:
						i := rng.IntN(len(r.upload))
						u := r.upload[i]
						r.upload = append(r.upload[:i], r.upload[i+1:]...)
						r.end(u)
					case k == 9 && rng.IntN(10) == 0:
						limit = rng.IntN(experts * layers)
						h.resize(limit)
					case k == 9 && rng.IntN(5) == 0:
						h.forgetAll()
						for key, rec := range h.at {
							if rec != nil && rec.users == 0 {
								t.Fatalf("expert %d was not forgotten", key)
							}
						}
					}
					r.settle()
					for len(r.reading)+len(r.upload) > 12 {
						if len(r.reading) > 0 {
							r.arrive(0, nil)
						}
						if len(r.upload) > 0 {
							u := r.upload[0]
							r.upload = r.upload[1:]
							r.end(u)
						}
					}
				}
				for len(r.reading)+len(r.upload) > 0 {
					for len(r.reading) > 0 {
						r.arrive(0, nil)
					}
					for len(r.upload) > 0 {
						u := r.upload[0]
						r.upload = r.upload[1:]
						r.end(u)
					}
				}
				if r.waiting != 0 || len(h.waiting) != 0 {
					t.Errorf("%d reads wait, %d by the tier's account, although nobody uses a record", r.waiting, len(h.waiting))
				}
				synctest.Wait()
				if most := max(limit, h.perBlock); h.held > most || dev.held != h.held*stride {
					t.Errorf("%d records are held, %d bytes pinned, where %d records may be", h.held, dev.held, most)
				}
				h.close()
				if dev.held != 0 {
					t.Errorf("%d bytes stay pinned", dev.held)
				}
			})
		})
	}
}

// What was wanted longest ago makes room, unless it is in use, and a demand goes before guesses
// that wait.
func TestTierOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const stride = recordBlockBytes / 3
		h, err := newTier(&pinning{most: 3 * stride}, 1, 8, stride, 16, 3, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer h.close()
		read := func(expert int, guess bool) *slotRead {
			r := &slotRead{done: stages.ExpertsRead{Speculative: guess}}
			r.reqs[0].Expert = expert
			return r
		}
		bring := func(expert int) {
			r := read(expert, false)
			if h.take(r) == foundRoom {
				h.arrived(r.record, nil)
			}
			h.release(r)
		}
		for _, e := range []int{0, 1, 2, 0, 3} {
			bring(e)
		}
		var here []int
		for e, r := range h.at {
			if r != nil {
				here = append(here, e)
			}
		}
		if fmt.Sprint(here) != "[0 2 3]" || h.hits != 1 {
			t.Errorf("experts %v are here after %d hits, want 0, 2, 3 after 1", here, h.hits)
		}
		users := []*slotRead{read(0, false), read(2, false), read(3, true)}
		for _, u := range users {
			if h.take(u) != foundThere {
				t.Fatalf("expert %d is not here", u.reqs[0].Expert)
			}
		}
		guess, demand := read(5, true), read(6, false)
		for _, r := range []*slotRead{guess, demand, read(7, false), read(1, true)} {
			if h.take(r) != foundNone {
				t.Error("there is room although every record is in use")
			}
		}
		var waiting []int
		for _, r := range h.waiting {
			waiting = append(waiting, r.reqs[0].Expert)
		}
		if fmt.Sprint(waiting) != "[6 7 5 1]" {
			t.Errorf("experts %v wait in this order, want demand 6, 7 and then guesses 5, 1", waiting)
		}
		h.waiting = slices.Delete(h.waiting, 1, 2)
		if next := h.release(users[1]); next != demand || h.take(next) != foundRoom || h.at[2] != nil {
			t.Error("the demand does not get the record that is not in use any more")
		}
		h.arrived(demand.record, nil)
		if next := h.release(demand); next != guess {
			t.Error("the guess waits although a record is not in use")
		}
	})
}

// A host that gives nothing is an error that says what was wanted.
func TestTierWithoutMemory(t *testing.T) {
	_, err := newTier(&pinning{}, 1, 8, 4096, 4000, 8, slog.New(slog.DiscardHandler))
	if !errors.Is(err, gpu.ErrOutOfMemory) {
		t.Errorf("a host without memory: %v", err)
	}
}
