package bench

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/internal/figures"
)

// Text formats the result for people.
func (r *SweepResult) Text() string {
	var b strings.Builder
	figures.Line(&b, "model", "%s", r.Model)
	if len(r.Settings) == 1 && r.Settings[0].Runs == nil {
		fmt.Fprintf(&b, "\nnone of these settings changes the plan here: %s and the defaults are the same. Keep the defaults.\n",
			figures.Counted(len(r.Settings[0].Same), "combination"))
		return b.String()
	}
	figures.Line(&b, "measured", "%s, %s prompts of %s, %s decoded after each; warm, %s decoded before; %s", figures.Counted(r.Sequences, "text"), r.Prompts,
		figures.Counted(r.PromptTokens, "token"), figures.Counted(r.GenTokens, "token"), figures.Counted(r.WarmupTokens, "token"), figures.Counted(r.Repeat, "round"))
	if r.MemoryLimit > 0 {
		figures.Line(&b, "limit", "%s of memory for this process's cgroup, which counts cached file pages", figures.Bytes(r.MemoryLimit))
	}
	if r.Interrupted {
		figures.Line(&b, "interrupted", "some runs are missing")
	}
	b.WriteByte('\n')
	r.table(&b)
	for _, s := range r.Settings {
		for _, same := range s.Same {
			fmt.Fprintf(&b, "not raced: %s is the same plan as %s\n", flagList(same), s.Name())
		}
	}
	fmt.Fprintf(&b, "\n%s\n", r.conclusion())
	return b.String()
}

// conclusion says what to run with, and why.
func (r *SweepResult) conclusion() string {
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
			r.Settings[0].Name(), change, figures.Counted(len(v.Pairs), "pair"), v.Test, v.P)
	}
	return fmt.Sprintf("best: %s\n%.1f%% less time than the defaults, the median of %s (%s, p = %.3f)", r.Best, 100*v.Gain, figures.Counted(len(v.Pairs), "pair"), v.Test, v.P)
}

// flagList writes flags as name=value, by name.
func flagList(flags Flags) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		list = append(list, name+"="+flags[name])
	}
	return strings.Join(list, " ")
}

// table lists the settings. Columns of slots and reads are left out if all experts are mapped,
// the spread if there was one round.
func (r *SweepResult) table(b *strings.Builder) {
	var columns []column[*SweepSetting]
	slots, spread := false, false
	for _, s := range r.Settings {
		for _, a := range s.Args {
			name, _, _ := strings.Cut(a, "=")
			if len(columns) == len(s.Args) {
				break // an earlier setting has the same axes
			}
			columns = append(columns, column[*SweepSetting]{name, -15, func(s *SweepSetting) string {
				if s.Defaults {
					return "default"
				}
				return s.Flags[name]
			}})
		}
		slots, spread = slots || !s.Mapped, spread || len(s.Runs) > 1
	}
	decode := func(s *SweepSetting) *Summary { return &s.Decode }
	columns = append(columns,
		column[*SweepSetting]{"runs", 6, func(s *SweepSetting) string { return fmt.Sprint(len(s.Runs)) }},
		column[*SweepSetting]{"prompt/s", 9, func(s *SweepSetting) string { return hundredths(s.Prefill.TokensPerSecond.Median) }})
	columns = append(columns, speedColumns("decode/s", spread, decode)...)
	columns = append(columns, column[*SweepSetting]{"seconds", 9, func(s *SweepSetting) string { return hundredths(s.Seconds.Median) }})
	if slots {
		columns = append(columns, slotColumns(decode)...)
		columns = append(columns, column[*SweepSetting]{"waits", 8, func(s *SweepSetting) string {
			return fmt.Sprintf("%.0f%%", 100*s.Decode.DiskWait/max(s.Decode.DiskWait+s.Decode.Compute, 1e-9))
		}})
	}
	table(b, columns, r.Settings)
}
