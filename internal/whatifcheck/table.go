package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/tracing/whatif"
)

// table is the predictions from one recording.
type table struct {
	subject subject
	off     float64 // of the replay of the recorded settings, as a share
	others  float64 // the share of the processors that other programs used
	rows    []row   // the first is the recorded settings
}

// row is one setting.
type row struct {
	name                string
	measured            []float64 // tokens/s, in order of turns
	hits, predictedHits float64
	predicted           float64
	refused             string
}

func newRow(s whatif.Settings, memory int64, runs []one) row {
	r := row{name: name(s, memory)}
	var hits []float64
	for _, m := range runs {
		r.measured, hits = append(r.measured, m.Rate), append(hits, m.Hits)
	}
	r.hits = median(hits)
	return r
}

// ratio is the prediction over the median.
func (r *row) ratio() float64 { return r.predicted / median(r.measured) }

func (t *table) print(out io.Writer) {
	fmt.Fprintf(out, "\n%s; the replay of the defaults is %.1f %% off; other programs used %.0f %% of the processors\n", t.subject, 100*t.off, 100*t.others)
	fmt.Fprintf(out, "%-52s %9s %17s %10s %7s %12s\n", "settings", "measured", "", "predicted", "off", "hits, pred.")
	for i := range t.rows {
		r := &t.rows[i]
		if r.refused != "" {
			fmt.Fprintf(out, "%-52s %9.2f %s\n", r.name, median(r.measured), r.refused)
			continue
		}
		fmt.Fprintf(out, "%-52s %9.2f %8.2f-%8.2f %10.2f %+6.1f%% %5.3f, %5.3f\n", r.name, median(r.measured), slices.Min(r.measured), slices.Max(r.measured),
			r.predicted, 100*(r.ratio()-1), r.hits, r.predictedHits)
	}
	if r := t.rank(); r.pairs > 0 {
		fmt.Fprintln(out, r)
	}
}

// rank compares the settings that were predicted. Without any it is empty.
func (t *table) rank() ranked {
	var p []float64
	var m [][]float64
	for i := range t.rows {
		if r := &t.rows[i]; r.refused == "" && i > 0 {
			p, m = append(p, r.predicted), append(m, r.measured)
		}
	}
	if len(p) == 0 {
		return ranked{}
	}
	return rank(p, m)
}

func (r ranked) String() string {
	return fmt.Sprintf("rank correlation %.2f, of one turn with the others %.2f; a run spreads by %.1f %%; of %d pairs of settings %d differ by more than twice that, and %d of them are predicted in order",
		r.correlation, r.again, 100*r.spread, r.pairs, r.clear, r.right)
}

// printSum prints what all tables come to. In the rank correlation of all, speeds are multiples of
// their recording's defaults: that one recording is of a faster model is no merit.
func printSum(all []*table, out io.Writer) {
	var offs, predicted, measured []float64
	var sum ranked
	for _, t := range all {
		defaults := median(t.rows[0].measured)
		for i := range t.rows {
			if r := &t.rows[i]; i > 0 && r.refused == "" {
				offs = append(offs, math.Abs(r.ratio()-1))
				predicted, measured = append(predicted, r.predicted/defaults), append(measured, median(r.measured)/defaults)
			}
		}
		r := t.rank()
		sum.pairs, sum.clear, sum.right = sum.pairs+r.pairs, sum.clear+r.clear, sum.right+r.right
	}
	if len(offs) == 0 {
		fmt.Fprintln(out, "\nnothing was predicted")
		return
	}
	within := 0
	for _, off := range offs {
		if off <= 0.1 {
			within++
		}
	}
	fmt.Fprintf(out, "\n%d of %d predictions are within 10 %% of the median, half of them within %.1f %%, the worst is %.1f %% off\n",
		within, len(offs), 100*median(offs), 100*slices.Max(offs))
	fmt.Fprintf(out, "rank correlation of all, as multiples of their defaults: %.3f; %d of %d pairs that differ by more than twice the spread are in order, of %d pairs\n",
		correlation(predicted, measured), sum.right, sum.clear, sum.pairs)
}

// printMarkdown prints the medians and the predictions for docs/experiments.md.
func printMarkdown(all []*table, out io.Writer) {
	line := func(first string, cell func(*table) string) {
		cells := []string{first}
		for _, t := range all {
			cells = append(cells, cell(t))
		}
		fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
	}
	fmt.Fprintln(out)
	line("memory for the experts", func(t *table) string { return fmt.Sprintf("%s, %d %%", t.subject.Shape, t.subject.Share) })
	line("---", func(*table) string { return "---" })
	for i := range all[0].rows {
		line(all[0].rows[i].name, func(t *table) string {
			return fmt.Sprintf("%.1f, %.1f", median(t.rows[i].measured), t.rows[i].predicted)
		})
	}
	line("rank correlation", func(t *table) string { return fmt.Sprintf("%.2f", t.rank().correlation) })
	line("that of one turn with the others", func(t *table) string { return fmt.Sprintf("%.2f", t.rank().again) })
	line("clear pairs in order", func(t *table) string { return fmt.Sprintf("%d of %d", t.rank().right, t.rank().clear) })
}

// name names a setting, with its memory as a multiple of the recorded one.
func name(s whatif.Settings, memory int64) string {
	var parts []string
	if s.ExpertMemory > 0 {
		parts = append(parts, fmt.Sprintf("%.1f times the memory", float64(s.ExpertMemory)/float64(memory)))
		s.ExpertMemory = 0
	}
	if s != (whatif.Settings{}) || len(parts) == 0 {
		parts = append(parts, s.String())
	}
	return strings.Join(parts, ", ")
}
