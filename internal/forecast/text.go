package forecast

import (
	"fmt"
	"strings"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/diskbw"
	"github.com/moeflux/moeflux-actor/internal/figures"
)

// Text describes the forecast.
func (f *Forecast) Text() string {
	s := fmt.Sprintf("%.2f to %.2f tokens/s, bound by %s: a token computes for %.1f ms or more", f.Low, f.TokensPerSecond, f.Bound, 1e3*f.ComputeSeconds)
	if f.DiskSeconds > 0 {
		s += fmt.Sprintf(" and reads for %.1f ms", 1e3*f.DiskSeconds)
	}
	return s + fmt.Sprintf("; kept %.1f%%, %s", 100*f.KeptRate, f.KeptRateFrom)
}

// Text formats the report for people.
func (r *Report) Text() string {
	var b strings.Builder
	figures.Line(&b, "model", "%s (%s)", r.Model, r.Arch)
	m := r.Machine
	limit := ""
	if m.MemoryLimit > 0 {
		limit = ", the limit of this process's cgroup"
	}
	figures.Line(&b, "machine", "%s of memory%s, %s of it free", figures.Bytes(m.Memory), limit, figures.Bytes(m.Free))
	if r.Memory == nil {
		figures.Line(&b, "memory", "not measured")
	} else {
		figures.Line(&b, "memory", "%.1f GB/s read (%.1f to %.1f) by %s (%s)", r.Memory.Median/1e9, r.Memory.Min/1e9, r.Memory.Max/1e9,
			figures.Counted(r.Memory.Threads, "thread"), r.Memory.Loop)
	}
	for _, mode := range []diskbw.Mode{diskbw.Direct, diskbw.Buffered} {
		diskLines(&b, r.Disk, mode)
	}
	if r.DiskNote != "" {
		figures.Line(&b, "disk", "%s", r.DiskNote)
	}
	planLines(&b, &r.Plan)
	if r.Plan.Advice != "" {
		figures.Line(&b, "run with", "%s", r.Plan.Advice)
	}
	if r.Forecast != nil {
		figures.Line(&b, "forecast", "%s", r.Forecast.Text())
	} else {
		figures.Line(&b, "forecast", "none: %s", r.noForecast())
	}
	if r.Hosts != nil {
		r.Hosts.Lines(&b)
	}
	for k, w := range r.Why {
		name := ""
		if k == 0 {
			name = "why"
		}
		figures.Line(&b, name, "%s", w)
	}
	return b.String()
}

// noForecast says why there is no
func (r *Report) noForecast() string {
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
func diskLines(b *strings.Builder, rates []DiskRate, mode diskbw.Mode) {
	name := "disk " + string(mode)
	for _, d := range rates {
		if d.Mode == mode {
			figures.Line(b, name, " %d at once: %.2f GB/s (%.2f to %.2f), %.1f ms a record", d.Depth, d.Median/1e9, d.Min/1e9, d.Max/1e9, 1e3*d.ReadSeconds)
			name = ""
		}
	}
}

// planLines formats a plan.
func planLines(b *strings.Builder, p *Plan) {
	if p.Error != "" {
		figures.Line(b, "plan", "would not run: %s", p.Error)
		return
	}
	figures.Line(b, "plan", "device %s, %s activations, %s keys and values, expert I/O %s, prefetch %s, ring depth %d, %s, chunks of %d rows",
		p.Device, p.Activations, p.KV, p.ExpertIO, p.Prefetch, p.RingDepth, figures.Counted(p.ReadWorkers, "read worker"), p.ChunkRows)
	if p.Tuned != "" {
		figures.Line(b, "", "tune chose %s; --tuned off goes without", p.Tuned)
	}
	way := "mapped"
	if p.ExpertIO == string(actors.ExpertIOLoaded) {
		way = "loaded"
	}
	experts := fmt.Sprintf("%s of experts %s", figures.Bytes(p.Streamed), way)
	if p.ExpertMemory > 0 {
		experts = fmt.Sprintf("%s for %d slots, %.1f%% of all experts", figures.Bytes(p.ExpertMemory), p.Slots, 100*p.SlotShare)
	}
	figures.Line(b, "", "%s; %s of other weights%s; context %d", experts, figures.Bytes(p.Resident), p.Parked("; "), p.Context)
}
