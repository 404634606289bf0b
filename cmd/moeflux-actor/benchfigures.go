package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/model"
)

// benchResult is what bench prints.
type benchResult struct {
	Model    string     `json:"model"`
	Arch     model.Arch `json:"architecture"`
	Device   string     `json:"device"`
	Threads  int        `json:"threads"`
	ExpertIO string     `json:"expert_io"`
	Slots    int        `json:"slots"`
	Prefetch string     `json:"prefetch"`
	TopK     int        `json:"experts_per_token"`
	Prompts  string     `json:"prompts"` // chain, of a model that synth made, or random
	State    string     `json:"state"`   // warm

	PromptTokens int `json:"prompt_tokens"` // of one sequence
	GenTokens    int `json:"gen_tokens"`    // likewise
	Sequences    int `json:"sequences"`
	Repeat       int `json:"repeat"`
	WarmupTokens int `json:"warmup_tokens"` // decoded by each sequence before anything was measured

	TouchedToken int64 `json:"touched_per_token"`
	TouchedDense int64 `json:"touched_per_token_resident"`
	TouchedExp   int64 `json:"touched_per_token_experts"`

	MemoryBandwidth *float64 `json:"memory_bytes_per_second"` // null if memory was too short to measure it
	BandwidthShare  *float64 `json:"bandwidth_share"`         // of decode; null with several sequences too, which share what they read

	Prefill benchSummary `json:"prefill"`
	Decode  benchSummary `json:"decode"`
	Runs    []benchRun   `json:"runs"`
}

// benchSummary is one part of all runs.
type benchSummary struct {
	TokensPerSecond spread `json:"tokens_per_second"`
	benchCounts
}

// spread is of one figure over all runs.
type spread struct {
	Median float64 `json:"median"` // the mean of the middle two of an even number
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// benchRun is one run.
type benchRun struct {
	Prefill benchPart `json:"prefill"`
	Decode  benchPart `json:"decode"`
}

// benchPart is one part of one run; tokens are those of all sequences.
type benchPart struct {
	Seconds         float64 `json:"seconds"`
	TokensPerSecond float64 `json:"tokens_per_second"`
	benchCounts
}

// benchCounts are what the engine counted. Hits and misses are experts per wave, as in stages.LayerStats; mapped experts are
// always hits, and what the system reads for them is not counted.
type benchCounts struct {
	Tokens  int     `json:"tokens"`
	Hits    int64   `json:"expert_hits"`
	Misses  int64   `json:"expert_misses"`
	HitRate float64 `json:"expert_hit_rate"` // 0 to 1; 0 if no expert was used
	Bytes   int64   `json:"bytes_read"`
}

// count sets what was counted between two moments.
func (c *benchCounts) count(before, after *actors.Stats) {
	for i, l := range after.Layers {
		c.Hits += l.Hits - before.Layers[i].Hits
		c.Misses += l.Misses - before.Layers[i].Misses
		c.Bytes += l.BytesRead - before.Layers[i].BytesRead
	}
	c.setRate()
}

func (c *benchCounts) setRate() {
	if all := c.Hits + c.Misses; all > 0 {
		c.HitRate = float64(c.Hits) / float64(all)
	}
}

// summarise fills in what follows from the runs, of which there is one at least.
func (r *benchResult) summarise() {
	r.Prefill = summary(r.Runs, func(run benchRun) benchPart { return run.Prefill })
	r.Decode = summary(r.Runs, func(run benchRun) benchPart { return run.Decode })
	if r.MemoryBandwidth != nil && r.Sequences == 1 {
		share := float64(r.TouchedToken) * r.Decode.TokensPerSecond.Median / *r.MemoryBandwidth
		r.BandwidthShare = &share
	}
}

func summary(runs []benchRun, part func(benchRun) benchPart) benchSummary {
	var (
		s      benchSummary
		speeds []float64
	)
	for _, run := range runs {
		p := part(run)
		speeds = append(speeds, p.TokensPerSecond)
		s.Tokens += p.Tokens
		s.Hits += p.Hits
		s.Misses += p.Misses
		s.Bytes += p.Bytes
	}
	s.setRate()
	s.TokensPerSecond = spreadOf(speeds)
	return s
}

// spreadOf returns the spread of one figure or more.
func spreadOf(x []float64) spread {
	x = slices.Sorted(slices.Values(x))
	n := len(x)
	return spread{Median: (x[(n-1)/2] + x[n/2]) / 2, Min: x[0], Max: x[n-1]}
}

// text is the result for people.
func (r *benchResult) text() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-14s%s\n", name, fmt.Sprintf(format, args...))
	}
	line("model", "%s (%s)", r.Model, r.Arch)
	line("setting", "device %s, %d threads, expert I/O %s, %d slots, prefetch %s, %d experts per token", r.Device, r.Threads, r.ExpertIO, r.Slots, r.Prefetch, r.TopK)
	line("measured", "runs %d, sequences %d, each with %d %s prompt tokens and %d decoded; %s, %d tokens decoded before",
		r.Repeat, r.Sequences, r.PromptTokens, r.Prompts, r.GenTokens, r.State, r.WarmupTokens)
	for _, p := range []struct {
		name string
		s    *benchSummary
	}{{"prefill", &r.Prefill}, {"decode", &r.Decode}} {
		t := p.s.TokensPerSecond
		line(p.name, "%.2f tokens/s (%.2f to %.2f), expert hits %.1f%%, %s read", t.Median, t.Min, t.Max, 100*p.s.HitRate, formatBytes(p.s.Bytes))
	}
	line("per token", "%s touched: %s resident, %s experts", formatBytes(r.TouchedToken), formatBytes(r.TouchedDense), formatBytes(r.TouchedExp))
	switch {
	case r.MemoryBandwidth == nil:
		line("memory", "not measured")
	case r.BandwidthShare == nil:
		line("memory", "%.1f GB/s read", *r.MemoryBandwidth/1e9)
	default:
		line("memory", "%.1f GB/s read, of which decoding takes %.1f%%", *r.MemoryBandwidth/1e9, 100**r.BandwidthShare)
	}
	return b.String()
}
