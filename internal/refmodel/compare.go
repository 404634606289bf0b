package refmodel

import (
	"fmt"
	"math"
	"slices"
)

// Result is what an engine computed for the tokens of a trace. Fields, layers and rows that are nil
// are not compared.
type Result struct {
	Logits [][]float32 // [T][vocab]
	Picks  [][][]int   // [layers with experts][T][K], in any order
}

// Difference reports where an engine's result departs from a trace.
type Difference struct {
	What     string // "logits" or "picks"
	Layer    int    // of the picks, counting layers with experts; -1 for logits
	Position int
	Got      string
	Want     string
}

func (d *Difference) Error() string {
	if d.Layer >= 0 {
		return fmt.Sprintf("refmodel: %s of expert layer %d at position %d: got %s, want %s", d.What, d.Layer, d.Position, d.Got, d.Want)
	}
	return fmt.Sprintf("refmodel: %s at position %d: got %s, want %s", d.What, d.Position, d.Got, d.Want)
}

// Compare compares an engine's result with the trace: logits within an absolute tolerance, picks as
// sets. Picks come first, position by position, because everything after a wrong one differs. The
// error is the first *Difference.
func (t *Trace) Compare(got Result, tolerance float64) error {
	if n := len(got.Logits); got.Logits != nil && n != len(t.Tokens) {
		return &Difference{What: "logits", Layer: -1, Got: fmt.Sprintf("%d rows", n), Want: fmt.Sprint(len(t.Tokens))}
	}
	if n := len(got.Picks); got.Picks != nil && n != len(t.Picks) {
		return &Difference{What: "picks", Got: fmt.Sprintf("%d layers", n), Want: fmt.Sprint(len(t.Picks))}
	}
	for i, layer := range got.Picks {
		if layer != nil && len(layer) != len(t.Tokens) {
			return &Difference{What: "picks", Layer: i, Got: fmt.Sprintf("%d rows", len(layer)), Want: fmt.Sprint(len(t.Tokens))}
		}
	}
	for p := range t.Tokens {
		for i, layer := range got.Picks {
			if layer == nil || layer[p] == nil {
				continue
			}
			if err := t.comparePicks(layer[p], i, p); err != nil {
				return err
			}
		}
	}
	for p, row := range got.Logits {
		if row == nil {
			continue
		}
		if err := compareLogits(row, t.Logits[p], p, tolerance); err != nil {
			return err
		}
	}
	return nil
}

func (t *Trace) comparePicks(picks []int, i, p int) error {
	got, want := slices.Sorted(slices.Values(picks)), slices.Sorted(slices.Values(t.Picks[i][p]))
	if slices.Equal(got, want) {
		return nil
	}
	return &Difference{What: "picks", Layer: i, Position: p, Got: fmt.Sprint(got),
		Want: fmt.Sprintf("%v, a gap of %.3g from another choice", want, t.Gaps[i][p])}
}

func compareLogits(got []float32, want []float64, p int, tolerance float64) error {
	if len(got) != len(want) {
		return &Difference{What: "logits", Layer: -1, Position: p, Got: fmt.Sprintf("%d of them", len(got)), Want: fmt.Sprint(len(want))}
	}
	worst := 0
	for i := range want {
		d := math.Abs(float64(got[i]) - want[i])
		if !(d <= math.Abs(float64(got[worst])-want[worst])) {
			worst = i
		}
		if math.IsNaN(d) {
			break
		}
	}
	if d := math.Abs(float64(got[worst]) - want[worst]); !(d <= tolerance) {
		return &Difference{What: "logits", Layer: -1, Position: p, Got: fmt.Sprintf("[%d] %v", worst, got[worst]),
			Want: fmt.Sprintf("%v, off by %.3g where %.3g is allowed", want[worst], d, tolerance)}
	}
	return nil
}
