package gpu

import "testing"

func TestCheckTopK(t *testing.T) {
	check(t, func() TopK {
		return TopK{Logits: floats(3 * 70), Values: floats(3 * 64), Indices: floats(3 * 64), Stats: floats(6), Rows: 3, Vocab: 70, K: 64}
	}, join(
		view("Logits", 4, func(o *TopK) *View { return &o.Logits }),
		view("Values", 4, func(o *TopK) *View { return &o.Values }),
		view("Indices", 4, func(o *TopK) *View { return &o.Indices }),
		view("Stats", 4, func(o *TopK) *View { return &o.Stats }),
		size("Rows", func(o *TopK) *int { return &o.Rows }),
		size("Vocab", func(o *TopK) *int { return &o.Vocab }),
		size("K", func(o *TopK) *int { return &o.K }),
		[]bad[TopK]{
			{"too many", func(o *TopK) { o.K = 65; o.Values, o.Indices = floats(3*65), floats(3*65) }, "at most 64"},
			{"more than there are", func(o *TopK) { o.Vocab = 63 }, "63 of the vocabulary"},
			same("Values is Logits", func(o *TopK) { o.Values = o.Logits }),
			same("Indices is Values", func(o *TopK) { o.Indices = o.Values }),
			same("Stats is Indices", func(o *TopK) { o.Stats = o.Indices }),
		}))
}
