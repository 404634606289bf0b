package actors

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/moeflux/moeflux-actor/internal/sysmem"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// describe returns what records of the engine are of.
func (e *Engine) describe(cfg Config) record.Meta {
	i, m := &e.info, e.model
	meta := record.Meta{
		Program: Program(), Epoch: e.rt.Epoch(), Settings: i.flags(), Exactness: i.Exactness,
		Model: record.Model{
			Name: i.Name, Layers: len(m.Layers), Experts: m.NumExperts, TopK: i.TopK, SlotBytes: int64(i.SlotBytes), Vocab: m.VocabSize,
		},
		Machine: ThisMachine(),
		Engine:  e.setUp(cfg),
	}
	meta.Machine.Device, meta.Machine.Resident = i.Device, i.Resident
	for _, l := range m.Layers {
		meta.Model.LayerKinds = append(meta.Model.LayerKinds, l.Mixer.String())
		meta.Model.Routed = append(meta.Model.Routed, l.FFN != model.DenseMLP)
	}
	for id := range stages.StageID(stages.NumStages) {
		meta.Stages = append(meta.Stages, id.String())
	}
	for k := range stages.NumKinds {
		meta.Messages = append(meta.Messages, k.String())
	}
	return meta
}

// ThisMachine describes the machine, without what computes on it.
func ThisMachine() record.Machine {
	m := record.Machine{OS: runtime.GOOS, Processor: processor(), Cores: runtime.GOMAXPROCS(0)}
	if mem, err := sysmem.Read(); err == nil {
		m.MemoryBytes = mem.Total
	}
	return m
}

// setUp returns the stages' own settings, as build gives them.
func (e *Engine) setUp(cfg Config) record.Engine {
	i := &e.info
	ahead := i.lookAhead(cfg, e.model)
	return record.Engine{
		Slots: i.Slots, SlotParts: i.plan.Parts, Borders: e.borders, Hosts: e.hosts.Addrs(), WaveSlots: i.WaveSlots, RingDepth: i.RingDepth, ReadWorkers: i.ReadWorkers, QueuedReads: queuedReads * i.ReadWorkers,
		LastToken: i.lastToken(), NextGate: i.nextGate(), Ahead: i.PrefetchLayers, AheadRows: ahead.rows,
		ScoresAhead: ahead.gates, ScoresAheadRows: ahead.gateRows, FirstRouted: ahead.first,
		ChunkRows: i.ChunkRows, StepsInFlight: i.StepsInFlight, PromptShare: i.PromptShare, Preempts: preempts(cfg.Device), Profile: cfg.Profile != "",
	}
}

// flags returns the settings in use by the names of the command's flags.
func (i *Info) flags() map[string]string {
	set := map[string]any{
		"threads": i.Threads, "activations": i.Activations, "ring-depth": i.RingDepth, "prefetch": i.Prefetch, "prefetch-layers": i.PrefetchLayers,
		"expert-io": i.ExpertIO, "resident": i.Resident, "expert-memory": i.SlotMemory(), "read-workers": i.ReadWorkers, "read-timeout": i.ReadTimeout,
		"verify-reads": i.VerifyReads, "chunk-rows": i.ChunkRows, "ctx": i.Context, "kv": i.KV, "state-memory": i.StateMemory,
		"max-sequences": i.MaxSequences, "max-waiting": i.MaxWaiting, "checkpoint-memory": i.CheckpointMemory, "parked-memory": i.ParkedMemory,
		"experts-per-token": i.TopK, "prompt-share": i.PromptShare,
	}
	if i.HostSlots > 0 {
		set["host-memory"] = int64(i.HostSlots) * int64(i.SlotBytes)
	}
	flags := make(map[string]string, len(set))
	for name, value := range set {
		flags[name] = fmt.Sprint(value)
	}
	for _, name := range []string{"resident", "verify-reads"} {
		flags[name] = map[string]string{"true": "on", "false": "off"}[flags[name]]
	}
	return flags
}

// Program returns the running program's module and version.
func Program() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return strings.TrimSpace(info.Main.Path + " " + info.Main.Version)
}

// processor returns the name of the processor, or its architecture where the system tells no name.
func processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	for lines := bufio.NewScanner(io.LimitReader(f, 1<<16)); lines.Scan(); {
		if key, value, _ := strings.Cut(lines.Text(), ":"); strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// recordSteps returns about how many of the last steps that decode one row fit in a log of records.
// What a step makes of records depends on what is in memory. This is one that reads half of its
// experts, which arrive one by one and are computed in several waves, or one of a device that
// routes by itself.
func recordSteps(bytes int64, m *model.Config, topK int, resident bool) int {
	layers, routed := len(m.Layers), len(m.MoELayers())
	rows := (topK + 9) / 10 * routed // records of one row's picks
	step := map[string]int{"handled": layers + 8, "steps": 1, "segments": 1, "requests": 1, "submissions": layers + 1, "uses": topK * routed, "picks": rows}
	if !resident {
		step["handled"] += 29 * routed
		step["submissions"] += 6 * routed
		step["reads"], step["evictions"], step["guesses"] = topK*routed*5/8, topK*routed*5/8, topK*routed
		step["picks"] = 3 * rows
	}
	return record.Steps(int(bytes), step)
}
