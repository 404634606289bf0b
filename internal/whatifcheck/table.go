package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/moeflux/moeflux-actor/tracing/whatif"
)

// table is the predictions from one recording.
type table struct {
	Shape  string  `json:"shape"`
	Layers int     `json:"layers"`
	Share  int     `json:"share"` // percent
	Error  float64 `json:"error"` // of the replay of the recorded settings
	Rows   []row   `json:"rows"`  // the first is the recorded settings
}

// row is one setting.
type row struct {
	Settings      string          `json:"settings"`
	Set           whatif.Settings `json:"set"`
	Measured      []float64       `json:"measured"` // tokens/s, ascending
	Hits          float64         `json:"hits"`
	Predicted     float64         `json:"predicted"`
	PredictedHits float64         `json:"predicted_hits"`
	Refused       string          `json:"refused,omitempty"`
}

func newRow(s whatif.Settings, runs []whatif.Result) row {
	r := row{Settings: s.String(), Set: s}
	var hits []float64
	for _, m := range runs {
		r.Measured, hits = append(r.Measured, m.DecodeRate), append(hits, m.HitRate())
	}
	slices.Sort(r.Measured)
	slices.Sort(hits)
	r.Hits = hits[len(hits)/2]
	return r
}

func (r *row) median() float64 { return r.Measured[len(r.Measured)/2] }

// off is how far the prediction is from the median.
func (r *row) off() float64 { return r.Predicted/r.median() - 1 }

func (t *table) print(out io.Writer) {
	fmt.Fprintf(out, "\n%s, %d layers, memory for %d %% of the experts; the replay of the defaults is %.1f %% off\n", t.Shape, t.Layers, t.Share, 100*t.Error)
	fmt.Fprintf(out, "%-62s %9s %17s %10s %7s %12s\n", "settings", "measured", "", "predicted", "off", "hits, pred.")
	for i := range t.Rows {
		r := &t.Rows[i]
		if r.Refused != "" {
			fmt.Fprintf(out, "%-62s %9.2f %s\n", r.Settings, r.median(), r.Refused)
			continue
		}
		fmt.Fprintf(out, "%-62s %9.2f %8.2f-%8.2f %10.2f %+6.1f%% %5.3f, %5.3f\n", r.Settings, r.median(), r.Measured[0], r.Measured[len(r.Measured)-1],
			r.Predicted, 100*r.off(), r.Hits, r.PredictedHits)
	}
	if p, m := t.speeds(); len(p) > 2 {
		fmt.Fprintf(out, "rank correlation %.3f\n", rankCorrelation(p, m))
	}
}

// speeds returns what was predicted and what was measured.
func (t *table) speeds() (predicted, measured []float64) {
	for i := range t.Rows {
		if r := &t.Rows[i]; r.Refused == "" && i > 0 {
			predicted, measured = append(predicted, r.Predicted), append(measured, r.median())
		}
	}
	return predicted, measured
}

func printSum(all []*table, out io.Writer) {
	var p, m []float64
	within, worst := 0, 0.0
	for _, t := range all {
		tp, tm := t.speeds()
		p, m = append(p, tp...), append(m, tm...)
	}
	for i := range p {
		off := math.Abs(p[i]/m[i] - 1)
		worst = max(worst, off)
		if off <= 0.1 {
			within++
		}
	}
	fmt.Fprintf(out, "\n%d of %d predictions are within 10 %% of the median, the worst is %.1f %% off; rank correlation of all %.3f\n", within, len(p), 100*worst, rankCorrelation(p, m))
}

// rankCorrelation is Spearman's.
func rankCorrelation(a, b []float64) float64 {
	x, y := ranks(a), ranks(b)
	var sx, sy, sxx, syy, sxy float64
	for i := range x {
		sx, sy, sxx, syy, sxy = sx+x[i], sy+y[i], sxx+x[i]*x[i], syy+y[i]*y[i], sxy+x[i]*y[i]
	}
	n := float64(len(x))
	return (n*sxy - sx*sy) / math.Sqrt((n*sxx-sx*sx)*(n*syy-sy*sy))
}

// ranks returns the rank of each value, equal ones with the mean of theirs.
func ranks(v []float64) []float64 {
	order := make([]int, len(v))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(v[a], v[b]) })
	out := make([]float64, len(v))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && v[order[j]] == v[order[i]] {
			j++
		}
		for k := i; k < j; k++ {
			out[order[k]] = float64(i+j-1) / 2
		}
		i = j
	}
	return out
}
