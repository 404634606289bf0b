package main

import (
	"fmt"
	"strings"
)

// figureLine appends a line of a result for people.
func figureLine(b *strings.Builder, name, format string, args ...any) {
	fmt.Fprintf(b, "%-14s%s\n", name, fmt.Sprintf(format, args...))
}

// head is the setting for people.
func (s *benchSetting) head(b *strings.Builder) {
	figureLine(b, "model", "%s (%s)", s.Model, s.Arch)
	figureLine(b, "setting", "device %s, %s activations, expert I/O %s, %d slots, prefetch %s, %d experts per token",
		s.Device, s.Activations, s.ExpertIO, s.Slots, s.Prefetch, s.TopK)
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
		figureLine(&b, "memory", "%.1f GB/s read (%.1f to %.1f) by %d threads, %s loads, measured before every run",
			m.Median/1e9, m.Min/1e9, m.Max/1e9, m.Threads, m.Loop)
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
				t.Median, t.Min, t.Max, p.s.MultiplyAdds/1e9, share, 100*p.s.HitRate, formatBytes(p.s.Bytes))
		}
	}
	return b.String()
}
