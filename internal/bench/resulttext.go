package bench

import (
	"fmt"
	"strings"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/figures"
)

// text appends the setting.
func (s *Setting) text(b *strings.Builder) {
	figures.Line(b, "model", "%s (%s)", s.Model, s.Arch)
	figures.Line(b, "setting", "device %s, %s activations, %s keys and values, expert I/O %s, %s, prefetch %s, %d experts per token",
		s.Device, s.Activations, s.KV, figures.ExpertsText(s.ExpertIO, s.Resident), figures.Counted(s.Slots, "slot"), s.Prefetch, s.TopK)
	switch {
	case s.ExpertBytes == 0:
	case s.ExpertIO == string(actors.ExpertIOLoaded):
		figures.Line(b, "far experts", "read in the host's memory; %s of the device's for the "+
			"others; chunks of %d rows", figures.Bytes(s.ExpertBytes), s.ChunkRows)
	default:
		figures.Line(b, "streaming", "%s of slots, ring depth %d, %s, chunks of %d rows", figures.Bytes(s.ExpertBytes), s.RingDepth,
			figures.Counted(s.ReadWorkers, "read worker"), s.ChunkRows)
	}
	if s.MemoryLimit > 0 {
		figures.Line(b, "limit", "%s of memory for this process's cgroup, which counts cached file pages", figures.Bytes(s.MemoryLimit))
	}
	figures.Line(b, "per token", "%s touched: %s resident, %s experts; %.3g G multiply-adds and %.3g G in the head",
		figures.Bytes(s.TouchedToken), figures.Bytes(s.TouchedDense), figures.Bytes(s.TouchedExp), float64(s.MACLayers)/1e9, float64(s.MACHead)/1e9)
}

// Text formats the result for people.
func (r *Result) Text() string {
	var b strings.Builder
	r.Setting.text(&b)
	if m := r.Memory; m == nil {
		figures.Line(&b, "memory", "not measured")
	} else {
		when := "before every run and after the last"
		if m.First {
			when = "before the model was opened"
		}
		figures.Line(&b, "memory", "%.1f GB/s read (%.1f to %.1f) by %s (%s), measured %s",
			m.Median/1e9, m.Min/1e9, m.Max/1e9, figures.Counted(m.Threads, "thread"), m.Loop, when)
	}
	for _, d := range r.Disk {
		figures.Line(&b, "disk", "%.2f GB/s (%.2f to %.2f), %s reads of one record, %d at once", d.Median/1e9, d.Min/1e9, d.Max/1e9, d.Mode, d.Depth)
	}
	runs := 0
	for _, c := range r.Cases {
		runs = max(runs, len(c.Runs))
	}
	figures.Line(&b, "measured", "%s prompts, %s decoded after each; %s, %s decoded before", r.Prompts, figures.Counted(r.GenTokens, "token"), r.State,
		figures.Counted(r.WarmupTokens, "token"))
	if r.Interrupted {
		figures.Line(&b, "interrupted", "during run %d of %d", min(runs+1, r.Repeat), r.Repeat)
	}
	r.table(&b)
	b.WriteByte('\n')
	for _, c := range r.Cases {
		figures.Line(&b, "time", "%s, prompts of %s: %s", figures.Counted(c.Sequences, "text"), figures.Counted(c.PromptTokens, "token"), c.Prefill.Times.PerToken(c.Prefill.Tokens))
		figures.Line(&b, "", "decoding: %s", c.Decode.Times.PerToken(c.Decode.Tokens))
		r.reads(&b, c)
	}
	r.limits(&b)
	return b.String()
}

// speedColumns show the tokens a second of a part of a row, and their spread if there is one.
func speedColumns[R any](head string, spread bool, of func(R) *Summary) []column[R] {
	all := []column[R]{
		{head, 11, func(r R) string { return hundredths(of(r).TokensPerSecond.Median) }},
		{"min", 10, func(r R) string { return hundredths(of(r).TokensPerSecond.Min) }},
		{"max", 10, func(r R) string { return hundredths(of(r).TokensPerSecond.Max) }},
	}
	if !spread {
		return all[:1]
	}
	return all
}

