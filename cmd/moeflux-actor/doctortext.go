package main

import (
	"fmt"
	"strings"

	"github.com/moeflux/moeflux-actor/internal/diskbw"
	"github.com/moeflux/moeflux-actor/internal/forecast"
)

// doctorText formats a report.
func doctorText(r *forecast.Report) string {
	var b strings.Builder
	figureLine(&b, "model", "%s (%s)", r.Model, r.Arch)
	m := r.Machine
	limit := ""
	if m.MemoryLimit > 0 {
		limit = ", the limit of this process's cgroup"
	}
	figureLine(&b, "machine", "%s of memory%s, %s of it free", formatBytes(m.Memory), limit, formatBytes(m.Free))
	if r.Memory == nil {
		figureLine(&b, "memory", "not measured")
	} else {
		figureLine(&b, "memory", "%.1f GB/s read (%.1f to %.1f) by %s (%s)", r.Memory.Median/1e9, r.Memory.Min/1e9, r.Memory.Max/1e9,
			counted(int64(r.Memory.Threads), "thread"), r.Memory.Loop)
	}
	for _, mode := range []diskbw.Mode{diskbw.Direct, diskbw.Buffered} {
		diskLines(&b, r.Disk, mode)
	}
	if r.DiskNote != "" {
		figureLine(&b, "disk", "%s", r.DiskNote)
	}
	planLines(&b, &r.Plan)
	if r.Plan.Advice != "" {
		figureLine(&b, "run with", "%s", r.Plan.Advice)
	}
	if r.Forecast != nil {
		figureLine(&b, "forecast", "%s", forecastText(r.Forecast))
	} else {
		figureLine(&b, "forecast", "none: %s", noForecast(r))
	}
	for k, w := range r.Why {
		name := ""
		if k == 0 {
			name = "why"
		}
		figureLine(&b, name, "%s", w)
	}
	return b.String()
}

// noForecast says why there is no forecast.
func noForecast(r *forecast.Report) string {
	switch {
	case r.Plan.Error != "":
		return "the plan would not run"
	case r.Memory == nil:
		return "the memory's bandwidth is unknown"
	case r.Plan.ExpertMemory > 0 && len(r.Disk) == 0:
		return "the disk's bandwidth is unknown"
	}
	return "mapped experts do not fit in memory, and the system decides which pages stay"
}

// diskLines lists the rates of a mode by depth.
func diskLines(b *strings.Builder, rates []forecast.DiskRate, mode diskbw.Mode) {
	name := "disk " + string(mode)
	for _, d := range rates {
		if d.Mode == mode {
			figureLine(b, name, " %d at once: %.2f GB/s (%.2f to %.2f), %.1f ms a record", d.Depth, d.Median/1e9, d.Min/1e9, d.Max/1e9, 1e3*d.ReadSeconds)
			name = ""
		}
	}
}

// planLines formats a plan.
func planLines(b *strings.Builder, p *forecast.Plan) {
	if p.Error != "" {
		figureLine(b, "plan", "would not run: %s", p.Error)
		return
	}
	figureLine(b, "plan", "device %s, %s activations, %s keys and values, expert I/O %s, prefetch %s, ring depth %d, %s, chunks of %d rows",
		p.Device, p.Activations, p.KV, p.ExpertIO, p.Prefetch, p.RingDepth, counted(int64(p.ReadWorkers), "read worker"), p.ChunkRows)
	experts := fmt.Sprintf("%s of experts mapped", formatBytes(p.Streamed))
	if p.ExpertMemory > 0 {
		experts = fmt.Sprintf("%s for %d slots, %.1f%% of all experts", formatBytes(p.ExpertMemory), p.Slots, 100*p.SlotShare)
	}
	figureLine(b, "", "%s; %s of other weights%s; context %d", experts, formatBytes(p.Resident), p.Parked("; "), p.Context)
}
