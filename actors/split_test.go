package actors_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/actors/expertmem"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/gputest"
	"github.com/moeflux/moeflux-actor/gpu/split"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/stages"
)

// splitOf makes one device of several, as long as the test lives.
func splitOf(tb testing.TB, parts ...gpu.Device) gpu.Split {
	tb.Helper()
	d, err := split.New(parts...)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// hosts returns n devices of the processor.
func hosts(tb testing.TB, n int) (all []gpu.Device) {
	tb.Helper()
	for range n {
		all = append(all, device(tb, 1))
	}
	return all
}

// splitBits wants the bits of one device from several, of a text and of two at once.
func splitBits(t *testing.T, name string, one gpu.Device, several gpu.Split) {
	cfg := actors.Config{Model: fixtures.Packed(t, name, 0), Device: one, ChunkRows: 12, RecordMemory: fewRecords}
	base := open(t, cfg)
	cfg.Device = several
	splitBitsWith(t, base, cfg)
}

// splitBitsWith wants the bits of an engine from one of other settings.
func splitBitsWith(t *testing.T, base *actors.Engine, cfg actors.Config) {
	n := 21
	if k := base.Model().IndexBudget(); k > 0 {
		n = min(k+5, base.Info().Context-8) // so that positions are chosen
	}
	first, second := prompt(1, n, base.Model().VocabSize), prompt(2, 11, base.Model().VocabSize)
	want, err := transcript(sequence(t, base), first, 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range []string{"alone", "beside another"} {
		if err := sameConversation(cfg, first, second, want, way); err != nil {
			t.Errorf("%s: %v", way, err)
		}
	}
}

// TestSplit has fixture models computed by two devices of the processor, and by as many as they
// have layers: the bits are those of one.
func TestSplit(t *testing.T) {
	one := device(t, 1)
	for _, name := range fixtures.All() {
		if !testenv.Share(t, name, 8) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			splitBits(t, name, one, splitOf(t, hosts(t, 2)...))
		})
	}
	for _, name := range []string{fixtures.Qwen35MoEQ4, fixtures.GlmMoEDSASharedBF16} {
		t.Run("each layer/"+name, func(t *testing.T) {
			layers := len(open(t, actors.Config{Model: fixtures.Packed(t, name, 0), Device: one, RecordMemory: fewRecords}).Model().Layers)
			splitBits(t, name, one, splitOf(t, hosts(t, layers)...))
		})
	}
}

