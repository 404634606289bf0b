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

// through takes a step with these segments through the mixers of all layers and returns the pages
// that its full attention layer saw for each segment. IDs count up.
func (b *bench) through(t *testing.T, id stages.StepID, segments ...stages.Segment) [][]gpu.View {
	t.Helper()
	batch := &stages.Batch{Segments: segments}
	b.first = len(b.queue.kept)
	for i := range segments {
		segments[i].Row = len(batch.Rows)
		for p := len(segments[i].Pages); p*4 < segments[i].Pos+segments[i].Rows; p++ {
			segments[i].Pages = append(segments[i].Pages, stages.PageID((int(segments[i].Seq)-1)*2+p))
		}
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
				pages = append(pages, views(s.Pages))
			}
		}
	}
	return pages
}

// TestPages names pages out of order, shared and copied ones among them: each lies where its name
// says, the same place always, and memory is made as names come into use.
func TestPages(t *testing.T) {
	b := mustOpen(t, dispatch.Config{ChunkRows: 80, Lanes: 1, PageRows: 4, MaxPages: 20})
	for id := range stages.StateID(3) {
		b.give(t, &stages.CopyState{To: id + 1})
	}
	before := len(b.dev.sizes)
	a := b.through(t, 1, stages.Segment{Seq: 1, Rows: 4, Pages: ids(3)}, stages.Segment{Seq: 2, Rows: 5, Pages: ids(0, 7)})
	if len(a[0]) != 1 || len(a[1]) != 2 {
		t.Fatalf("%d and %d pages for 4 and 5 positions, want 1 and 2", len(a[0]), len(a[1]))
	}
	c := b.through(t, 2, stages.Segment{Seq: 2, Pos: 5, Rows: 3, Pages: ids(0, 7)}, stages.Segment{Seq: 1, Pos: 4, Rows: 1, Pages: ids(3, 19)})
	if !slices.Equal(c[0], a[1]) || len(c[1]) != 2 || c[1][0] != a[0][0] {
		t.Fatalf("pages %v and %v after %v and %v: they moved", c[0], c[1], a[1], a[0])
	}
	page := dispatch.PageBytes(b.cfg, gpu.KVF32, 4)
	distinct(t, page, c...)
	if got, want := b.dev.sizes[before:], []int{16 * page, 4 * page}; !slices.Equal(got, want) {
		t.Errorf("buffers of %v bytes were made for pages, want %v", got, want)
	}
	// Sequence 3 begins as sequence 1 does, whose second page, part full, it copies before it
	// writes to it.
	d := b.through(t, 3, stages.Segment{Seq: 3, Pos: 5, Rows: 1, Pages: ids(3, 8), Copy: stages.PageCopy{From: 19, To: 8}})
	if d[0][0] != a[0][0] || d[0][1] == c[1][1] {
		t.Errorf("pages %v after %v: the first is to be shared, the second not", d[0], c[1])
	}
	copied := b.queue.kept[b.first][0].(*gpu.CopyHeads)
	if copied.X != c[1][1] || copied.Y != d[0][1] || copied.Rows*copied.Heads*copied.Dim*4 != page {
		t.Errorf("%+v is copied, want %d bytes from %v to %v", copied, page, c[1][1], d[0][1])
	}
	// A page holds keys and values of four positions of the one full attention layer.
	if want := 2 * 4 * b.cfg.NumKeyValueHeads * b.cfg.HeadDim * 4; page != want {
		t.Errorf("a page has %d bytes, want %d", page, want)
	}
}

func views(pages gpu.Pages) (list []gpu.View) {
	for i := range pages.Len() {
		list = append(list, pages.At(i))
	}
	return list
}

func ids(list ...stages.PageID) []stages.PageID { return list }

// distinct reports pages that overlap.
func distinct(t *testing.T, bytes int, lists ...[]gpu.View) {
	t.Helper()
	all := slices.Concat(lists...)
	for i, p := range all {
		for _, q := range all[:i] {
			if p.Buf == q.Buf && p != q && p.Offset < q.Offset+bytes && q.Offset < p.Offset+bytes {
				t.Errorf("pages %v and %v overlap", p, q)
			}
		}
	}
}

// TestNoPages names a page that there is not: the step fails.
func TestNoPages(t *testing.T) {
	b := mustOpen(t, dispatch.Config{ChunkRows: 16, Lanes: 1, PageRows: 4, MaxPages: 3})
	b.give(t, &stages.CopyState{To: 1})
	batch := &stages.Batch{Rows: make([]stages.Row, 16), Segments: []stages.Segment{{Seq: 1, Rows: 16, Pages: ids(0, 1, 2, 3)}}}
	sent := b.give(t, &stages.BeginLayer{Step: stages.Step{ID: 1, Batch: batch}})
	if f, ok := sent[0].(*stages.StepFailed); !ok || f.Stage != stages.Dispatch {
		t.Fatalf("%T, want a StepFailed", sent[0])
	}
}

