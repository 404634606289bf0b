package launch

import (
	"errors"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
)

// TestPageTablesOnce counts what is copied to the device for attention of several layers and steps:
// a page table goes there when it is new, when it has grown, and after a Submit that failed.
func TestPageTablesOnce(t *testing.T) {
	const pageRows, dim, layers = 4, 8, 3
	f := &fake{}
	d := openFake(t, f)
	q, v := newQueue(t, d), newBuffer(t, d, 1<<16)
	kv := gpu.KVLayout{PageRows: pageRows, Dim: dim, VOffset: 4 * pageRows * dim}
	texts := make([]gpu.Pages, 3)
	for i := range texts {
		texts[i] = gpu.PagesOf(newBuffer(t, d, layers*2*kv.PartBytes()))
	}
	// step submits each layer and returns how many copies there were beside a table of rows each.
	step := func(pos int, which ...int) (copies int, err error) {
		t.Helper()
		before := f.copies()
		for l := range layers {
			var segments []gpu.KVSegment
			for row, i := range which {
				for texts[i].Len() <= pos/pageRows {
					texts[i] = texts[i].Append(newBuffer(t, d, layers*2*kv.PartBytes()))
				}
				segments = append(segments, gpu.KVSegment{Row: row, Rows: 1, Pos: pos, Pages: texts[i]})
			}
			cache := kv
			cache.KOffset, cache.VOffset = l*2*kv.PartBytes(), (2*l+1)*kv.PartBytes()
			c := new(gpu.Commands)
			gpu.Encode(c, gpu.Attention{Q: v, Y: v.At(1 << 15), QRowStride: dim, QHeadStride: dim, Heads: 1, KVHeads: 1, HeadDim: dim, Scale: 1, Cache: cache, Segments: segments})
			err = errors.Join(err, wait(t, q, c))
		}
		return f.copies() - before - layers, err
	}
	for i, s := range []struct {
		what  string
		pos   int
		texts []int
		want  int
	}{
		{"two texts", 2, []int{0, 1}, 1}, {"the next position", 3, []int{0, 1}, 0}, {"a new page", 4, []int{0, 1}, 1}, {"the next", 5, []int{0, 1}, 0},
		{"one text alone", 5, []int{1}, 1}, {"both again", 6, []int{0, 1}, 0}, {"three", 6, []int{0, 1, 2}, 1},
		{"beyond the room", 4 * leastPages, []int{0, 1}, 1}, {"the next", 4*leastPages + 1, []int{0, 1}, 0},
	} {
		if got, err := step(s.pos, s.texts...); got != s.want || err != nil {
			t.Errorf("step %d, %s: %d page tables were copied for %d layers, want %d (%v)", i, s.what, got, layers, s.want, err)
		}
	}
	f.set(errors.New("no more"))
	if _, err := step(4*leastPages+2, 0, 1); err == nil {
		t.Fatal("the launches did not fail")
	}
	f.set(nil)
	if got, err := step(4*leastPages+2, 0, 1); got != 1 || err != nil {
		t.Errorf("after a Submit that failed %d page tables were copied, want 1 (%v)", got, err)
	}
}

func (f *fake) copies() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.copied
}

func (f *fake) set(launchErr error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.launchErr = launchErr
}
