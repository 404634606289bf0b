package actors_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
)

// discrete is a host device that makes as if it had memory of its own: an engine must upload what
// it reads. Its uploads can be made to fail.
type discrete struct {
	*host.Device
	free    int64
	pinned  error        // of NewPinned
	uploads atomic.Int64 // made by queues
	failAt  int64        // which upload fails, from 1
	fetches atomic.Int64 // operations of that kind
	moves   atomic.Int64 // Commands that move experts
	refuse  bool         // every second of these fails
}

var _ gpu.Discrete = (*discrete)(nil)

var errUpload = errors.New("the bus is broken")

func (d *discrete) Memory() (free, total int64, err error) { return d.free, d.free, nil }

func (d *discrete) NewPinned(n int) (gpu.Buffer, error) {
	if d.pinned != nil {
		return nil, d.pinned
	}
	return d.NewBuffer(n)
}

func (d *discrete) NewQueue() (gpu.Queue, error) {
	q, err := d.Device.NewQueue()
	return &discreteQueue{q, d}, err
}

type discreteQueue struct {
	gpu.Queue
	d *discrete
}

func (q *discreteQueue) Submit(c *gpu.Commands) (gpu.Ticket, error) {
	if len(c.Ops()) == 1 && c.Ops()[0].Name() == "upload" && q.d.uploads.Add(1) == q.d.failAt {
		return nil, errUpload
	}
	for _, op := range c.Ops() {
		if op.Kind() == gpu.KindFetch {
			q.d.fetches.Add(1)
		}
	}
	moves := len(c.Ops()) > 0 && c.Ops()[0].Kind() == gpu.KindRetabulate
	if moves && q.d.moves.Add(1)%2 == 1 && q.d.refuse {
		t, err := q.Queue.Submit(&gpu.Commands{Urgent: c.Urgent})
		return lostTicket{t}, err
	}
	return q.Queue.Submit(c)
}

// lostTicket is of Commands that the device has lost.
type lostTicket struct{ gpu.Ticket }

func (t lostTicket) OnDone(f func(error)) {
	t.Ticket.OnDone(func(error) { f(errUpload) })
}

// With slots and with all experts on the device results are the same bits as on one that reads the
// host's memory.
func TestDiscrete(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	host := device(t, 2)
	p := prompt(3, 20, open(t, actors.Config{Model: dir, Device: host}).Model().VocabSize)
	for _, c := range []struct {
		io    actors.ExpertIO
		slots int64
		want  actors.ExpertIO
	}{
		{actors.ExpertIOAuto, 0, actors.ExpertIOLoaded},
		{actors.ExpertIOMmap, 0, actors.ExpertIOLoaded},
		{actors.ExpertIOBuffered, 12, actors.ExpertIOBuffered},
		{actors.ExpertIOBuffered, 200, actors.ExpertIOBuffered},
	} {
		t.Run(fmt.Sprintf("io=%s/slots=%d", c.io, c.slots), func(t *testing.T) {
			dev := &discrete{Device: host, free: 1 << 30}
			e := open(t, actors.Config{Model: dir, Device: dev, ExpertIO: c.io, ExpertMemory: c.slots * 4096 * 4})
			if i := e.Info(); i.ExpertIO != c.want || i.Available != 1<<30 {
				t.Errorf("experts come by %s, %d bytes available; want %s and the device's memory", i.ExpertIO, i.Available, c.want)
			}
			want, err := transcript(sequence(t, open(t, actors.Config{Model: dir, Device: host})), p, 6)
			if err != nil {
				t.Fatal(err)
			}
			got, err := transcript(sequence(t, e), p, 6)
			if err != nil {
				t.Fatal(err)
			}
			for i := range want {
				for j, v := range want[i] {
					if got[i][j] != v {
						t.Fatalf("logit %d of row %d is %v, want %v", j, i, got[i][j], v)
					}
				}
			}
			if dev.uploads.Load() < 10 {
				t.Errorf("%d uploads", dev.uploads.Load())
			}
			s, err := e.Stats(context.Background())
			if err != nil || s.Memory.Shrunk != 0 {
				t.Errorf("slots were given up %d times, %v", s.Memory.Shrunk, err)
			}
		})
	}
}