// slotColumns show what the slots of a part of a row had, and what was read.
func slotColumns[R any](of func(R) *Summary) []column[R] {
	return []column[R]{
		{"hits", 8, func(r R) string { return percent(of(r).ExpertHitRate) }},
		{"kept", 8, func(r R) string { return percent(of(r).ExpertKeptRate) }},
		{"read", 12, func(r R) string { return figures.Bytes(of(r).BytesRead) }},
	}
}

// casePart is one part of a case.
type casePart struct {
	name string
	c    *Case
	s    *Summary
}

// table lists the parts of every case. Columns that say nothing are left out: the number of
// texts if it is always 1, the spread of a single run, the share of an unknown bandwidth, the cache
// of mapped experts.
func (r *Result) table(b *strings.Builder) {
	var rows []casePart
	texts, spread := false, false
	for _, c := range r.Cases {
		texts, spread = texts || c.Sequences > 1, spread || len(c.Runs) > 1
		rows = append(rows, casePart{"prefill", c, &c.Prefill}, casePart{"decode", c, &c.Decode})
	}
	summary := func(p casePart) *Summary { return p.s }
	columns := []column[casePart]{
		{"part", -8, func(p casePart) string { return p.name }},
		{"prompt", 8, func(p casePart) string { return fmt.Sprint(p.c.PromptTokens) }},
	}
	if texts {
		columns = append(columns, column[casePart]{"texts", 7, func(p casePart) string { return fmt.Sprint(p.c.Sequences) }})
	}
	columns = append(columns, column[casePart]{"runs", 6, func(p casePart) string { return fmt.Sprint(len(p.c.Runs)) }})
	columns = append(columns, speedColumns("tokens/s", spread, summary)...)
	columns = append(columns, column[casePart]{"GMAC/s", 9, func(p casePart) string { return fmt.Sprintf("%.1f", p.s.MultiplyAdds/1e9) }})
	if r.Memory != nil {
		columns = append(columns, column[casePart]{"memory", 8, func(p casePart) string {
			if p.s.BandwidthShare == nil {
				return "-"
			}
			return percent(*p.s.BandwidthShare)
		}})
	}
	if r.ExpertBytes > 0 {
		columns = append(columns, slotColumns(summary)...)
	}
	b.WriteByte('\n')
	table(b, columns, rows)
}

// reads says what a case read, and what became of reading ahead.
func (r *Result) reads(b *strings.Builder, c *Case) {
	if r.ExpertBytes == 0 {
		return // mapped
	}
	name := "reads"
	for _, p := range []struct {
		part string
		s    *Summary
	}{{"prompts", &c.Prefill}, {"decoding", &c.Decode}} {
		ahead := p.s.Totals.Counts.AheadText(r.Prefetch, r.Ahead)
		for _, text := range []string{p.s.ReadCounts.Text(), r.far(p.s), ahead} {
			if text != "" {
				figures.Line(b, name, "%s: %s", p.part, text)
				name = ""
			}
		}
	}
}

// far says how often the device read an expert in the host's memory.
func (r *Result) far(s *Summary) string {
	if r.ExpertIO != string(actors.ExpertIOLoaded) {
		return ""
	}
	return figures.Counted(s.ExpertMisses, "use") + " of experts in the host's memory"
}

// limits compares the figures with what would be possible.
func (r *Result) limits(b *strings.Builder) {
	if o := r.Optimum; o != nil {
		figures.Line(b, "best cache", "decoding: kept %.1f%%, %s read; it knows the future and has as many slots", 100*o.KeptRate, figures.Bytes(o.Bytes))
		if o.Bounds != nil && len(r.Cases) > 0 {
			figures.Line(b, "", "%s", o.Bounds.text(r.Cases[0].Decode.TokensPerSecond.Median))
		}
	}
	if r.Forecast == nil {
		return
	}
	figures.Line(b, "forecast", "%s", r.Forecast.Text())
	for _, c := range r.Cases {
		if c.Decode.ForecastShare != nil {
			figures.Line(b, "", "measured: %.2f tokens/s after prompts of %s, %.0f%% of the best case; kept %.1f%%", c.Decode.TokensPerSecond.Median,
				figures.Counted(c.PromptTokens, "token"), 100**c.Decode.ForecastShare, 100*c.Decode.ExpertKeptRate)
		}
	}
}
