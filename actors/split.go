package actors

import (
	"fmt"
	"log/slog"
	"math"
	"strings"

	"github.com/moeflux/moeflux-actor/actors/expertmem"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/dispatch"
)

// PartError reports a part of a device of several (gpu.Split) that is too small for its layers,
// however they are divided.
type PartError struct {
	Device          string
	First, Last     int   // layers
	Need, Available int64 // bytes
	Streamed        bool  // without experts, which are streamed
}

func (e *PartError) Error() string {
	what, advice := "", "add a device, or set Config.Resident to off and Config.ExpertIO to direct, which streams experts"
	if e.Streamed {
		what, advice = " without their experts", "add a device"
	}
	return fmt.Sprintf("layers %d to %d need %d MiB of memory%s on %s, which has %d; %s", e.First, e.Last, e.Need>>20, what, e.Device, e.Available>>20, advice)
}

// place decides which part of a gpu.Split computes which layers, and how many experts have slots
// there. Other devices compute all.
func (e *Engine) place(cfg Config) error {
	parts := gpu.PartsOf(cfg.Device)
	if len(parts) == 1 {
		return nil
	}
	memory, err := partMemory(parts)
	if err != nil {
		return err
	}
	dense, experts := e.layerBytes(cfg)
	all := make([]int64, len(dense))
	for i := range all {
		all[i] = dense[i] + experts[i]
	}
	if e.borders, err = divide(all, memory); err != nil {
		return err
	}
	e.memory.Place(e.borders)
	streamed := e.info.ExpertIO.Streams()
	need := all
	if streamed {
		need = dense
	}
	for i, p := range parts {
		first, end := e.borders.Range(i, len(e.model.Layers))
		need := sum(need[first:end])
		if own(p) && need > memory[i] {
			return &PartError{Device: p.Name(), First: first, Last: end - 1, Need: need, Available: memory[i], Streamed: streamed}
		}
		cfg.Logger.Info("layers of a device", "device", p.Name(), slog.Int("first", first), slog.Int("last", end-1), slog.Int64("bytes", need))
	}
	if streamed {
		return e.placeSlots(cfg, parts, memory, dense)
	}
	return nil
}

// own reports whether a device has memory of its own.
func own(d gpu.Device) bool {
	_, ok := d.(gpu.Discrete)
	return ok
}

// partMemory returns what each part may use of its memory. Parts without memory of their own are
// equal.
func partMemory(parts []gpu.Device) ([]int64, error) {
	memory := make([]int64, len(parts))
	for i, p := range parts {
		memory[i] = 1
		d, ok := p.(gpu.Discrete)
		if !ok {
			continue
		}
		m, err := deviceMemory(d)
		if err != nil {
			return nil, err
		}
		memory[i] = m.Available - expertmem.ReserveOf(m.Available)
	}
	return memory, nil
}

// placeSlots divides the slots among the parts.
func (e *Engine) placeSlots(cfg Config, parts []gpu.Device, memory, dense []int64) error {
	i := &e.info
	experts, room := make([]int, len(parts)), make([]int, len(parts))
	for p := range parts {
		first, end := e.borders.Range(p, len(dense))
		for _, layer := range e.experts.Layers() {
			if layer >= first && layer < end {
				experts[p] += e.experts.Experts()
			}
		}
		if room[p] = -1; own(parts[p]) {
			room[p] = int(max(0, memory[p]-sum(dense[first:end])) / int64(i.plan.Stride))
		}
	}
	if err := i.plan.Divide(experts, room, wishes(cfg), i.TopK); err != nil {
		advice := "add a device"
		switch {
		case cfg.WaveSlots > 0:
			advice = "lower Config.WaveSlots, or " + advice
		case cfg.ExpertMemory > 0:
			advice = "raise Config.ExpertMemory, or " + advice
		}
		return fmt.Errorf("actors: slots on %s: %w; %s", parts[err.Part].Name(), err, advice)
	}
	i.Slots, i.WaveSlots = i.plan.Slots, i.plan.WaveSlots
	for p, n := range i.plan.Parts {
		cfg.Logger.Info("expert slots of a device", "device", parts[p].Name(), slog.Int("slots", n), slog.Int("of", experts[p]))
	}
	return nil
}

// layerBytes returns what each layer takes of its device's memory: weights with a share of the
// memory that is set aside for states, and experts. The first has the embedding, the last the head.
func (e *Engine) layerBytes(cfg Config) (bytes, experts []int64) {
	m := e.model
	bytes, experts = make([]int64, len(m.Layers)), make([]int64, len(m.Layers))
	last := len(m.Layers) - 1
	for name, t := range e.weights.Manifest().Tensors {
		layer := last
		if _, err := fmt.Sscanf(name, "model.layers.%d.", &layer); err != nil && strings.HasPrefix(name, "model.embed") {
			layer = 0
			if m.TieWordEmbeddings { // it is the head, too
				bytes[last] += t.Size
			}
		}
		if layer < len(m.Layers) { // some models have more than are computed
			bytes[layer] += t.Size
		}
	}
	for _, i := range e.experts.Layers() {
		experts[i] = int64(e.experts.Experts()) * int64(e.experts.Layout().Bytes)
	}
	states := e.info.stateShare(cfg, m)
	all := stateWeight(m, cfg)
	for i := range bytes {
		bytes[i] += int64(float64(states) * stateWeight(m.Part(i, i+1), cfg) / max(all, 1))
	}
	return bytes, experts
}

// stateWeight returns how large the state of a text of some pages is in the layers of a
// configuration.
func stateWeight(m *model.Config, cfg Config) float64 {
	const pages = 64
	return float64(pages*dispatch.PageBytes(m, cfg.kv(), pageRows) + dispatch.RecurrentBytes(m, cfg.kv(), pageRows))
}

// divide cuts layers, of which each takes some bytes, into one run for each memory, so that the
// memory that is filled most is filled as little as can be. With equal memories that also divides
// the work about equally: most of a token's time goes into reading weights.
func divide(bytes, memory []int64) (stages.Borders, error) {
	layers, parts := len(bytes), len(memory)
	if layers < parts {
		return nil, fmt.Errorf("actors: Config.Device is %d devices, but the model has %d layers", parts, layers)
	}
	// fill[p][n] is how full the fullest memory is at best when the first p+1 parts have the first
	// n layers, and from[p][n] where the last of these parts begins then.
	fill, from := make([][]float64, parts), make([][]int, parts)
	for p := range parts {
		fill[p], from[p] = make([]float64, layers+1), make([]int, layers+1)
		for n := range layers + 1 {
			fill[p][n] = math.Inf(1)
			taken := int64(0)
			for at := n - 1; at >= p; at-- {
				taken += bytes[at]
				full := float64(taken) / float64(max(memory[p], 1))
				if p > 0 {
					full = max(full, fill[p-1][at])
				} else if at > 0 {
					continue
				}
				if full < fill[p][n] {
					fill[p][n], from[p][n] = full, at
				}
			}
		}
	}
	borders := make(stages.Borders, parts-1)
	end := layers
	for p := parts - 1; p > 0; p-- {
		end = from[p][end]
		borders[p-1] = end
	}
	return borders, nil
}

func sum(list []int64) (n int64) {
	for _, v := range list {
		n += v
	}
	return n
}
