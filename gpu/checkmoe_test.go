package gpu

import (
	"errors"
	"math"
	"testing"

	"github.com/moeflux/moeflux-actor/model/route"
)

func TestCheckExperts(t *testing.T) {
	expert := func() Expert {
		return Expert{Gate: matrix(32, 64, q4), Up: matrix(32, 64, q4), Down: matrix(64, 32, q4)}
	}
	good := func() Experts {
		return Experts{X: floats(3 * 64), Y: floats(6 * 64), Scratch: floats(6 * 64), Rows: 3, TopK: 2,
			Table: &ExpertTable{Experts: []Expert{expert(), expert()}}, Picks: List[int32]{Host: []int32{0, 1, -1, 0, -7, 1}}}
	}
	damages := func(table func(o *Experts) *ExpertTable) []bad[Experts] {
		return join(
			mats("Gate", func(o *Experts) *Matrix { return &table(o).Experts[1].Gate }),
			mats("Up", func(o *Experts) *Matrix { return &table(o).Experts[1].Up }),
			mats("Down", func(o *Experts) *Matrix { return &table(o).Experts[1].Down }),
			[]bad[Experts]{
				{"none", func(o *Experts) { table(o).Experts = nil }, ""},
				{"first gate empty", func(o *Experts) { table(o).Experts[0].Gate.Rows = 0 }, "at least [1, 1]"},
				{"first gate negative", func(o *Experts) { table(o).Experts[0].Gate.Rows = -32 }, ""},
				{"other shape", func(o *Experts) { table(o).Experts[1].Up = matrix(33, 64, q4) }, "want [32, 64]"},
				{"turned", func(o *Experts) { table(o).Experts[1].Down = matrix(32, 64, q4) }, "want [64, 32]"},
				{"other format", func(o *Experts) { table(o).Experts[1].Down = matrix(64, 32, f32) }, "formats"},
			})
	}
	check(t, good, join(
		damages(func(o *Experts) *ExpertTable { return o.Table }),
		[]bad[Experts]{
			{"bias in part", func(o *Experts) { o.Table.Experts[0].DownBias = floats(64) }, "none for its gate"},
			{"bias of one expert", func(o *Experts) { o.Table.Experts[1].GateBias = floats(32) }, "none for its gate"},
			{"a limit below 0", func(o *Experts) { o.Clamp.Limit = -7 }, "Clamp"},
			{"alpha below 0", func(o *Experts) { o.Clamp = Clamp{7, -1} }, "Clamp"},
			{"alpha without a limit", func(o *Experts) { o.Clamp.Alpha = 1 }, "Clamp"},
			{"no limit", func(o *Experts) { o.Clamp = Clamp{float32(math.Inf(1)), 1} }, "Clamp"},
		},
		view("X", 4, func(o *Experts) *View { return &o.X }),
		view("Y", 4, func(o *Experts) *View { return &o.Y }),
		view("Scratch", 4, func(o *Experts) *View { return &o.Scratch }),
		size("Rows", func(o *Experts) *int { return &o.Rows }),
		size("TopK", func(o *Experts) *int { return &o.TopK }),
		[]bad[Experts]{
			{"no table", func(o *Experts) { o.Table = nil }, "no Table"},
			{"place without form", func(o *Experts) { o.Table.At = room(2 * TableBytes) }, "never written"},
			{"pick too large", func(o *Experts) { o.Picks.Host[3] = 2 }, "pick 2 at index 3"},
			{"picks short", func(o *Experts) { o.Picks.Host = o.Picks.Host[:5] }, "5 Picks, want 6"},
			{"picks in two places", func(o *Experts) { o.Picks.At = floats(6) }, "lie on the device and travel"},
			{"picks on the device short", func(o *Experts) { o.Picks = List[int32]{At: floats(5)} }, "do not fit"},
			{"picks in Y", func(o *Experts) { o.Picks = List[int32]{At: o.Y} }, "overlap"},
			same("X is Y", func(o *Experts) { o.X = o.Y }),
			same("X is Scratch", func(o *Experts) { o.X = o.Scratch }),
			same("Y is Scratch", func(o *Experts) { o.Y = o.Scratch }),
		}))
	// A table that lies on the device is looked at when it is written there, and then no more.
	e := good()
	biased := func() Experts {
		o := good()
		for i := range o.Table.Experts {
			x := &o.Table.Experts[i]
			x.GateBias, x.UpBias, x.DownBias = floats(32), floats(32), floats(64)
		}
		o.Clamp = Clamp{7, 1.702}
		return o
	}
	check(t, biased, join(
		view("GateBias", 4, func(o *Experts) *View { return &o.Table.Experts[0].GateBias })[1:], // without it there are none
		view("UpBias", 4, func(o *Experts) *View { return &o.Table.Experts[0].UpBias }),
		view("DownBias", 4, func(o *Experts) *View { return &o.Table.Experts[1].DownBias })))
	check(t, func() Tabulate {
		return Tabulate{Table: &ExpertTable{Experts: []Expert{expert(), expert()}, At: room(2 * TableBytes)}}
	}, join(
		mats("Down", func(o *Tabulate) *Matrix { return &o.Table.Experts[1].Down }),
		view("Table.At", 8, func(o *Tabulate) *View { return &o.Table.At })[1:],
		[]bad[Tabulate]{
			{"no table", func(o *Tabulate) { o.Table = nil }, "no Table"},
			{"no place", func(o *Tabulate) { o.Table.At = View{} }, "no place"},
		}))
	check(t, func() Retabulate {
		table := ExpertTable{Experts: []Expert{expert(), expert()}, At: room(2 * TableBytes)}
		table.written = true
		return Retabulate{Table: &table, Index: 1, Expert: expert()}
	}, join(
		mats("Down", func(o *Retabulate) *Matrix { return &o.Expert.Down }),
		[]bad[Retabulate]{
			{"no table", func(o *Retabulate) { o.Table = nil }, "no Table"},
			{"not written", func(o *Retabulate) { o.Table.written = false }, "never written"},
			{"an index below", func(o *Retabulate) { o.Index = -1 }, "index -1"},
			{"an index beyond", func(o *Retabulate) { o.Index = 2 }, "index 2"},
			{"another shape", func(o *Retabulate) { o.Expert.Up.Rows = 16 }, "Up is"},
		}))
	e.Table.At = room(2 * TableBytes)
	e.Picks = List[int32]{At: floats(6)}
	testTabulated(t, e)
}

