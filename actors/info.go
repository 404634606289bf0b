package actors

import (
	"log/slog"
	"path/filepath"
)

// nameOf returns the name of a model's directory.
func nameOf(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return filepath.Base(dir)
}

// SlotMemory returns the bytes of all expert slots; 0 if all experts are in memory from Open on.
func (i *Info) SlotMemory() int64 {
	if !i.ExpertIO.Streams() {
		return 0
	}
	return int64(i.Slots) * int64(i.SlotBytes)
}

// NearMemory returns the bytes of slots in a device's own memory, with those of experts in transit,
// where all experts are loaded into the host's; 0 elsewhere.
func (i *Info) NearMemory() int64 {
	return int64(i.NearSlots+i.plan.Transit) * int64(i.SlotBytes)
}

// LogValue returns what a reader of a log wants to know of an engine: the model, the device, and
// how memory is used.
func (i Info) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.String("model", i.Name), slog.String("arch", string(i.Arch)), slog.String("device", i.Device),
		slog.String("expert_io", string(i.ExpertIO)),
	}
	if !i.ExpertIO.Streams() {
		attrs = append(attrs, slog.Bool("resident", i.Resident))
	} else {
		attrs = append(attrs, slog.Int("slots", i.Slots), slog.Int("slot_bytes", i.SlotBytes), slog.String("prefetch", string(i.Prefetch)),
			slog.Int("read_workers", i.ReadWorkers))
	}
	if i.NearSlots > 0 {
		attrs = append(attrs, slog.Int("near_slots", i.NearSlots))
	}
	if i.HostSlots > 0 {
		attrs = append(attrs, slog.Int("host_slots", i.HostSlots))
	}
	if i.Tuned != "" {
		attrs = append(attrs, slog.String("tuned", i.Tuned))
	}
	if i.ParkedMemory > 0 {
		attrs = append(attrs, slog.Int64("parked_memory", i.ParkedMemory))
	}
	return slog.GroupValue(append(attrs, slog.Int64("expert_bytes", i.ExpertBytes), slog.Int64("weight_bytes", i.WeightBytes), slog.Int("context", i.Context),
		slog.String("kv", string(i.KV)))...)
}

// LogValue is that of Info.
func (e *Engine) LogValue() slog.Value { return e.info.LogValue() }

var (
	_ slog.LogValuer = Info{}
	_ slog.LogValuer = (*Engine)(nil)
)
