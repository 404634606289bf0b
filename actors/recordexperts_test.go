package actors_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/readpool"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// notedDisk is a disk that notes its reads. Each takes a time at least, and the record of one of
// them cannot be read for a while.
type notedDisk struct {
	readpool.Source
	takes  time.Duration
	broken int // which read fails, from 1, together with the second try; 0: none

	mu    sync.Mutex
	n     int
	bad   expertName
	tries int
	reads map[expertName][]diskRead
}

type expertName struct{ layer, expert int32 }

type diskRead struct {
	from, to time.Time
	err      error
}

var errNoted = errors.New("the disk is scratched")

func (d *notedDisk) ReadExpert(layer, expert int, dst []byte) error {
	name, from := expertName{int32(layer), int32(expert)}, time.Now()
	err := d.Source.ReadExpert(layer, expert, dst)
	d.mu.Lock()
	if d.n++; d.n == d.broken {
		d.bad, d.tries = name, 2
	}
	if d.tries > 0 && name == d.bad {
		d.tries--
		err = errNoted
	}
	d.mu.Unlock()
	time.Sleep(d.takes - time.Since(from))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reads[name] = append(d.reads[name], diskRead{from, time.Now(), err})
	return err
}

// slowUploads is a device with memory of its own, whose uploads are not done before uploadTakes has
// passed since they were asked for.
type slowUploads struct{ *discrete }

const uploadTakes = 300 * time.Microsecond

func (d slowUploads) NewQueue() (gpu.Queue, error) {
	q, err := d.discrete.NewQueue()
	return slowQueue{q}, err
}

type slowQueue struct{ gpu.Queue }

func (q slowQueue) Submit(c *gpu.Commands) (gpu.Ticket, error) {
	upload := len(c.Ops()) == 1 && c.Ops()[0].Name() == "upload"
	t, err := q.Queue.Submit(c)
	if err != nil || !upload {
		return t, err
	}
	return slowTicket{t, time.Now()}, nil
}

type slowTicket struct {
	gpu.Ticket
	from time.Time
}

func (t slowTicket) OnDone(f func(error)) {
	t.Ticket.OnDone(func(err error) {
		time.Sleep(uploadTakes - time.Since(t.from))
		f(err)
	})
}

// expertRun is an engine that has ended, what it recorded, and what is known of it from elsewhere.
type expertRun struct {
	*testing.T
	rec    *record.Recording
	stats  *actors.Stats
	info   actors.Info
	moe    []int // layers with routed experts
	disk   *notedDisk
	picked map[rowName][]int32 // [moe, TopK], by the answers
	failed int                 // chunks
	// what an upload takes at least; 0: slots are in the host's memory
	uploads time.Duration
}

type rowName struct {
	seq uint64
	pos int32
}

// runExperts lets some texts be read and go on, token by token, at once.
func runExperts(t *testing.T, cfg actors.Config, disk *notedDisk, texts, tokens int) *expertRun {
	t.Helper()
	cfg.Model, cfg.RecordMemory = fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), 64<<20
	if cfg.Device == nil {
		cfg.Device = device(t, 2)
	}
	disk.reads = make(map[expertName][]diskRead)
	e, err := actors.Open(context.Background(), actors.WithReads(cfg, func(src readpool.Source) readpool.Source {
		disk.Source = src
		return disk
	}))
	if err != nil {
		t.Fatal(err)
	}
	x := &expertRun{T: t, info: e.Info(), moe: e.Model().MoELayers(), disk: disk, picked: make(map[rowName][]int32)}
	var mu sync.Mutex
	var together sync.WaitGroup
	for i := range texts {
		together.Go(func() {
			s, err := e.NewSequence(context.Background())
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			ids := prompt(uint64(i+1), 30, 512)
			for n := range tokens {
				r, err := s.EvalChunk(context.Background(), actors.Chunk{Tokens: ids, Routing: true})
				mu.Lock()
				if err != nil {
					x.failed++
					if !errors.Is(err, errNoted) {
						t.Errorf("text %d, token %d: %v", i, n, err)
					}
					mu.Unlock()
					return
				}
				x.answered(uint64(s.ID()), r, len(ids))
				mu.Unlock()
				ids = []int32{argmax(r.Logits)}
			}
		})
	}
	together.Wait()
	if err := e.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if x.rec, err = e.Recording(context.Background()); err != nil || x.rec.Forgotten != nil {
		t.Fatalf("error %v, forgotten records: %v", err, x.rec.Forgotten)
	}
	x.stats, _ = e.Stats(context.Background()) // with ErrClosed
	return x
}

// answered keeps what each row of a chunk picked.
func (x *expertRun) answered(seq uint64, r *actors.Evaluated, rows int) {
	k := x.info.TopK
	for row := range rows {
		var all []int32
		for layer := range x.moe {
			all = append(all, r.Picks[(layer*rows+row)*k:][:k]...)
		}
		x.picked[rowName{seq, int32(r.Pos + row)}] = all
	}
}

