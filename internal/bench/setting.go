package bench

import (
	"cmp"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/model"
)

// What the slots hold when a run begins.
const (
	StateWarm   = "warm"
	StateCold   = "cold"
	StateForgot = "emptied before every run"
)

// Setting is what was measured.
type Setting struct {
	Model       string     `json:"model"`
	Arch        model.Arch `json:"architecture"`
	Device      string     `json:"device"`
	Activations string     `json:"activations"`
	KV          string     `json:"kv"` // how keys and values are kept
	Threads     int        `json:"threads"`
	ExpertIO    string     `json:"expert_io"`
	Resident    bool       `json:"resident"` // the device chooses the experts
	Slots       int        `json:"slots"`
	Prefetch    string     `json:"prefetch"`
	Ahead       int        `json:"prefetch_layers"` // 0 if nothing is predicted
	TopK        int        `json:"experts_per_token"`
	Prompts     string     `json:"prompts"` // chain for a model of synth, else random
	// warm; cold if the slots were empty at the start; or that they were emptied before every run
	State       string `json:"state"`
	MemoryLimit int64  `json:"memory_limit"`  // of the cgroup, in bytes; 0 for none
	ExpertBytes int64  `json:"expert_memory"` // of all slots
	RingDepth   int    `json:"ring_depth"`
	ReadWorkers int    `json:"read_workers"`
	ChunkRows   int    `json:"chunk_rows"`

	WarmupTokens int `json:"warmup_tokens"` // decoded by each sequence before the measurement

	TouchedToken int64 `json:"touched_per_token"`
	TouchedDense int64 `json:"touched_per_token_resident"`
	TouchedExp   int64 `json:"touched_per_token_experts"`

	MACLayers int64 `json:"multiply_adds_per_token"` // of all weight matrices but the head
	MACHead   int64 `json:"multiply_adds_head"`      // of a token with logits

	record int64 // bytes of one expert
}

// settingOf describes an opened model.
func settingOf(m *Model) (Setting, error) {
	i := m.Engine.Info()
	c, err := actors.Describe(m.Config)
	if err != nil {
		return Setting{}, err
	}
	layers, head := multiplyAdds(c.Model, i.TopK)
	experts := c.TouchedExperts(i.TopK)
	return Setting{
		Model: m.Config.Model, Arch: i.Arch, Device: i.Device, Activations: i.Activations, KV: string(i.KV), Threads: i.Threads,
		ExpertIO: string(i.ExpertIO), Resident: i.Resident, Slots: i.Slots, Prefetch: string(i.Prefetch), Ahead: i.PrefetchLayers,
		TopK: i.TopK, State: StateWarm, MemoryLimit: m.MemoryLimit,
		ExpertBytes: cmp.Or(i.SlotMemory(), i.NearMemory()),
		RingDepth:   i.RingDepth, ReadWorkers: i.ReadWorkers, ChunkRows: i.ChunkRows,
		TouchedToken: c.TouchedWeights + experts, TouchedDense: c.TouchedWeights, TouchedExp: experts,
		MACLayers: layers, MACHead: head, record: int64(c.Record.Bytes),
	}, nil
}
