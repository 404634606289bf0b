package main

import (
	"fmt"
	"strings"

	"github.com/moeflux/moeflux-actor/internal/bench"
)

// figureLine appends a named line to a result.
func figureLine(b *strings.Builder, name, format string, args ...any) {
	fmt.Fprintf(b, "%-14s%s\n", name, fmt.Sprintf(format, args...))
}

// expertsText says how experts come into memory, and whether the device chooses them.
func expertsText(io string, resident bool) string {
	if resident {
		return io + " (resident)"
	}
	return io
}

// settingText appends the setting.
func settingText(b *strings.Builder, s *bench.Setting) {
	figureLine(b, "model", "%s (%s)", s.Model, s.Arch)
	figureLine(b, "setting", "device %s, %s activations, %s keys and values, expert I/O %s, %s, prefetch %s, %d experts per token",
		s.Device, s.Activations, s.KV, expertsText(s.ExpertIO, s.Resident), counted(int64(s.Slots), "slot"), s.Prefetch, s.TopK)
	if s.ExpertBytes > 0 {
		figureLine(b, "streaming", "%s of slots, ring depth %d, %s, chunks of %d rows", formatBytes(s.ExpertBytes), s.RingDepth,
			counted(int64(s.ReadWorkers), "read worker"), s.ChunkRows)
	}
	if s.MemoryLimit > 0 {
		figureLine(b, "limit", "%s of memory for this process's cgroup, which counts cached file pages", formatBytes(s.MemoryLimit))
	}
	figureLine(b, "per token", "%s touched: %s resident, %s experts; %.3g G multiply-adds and %.3g G in the head",
		formatBytes(s.TouchedToken), formatBytes(s.TouchedDense), formatBytes(s.TouchedExp), float64(s.MACLayers)/1e9, float64(s.MACHead)/1e9)
}

// benchText formats the result.
func benchText(r *bench.Result) string {
	var b strings.Builder
	settingText(&b, &r.Setting)
	if m := r.Memory; m == nil {
		figureLine(&b, "memory", "not measured")
	} else {
		when := "before every run and after the last"
		if m.First {
			when = "before the model was opened"
		}
		figureLine(&b, "memory", "%.1f GB/s read (%.1f to %.1f) by %s (%s), measured %s",
			m.Median/1e9, m.Min/1e9, m.Max/1e9, counted(int64(m.Threads), "thread"), m.Loop, when)
	}
	for _, d := range r.Disk {
		figureLine(&b, "disk", "%.2f GB/s (%.2f to %.2f), %s reads of one record, %d at once", d.Median/1e9, d.Min/1e9, d.Max/1e9, d.Mode, d.Depth)
	}
	runs := 0
	for _, c := range r.Cases {
		runs = max(runs, len(c.Runs))
	}
	figureLine(&b, "measured", "%s prompts, %s decoded after each; %s, %s decoded before", r.Prompts, counted(int64(r.GenTokens), "token"), r.State,
		counted(int64(r.WarmupTokens), "token"))
	if r.Interrupted {
		figureLine(&b, "interrupted", "during run %d of %d", min(runs+1, r.Repeat), r.Repeat)
	}
	benchTable(&b, r)
	b.WriteByte('\n')
	for _, c := range r.Cases {
		figureLine(&b, "time", "%s, prompts of %s: %s", counted(int64(c.Sequences), "text"), counted(int64(c.PromptTokens), "token"), perToken(&c.Prefill.Times, c.Prefill.Tokens))
		figureLine(&b, "", "decoding: %s", perToken(&c.Decode.Times, c.Decode.Tokens))
		benchReads(&b, r, c)
	}
	benchLimits(&b, r)
	return b.String()
}

// column is a column of a table.
type column struct {
	name  string
	width int // negative: aligned to the left
}

// tableRow appends cells under their columns.
func tableRow(b *strings.Builder, columns []column, cells []string) {
	for i, c := range columns {
		fmt.Fprintf(b, "%*s", c.width, cells[i])
	}
	b.WriteByte('\n')
}

