package dispatch_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/weights"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/dispatch"
)

var errRefused = errors.New("the queue takes nothing")

// queue takes commands and never runs them. It remembers the operations of each and fails if
// commands are used again before the test has finished them.
type queue struct {
	t        *testing.T
	taken    int             // commands
	refuse   int             // the how-manieth from now is refused; 0: none
	ops      [][]string      // of each commands, names with counts
	kept     [][]gpu.Op      // of each commands, copies of what tests look at
	inFlight []*gpu.Commands // by number; nil when finished
	lines    []string
	binding  bool // tickets are done at once
}

func (q *queue) Submit(c *gpu.Commands) (gpu.Ticket, error) {
	for i, f := range q.inFlight {
		if f == c {
			q.t.Errorf("commands %d are used again while they are with the device", i)
		}
	}
	if err := c.Check(); err != nil {
		q.t.Errorf("commands %d: %v", q.taken, err)
	}
	if q.refuse > 0 {
		if q.refuse--; q.refuse == 0 {
			q.lines = append(q.lines, "submit refused: "+strings.Join(names(c), " "))
			return nil, errRefused
		}
	}
	c.Accept()
	q.taken++
	q.ops, q.kept = append(q.ops, names(c)), append(q.kept, keep(c))
	q.inFlight = append(q.inFlight, c)
	q.lines = append(q.lines, fmt.Sprintf("submit t%d: %s", q.taken, strings.Join(names(c), " ")))
	return &ticket{q.taken, q.binding}, nil
}

func (q *queue) Close() error { return nil }

// names lists operations, repeated ones with their number.
func names(c *gpu.Commands) (list []string) {
	n := 0
	for i, op := range c.Ops() {
		if n++; i+1 == c.Len() || c.Ops()[i+1].Name() != op.Name() {
			name := op.Name()
			if n > 1 {
				name = fmt.Sprintf("%s*%d", name, n)
			}
			list, n = append(list, name), 0
		}
	}
	return list
}

// keep copies the operations with state and results, whose memory is used again later.
func keep(c *gpu.Commands) (list []gpu.Op) {
	for _, op := range c.Ops() {
		switch o := op.(type) {
		case *gpu.AppendKV:
			k := *o
			k.Segments = append([]gpu.KVSegment(nil), o.Segments...)
			list = append(list, &k)
		case *gpu.DeltaRule:
			k := *o
			k.Segments = append([]gpu.StateSegment(nil), o.Segments...)
			list = append(list, &k)
		case *gpu.Fill:
			k := *o
			list = append(list, &k)
		case *gpu.CopyHeads:
			k := *o
			list = append(list, &k)
		case *gpu.Download:
			k := *o
			list = append(list, &k)
		case *gpu.Embed:
			k := *o
			list = append(list, &k)
		}
	}
	return list
}

// ticket is finished by the test's messages, or done from the start.
type ticket struct {
	n    int
	done bool
}

func (t *ticket) OnDone(f func(error)) {
	if t.done {
		f(nil)
	}
}
func (t *ticket) DeviceNS() int64 { return int64(t.n) }
func (t *ticket) String() string  { return fmt.Sprintf("t%d", t.n) }

// slotMemory has 16 slots in one buffer.
type slotMemory struct {
	buf    gpu.Buffer
	stride int
}

func (s *slotMemory) View(id stages.SlotID) gpu.View {
	return gpu.View{Buf: s.buf, Offset: int(id) * s.stride}
}

// device counts the buffers that are not released, and fails the how-manieth making of one.
type device struct {
	gpu.Device
	live, fail int
	sizes      []int
}

type buffer struct {
	gpu.Buffer
	d    *device
	gone bool
}

func (d *device) NewBuffer(n int) (gpu.Buffer, error) {
	if d.fail > 0 {
		if d.fail--; d.fail == 0 {
			return nil, fmt.Errorf("%d bytes: %w", n, gpu.ErrOutOfMemory)
		}
	}
	b, err := d.Device.NewBuffer(n)
	if err != nil {
		return nil, err
	}
	d.live++
	d.sizes = append(d.sizes, n)
	return &buffer{Buffer: b, d: d}, nil
}

func (d *device) Wrap(mem []byte) (gpu.Buffer, error) {
	b, err := d.Device.Wrap(mem)
	if err != nil {
		return nil, err
	}
	d.live++
	return &buffer{Buffer: b, d: d}, nil
}

func (b *buffer) Release() {
	if !b.gone {
		b.gone = true
		b.d.live--
	}
	b.Buffer.Release()
}

// bench is a core with everything around it.
type bench struct {
	*dispatch.Core
	cfg   *model.Config
	dev   *device
	queue *queue
	out   stages.Outbox
	first int // of queue.kept, of the step that went through last
}

// open makes a core for the fixture of four layers, three of them linear. fail is device.fail.
func open(t *testing.T, cfg dispatch.Config, fail int) (*bench, error) {
	t.Helper()
	dir := fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0)
	raw, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{queue: &queue{t: t, binding: true}}
	if b.cfg, err = model.ParseConfig(raw, nil); err != nil {
		t.Fatal(err)
	}
	w, err := weights.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	e, err := expertfile.Open(dir, b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	h, err := host.New(host.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	b.dev = &device{Device: h, fail: fail}
	cfg.Model, cfg.Layout, cfg.RecordBytes, cfg.TopK = b.cfg, e.LayoutOf, e.Layout().Bytes, b.cfg.NumExpertsPerTok
	slots := &slotMemory{stride: e.Layout().Bytes}
	if slots.buf, err = h.NewBuffer(16 * slots.stride); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(slots.buf.Release)
	b.Core, err = dispatch.New(cfg, b.dev, b.queue, w, slots)
	b.queue.binding = false
	b.queue.finish(b.queue.taken)
	b.queue.lines, b.queue.taken = nil, 0
	b.queue.inFlight, b.queue.ops, b.queue.kept = nil, nil, nil
	return b, err
}

// finish gives all commands up to number n back.
func (q *queue) finish(n int) {
	for i := range q.inFlight[:n] {
		q.inFlight[i] = nil
	}
}
