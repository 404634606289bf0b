package figures

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/actors"
)

// Settings are what an engine runs with, or would, on this machine.
type Settings struct {
	Error         string `json:"error,omitempty"` // why it would not run
	Device        string `json:"device,omitempty"`
	Activations   string `json:"activations,omitempty"`
	KV            string `json:"kv,omitempty"`
	ExpertIO      string `json:"expert_io,omitempty"`
	Resident      bool   `json:"resident,omitempty"` // the device chooses the experts
	Slots         int    `json:"slots,omitempty"`
	SlotBytes     int    `json:"slot_bytes,omitempty"`
	Prefetch      string `json:"prefetch,omitempty"`
	RingDepth     int    `json:"ring_depth,omitempty"`
	ReadWorkers   int    `json:"read_workers,omitempty"`
	ChunkRows     int    `json:"chunk_rows,omitempty"`
	WaveSlots     int    `json:"wave_slots,omitempty"`
	StepsInFlight int    `json:"steps_in_flight,omitempty"`
	Context       int    `json:"context,omitempty"`
	TopK          int    `json:"experts_per_token,omitempty"`
	Tuned         string `json:"tuned,omitempty"`         // of these, what tune chose, as flags
	ParkedMemory  int64  `json:"parked_memory,omitempty"` // the most bytes of host memory for parked states
}

// SettingsOf returns an engine's settings.
func SettingsOf(i *actors.Info) Settings {
	return Settings{
		Device: i.Device, Activations: i.Activations, KV: string(i.KV), ExpertIO: string(i.ExpertIO), Resident: i.Resident, Slots: i.Slots, SlotBytes: i.SlotBytes,
		Prefetch: string(i.Prefetch), RingDepth: i.RingDepth, ReadWorkers: i.ReadWorkers, ChunkRows: i.ChunkRows, WaveSlots: i.WaveSlots,
		StepsInFlight: i.StepsInFlight, Context: i.Context, TopK: i.TopK, ParkedMemory: i.ParkedMemory, Tuned: i.Tuned,
	}
}

// Parked says what is left free for parked states, after a separator; "" if nothing is.
func (s *Settings) Parked(separator string) string {
	if s.ParkedMemory == 0 {
		return ""
	}
	return fmt.Sprintf("%s%s for parked states", separator, Bytes(s.ParkedMemory))
}

// ExpertsText says how experts come into memory, and whether the device chooses them.
func ExpertsText(io string, resident bool) string {
	if resident {
		return io + " (resident)"
	}
	return io
}