// testTabulated wants a table on the device to be refused until a device has accepted the Commands
// that write it, whatever Check was asked before.
func testTabulated(t *testing.T, e Experts) {
	use := func() (c Commands) { Encode(&c, e); return c }
	write := func() (c Commands) { Encode(&c, Tabulate{Table: e.Table}); return c }
	refused := func(when string) {
		t.Helper()
		if c := use(); c.Check() == nil || e.Check() == nil {
			t.Errorf("%s: experts of a table that no device has are accepted", when)
		}
	}
	refused("at first")
	both := write()
	Encode(&both, e)
	Encode(&both, Fill{})
	if e := (*OpError)(nil); !errors.As(both.Check(), &e) || e.Op != "fill" {
		t.Errorf("a table written and used at once, and a bad operation: %v", both.Check())
	}
	refused("after Commands that were refused")
	late := use()
	Encode(&late, Tabulate{Table: e.Table})
	if late.Check() == nil {
		t.Error("experts of a table that a later operation writes are accepted")
	}
	written := write()
	if err := written.Check(); err != nil {
		t.Fatal(err)
	}
	refused("after a Check alone")
	written.Accept()
	if c := use(); c.Check() != nil || e.Check() != nil {
		t.Errorf("with a table on the device: %v, %v", c.Check(), e.Check())
	}
	again := ExpertTable{Experts: e.Table.Experts, At: e.Table.At}
	var one Commands
	Encode(&one, Retabulate{Table: &again, Expert: again.Experts[0]})
	if one.Check() == nil {
		t.Error("an expert of a table that no device has is replaced")
	}
	one.Reset()
	Encode(&one, Tabulate{Table: &again})
	Encode(&one, Retabulate{Table: &again, Expert: again.Experts[0]})
	if err := one.Check(); err != nil {
		t.Errorf("an expert of a table that was written just before: %v", err)
	}
}

