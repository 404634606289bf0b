package tracetext

import (
	"fmt"
	"strings"

	"github.com/moeflux/moeflux-actor/tracing/whatif"
)

// WhatIf writes what other settings would have made of a run.
func WhatIf(p *whatif.Prediction, s Style) string {
	var b strings.Builder
	m := &p.Measured
	fmt.Fprintf(&b, "With %s: ", p.Settings)
	switch {
	case m.DecodeRate > 0:
		fmt.Fprintf(&b, "%.2f tokens/s decoded, %s\n", p.DecodeRate, change(p.DecodeRate, m.DecodeRate))
	default:
		fmt.Fprintf(&b, "%.1f prompt tokens/s, %s\n", p.PromptRate, change(p.PromptRate, m.PromptRate))
	}
	fmt.Fprintf(&b, "The replay of the recorded settings is %.1f %% off what was measured.\n\n", 100*p.Error)
	t := newTable([]int{0}, "", "measured", "its replay", "the replay with changes")
	all := []*whatif.Result{m, &p.Replayed, &p.Changed}
	row := func(name string, cell func(*whatif.Result) string) {
		cells := []string{name}
		for _, r := range all {
			cells = append(cells, cell(r))
		}
		t.add(cells...)
	}
	row("decoded tokens/s", func(r *whatif.Result) string { return fmt.Sprintf("%.2f", r.DecodeRate) })
	if m.PromptRate > 0 {
		row("prompt tokens/s", func(r *whatif.Result) string { return fmt.Sprintf("%.1f", r.PromptRate) })
	}
	row("experts in memory when wanted", func(r *whatif.Result) string { return fmt.Sprintf("%.1f %%", 100*r.HitRate()) })
	row("read from the disk", func(r *whatif.Result) string { return bytes(r.Bytes) })
	row("the device computes", func(r *whatif.Result) string { return Duration(r.DeviceNS) })
	row("the disk reads", func(r *whatif.Result) string { return Duration(r.DiskNS) })
	replayed := func(ns func(*whatif.Result) int64) func(*whatif.Result) string {
		return func(r *whatif.Result) string {
			if r == m {
				return ""
			}
			return Duration(ns(r))
		}
	}
	row("the device waits for experts", replayed(func(r *whatif.Result) int64 { return r.ForExpertsNS }))
	row("the device waits for stages", replayed(func(r *whatif.Result) int64 { return r.ForStagesNS }))
	row("nobody asks for anything", replayed(func(r *whatif.Result) int64 { return r.ForCallersNS }))
	t.write(&b, s.width())
	list(&b, "The recording does not tell:", p.Unknown)
	list(&b, "Predictions have not been compared with an engine for:", p.Unchecked)
	return b.String()
}

// list writes what there is, if there is something.
func list(b *strings.Builder, title string, items []string) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", title)
	for _, item := range items {
		fmt.Fprintf(b, "  - %s\n", item)
	}
}

// change says how far a speed is from another.
func change(is, was float64) string {
	switch c := 100 * (is/was - 1); {
	case c >= 0.05:
		return fmt.Sprintf("%.1f %% faster", c)
	case c <= -0.05:
		return fmt.Sprintf("%.1f %% slower", -c)
	}
	return "as fast as before"
}