// TestRecurrentState looks at the memory of a linear layer's state: each sequence has its own, it
// stays where it is, and a closed one's is cleared in full before another has it.
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
	b.give(t, &stages.CopyState{To: 1})
	b.give(t, &stages.CopyState{To: 2})
	first := state(1, stages.Segment{Seq: 1, Rows: 1}, stages.Segment{Seq: 2, Rows: 2})
	if len(first) != 2 || first[0].Buf == first[1].Buf {
		t.Fatalf("states %v, want two buffers", first)
	}
	if again := state(2, stages.Segment{Seq: 2, Pos: 2, Rows: 1}); again[0] != first[1] {
		t.Errorf("the state moved from %v to %v", first[1], again[0])
	}
	b.give(t, &stages.DropState{State: 1})
	from := len(b.queue.kept)
	b.give(t, &stages.CopyState{To: 3})
	fill, ok := b.queue.kept[from][0].(*gpu.Fill)
	if !ok || fill.Dst != (gpu.View{Buf: first[0].Buf}) || fill.Bytes != dispatch.RecurrentBytes(b.cfg, gpu.KVF32, 4) {
		t.Fatalf("opening in place of another submits %+v, want a fill of all %d bytes", b.queue.kept[from][0], dispatch.RecurrentBytes(b.cfg, gpu.KVF32, 4))
	}
	if third := state(3, stages.Segment{Seq: 3, Rows: 1}); third[0] != first[0] {
		t.Errorf("the third sequence's state is %v, want that of the first, %v", third[0], first[0])
	}
}

// TestIdleStates drops many states: memory of as many as fit in 64 MiB is kept for others, the rest
// goes back to the device, but not before the last commands that may use it are done.
func TestIdleStates(t *testing.T) {
	b := mustOpen(t, dispatch.Config{ChunkRows: 4, Lanes: 1, PageRows: 4, MaxPages: 8})
	before, kept := b.dev.live, (64<<20)/dispatch.RecurrentBytes(b.cfg, gpu.KVF32, 4)
	if kept < 8 {
		t.Fatalf("a state has %d bytes: too many for this test", dispatch.RecurrentBytes(b.cfg, gpu.KVF32, 4))
	}
	all := stages.StateID(kept + 3)
	for id := range all {
		b.give(t, &stages.CopyState{To: id + 1})
	}
	b.give(t, &stages.CopyState{From: 1, To: all})
	ticket := b.out.Awaits[0].ID
	for id := range all {
		b.give(t, &stages.DropState{State: id + 1})
	}
	if b.dev.live != before+kept+3 {
		t.Errorf("%d states have memory while a copy is under way, want all %d", b.dev.live-before, all)
	}
	b.queue.finish(b.queue.taken)
	b.give(t, &stages.TicketDone{ID: ticket})
	if b.dev.live != before+kept {
		t.Errorf("%d idle states have memory, want %d", b.dev.live-before, kept)
	}
	for id := range stages.StateID(8) { // what texts that come and go need is there
		b.give(t, &stages.CopyState{To: all + 1 + id})
	}
	if b.dev.live != before+kept {
		t.Errorf("%d states have memory after others were made, want %d", b.dev.live-before, kept)
	}
}

// TestIdleLargeStates drops states of which one fits in 64 MiB: two are kept all the same.
func TestIdleLargeStates(t *testing.T) {
	b := mustOpen(t, dispatch.Config{ChunkRows: 4, Lanes: 1, PageRows: 4, MaxPages: 8})
	before := b.dev.live
	b.cfg.LinearNumValueHeads *= 1 + (64<<20)/dispatch.RecurrentBytes(b.cfg, gpu.KVF32, 4) // the core has the same *model.Config
	for id := range stages.StateID(5) {
		b.give(t, &stages.CopyState{To: id + 1})
	}
	for id := range stages.StateID(5) {
		b.give(t, &stages.DropState{State: id + 1})
	}
	if b.dev.live != before+2 {
		t.Errorf("%d idle states of %d bytes have memory, want 2", b.dev.live-before, dispatch.RecurrentBytes(b.cfg, gpu.KVF32, 4))
	}
}

// TestHeadInPieces asks for logits of more rows than are computed at once: each row's arrive in its
// place.
func TestHeadInPieces(t *testing.T) {
	b := mustOpen(t, dispatch.Config{ChunkRows: 40, Lanes: 1, PageRows: 4, MaxPages: 16})
	b.give(t, &stages.CopyState{To: 1})
	batch := &stages.Batch{Rows: make([]stages.Row, 40), Segments: []stages.Segment{{Seq: 1, Rows: 40, Pages: ids(0, 1, 2, 3, 4, 5, 6, 7, 8, 9)}}}
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

// TestRelease fails every making of a buffer in turn, and opens and closes a core in use: nothing
// stays.
func TestRelease(t *testing.T) {
	cfg := dispatch.Config{ChunkRows: 4, Lanes: 2, PageRows: 4, MaxPages: 8}
	failed := 0
	for n := 1; ; n++ {
		b, err := open(t, cfg, n)
		if err == nil {
			b.dev.fail = 0
			b.give(t, &stages.CopyState{To: 1})
			b.give(t, &stages.CopyState{To: 2})
			b.through(t, 1, stages.Segment{Seq: 1, Rows: 1})
			b.give(t, &stages.DropState{State: 2})
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
	if sent := b.give(t, &stages.CopyState{To: 1}); !errors.Is(sent[0].(*stages.StateCopied).Err, gpu.ErrOutOfMemory) {
		t.Errorf("%+v, want that there is no memory", sent[0])
	}
	b.give(t, &stages.CopyState{To: 1})
	b.dev.fail = 1
	batch := &stages.Batch{Rows: make([]stages.Row, 1), Segments: []stages.Segment{{Seq: 1, Rows: 1, Pages: ids(0)}}}
	sent := b.give(t, &stages.BeginLayer{Step: stages.Step{ID: 1, Batch: batch}})
	if f, ok := sent[0].(*stages.StepFailed); !ok || !errors.Is(f.Err, gpu.ErrOutOfMemory) {
		t.Errorf("%+v, want a StepFailed for want of memory", sent[0])
	}
}
