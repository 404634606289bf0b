package main

import (
	"fmt"
	"strings"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/bench"
	"github.com/moeflux/moeflux-actor/internal/diskbw"
	"github.com/moeflux/moeflux-actor/internal/forecast"
)

// explain gives the reasons for the plan.
func (r *doctorResult) explain(c *doctorCmd, i *actors.Info) {
	why := func(format string, args ...any) { r.Why = append(r.Why, fmt.Sprintf(format, args...)) }
	why("kernels %s; this program has %s for this processor", r.Plan.Variant, strings.Join(host.Variants(), ", "))
	if c.Threads == 0 {
		why("%s: the cores that this process may use", counted(int64(r.Plan.Threads), "thread"))
	}
	if r.Machine.MemoryLimit > 0 {
		why("a cgroup allows %s of memory and counts cached file pages", formatBytes(r.Machine.MemoryLimit))
	}
	if r.Plan.Error != "" {
		return
	}
	r.explainExperts(c, i, why)
	if f := r.Forecast; f != nil && f.Bound == forecast.BoundDisk {
		why("tokens wait for the disk: more --expert-memory would make them faster")
	}
}

// explainExperts gives the reasons for the way that experts come into memory.
func (r *doctorResult) explainExperts(c *doctorCmd, i *actors.Info, why func(string, ...any)) {
	mapped := i.ExpertIO == actors.ExpertIOMmap
	switch {
	case c.ExpertIO != "" && c.ExpertIO != string(actors.ExpertIOAuto):
		why("expert I/O %s, as --expert-io says", i.ExpertIO)
	case mapped:
		why("expert I/O %s: all experts, %s, fit into the memory for them", i.ExpertIO, formatBytes(i.ExpertBytes))
	case bench.SlotBytes(i) >= i.ExpertBytes:
		why("expert I/O %s: all experts, %s, fit into the memory for them; they are read as tokens need them, the rest in the background", i.ExpertIO, formatBytes(i.ExpertBytes))
	default:
		why("expert I/O %s: all experts take %s, the memory for them is %s", i.ExpertIO, formatBytes(i.ExpertBytes), formatBytes(bench.SlotBytes(i)))
	}
	if mapped {
		return
	}
	if c.ExpertMemory == (size{}) {
		why("%s for %d expert slots, out of %s of free memory%s; --expert-memory sets it", formatBytes(bench.SlotBytes(i)), i.Slots, formatBytes(r.Machine.Free),
			r.Plan.parked(", beside "))
	}
}

// text formats the result.
func (r *doctorResult) text() string {
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
		r.diskLines(&b, mode)
	}
	if r.DiskNote != "" {
		figureLine(&b, "disk", "%s", r.DiskNote)
	}
	r.Plan.text(&b)
	if r.Plan.Advice != "" {
		figureLine(&b, "run with", "%s", r.Plan.Advice)
	}
	if r.Forecast != nil {
		figureLine(&b, "forecast", "%s", forecastText(r.Forecast))
	} else {
		figureLine(&b, "forecast", "none: %s", r.noForecast())
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
func (r *doctorResult) noForecast() string {
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
func (r *doctorResult) diskLines(b *strings.Builder, mode diskbw.Mode) {
	name := "disk " + string(mode)
	for _, d := range r.Disk {
		if d.Mode == mode {
			figureLine(b, name, " %d at once: %.2f GB/s (%.2f to %.2f), %.1f ms a record", d.Depth, d.Median/1e9, d.Min/1e9, d.Max/1e9, 1e3*d.ReadSeconds)
			name = ""
		}
	}
}

// text formats the plan.
func (p *doctorPlan) text(b *strings.Builder) {
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
	figureLine(b, "", "%s; %s of other weights%s; context %d", experts, formatBytes(p.Resident), p.parked("; "), p.Context)
}