// shows wants some records of each kind.
func (x *expertRun) shows(what ...any) {
	x.Helper()
	n := make(map[string]int)
	for _, u := range x.rec.Uses {
		n[fmt.Sprintf("found %d", u.Found)]++
	}
	for _, g := range x.rec.Guesses {
		n[fmt.Sprintf("verdict %d", g.Verdict)]++
	}
	for _, w := range x.rec.Waits {
		n[fmt.Sprintf("reason %d", w.Reason)]++
	}
	for _, r := range x.rec.Reads {
		n[fmt.Sprintf("tier %d", r.Tier)]++
		if r.Failed == 1 && r.BeganNS != 0 {
			n["failed"]++
		}
	}
	for _, p := range x.rec.Picks {
		n[fmt.Sprintf("ahead %d", p.Ahead)]++
	}
	for _, w := range what {
		key := fmt.Sprint(w)
		switch w := w.(type) {
		case record.Found:
			key = fmt.Sprintf("found %d", w)
		case record.Verdict:
			key = fmt.Sprintf("verdict %d", w)
		case record.Reason:
			key = fmt.Sprintf("reason %d", w)
		case record.Tier:
			key = fmt.Sprintf("tier %d", w)
		}
		if n[key] == 0 {
			x.Errorf("%s: none, the test shows nothing of them: %v", key, n)
		}
	}
	x.Logf("%v", n)
}

// TestRecordsOfExperts compares all that is recorded of experts with what the engine counts, what
// callers are told, and what the disk has seen.
func TestRecordsOfExperts(t *testing.T) {
	const slot = 24576 // no less than one of the fixture's
	short := actors.Config{ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 5 * slot, WaveSlots: 2, RingDepth: 2, ChunkRows: 16}
	with := func(cfg actors.Config, set func(*actors.Config)) actors.Config {
		set(&cfg)
		return cfg
	}
	for _, tc := range []struct {
		name  string
		cfg   actors.Config
		disk  *notedDisk
		shows []any
	}{
		{"slots short, prefetch, a slow disk, a failing read", short, &notedDisk{takes: time.Millisecond, broken: 900},
			[]any{record.Missing, record.Shared, record.Dropped, record.Room, "failed", "ahead 1"}},
		{"slots short, no prefetch", with(short, func(c *actors.Config) { c.Prefetch = actors.PrefetchOff }), &notedDisk{},
			[]any{record.Resident, record.Missing, record.Room, record.WaveCredit}},
		{"half of the slots, a slow disk, one reader", with(short, func(c *actors.Config) { c.ExpertMemory, c.ReadWorkers, c.PrefetchLayers = 24*slot, 1, 2 }), &notedDisk{takes: 500 * time.Microsecond},
			[]any{record.Resident, record.Late, record.Missing, record.Issued, record.Declined, record.ReadCredit, "ahead 2"}},
		{"a device with memory of its own", with(short, func(c *actors.Config) {
			c.Device, c.HostMemory = slowUploads{&discrete{Device: device(t, 2), free: 1 << 30}}, 1<<20
		}), &notedDisk{takes: 200 * time.Microsecond}, []any{record.FromDisk, record.FromHost, record.Issued}},
		{"warm", actors.Config{ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 1 << 30}, &notedDisk{takes: 10 * time.Millisecond}, []any{record.Resident, record.Late}},
		{"mapped", actors.Config{ExpertIO: actors.ExpertIOMmap, Resident: actors.ResidentOff}, &notedDisk{}, []any{record.Resident}},
		{"resident", actors.Config{ExpertIO: actors.ExpertIOMmap}, &notedDisk{}, []any{record.Resident}},
		{"far", actors.Config{
			Device:   &discrete{Device: device(t, 2), free: 1 << 30},
			ExpertIO: actors.ExpertIOLoaded, ExpertMemory: 12 * slot,
		}, &notedDisk{}, []any{record.Resident, record.Far}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x := runExperts(t, tc.cfg, tc.disk, 2, 16)
			x.sums()
			x.routing()
			if _, own := tc.cfg.Device.(gpu.Discrete); own {
				x.uploads = uploadTakes
			}
			if x.info.NearSlots == 0 { // else they are copies, and the disk was read before
				x.readTimes()
			}
			x.moments()
			x.flows()
			if !x.info.Resident {
				x.waits()
			}
			x.shows(tc.shows...)
			// A guess that fails fails nobody: if somebody has come to want it, it is read again.
			onDemand := slices.ContainsFunc(x.rec.Reads, func(r record.Read) bool { return r.Failed == 1 && r.BeganNS != 0 && r.Hint == 0 })
			if (x.failed > 0) != onDemand || x.failed > 0 && tc.disk.broken == 0 {
				t.Errorf("%d chunks failed, and a read on demand failed: %v", x.failed, onDemand)
			}
		})
	}
}
