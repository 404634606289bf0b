package main

import (
	"fmt"
	"strings"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/diskbw"
)

// nearlyAsFast is the share of the best speed that counts as it.
const nearlyAsFast = 0.95

// explain says why the plan is as it is, and what could be better.
func (r *doctorResult) explain(c *doctorCmd, i *actors.Info) {
	why := func(format string, args ...any) { r.Why = append(r.Why, fmt.Sprintf(format, args...)) }
	why("kernels %s, of %s that this program has for this processor", r.Plan.Variant, strings.Join(host.Variants(), ", "))
	if c.Threads == 0 {
		why("%d threads, the cores that this process may use", r.Plan.Threads)
	}
	if r.Machine.MemoryLimit > 0 {
		why("a cgroup allows %s of memory, cached file pages included", formatBytes(r.Machine.MemoryLimit))
	}
	if r.Plan.Error != "" {
		return
	}
	r.explainExperts(c, i, why)
	if f := r.Forecast; f != nil && f.Bound == "disk" {
		why("the disk is what a token waits for: more --expert-memory, or fewer --experts-per-token, make it faster")
	}
}

// explainExperts is about how experts come into memory.
func (r *doctorResult) explainExperts(c *doctorCmd, i *actors.Info, why func(string, ...any)) {
	mapped := i.ExpertIO == actors.ExpertIOMmap
	switch {
	case c.ExpertIO != "" && c.ExpertIO != string(actors.ExpertIOAuto):
		why("expert I/O %s, as --expert-io says", i.ExpertIO)
	case mapped:
		why("expert I/O %s: all experts, %s, fit into the memory for them", i.ExpertIO, formatBytes(i.ExpertBytes))
	default:
		why("expert I/O %s: all experts are %s, the memory for them is %s", i.ExpertIO, formatBytes(i.ExpertBytes), formatBytes(slotBytes(i)))
	}
	if mapped {
		return
	}
	if c.ExpertMemory == (size{}) {
		why("%s for %d expert slots, of the %s that are free; --expert-memory sets it", formatBytes(slotBytes(i)), i.Slots, formatBytes(r.Machine.Free))
	}
	direct, buffered := best(r.Disk, diskbw.Direct), best(r.Disk, diskbw.Buffered)
	if direct != nil && buffered != nil {
		why("direct reads come to %.2f GB/s at most, %d at once, buffered ones to %.2f GB/s, %d at once",
			direct.Median/1e9, direct.Depth, buffered.Median/1e9, buffered.Depth)
	}
	used := rateAt(r.Disk, diskMode(i.ExpertIO), i.ReadWorkers)
	top := best(r.Disk, diskMode(i.ExpertIO))
	if used != nil && used.Median < nearlyAsFast*top.Median {
		why("%d read workers: %d read %.0f%% faster", i.ReadWorkers, top.Depth, 100*(top.Median/used.Median-1))
	}
}

// text is the result for people.
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
		figureLine(&b, "memory", "%.1f GB/s read (%.1f to %.1f) by %d threads, %s loads", r.Memory.Median/1e9, r.Memory.Min/1e9, r.Memory.Max/1e9,
			r.Memory.Threads, r.Memory.Loop)
	}
	for _, mode := range []diskbw.Mode{diskbw.Direct, diskbw.Buffered} {
		r.diskLines(&b, mode)
	}
	if r.DiskNote != "" {
		figureLine(&b, "disk", "%s", r.DiskNote)
	}
	r.Plan.text(&b)
	if r.Forecast != nil {
		figureLine(&b, "forecast", "%s", r.Forecast.text())
	} else {
		figureLine(&b, "forecast", "none")
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

// diskLines lists the rates of a mode, by depth.
func (r *doctorResult) diskLines(b *strings.Builder, mode diskbw.Mode) {
	name := "disk " + string(mode)
	for _, d := range r.Disk {
		if d.Mode == string(mode) {
			figureLine(b, name, " %d at once: %.2f GB/s (%.2f to %.2f), %.1f ms a record", d.Depth, d.Median/1e9, d.Min/1e9, d.Max/1e9, 1e3*d.ReadSeconds)
			name = ""
		}
	}
}

// text is the plan for people.
func (p *doctorPlan) text(b *strings.Builder) {
	if p.Error != "" {
		figureLine(b, "plan", "would not run: %s", p.Error)
		return
	}
	figureLine(b, "plan", "device %s, %s activations, %s keys and values, expert I/O %s, prefetch %s, ring depth %d, %d read workers, chunks of %d rows",
		p.Device, p.Activations, p.KV, p.ExpertIO, p.Prefetch, p.RingDepth, p.ReadWorkers, p.ChunkRows)
	experts := fmt.Sprintf("%s of experts mapped", formatBytes(p.Streamed))
	if p.ExpertMemory > 0 {
		experts = fmt.Sprintf("%s for %d slots, %.1f%% of all experts", formatBytes(p.ExpertMemory), p.Slots, 100*p.SlotShare)
	}
	figureLine(b, "", "%s; %s of other weights; context %d", experts, formatBytes(p.Resident), p.Context)
}
