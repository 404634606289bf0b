package main

import (
	"fmt"
	"strings"
)

// figureLine appends a line of a result for people.
func figureLine(b *strings.Builder, name, format string, args ...any) {
	fmt.Fprintf(b, "%-14s%s\n", name, fmt.Sprintf(format, args...))
}

// expertsText is how experts come into memory, and whether the device chooses them.
func expertsText(io string, resident bool) string {
	if resident {
		return io + " (resident)"
	}
	return io
}

// head is the setting for people.
func (s *benchSetting) head(b *strings.Builder) {
	figureLine(b, "model", "%s (%s)", s.Model, s.Arch)
	figureLine(b, "setting", "device %s, %s activations, %s keys and values, expert I/O %s, %d slots, prefetch %s, %d experts per token",
		s.Device, s.Activations, s.KV, expertsText(s.ExpertIO, s.Resident), s.Slots, s.Prefetch, s.TopK)
	if s.ExpertBytes > 0 {
		figureLine(b, "streaming", "%s of slots, ring depth %d, %d read workers, chunks of %d rows", formatBytes(s.ExpertBytes), s.RingDepth, s.ReadWorkers, s.ChunkRows)
	}
	if s.MemoryLimit > 0 {
		figureLine(b, "limit", "%s of memory for this process's cgroup, cached file pages included", formatBytes(s.MemoryLimit))
	}
	figureLine(b, "per token", "%s touched: %s resident, %s experts; %.3g G multiply-adds and %.3g G in the head",
		formatBytes(s.TouchedToken), formatBytes(s.TouchedDense), formatBytes(s.TouchedExp), float64(s.MACLayers)/1e9, float64(s.MACHead)/1e9)
}

// text is the result for people.
func (r *benchResult) text() string {
	var b strings.Builder
	r.head(&b)
	if m := r.Memory; m == nil {
		figureLine(&b, "memory", "not measured")
	} else {
		when := "before every run"
		if m.First {
			when = "before the model was opened"
		}
		figureLine(&b, "memory", "%.1f GB/s read (%.1f to %.1f) by %d threads, %s loads, measured %s",
			m.Median/1e9, m.Min/1e9, m.Max/1e9, m.Threads, m.Loop, when)
	}
	for _, d := range r.Disk {
		figureLine(&b, "disk", "%.2f GB/s (%.2f to %.2f), %d %s reads of a record at once", d.Median/1e9, d.Min/1e9, d.Max/1e9, d.Depth, d.Mode)
	}
	runs := 0
	for _, c := range r.Cases {
		runs = max(runs, len(c.Runs))
	}
	figureLine(&b, "measured", "%s prompts, %d tokens decoded after each; %s, %d tokens decoded before", r.Prompts, r.GenTokens, r.State, r.WarmupTokens)
	if r.Interrupted {
		figureLine(&b, "interrupted", "in the course of run %d of %d", min(runs+1, r.Repeat), r.Repeat)
	}
	fmt.Fprintf(&b, "\n%-8s%8s%7s%6s%11s%10s%10s%9s%8s%8s%12s\n", "part", "prompt", "texts", "runs", "tokens/s", "min", "max", "GMAC/s", "memory", "hits", "read")
	for _, c := range r.Cases {
		for _, p := range []struct {
			name string
			s    *benchSummary
		}{{"prefill", &c.Prefill}, {"decode", &c.Decode}} {
			t, share := p.s.TokensPerSecond, "-"
			if p.s.BandwidthShare != nil {
				share = fmt.Sprintf("%.1f%%", 100**p.s.BandwidthShare)
			}
			fmt.Fprintf(&b, "%-8s%8d%7d%6d%11.2f%10.2f%10.2f%9.1f%8s%7.1f%%%12s\n", p.name, c.PromptTokens, c.Sequences, len(c.Runs),
				t.Median, t.Min, t.Max, p.s.MultiplyAdds/1e9, share, 100*p.s.ExpertHitRate, formatBytes(p.s.BytesRead))
		}
	}
	b.WriteByte('\n')
	for _, c := range r.Cases {
		figureLine(&b, "time", "%d texts, prompts of %d tokens: %s", c.Sequences, c.PromptTokens, c.Prefill.perToken(c.Prefill.Tokens))
		figureLine(&b, "", "decoding: %s", c.Decode.perToken(c.Decode.Tokens))
		r.reads(&b, c)
	}
	r.limits(&b)
	return b.String()
}

// reads tells what was read in a case, and what became of what was read ahead.
func (r *benchResult) reads(b *strings.Builder, c *benchCase) {
	if r.ExpertBytes == 0 {
		return // mapped
	}
	for _, p := range []struct {
		name, more string
		s          *benchSummary
	}{{"reads", "of prompts: ", &c.Prefill}, {"", "decoding: ", &c.Decode}} {
		figureLine(b, p.name, "%s%s", p.more, p.s.readCounts.text())
		if guesses := p.s.guessText(r.Prefetch, r.Ahead); guesses != "" {
			figureLine(b, "", "  %s", guesses)
		}
	}
}

// limits holds the figures against what could be.
func (r *benchResult) limits(b *strings.Builder) {
	if o := r.Optimum; o != nil {
		figureLine(b, "best cache", "%.1f%% hits of decoded tokens and %s read, knowing the future, with as many slots", 100*o.HitRate, formatBytes(o.Bytes))
	}
	if r.Forecast == nil {
		return
	}
	figureLine(b, "forecast", "%s", r.Forecast.text())
	for _, c := range r.Cases {
		if c.Decode.ForecastShare != nil {
			figureLine(b, "", "measured: %.0f%% of it after prompts of %d tokens", 100**c.Decode.ForecastShare, c.PromptTokens)
		}
	}
}