func TestCheckCombine(t *testing.T) {
	check(t, func() Combine {
		return Combine{Routed: floats(3 * 2 * 5), Shared: floats(15), SharedGate: floats(3), Residual: floats(15), Y: floats(15),
			Weights: List[float32]{Host: make([]float32, 6)}, Rows: 3, TopK: 2, Dim: 5}
	}, join(
		view("Routed", 4, func(o *Combine) *View { return &o.Routed }),
		view("Residual", 4, func(o *Combine) *View { return &o.Residual }),
		view("Y", 4, func(o *Combine) *View { return &o.Y }),
		view("Shared", 4, func(o *Combine) *View { return &o.Shared })[1:],
		view("SharedGate", 4, func(o *Combine) *View { return &o.SharedGate })[1:],
		size("Rows", func(o *Combine) *int { return &o.Rows }),
		size("TopK", func(o *Combine) *int { return &o.TopK }),
		size("Dim", func(o *Combine) *int { return &o.Dim }),
		[]bad[Combine]{
			{"weights short", func(o *Combine) { o.Weights.Host = o.Weights.Host[:5] }, "5 Weights"},
			{"weights long", func(o *Combine) { o.Weights.Host = make([]float32, 7) }, "7 Weights"},
			{"weights in two places", func(o *Combine) { o.Weights.At = floats(6) }, "lie on the device and travel"},
			{"weights in Y", func(o *Combine) { o.Weights = List[float32]{At: o.Y} }, "overlap"},
			{"gate alone", func(o *Combine) { o.Shared = View{} }, "without Shared"},
			same("Routed is Y", func(o *Combine) { o.Y = o.Routed }),
			same("Shared is Y", func(o *Combine) { o.Y = o.Shared }),
			same("SharedGate in Y", func(o *Combine) { o.SharedGate = o.Y }),
			same("shifted", func(o *Combine) { o.Residual = floats(30); o.Y = o.Residual.Floats(5) }),
		}))
}

func TestCheckRoute(t *testing.T) {
	check(t, func() Route {
		return Route{Scores: floats(3 * 8), Bias: floats(8), Picks: floats(6), Weights: floats(6), Rows: 3, Experts: 8, TopK: 2,
			Rule: route.Rule{NGroup: 4, TopKGroup: 1}}
	}, join(
		view("Scores", 4, func(o *Route) *View { return &o.Scores }),
		view("Bias", 4, func(o *Route) *View { return &o.Bias })[1:],
		view("Picks", 4, func(o *Route) *View { return &o.Picks }),
		view("Weights", 4, func(o *Route) *View { return &o.Weights }),
		size("Rows", func(o *Route) *int { return &o.Rows }),
		size("Experts", func(o *Route) *int { return &o.Experts }),
		size("TopK", func(o *Route) *int { return &o.TopK }),
		[]bad[Route]{
			{"too many picks", func(o *Route) { o.TopK = 9; o.Picks, o.Weights = floats(27), floats(27) }, "9 picks of 8"},
			{"groups of no size", func(o *Route) { o.Rule.NGroup = 3 }, "3 groups"},
			{"no group kept", func(o *Route) { o.Rule.TopKGroup = 0 }, "0 of 4 groups"},
			{"more kept than there are", func(o *Route) { o.Rule.TopKGroup = 5 }, "5 of 4 groups"},
			{"kept too few", func(o *Route) { o.TopK = 3; o.Picks, o.Weights = floats(9), floats(9) }, "for 3 picks"},
			same("Picks are Scores", func(o *Route) { o.Picks = o.Scores }),
			same("Weights are Picks", func(o *Route) { o.Weights = o.Picks }),
			same("Weights are Bias", func(o *Route) { o.Weights = o.Bias }),
		}))
}
