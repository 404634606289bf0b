package dispatch_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/dispatch"
)

func mustOpen(t *testing.T, cfg dispatch.Config) *bench {
	t.Helper()
	b, err := open(t, cfg, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// give hands the core a message and returns what it sends.
func (b *bench) give(t *testing.T, m stages.Message) []stages.Message {
	t.Helper()
	b.out.Reset()
	if err := b.Step(m, &b.out); err != nil {
		t.Fatal(err)
	}
	var sent []stages.Message
	for _, s := range b.out.Sends {
		sent = append(sent, s.Msg)
	}
	return sent
}

// through takes a step with these segments through the mixers of all layers and returns the pages that its full attention layer
// saw for each segment. IDs count up.
func (b *bench) through(t *testing.T, id stages.StepID, segments ...stages.Segment) [][]gpu.View {
	t.Helper()
	batch := &stages.Batch{Segments: segments}
	for i := range segments {
		segments[i].Row = len(batch.Rows)
		for p := range segments[i].Rows {
			batch.Rows = append(batch.Rows, stages.Row{Seq: segments[i].Seq, Pos: int32(segments[i].Pos + p)})
		}
	}
	for layer := range b.cfg.Layers {
		sent := b.give(t, &stages.BeginLayer{Step: stages.Step{ID: id, Layer: layer, Batch: batch}})
		if len(sent) > 0 {
			t.Fatalf("layer %d: %+v", layer, sent[0])
		}
		b.queue.finish(b.queue.taken)
		for _, a := range b.out.Awaits {
			b.give(t, &stages.TicketDone{Step: a.Step, ID: a.ID})
		}
	}
	var pages [][]gpu.View
	for _, op := range b.queue.kept[len(b.queue.kept)-2] {
		if o, ok := op.(*gpu.AppendKV); ok {
			for i, s := range o.Segments {
				if s.Row != segments[i].Row || s.Rows != segments[i].Rows || s.Pos != segments[i].Pos {
					t.Errorf("segment %d is %+v, want %+v", i, s, segments[i])
				}
				pages = append(pages, s.KV.Pages)
			}
		}
	}
	return pages
}

// TestPages follows the pages of sequences that grow, are reset and closed. No two sequences ever share one, a sequence keeps
// those it has, and what is given back is used again before more is taken from the device.
func TestPages(t *testing.T) {
	b := mustOpen(t, dispatch.Config{ChunkRows: 80, Lanes: 1, PageRows: 4, MaxPages: 20})
	for id := range stages.SeqID(3) {
		b.give(t, &stages.OpenSequence{Seq: id + 1})
	}
	before := len(b.dev.sizes)
	a := b.through(t, 1, stages.Segment{Seq: 1, Rows: 4}, stages.Segment{Seq: 2, Rows: 5})
	if len(a[0]) != 1 || len(a[1]) != 2 || b.PagesUsed() != 3 {
		t.Fatalf("%d and %d pages for 4 and 5 positions, %d used, want 1, 2 and 3", len(a[0]), len(a[1]), b.PagesUsed())
	}
	c := b.through(t, 2, stages.Segment{Seq: 2, Pos: 5, Rows: 3}, stages.Segment{Seq: 1, Pos: 4, Rows: 1})
	if !slices.Equal(c[0], a[1]) || len(c[1]) != 2 || c[1][0] != a[0][0] {
		t.Fatalf("pages %v and %v after %v and %v: a sequence lost some, or got some that it has no use for", c[0], c[1], a[1], a[0])
	}
	distinct(t, c...)
	b.give(t, &stages.ResetSequence{Seq: 2})
	if b.PagesUsed() != 2 {
		t.Errorf("%d pages are used after a reset, want 2", b.PagesUsed())
	}
	// All twenty pages: 2 of sequence 1, 18 of sequence 3, among them those of sequence 2.
	d := b.through(t, 3, stages.Segment{Seq: 3, Rows: 72}, stages.Segment{Seq: 1, Pos: 5, Rows: 3})
	distinct(t, d...)
	if b.PagesUsed() != 20 || len(d[0]) != 18 {
		t.Errorf("%d pages are used, %d of them for 72 positions; want 20 and 18", b.PagesUsed(), len(d[0]))
	}
	for _, p := range a[1] {
		if !slices.Contains(d[0], p) {
			t.Errorf("page %v was given back and not used again", p)
		}
	}
	page := dispatch.PageBytes(b.cfg, gpu.KVF32, 4)
	if got, want := b.dev.sizes[before:], []int{16 * page, 4 * page}; !slices.Equal(got, want) {
		t.Errorf("buffers of %v bytes were made for pages, want %v", got, want)
	}
	b.give(t, &stages.CloseSequence{Seq: 1})
	b.give(t, &stages.CloseSequence{Seq: 3})
	if b.PagesUsed() != 0 || b.AtRest() == nil {
		t.Errorf("%d pages are used by closed sequences; at rest: %v, although a reset is under way", b.PagesUsed(), b.AtRest())
	}
	// A page holds keys and values of four positions of the one full attention layer.
	if want := 2 * 4 * b.cfg.NumKeyValueHeads * b.cfg.HeadDim * 4; page != want {
		t.Errorf("a page has %d bytes, want %d", page, want)
	}
}

// distinct reports pages that overlap.
func distinct(t *testing.T, lists ...[]gpu.View) {
	t.Helper()
	seen := make(map[gpu.View]bool)
	for _, p := range slices.Concat(lists...) {
		if seen[p] {
			t.Errorf("page %v has two owners", p)
		}
		seen[p] = true
	}
}

// TestNoPages asks for more than the pool has: the step fails, and what the sequence has got so far is given back by a reset.
func TestNoPages(t *testing.T) {
	b := mustOpen(t, dispatch.Config{ChunkRows: 16, Lanes: 1, PageRows: 4, MaxPages: 3})
	b.give(t, &stages.OpenSequence{Seq: 1})
	batch := &stages.Batch{Rows: make([]stages.Row, 16), Segments: []stages.Segment{{Seq: 1, Rows: 16}}}
	sent := b.give(t, &stages.BeginLayer{Step: stages.Step{ID: 1, Batch: batch}})
	if f, ok := sent[0].(*stages.StepFailed); !ok || f.Stage != stages.Dispatch {
		t.Fatalf("%T, want a StepFailed", sent[0])
	}
	b.give(t, &stages.ResetSequence{Seq: 1})
	if b.PagesUsed() != 0 {
		t.Errorf("%d pages are used after the reset", b.PagesUsed())
	}
}

// TestRecurrentState looks at the memory of a linear layer's state: each sequence has its own, it stays where it is, and a closed
// one's is cleared in full before another has it.
func TestRecurrentState(t *testing.T) {
	b := mustOpen(t, dispatch.Config{ChunkRows: 4, Lanes: 1, PageRows: 4, MaxPages: 8})
	state := func(id stages.StepID, segments ...stages.Segment) (views []gpu.View) {
		from := len(b.queue.kept)
		b.through(t, id, segments...)
		for _, op := range b.queue.kept[from] { // layer 0
			if o, ok := op.(*gpu.DeltaRule); ok {
				for _, s := range o.Segments {
					views = append(views, s.State)
				}
			}
		}
		return views
	}
	b.give(t, &stages.OpenSequence{Seq: 1})
	b.give(t, &stages.OpenSequence{Seq: 2})
	first := state(1, stages.Segment{Seq: 1, Rows: 1}, stages.Segment{Seq: 2, Rows: 2})
	if len(first) != 2 || first[0].Buf == first[1].Buf {
		t.Fatalf("states %v, want two buffers", first)
	}
	if again := state(2, stages.Segment{Seq: 2, Pos: 2, Rows: 1}); again[0] != first[1] {
		t.Errorf("the state moved from %v to %v", first[1], again[0])
	}
	b.give(t, &stages.CloseSequence{Seq: 1})
	from := len(b.queue.kept)
	b.give(t, &stages.OpenSequence{Seq: 3})
	fill, ok := b.queue.kept[from][0].(*gpu.Fill)
	if !ok || fill.Dst != (gpu.View{Buf: first[0].Buf}) || fill.Bytes != dispatch.RecurrentBytes(b.cfg) {
		t.Fatalf("opening in place of another submits %+v, want a fill of all %d bytes", b.queue.kept[from][0], dispatch.RecurrentBytes(b.cfg))
	}
	if third := state(3, stages.Segment{Seq: 3, Rows: 1}); third[0] != first[0] {
		t.Errorf("the third sequence's state is %v, want that of the first, %v", third[0], first[0])
	}
}

// TestHeadInPieces asks for logits of more rows than are computed at once: each row's arrive in its place.
func TestHeadInPieces(t *testing.T) {
	b := mustOpen(t, dispatch.Config{ChunkRows: 40, Lanes: 1, PageRows: 4, MaxPages: 16})
	b.give(t, &stages.OpenSequence{Seq: 1})
	batch := &stages.Batch{Rows: make([]stages.Row, 40), Segments: []stages.Segment{{Seq: 1, Rows: 40}}}
	for i := range batch.Rows {
		batch.Rows[i].Logits = i%8 != 0 // 35 rows: pieces of 16, 16 and 3
	}
	b.give(t, &stages.BeginLayer{Step: stages.Step{ID: 1, Batch: batch}})
	b.queue.finish(b.queue.taken)
	b.give(t, &stages.TicketDone{ID: b.out.Awaits[0].ID})
	b.give(t, &stages.ReadLogits{Step: stages.Step{ID: 1, Layer: 4, Batch: batch}})
	i := 0
	for _, op := range b.queue.kept[len(b.queue.kept)-1] {
		d := op.(*gpu.Download)
		for at := range d.Dst {
			d.Dst[at] = byte(i + at/(4*b.cfg.VocabSize) + 1)
		}
		i += len(d.Dst) / (4 * b.cfg.VocabSize)
	}
	b.queue.finish(b.queue.taken)
	sent := b.give(t, &stages.TicketDone{ID: b.out.Awaits[0].ID})
	logits := sent[0].(*stages.LogitsReady).Logits
	if i != 35 || len(logits) != 35*b.cfg.VocabSize {
		t.Fatalf("%d rows are read and %d logits sent, want 35 rows of %d", i, len(logits), b.cfg.VocabSize)
	}
	for r := range 35 {
		if got := gpu.FloatBytes(logits[r*b.cfg.VocabSize:])[0]; got != byte(r+1) {
			t.Fatalf("row %d has the logits that were computed for row %d", r, got-1)
		}
	}
}

// TestRelease fails every making of a buffer in turn, and opens and closes a core in use: nothing stays.
func TestRelease(t *testing.T) {
	cfg := dispatch.Config{ChunkRows: 4, Lanes: 2, PageRows: 4, MaxPages: 8}
	failed := 0
	for n := 1; ; n++ {
		b, err := open(t, cfg, n)
		if err == nil {
			b.dev.fail = 0
			b.give(t, &stages.OpenSequence{Seq: 1})
			b.give(t, &stages.OpenSequence{Seq: 2})
			b.through(t, 1, stages.Segment{Seq: 1, Rows: 1})
			b.give(t, &stages.CloseSequence{Seq: 2})
			b.Close()
		} else if failed++; !errors.Is(err, gpu.ErrOutOfMemory) {
			t.Fatalf("buffer %d: %v", n, err)
		}
		if b.dev.live != 0 {
			t.Fatalf("buffer %d fails (%v): %d buffers stay", n, err, b.dev.live)
		}
		if err == nil {
			break
		}
	}
	if failed != 3 {
		t.Errorf("%d buffers are made at the start, want the vectors and two lanes", failed)
	}
	b := mustOpen(t, cfg)
	b.dev.fail = 1
	if sent := b.give(t, &stages.OpenSequence{Seq: 1}); !errors.Is(sent[0].(*stages.SequenceDone).Err, gpu.ErrOutOfMemory) {
		t.Errorf("%+v, want that there is no memory", sent[0])
	}
	b.give(t, &stages.OpenSequence{Seq: 1})
	b.dev.fail = 1
	batch := &stages.Batch{Rows: make([]stages.Row, 1), Segments: []stages.Segment{{Seq: 1, Rows: 1}}}
	sent := b.give(t, &stages.BeginLayer{Step: stages.Step{ID: 1, Batch: batch}})
	if f, ok := sent[0].(*stages.StepFailed); !ok || !errors.Is(f.Err, gpu.ErrOutOfMemory) {
		t.Errorf("%+v, want a StepFailed for want of memory", sent[0])
	}
}