// TestSplitSave saves a state of two devices and goes on with it on one, and the other way round.
func TestSplitSave(t *testing.T) {
	ctx := context.Background()
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	one := open(t, actors.Config{Model: dir, Device: device(t, 1), RecordMemory: fewRecords})
	two := open(t, actors.Config{Model: dir, Device: splitOf(t, hosts(t, 2)...), RecordMemory: fewRecords})
	tokens := prompt(3, 70, one.Model().VocabSize)
	for _, way := range [][2]*actors.Engine{{one, two}, {two, one}} {
		from, to := sequence(t, way[0]), sequence(t, way[1])
		eval(t, from, tokens...)
		var saved bytes.Buffer
		if _, err := from.Save(ctx, &saved, actors.SaveOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := to.Load(ctx, bytes.NewReader(saved.Bytes()), int64(saved.Len()), actors.LoadOptions{}); err != nil {
			t.Fatal(err)
		}
		if want, got := eval(t, from, 5), eval(t, to, 5); !slices.Equal(want, got) {
			t.Error("a state that was brought from one device to two, or back, goes on otherwise")
		}
	}
}

// TestSplitPicks wants what the experts of all layers are counted as from two devices, as from one:
// the picks of the first come down with those of the second.
func TestSplitPicks(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	var hits, bytes [2]int64
	for i, dev := range []gpu.Device{device(t, 1), splitOf(t, hosts(t, 2)...)} {
		e := open(t, actors.Config{Model: dir, Device: dev, RecordMemory: fewRecords})
		r, err := sequence(t, e).EvalChunk(context.Background(), actors.Chunk{Tokens: prompt(4, 5, e.Model().VocabSize)})
		if err != nil {
			t.Fatal(err)
		}
		hits[i], bytes[i] = r.Account.Hit, r.Account.SlotBytes
	}
	if hits[0] != hits[1] || bytes[0] != bytes[1] || hits[0] == 0 {
		t.Errorf("one device counts %d picks in %d bytes, two %d in %d", hits[0], bytes[0], hits[1], bytes[1])
	}
}

// TestSplitTexts has several texts decoded at once by two devices, with prompts that come and go:
// each has the tokens that it has alone.
func TestSplitTexts(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	one := open(t, actors.Config{Model: dir, Device: device(t, 1), RecordMemory: fewRecords})
	two := open(t, actors.Config{Model: dir, Device: splitOf(t, hosts(t, 2)...), ChunkRows: 9, RecordMemory: fewRecords})
	texts := make([][]int32, 6)
	want := make([][][]float32, len(texts))
	for i := range texts {
		texts[i] = prompt(uint64(10+i), 3+7*i, one.Model().VocabSize)
		var err error
		if want[i], err = transcript(sequence(t, one), texts[i], 12); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for i := range texts {
		s := sequence(t, two)
		wg.Go(func() {
			got, err := transcript(s, texts[i], 12)
			if err != nil || !slices.EqualFunc(got, want[i], slices.Equal[[]float32]) {
				t.Errorf("text %d: error %v, or other logits than alone on one device", i, err)
			}
		})
	}
	wg.Wait()
}

// TestSplitFailure has each of two devices fail: a text that was under way is poisoned, as by a
// device that is alone, and the engine serves others.
func TestSplitFailure(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	for i := range 8 {
		part, submit, streamed := i%2, i/2%2 == 0, i/4 == 0
		parts := hosts(t, 2)
		bad := &brokenDevice{Device: parts[part]}
		parts[part] = bad
		cfg := actors.Config{Model: dir, Device: splitOf(t, parts...), RecordMemory: fewRecords}
		if streamed {
			cfg.ExpertIO = actors.ExpertIOBuffered
		}
		e := open(t, cfg)
		s := sequence(t, e)
		want := eval(t, s, 1, 2, 3)
		if next := bad.submits.Load() + 1; submit {
			bad.submit = next
		} else {
			bad.complete = next
		}
		if _, err := s.Eval(context.Background(), []int32{4}); !errors.Is(err, errBroken) {
			t.Errorf("part %d, streamed %v, fails at submission %v: %v", part, streamed, submit, err)
		}
		if got := eval(t, sequence(t, e), 1, 2, 3); !slices.Equal(got, want) {
			t.Errorf("part %d, streamed %v: after its failure the same text has other logits", part, streamed)
		}
	}
}

// TestDivide cuts layers by the memory of devices. What is filled most is filled as little as any
// other cut would fill it.
func TestDivide(t *testing.T) {
	for _, c := range []struct {
		bytes, memory []int64
		want          stages.Borders
	}{
		{[]int64{1, 1, 1, 1}, []int64{9, 9}, stages.Borders{2}},
		{[]int64{1, 1, 1, 1}, []int64{3, 1}, stages.Borders{3}},
		{[]int64{1, 1, 1, 1}, []int64{1, 3}, stages.Borders{1}},
		{[]int64{5, 1, 1, 1}, []int64{9, 9}, stages.Borders{1}},
		{[]int64{1, 1, 1, 5}, []int64{9, 9, 9}, stages.Borders{1, 3}},
		{[]int64{2, 2, 2, 2, 2, 2}, []int64{4, 1, 7}, stages.Borders{2, 3}},
		{[]int64{1, 1}, []int64{0, 0}, stages.Borders{1}},
	} {
		got, err := actors.Divide(c.bytes, c.memory)
		if err != nil {
			t.Fatal(err)
		}
		if most := fullest(c.bytes, c.memory, got); most > leastFull(c.bytes, c.memory, nil) {
			t.Errorf("%v in %v: cut at %v, which fills one by %.3f", c.bytes, c.memory, got, most)
		}
		if n := len(c.memory); n == 2 && !slices.Equal(got, c.want) {
			t.Errorf("%v in %v: cut at %v, want %v", c.bytes, c.memory, got, c.want)
		}
	}
	if _, err := actors.Divide([]int64{1}, []int64{1, 1}); err == nil {
		t.Error("one layer is divided among two devices")
	}
}

// fullest returns how full the fullest memory is.
func fullest(bytes, memory []int64, borders stages.Borders) (most float64) {
	for i, m := range memory {
		first, end := borders.Range(i, len(bytes))
		taken := int64(0)
		for _, b := range bytes[first:end] {
			taken += b
		}
		most = max(most, float64(taken)/float64(max(m, 1)))
	}
	return most
}

// leastFull tries all cuts.
func leastFull(bytes, memory []int64, borders stages.Borders) float64 {
	if len(borders) == len(memory)-1 {
		return fullest(bytes, memory, borders)
	}
	from, least := 1, math.Inf(1)
	if n := len(borders); n > 0 {
		from = borders[n-1] + 1
	}
	for at := from; at < len(bytes); at++ {
		least = min(least, leastFull(bytes, memory, append(slices.Clone(borders), at)))
	}
	return least
}

// TestSplitStreamed has fixture models computed by two devices, and by as many as they have layers,
// while experts are read into slots, of which each device has its own: the bits are those of one
// device that has all experts.
func TestSplitStreamed(t *testing.T) {
	one := device(t, 1)
	for _, name := range fixtures.All() {
		if !testenv.Share(t, name, 8) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			splitBitsStreamed(t, name, one, splitOf(t, hosts(t, 2)...))
		})
	}
	for _, name := range []string{fixtures.Qwen35MoEQ4, fixtures.GlmMoEDSASharedBF16} {
		t.Run("each layer/"+name, func(t *testing.T) {
			layers := len(open(t, actors.Config{Model: fixtures.Packed(t, name, 0), Device: one, RecordMemory: fewRecords}).Model().Layers)
			splitBitsStreamed(t, name, one, splitOf(t, hosts(t, layers)...))
		})
	}
}

