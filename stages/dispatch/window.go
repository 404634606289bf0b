package dispatch

import (
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages"
)

// ring is where the keys and values of layers with a window lie: in pages of their own at the end
// of a recurrent state. The pages follow one another, and after the last one comes the first again:
// a page that has passed out of the window is the next one. There are as many as the window before
// a page and that page take, so a text of any length holds a window and a page.
//
// Rows that would need more go through such layers in slices, which end where pages do (sliceEnd).
// Attention gives a row the same bits however rows are cut.
type ring struct {
	at        int // bytes, in a recurrent state
	pageBytes int // 0: no layer has a window
	pages     int
}

// ringAlign is what a ring begins at a multiple of, as pages do.
const ringAlign = 64

// newRing returns the ring that follows a recurrent state of linear bytes. most is the pages that
// it has at least.
func newRing(m *model.Config, kv *gpu.KVLayout, linear, most int) ring {
	n := m.Count(model.WindowAttention)
	if n == 0 {
		return ring{}
	}
	before := (m.Sliding.Window - 1 + kv.PageRows - 1) / kv.PageRows
	return ring{at: (linear + ringAlign - 1) / ringAlign * ringAlign, pageBytes: n * bothBytes(kv), pages: max(before+1, most)}
}

// Windows returns what sequencer.Config wants of layers with a window: how many positions a row
// attends to, and how many are kept; 0 without such layers, or beside linear attention. pages is
// Config.WindowPages.
func Windows(m *model.Config, f gpu.KVFormat, pageRows, pages int) (window, rows int) {
	l := newKVLayout(m, f, pageRows, pages)
	if l.ring.pageBytes == 0 || linearBytes(m) > 0 {
		return 0, 0
	}
	return m.Sliding.Window, l.ring.pages * pageRows
}

// bytes returns the size of a recurrent state with the ring at its end.
func (r *ring) bytes(linear int) int {
	if r.pageBytes == 0 {
		return linear
	}
	return r.at + r.pages*r.pageBytes
}

// page returns where the page of a ring in a recurrent state lies that holds the p-th page of
// positions.
func (r *ring) page(recurrent gpu.Buffer, p int) gpu.View {
	return gpu.View{Buf: recurrent, Offset: r.at + p%r.pages*r.pageBytes}
}

// extend lists a state's pages for a number of positions. Which place each has never changes.
func (r *ring) extend(st *state, positions, pageRows int) {
	for st.window.Len()*pageRows < positions {
		st.window = st.window.Append(r.page(st.recurrent, st.window.Len()))
	}
}

// sliceEnd returns the end of the slice that begins at a position: that of its page.
func sliceEnd(pos, pageRows int) int { return (pos/pageRows + 1) * pageRows }

// addWindows appends a sequence's part to the slices of layers with a window.
func (s *states) addWindows(l *bench, st *state, g stages.Segment) {
	r := &s.layout.ring
	if r.pageBytes == 0 {
		return
	}
	r.extend(st, g.Pos+g.Rows, s.cfg.PageRows)
	pos := g.Pos
	for at := 0; pos < g.Pos+g.Rows; at++ {
		if at == len(l.windows) {
			l.windows = append(l.windows, fullSegments{})
		}
		end := min(sliceEnd(pos, s.cfg.PageRows), g.Pos+g.Rows)
		l.windows[at].add(gpu.KVSegment{Row: g.Row + pos - g.Pos, Rows: end - pos, Pos: pos, Pages: st.window}, 0)
		pos = end
	}
}
