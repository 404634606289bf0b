package actors_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/refmodel"
	"github.com/moeflux/moeflux-actor/stages"
)

// TestDump wants of every family what a float64 computation says that layers take, make and give.
func TestDump(t *testing.T) { testDump(t, device(t, 2), fixtures.All(), []int{64, 4, 1}) }

// testDump compares dumps of the named fixtures. Chunks of fewer rows than the text has are read in
// several steps; with 1 each token is a chunk of its own, as in decoding.
func testDump(t *testing.T, dev gpu.Device, names []string, rows []int) {
	seen := map[stages.Quantity]bool{}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			dir := fixtures.Packed(t, name, 0)
			ref := openReference(t, dir, ints(fixtures.Reference(t, name), "p9.ids"))
			for i, n := range rows {
				cfg := actors.Config{Model: dir, Device: dev, ChunkRows: n, ExpertIO: actors.ExpertIOMmap, Resident: actors.ResidentOn}
				if i%2 == 1 {
					cfg.Resident = actors.ResidentOff
				}
				t.Run(fmt.Sprintf("chunk=%d", n), func(t *testing.T) {
					e := open(t, cfg)
					wants := actors.WantsOf(e.Model(), append(allLayers(e), len(e.Model().Layers)))
					for _, w := range wants {
						seen[w.Quantity] = true
					}
					ref.compare(t, dumpOf(t, e, ref.tokens, wants, n == 1))
				})
			}
		})
	}
	if len(names) == len(fixtures.All()) && len(seen) != stages.NumQuantities {
		t.Errorf("%d of %d quantities occur in the fixtures", len(seen), stages.NumQuantities)
	}
}

func allLayers(e *actors.Engine) (all []int) {
	for i := range e.Model().Layers {
		all = append(all, i)
	}
	return all
}

// dumped is a chunk's tensors, and where in the text it begins.
type dumped struct {
	at, rows int
	tensors  []actors.Tensor
}

// dumpOf evaluates tokens at once or one by one.
func dumpOf(t *testing.T, e *actors.Engine, tokens []int32, wants []actors.Want, single bool) (all []dumped) {
	s, n := sequence(t, e), len(tokens)
	if single {
		n = 1
	}
	for at := 0; at < len(tokens); at += n {
		r, err := s.EvalChunk(t.Context(), actors.Chunk{Tokens: tokens[at : at+n], Logits: actors.AllLogits, Dump: wants})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Dump) != len(wants) {
			t.Fatalf("%d tensors, want %d", len(r.Dump), len(wants))
		}
		all = append(all, dumped{at, n, r.Dump})
	}
	return all
}

// insides is what a float64 computation says of a text, and how far others may be from it.
type insides struct {
	tokens []int32
	at     []*refmodel.Position
	noisy  [][]*refmodel.Position
}

// openReference computes a text exactly, and a few times with rounding errors of float32's size.
func openReference(t *testing.T, dir string, tokens []int32) *insides {
	m, err := refmodel.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	look := func(s *refmodel.State) (all []*refmodel.Position) {
		for _, id := range tokens {
			p := s.StepInside(id)
			p.Inside = append(p.Inside, refmodel.Inside{"input": p.Hidden[len(p.Hidden)-1], "final_norm": p.FinalNorm})
			all = append(all, p)
		}
		return all
	}
	out := &insides{tokens: tokens, at: look(m.NewState())}
	for seed := range uint64(3) {
		out.noisy = append(out.noisy, look(m.NewNoisyState(4.0/(1<<23), seed)))
	}
	return out
}

// want returns the exact numbers of a want at a position, and how far off an engine may be.
func (r *insides) want(at int, w actors.Want) (exact []float64, tolerance float64) {
	exact = r.at[at].Inside[w.Layer][w.Quantity.String()]
	for _, x := range exact {
		tolerance = max(tolerance, 1e-6*math.Abs(x))
	}
	for _, n := range r.noisy {
		for i, x := range n[at].Inside[w.Layer][w.Quantity.String()] {
			tolerance = max(tolerance, 8*math.Abs(x-exact[i]))
		}
	}
	return exact, max(tolerance, 1e-6)
}

// compare compares all chunks of a text.
func (r *insides) compare(t *testing.T, chunks []dumped) {
	for _, c := range chunks {
		for i := range c.tensors {
			x := &c.tensors[i]
			switch {
			case x.Quantity.Before():
				r.compareRow(t, x, c.at, x.Floats, c.rows)
			case x.Quantity.OfChunk():
				r.compareRow(t, x, c.at+c.rows-1, x.Floats, c.rows)
			default:
				for row := range c.rows {
					r.compareRow(t, x, c.at+row, numbersOf(x)[row*x.Width:(row+1)*x.Width], c.rows)
				}
			}
		}
	}
}

// numbersOf returns a tensor's numbers, whatever their type.
func numbersOf(x *actors.Tensor) []float32 {
	all := x.Floats
	for _, v := range x.Ints {
		all = append(all, float32(v))
	}
	return all
}

func (r *insides) compareRow(t *testing.T, x *actors.Tensor, at int, got []float32, rows int) {
	want, tolerance := r.want(at, x.Want)
	if len(got) != len(want) {
		t.Fatalf("%v at %d: %d numbers, want %d", x.Want, at, len(got), len(want))
	}
	if x.Quantity.OfFoldedForm() && rows > 1 && !slices.ContainsFunc(got, func(v float32) bool { return v == v }) {
		return // of the expanded form
	}
	for i, v := range got {
		if d := math.Abs(float64(v) - want[i]); !(d <= tolerance) {
			t.Fatalf("%v at %d: number %d is %v, want %v within %.2g", x.Want, at, i, v, want[i], tolerance)
		}
	}
}
