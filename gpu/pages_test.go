package gpu

import (
	"slices"
	"testing"
)

// TestPages goes on from one list twice: neither changes, and only a list that goes on has its
// line.
func TestPages(t *testing.T) {
	views := func(p Pages) (v []View) {
		for i := range p.Len() {
			v = append(v, p.At(i))
		}
		return v
	}
	at := func(i int) View { return View{Buf: &fakeBuffer{100}, Offset: i} }
	a, b, c, d := at(0), at(8), at(2), at(40)
	first := PagesOf(a, b)
	longer := first.Append(c)
	other := first.Append(d)
	back := longer.First(1).Append(d)
	for name, x := range map[string]struct {
		got  Pages
		want []View
	}{"first": {first, []View{a, b}}, "longer": {longer, []View{a, b, c}}, "other": {other, []View{a, b, d}}, "back": {back, []View{a, d}}, "none": {Pages{}, nil}} {
		if got := views(x.got); !slices.Equal(got, x.want) {
			t.Errorf("%s has %v, want %v", name, got, x.want)
		}
	}
	if first.Line() != longer.Line() || first.Line() == other.Line() || longer.Line() == back.Line() || longer.First(2).Line() != first.Line() {
		t.Error("lists that begin alike have lines of their own, or others share one")
	}
	for _, x := range []struct {
		p       Pages
		n, size int
		want    bool
	}{{first, 2, 92, true}, {first, 1, 100, true}, {first, 2, 93, false}, {longer, 2, 92, true}, {longer, 3, 92, false}, {other, 3, 60, true}, {other, 3, 61, false}} {
		if got := x.p.fit(x.n, x.size); got != x.want {
			t.Errorf("the first %d of %v hold %d bytes each: %v, want %v", x.n, views(x.p), x.size, got, x.want)
		}
	}
	if p := PagesOf(a, View{}); p.fit(2, 1) {
		t.Error("no buffer holds a page")
	}
}

// TestCheckManyStates wants what is said of a few segments to hold of many, whose states are not
// compared each with each.
func TestCheckManyStates(t *testing.T) {
	const n = 3 * fewStates
	shared := floats(n * 8)
	good := func() CausalConv {
		o := CausalConv{X: floats(n * 4), W: floats(4 * 3), Y: floats(n * 4), Channels: 4, Kernel: 3}
		for i := range n {
			at := floats(8)
			if i%2 == 1 {
				at = shared.Floats(8 * (n - 1 - i)) // descending
			}
			o.Segments = append(o.Segments, StateSegment{Row: i, Rows: 1, State: at})
		}
		return o
	}
	check(t, good, []bad[CausalConv]{
		{"same state", func(o *CausalConv) { o.Segments[20].State = o.Segments[4].State }, "segment 20: shares its state with segment 4"},
		{"overlapping state", func(o *CausalConv) { o.Segments[21].State = o.Segments[3].State.Floats(-4) }, "segment 21: shares its state with segment 3"},
		{"same row", func(o *CausalConv) { o.Segments[20].Row = 2 }, "of segment 2"},
		{"rows overlap", func(o *CausalConv) { o.Segments[7].Rows = 2 }, "of segment 7"},
	})
}
