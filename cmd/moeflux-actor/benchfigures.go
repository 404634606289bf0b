package main

import (
	"slices"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/model"
)

// What the slots hold when a run begins.
const (
	stateWarm   = "warm"
	stateCold   = "cold"
	stateForgot = "emptied before every run"
)

// benchSetting is what bench ran with.
type benchSetting struct {
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

	expertBytes int64 // of one expert
}

// settingOf describes an opened model.
func settingOf(s *session, f *engineFlags) (benchSetting, error) {
	info := s.engine.Info()
	described, err := f.readModel(s.dir)
	if err != nil {
		return benchSetting{}, err
	}
	b := described.touched(info.TopK)
	layers, head := multiplyAdds(s.engine.Model(), info.TopK)
	return benchSetting{
		Model: s.dir, Arch: described.Arch, Device: info.Device, Activations: f.activationsOf(s.device), KV: string(info.KV), Threads: threadsOf(s.device),
		ExpertIO: string(info.ExpertIO), Resident: info.Resident, Slots: info.Slots, Prefetch: string(info.Prefetch), Ahead: info.PrefetchLayers,
		TopK: info.TopK, State: stateWarm,
		TouchedToken: b.TouchedToken, TouchedDense: b.TouchedDense, TouchedExp: b.TouchedExp,
		MACLayers: layers, MACHead: head, expertBytes: b.Expert, MemoryLimit: s.memoryLimit, ExpertBytes: slotBytes(&info),
		RingDepth: info.RingDepth, ReadWorkers: info.ReadWorkers, ChunkRows: info.ChunkRows,
	}, nil
}

// slotBytes returns the memory of all slots; 0 if experts are mapped.
func slotBytes(i *actors.Info) int64 {
	if i.ExpertIO == actors.ExpertIOMmap {
		return 0
	}
	return int64(i.Slots) * int64(i.SlotBytes)
}

// benchResult is what bench prints.
type benchResult struct {
	benchSetting
	GenTokens   int  `json:"gen_tokens"` // of one sequence
	Repeat      int  `json:"repeat"`     // runs asked for
	Interrupted bool `json:"interrupted"`

	Memory *benchMemory `json:"memory"` // null if there was too little memory to measure it
	// as the engine reads; null where experts are mapped, or if it was interrupted
	Disk []diskRate `json:"disk"`
	// of one text that decodes; null if something that it needs is unknown
	Forecast *forecast `json:"forecast"`
	// with --cold, if there are fewer slots than experts
	Optimum *benchOptimum `json:"optimum"`

	Cases []*benchCase `json:"cases"`
}

// benchCase is one length of prompts with one number of sequences.
type benchCase struct {
	PromptTokens int `json:"prompt_tokens"` // of one sequence
	Sequences    int `json:"sequences"`
	// bytes of keys, values and recurrent state that a decoded token reads, the mean
	StatePerToken int64 `json:"state_per_token"`

	Prefill benchSummary `json:"prefill"`
	Decode  benchSummary `json:"decode"`
	Runs    []benchRun   `json:"runs"`
}

// benchSummary is one part of all runs of a case.
type benchSummary struct {
	TokensPerSecond spread  `json:"tokens_per_second"`
	MultiplyAdds    float64 `json:"multiply_adds_per_second"` // of weight matrices, the median
	// median bytes touched a second, of the most that memory gave; null if that is unknown
	BandwidthShare *float64 `json:"bandwidth_share"`
	// median tokens a second, of the forecast at best; null for prompts, for several texts, and
	// without a forecast
	ForecastShare *float64 `json:"forecast_share"`
	benchCounts
}

// spread is one figure over all runs.
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

// benchPart is one part of one run, all sequences together.
type benchPart struct {
	Seconds         float64 `json:"seconds"`
	TokensPerSecond float64 `json:"tokens_per_second"`
	MultiplyAdds    int64   `json:"multiply_adds"` // of weight matrices
	benchCounts
}

// benchCounts are what the engine counted.
type benchCounts struct {
	Tokens int `json:"tokens"`
	// passes through the model; sequences that decode together share them
	Steps int64 `json:"steps"`
	// weights that the steps used, each counted once a step
	Touched int64 `json:"bytes_touched"`
	totalCounts
}

// count sets what was counted between two moments.
func (c *benchCounts) count(before, after *actors.Stats, s *benchSetting) {
	c.Steps = after.Steps - before.Steps
	c.totalCounts = countsBetween(before, after)
	c.Touched = c.Steps*s.TouchedDense + (c.ExpertHits+c.ExpertMisses)*s.expertBytes
}

// summarise derives figures from the runs and drops cases that have none.
func (r *benchResult) summarise() {
	r.Cases = slices.DeleteFunc(r.Cases, func(c *benchCase) bool { return len(c.Runs) == 0 })
	for _, c := range r.Cases {
		c.Prefill = summary(c.Runs, r.Memory, func(run benchRun) benchPart { return run.Prefill })
		c.Decode = summary(c.Runs, r.Memory, func(run benchRun) benchPart { return run.Decode })
		if r.Forecast != nil && c.Sequences == 1 {
			share := c.Decode.TokensPerSecond.Median / r.Forecast.TokensPerSecond
			c.Decode.ForecastShare = &share
		}
	}
}

func summary(runs []benchRun, memory *benchMemory, part func(benchRun) benchPart) benchSummary {
	var (
		s                     benchSummary
		speeds, work, touched []float64
	)
	for _, run := range runs {
		p := part(run)
		seconds := max(p.Seconds, 1e-9) // a clock that stands still
		speeds = append(speeds, p.TokensPerSecond)
		work = append(work, float64(p.MultiplyAdds)/seconds)
		touched = append(touched, float64(p.Touched)/seconds)
		s.Tokens += p.Tokens
		s.Steps += p.Steps
		s.Touched += p.Touched
		s.add(&p.totalCounts)
	}
	s.setRate()
	s.TokensPerSecond, s.MultiplyAdds = spreadOf(speeds), spreadOf(work).Median
	if memory != nil && memory.Max > 0 {
		share := spreadOf(touched).Median / memory.Max
		s.BandwidthShare = &share
	}
	return s
}

// spreadOf returns the spread of one figure or more.
func spreadOf(x []float64) spread {
	x = slices.Sorted(slices.Values(x))
	n := len(x)
	return spread{Median: (x[(n-1)/2] + x[n/2]) / 2, Min: x[0], Max: x[n-1]}
}