// An upload that fails fails the step that waits for it, and the engine goes on.
func TestUploadFails(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	dev := &discrete{Device: device(t, 2), free: 1 << 30}
	// too few slots for all experts, or they would be filled in the background, where a failure is
	// nobody's
	e := open(t, actors.Config{
		Model: dir, Device: dev, ExpertIO: actors.ExpertIOBuffered, Prefetch: actors.PrefetchOff, ExpertMemory: 1 << 17, WaveSlots: 4,
	})
	s := sequence(t, e)
	dev.failAt = dev.uploads.Load() + 2
	if _, err := s.Eval(context.Background(), prompt(1, 9, e.Model().VocabSize)); !errors.Is(err, errUpload) {
		t.Errorf("evaluating gives %v, want the upload's error", err)
	}
	again := sequence(t, e)
	eval(t, again, prompt(1, 9, e.Model().VocabSize)...)
}

// A device that is too small, or a host that can pin nothing, is an error that says so, and nothing
// is left behind: the device can be closed.
func TestDiscreteTooSmall(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	none := fmt.Errorf("no pages to pin: %w", gpu.ErrOutOfMemory)
	for _, io := range []actors.ExpertIO{actors.ExpertIOMmap, actors.ExpertIOBuffered} {
		dev := &discrete{Device: device(t, 1), free: 1 << 30, pinned: none}
		_, err := actors.Open(context.Background(), actors.Config{Model: dir, Device: dev, ExpertIO: io})
		if !errors.Is(err, gpu.ErrOutOfMemory) || !strings.Contains(err.Error(), "expert") {
			t.Errorf("%s with nothing to pin: %v", io, err)
		}
	}
	dev := &discrete{Device: device(t, 1), free: 1000}
	_, err := actors.Open(context.Background(), actors.Config{Model: dir, Device: dev})
	if e := (*actors.MemoryError)(nil); !errors.As(err, &e) || e.Available != 1000 {
		t.Errorf("a device of 1000 bytes: %v", err)
	}
}

// What the host's memory has is not read again, and with hardly room there for the experts of one
// token everything still comes, for several texts at once.
func TestHostMemory(t *testing.T) {
	ctx := context.Background()
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	host := device(t, 2)
	first := open(t, actors.Config{Model: dir, Device: host})
	p := prompt(3, 20, first.Model().VocabSize)
	want, err := greedy(sequence(t, first), p, 10)
	if err != nil {
		t.Fatal(err)
	}
	record := int64(first.Info().SlotBytes+4095) / 4096 * 4096
	for _, c := range []struct {
		name    string
		records int
		all     bool
	}{{"all", 1000, true}, {"few", first.Info().TopK, false}} {
		t.Run(c.name, func(t *testing.T) {
			dev := &discrete{Device: host, free: 1 << 30}
			e := open(t, actors.Config{Model: dir, Device: dev, ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 12 * record, WaveSlots: 4, HostMemory: int64(c.records) * record})
			if n := e.Info().HostSlots; n > c.records || c.all != (n == len(e.Model().MoELayers())*e.Model().NumExperts) {
				t.Fatalf("%d experts in the host's memory, room for %d", n, c.records)
			}
			text := func() {
				t.Helper()
				got, err := greedy(sequence(t, e), p, 10)
				if err != nil || !slices.Equal(got, want) {
					t.Fatalf("%v, %v, want %v", got, err, want)
				}
			}
			text()
			before := statsOf(t, e)
			var together sync.WaitGroup
			for range 3 {
				s := sequence(t, e)
				together.Go(func() {
					if got, err := greedy(s, p, 10); err != nil || !slices.Equal(got, want) {
						t.Errorf("together: %v, %v, want %v", got, err, want)
					}
				})
			}
			together.Wait()
			after := statsOf(t, e)
			read, found := after.Reads.Bytes-before.Reads.Bytes, after.Reads.FromHost-before.Reads.FromHost
			if c.all != (read == 0) || c.all && found == 0 || after.Reads.Uploaded <= before.Reads.Uploaded {
				t.Errorf("%d bytes read, %d experts found in the host's memory, %d bytes uploaded before and %d after", read, found, before.Reads.Uploaded, after.Reads.Uploaded)
			}
			if held := after.Memory.HostHeld; held == 0 || held > int64(c.records)*record {
				t.Errorf("%d bytes of the host are held, of %d", held, int64(c.records)*record)
			}
		})
	}
	_, err = actors.Open(ctx, actors.Config{Model: dir, Device: &discrete{Device: host, free: 1 << 30}, ExpertIO: actors.ExpertIOBuffered, HostMemory: 1})
	if err == nil || !strings.Contains(err.Error(), "Config.HostMemory") {
		t.Errorf("one byte of the host: %v", err)
	}
}

func statsOf(t *testing.T, e *actors.Engine) *actors.Stats {
	t.Helper()
	s, err := e.Stats(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return s
}
