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
}

func (e *PartError) Error() string {
	return fmt.Sprintf("layers %d to %d need %d MiB of memory on %s, which has %d; add a device, or name a single one to have experts streamed",
		e.First, e.Last, e.Need>>20, e.Device, e.Available>>20)
}

// place decides which part of a gpu.Split computes which layers. Other devices compute all.
func (e *Engine) place(cfg Config) error {
	parts := gpu.PartsOf(cfg.Device)
	if len(parts) == 1 {
		return nil
	}
	if !e.info.Resident {
		return fmt.Errorf("actors: Config.Device is %s, which computes only with all experts in its memory; they take %d MiB, and Config.Resident, Config.ExpertIO and Config.ExpertMemory must leave room for them; "+
			"name a single device to have them streamed", cfg.Device.Name(), e.info.ExpertBytes>>20)
	}
	memory := make([]int64, len(parts))
	for i, p := range parts {
		memory[i] = 1
		d, ok := p.(gpu.Discrete)
		if !ok {
			continue
		}
		m, err := deviceMemory(d)
		if err != nil {
			return err
		}
		memory[i] = m.Available - expertmem.ReserveOf(m.Available)
	}
	bytes := e.layerBytes(cfg)
	borders, err := divide(bytes, memory)
	if err != nil {
		return err
	}
	e.borders = borders
	e.memory.Place(borders)
	for i, p := range parts {
		first, end := borders.Range(i, len(e.model.Layers))
		need := sum(bytes[first:end])
		if _, ok := p.(gpu.Discrete); ok && need > memory[i] {
			return &PartError{Device: p.Name(), First: first, Last: end - 1, Need: need, Available: memory[i]}
		}
		cfg.Logger.Info("layers of a device", "device", p.Name(), slog.Int("first", first), slog.Int("last", end-1), slog.Int64("bytes", need))
	}
	return nil
}

// layerBytes returns what each layer takes of its device's memory: weights, experts and a share of
// the memory that is set aside for states. The first has the embedding, the last the head.
func (e *Engine) layerBytes(cfg Config) []int64 {
	m := e.model
	bytes := make([]int64, len(m.Layers))
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
		bytes[i] += int64(e.experts.Experts()) * int64(e.experts.Layout().Bytes)
	}
	states := e.info.stateShare(cfg, m)
	all := stateWeight(m, cfg)
	for i := range bytes {
		bytes[i] += int64(float64(states) * stateWeight(m.Part(i, i+1), cfg) / max(all, 1))
	}
	return bytes
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
