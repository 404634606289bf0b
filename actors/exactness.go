package actors

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// exactness returns Info.Exactness. Latent attention computes a prompt in the form that suits the
// rows of its steps, so the most rows are part of it there.
func (e *Engine) exactness(dev gpu.Device) string {
	i := &e.info
	var experts []quant.Format
	for _, layer := range e.experts.Layers() {
		l := e.experts.LayoutOf(layer)
		experts = append(experts, l.Gate.Format, l.Up.Format, l.Down.Format)
	}
	label := fmt.Sprintf("experts=%s weights=%s activations=%s kv=%s top-k=%d",
		formatNames(experts...), formatNames(e.dispatch.Formats()...), i.Activations, i.KV, i.TopK)
	if e.model.Count(model.LatentAttention) > 0 {
		label += fmt.Sprintf(" chunk-rows=%d", i.ChunkRows)
	}
	if e.hosts.Sums() {
		label += " hosts=sum"
	}
	var names []string
	for _, p := range gpu.PartsOf(dev) { // the bits are those of the devices that compute, however many
		name := strings.ReplaceAll(p.Name(), " ", "-")
		if p, ok := p.(gpu.Processor); ok {
			name = "host/" + p.Kernels()
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return label + " device=" + strings.Join(names, "+")
}

// formatNames joins the names of formats, each once, in alphabetical order.
func formatNames(all ...quant.Format) string {
	var names []string
	for _, f := range all {
		names = append(names, f.String())
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), "+")
}
