package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/internal/bench"
)

// sweepText formats the result.
func sweepText(r *bench.SweepResult) string {
	var b strings.Builder
	figureLine(&b, "model", "%s", r.Model)
	if len(r.Settings) == 1 && r.Settings[0].Runs == nil {
		fmt.Fprintf(&b, "\nnone of these settings changes the plan here: %s and the defaults are the same. Keep the defaults.\n",
			counted(int64(len(r.Settings[0].Same)), "combination"))
		return b.String()
	}
	figureLine(&b, "measured", "%s, %s prompts of %s, %s decoded after each; warm, %s decoded before; %s", counted(int64(r.Sequences), "text"), r.Prompts,
		counted(int64(r.PromptTokens), "token"), counted(int64(r.GenTokens), "token"), counted(int64(r.WarmupTokens), "token"), counted(int64(r.Repeat), "round"))
	if r.MemoryLimit > 0 {
		figureLine(&b, "limit", "%s of memory for this process's cgroup, which counts cached file pages", formatBytes(r.MemoryLimit))
	}
	if r.Interrupted {
		figureLine(&b, "interrupted", "some runs are missing")
	}
	b.WriteByte('\n')
	sweepTable(&b, r)
	for _, s := range r.Settings {
		for _, same := range s.Same {
			fmt.Fprintf(&b, "not raced: %s is the same plan as %s\n", flagList(same), s.Name())
		}
	}
	fmt.Fprintf(&b, "\n%s\n", sweepConclusion(r))
	return b.String()
}

// sweepConclusion says what to run with, and why.
func sweepConclusion(r *bench.SweepResult) string {
	v := r.Verdict
	switch {
	case v == nil && r.Interrupted:
		return "interrupted before the comparison with the defaults: keep the defaults"
	case v == nil:
		return "no setting was faster than the defaults: keep the defaults"
	case !v.Significant:
		change := fmt.Sprintf("%.1f%% less", 100*v.Gain)
		if v.Gain < 0 {
			change = fmt.Sprintf("%.1f%% more", -100*v.Gain)
		}
		return fmt.Sprintf("no difference beyond the spread, keep the defaults: %s took %s time, the median of %s (%s, p = %.3f)",
			r.Settings[0].Name(), change, counted(int64(len(v.Pairs)), "pair"), v.Test, v.P)
	}
	return fmt.Sprintf("best: %s\n%.1f%% less time than the defaults, the median of %s (%s, p = %.3f)", r.Best, 100*v.Gain, counted(int64(len(v.Pairs)), "pair"), v.Test, v.P)
}

// flagList writes flags as name=value, by name.
func flagList(flags bench.Flags) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		list = append(list, name+"="+flags[name])
	}
	return strings.Join(list, " ")
}

// sweepTable lists the settings. Columns of slots and reads are left out if all experts are mapped,
// the spread if there was one round.
func sweepTable(b *strings.Builder, r *bench.SweepResult) {
	var names []string // of the axes
	slots, spread := false, false
	for _, s := range r.Settings {
		if len(s.Args) > 0 && names == nil {
			for _, a := range s.Args {
				name, _, _ := strings.Cut(a, "=")
				names = append(names, name)
			}
		}
		slots, spread = slots || !s.Mapped, spread || len(s.Runs) > 1
	}
	var columns []column
	for _, name := range names {
		columns = append(columns, column{name, -15})
	}
	columns = append(columns, column{"runs", 6}, column{"prompt/s", 9}, column{"decode/s", 11})
	if spread {
		columns = append(columns, column{"min", 10}, column{"max", 10})
	}
	columns = append(columns, column{"seconds", 9})
	if slots {
		columns = append(columns, column{"hits", 8}, column{"kept", 8}, column{"read", 12}, column{"waits", 8})
	}
	var heads []string
	for _, c := range columns {
		heads = append(heads, c.name)
	}
	tableRow(b, columns, heads)
	for _, s := range r.Settings {
		cells := summaryCells(&s.Decode)
		for _, name := range names {
			if cells[name] = s.Flags[name]; s.Defaults {
				cells[name] = "default"
			}
		}
		cells["runs"], cells["prompt/s"], cells["decode/s"] = fmt.Sprint(len(s.Runs)), fmt.Sprintf("%.2f", s.Prefill.TokensPerSecond.Median), cells["tokens/s"]
		cells["seconds"] = fmt.Sprintf("%.2f", s.Seconds.Median)
		cells["waits"] = fmt.Sprintf("%.0f%%", 100*s.Decode.DiskWait/max(s.Decode.DiskWait+s.Decode.Compute, 1e-9))
		var row []string
		for _, c := range columns {
			row = append(row, cells[c.name])
		}
		tableRow(b, columns, row)
	}
}