// splitBitsStreamed is splitBits with half of the experts in slots.
func splitBitsStreamed(t *testing.T, name string, one gpu.Device, several gpu.Split) {
	base := open(t, actors.Config{Model: fixtures.Packed(t, name, 0), Device: one, ChunkRows: 12, RecordMemory: fewRecords})
	info := base.Info()
	splitBitsWith(t, base, actors.Config{
		Model: fixtures.Packed(t, name, 0), Device: several, ChunkRows: 12, RecordMemory: fewRecords,
		ExpertIO: actors.ExpertIOBuffered, ExpertMemory: max(info.ExpertBytes/2, int64(4*len(gpu.PartsOf(several))*info.TopK*(info.SlotBytes+4096))),
	})
}

// TestSplitRouted has the host choose the experts of two devices that have all of them.
func TestSplitRouted(t *testing.T) {
	for _, name := range []string{"deepseek_v3/bf16", fixtures.Qwen35MoEQ4} {
		dir := fixtures.Packed(t, name, 0)
		base := open(t, actors.Config{Model: dir, Device: device(t, 1), ChunkRows: 12, RecordMemory: fewRecords})
		splitBitsWith(t, base, actors.Config{
			Model: dir, Device: splitOf(t, hosts(t, 2)...), ChunkRows: 12, RecordMemory: fewRecords, ExpertIO: actors.ExpertIOMmap, Resident: actors.ResidentOff,
		})
	}
}

// TestSplitSlots resizes the slots of two devices, and wants an error that says what to do where
// one of them has no room for a token's experts.
func TestSplitSlots(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	cfg := actors.Config{Model: dir, Device: splitOf(t, hosts(t, 2)...), RecordMemory: fewRecords, ExpertIO: actors.ExpertIOBuffered, WaveSlots: 2}
	e := open(t, cfg)
	s := sequence(t, e)
	want := eval(t, s, 1, 2, 3)
	info := e.Info()
	if n, err := e.ResizeSlots(t.Context(), 1); err != nil || n != 4 {
		t.Errorf("%d slots and error %v, want two of each device", n, err)
	}
	if got := eval(t, sequence(t, e), 1, 2, 3); !slices.Equal(got, want) {
		t.Error("with two slots of each device: other logits")
	}
	if n, err := e.ResizeSlots(t.Context(), info.Slots); err != nil || n != info.Slots {
		t.Errorf("%d slots and error %v, want all %d back", n, err, info.Slots)
	}
	cfg.ExpertMemory, cfg.WaveSlots = int64(info.SlotBytes+4096)*int64(info.TopK), 0
	_, err := actors.Open(t.Context(), cfg)
	var part *expertmem.PartError
	if !errors.As(err, &part) || !strings.Contains(err.Error(), "ExpertMemory") {
		t.Errorf("a device without room for a token's experts: %v", err)
	}
}

// TestSplitSideBySide has the second of two devices stand still with one text: the first one
// computes all its layers of another text meanwhile.
func TestSplitSideBySide(t *testing.T) {
	all := hosts(t, 2)
	first, second := &counted{Device: all[0]}, gputest.NewHeld(all[1])
	e := open(t, actors.Config{
		Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), Device: splitOf(t, first, second), RingDepth: 1, RecordMemory: fewRecords,
	})
	before := first.given.Load()
	var texts sync.WaitGroup
	eval := func(n uint64) {
		s := sequence(t, e)
		texts.Go(func() {
			if _, err := s.EvalChunk(context.Background(), actors.Chunk{Tokens: prompt(n, 5, e.Model().VocabSize)}); err != nil {
				t.Error(err)
			}
		})
	}
	second.ArmAll()
	eval(1)
	<-second.Came
	groups := first.given.Load() - before - 1 // without the download of what moves
	if groups < 2 {
		t.Errorf("the first device was given its layers in %d pieces, two at least show something", groups)
	}
	eval(2)
	for end := time.Now().Add(time.Minute); first.given.Load() < before+2*groups+1; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Error("within a minute the first device is not given all of its layers of the second text")
			break
		}
	}
	second.Release()
	texts.Wait()
}

// counted is a device that counts what it is given.
type counted struct {
	gpu.Device
	given atomic.Int64
}

func (d *counted) NewQueue() (gpu.Queue, error) {
	q, err := d.Device.NewQueue()
	return &countedQueue{q, d}, err
}

type countedQueue struct {
	gpu.Queue
	d *counted
}

func (q *countedQueue) Submit(c *gpu.Commands) (gpu.Ticket, error) {
	q.d.given.Add(1)
	return q.Queue.Submit(c)
}