// benchTable lists the parts of every case. Columns that say nothing are left out: the number of
// texts if it is always 1, the spread of a single run, the share of an unknown bandwidth, the cache
// of mapped experts.
func benchTable(b *strings.Builder, r *bench.Result) {
	texts, spread, memory, slots := false, false, r.Memory != nil, r.ExpertBytes > 0
	for _, c := range r.Cases {
		texts, spread = texts || c.Sequences > 1, spread || len(c.Runs) > 1
	}
	columns := []column{{"part", -8}, {"prompt", 8}}
	add := func(show bool, more ...column) {
		if show {
			columns = append(columns, more...)
		}
	}
	add(texts, column{"texts", 7})
	add(true, column{"runs", 6}, column{"tokens/s", 11})
	add(spread, column{"min", 10}, column{"max", 10})
	add(true, column{"GMAC/s", 9})
	add(memory, column{"memory", 8})
	add(slots, column{"hits", 8}, column{"kept", 8}, column{"read", 12})
	var names []string
	for _, c := range columns {
		names = append(names, c.name)
	}
	b.WriteByte('\n')
	tableRow(b, columns, names)
	for _, c := range r.Cases {
		for _, p := range []struct {
			name string
			s    *bench.Summary
		}{{"prefill", &c.Prefill}, {"decode", &c.Decode}} {
			cells := summaryCells(p.s)
			cells["part"], cells["prompt"], cells["texts"], cells["runs"] = p.name, fmt.Sprint(c.PromptTokens), fmt.Sprint(c.Sequences), fmt.Sprint(len(c.Runs))
			var row []string
			for _, name := range names {
				row = append(row, cells[name])
			}
			tableRow(b, columns, row)
		}
	}
}

// summaryCells formats a summary, by the names of columns.
func summaryCells(s *bench.Summary) map[string]string {
	number := func(x float64) string { return fmt.Sprintf("%.2f", x) }
	percent := func(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }
	cells := map[string]string{
		"tokens/s": number(s.TokensPerSecond.Median), "min": number(s.TokensPerSecond.Min), "max": number(s.TokensPerSecond.Max),
		"GMAC/s": fmt.Sprintf("%.1f", s.MultiplyAdds/1e9), "memory": "-",
		"hits": percent(s.ExpertHitRate), "kept": percent(s.ExpertKeptRate), "read": formatBytes(s.BytesRead),
	}
	if s.BandwidthShare != nil {
		cells["memory"] = percent(*s.BandwidthShare)
	}
	return cells
}

// benchReads says what a case read, and what became of reading ahead.
func benchReads(b *strings.Builder, r *bench.Result, c *bench.Case) {
	if r.ExpertBytes == 0 {
		return // mapped
	}
	name := "reads"
	for _, p := range []struct {
		part string
		s    *bench.Summary
	}{{"prompts", &c.Prefill}, {"decoding", &c.Decode}} {
		for _, text := range []string{readsText(&p.s.ReadCounts), aheadText(&p.s.Totals.Counts, r.Prefetch, r.Ahead)} {
			if text != "" {
				figureLine(b, name, "%s: %s", p.part, text)
				name = ""
			}
		}
	}
}

// benchLimits compares the figures with what would be possible.
func benchLimits(b *strings.Builder, r *bench.Result) {
	if o := r.Optimum; o != nil {
		figureLine(b, "best cache", "decoding: kept %.1f%%, %s read; it knows the future and has as many slots", 100*o.KeptRate, formatBytes(o.Bytes))
	}
	if r.Forecast == nil {
		return
	}
	figureLine(b, "forecast", "%s", forecastText(r.Forecast))
	for _, c := range r.Cases {
		if c.Decode.ForecastShare != nil {
			figureLine(b, "", "measured: %.2f tokens/s after prompts of %s, %.0f%% of the best case; kept %.1f%%", c.Decode.TokensPerSecond.Median,
				counted(int64(c.PromptTokens), "token"), 100**c.Decode.ForecastShare, 100*c.Decode.ExpertKeptRate)
		}
	}
}
