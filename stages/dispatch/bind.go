package dispatch

import (
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/io/weights"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/model/quant"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// network is the model as the device sees it.
type network struct {
	embed, head gpu.Matrix
	finalNorm   gpu.View
	rope        rope
	windowRope  rope // of layers with a window, if theirs is another
	layers      []layer

	mapping gpu.Buffer     // model_weights.bin
	mapped  int            // bytes of it that are read where the file is mapped
	vectors gpu.Buffer     // all small tensors, widened to float32
	formats []quant.Format // of the matrices, each once
}

// layer is one decoder layer's weights.
type layer struct {
	inputNorm, postNorm gpu.View
	mixer               mixer
	dense               *mlp // nil if the layer has routed experts
	router              gpu.Matrix
	routerBias          gpu.View     // of its scores; zero if there is none
	bias                gpu.View     // of the choice of experts; zero if there is none
	experts             expertBiases // zero if they have none
	clamp               gpu.Clamp
	shared              *sharedExpert // nil if there is none
}

// mixer is a layer's attention of whatever kind: l.normed to l.mixed.
type mixer interface {
	encode(cmd *gpu.Commands, l *lane)
	// tap collects what encode has left in l.mixer.
	tap(cmd *gpu.Commands, l *lane)
}

// binder finds tensors by name. The first error stays.
type binder struct {
	w       *weights.File
	mapping gpu.Buffer
	floats  []float32   // all vectors so far
	uses    []vectorUse // where they go
	formats []quant.Format
	err     error
}

// vectorUse is a view to be set once all vectors are on the device.
type vectorUse struct {
	view *gpu.View
	at   int // floats
}

// bind finds every tensor of the model and puts the small ones on the device.
func bind(m *model.Config, dev gpu.Device, queue gpu.Queue, w *weights.File) (*network, error) {
	mapping, mapped, err := place(w.Mapping(), dev, queue)
	if err != nil {
		return nil, fmt.Errorf("dispatch: weights: %w", err)
	}
	n := &network{mapping: mapping, mapped: mapped, layers: make([]layer, len(m.Layers)), rope: newRope(m, model.FullAttention), windowRope: newRope(m, model.WindowAttention)}
	b := &binder{w: w, mapping: mapping}
	b.network(n, m)
	n.formats = b.formats
	if b.err == nil {
		n.vectors, b.err = b.upload(dev, queue)
	}
	if b.err != nil {
		n.release()
		return nil, b.err
	}
	return n, nil
}

// copyBytes is the size from which weights are copied to the device at the beginning, which takes
// half a second a gigabyte. Every token reads all of them: from large pages that is quicker than
// from a mapped file, and no system reclaims them while the engine idles, as some do with mapped
// pages that were not touched for a few seconds.
const copyBytes = 64 << 20

// place makes the mapped weights readable for the device, and tells how many bytes it goes on to
// read where they are mapped. A device with memory of its own gets a copy in any case.
func place(mapping []byte, dev gpu.Device, queue gpu.Queue) (buf gpu.Buffer, mapped int, err error) {
	if _, own := dev.(gpu.Discrete); !own && len(mapping) < copyBytes {
		buf, err = dev.Wrap(mapping)
		return buf, len(mapping), err
	}
	if buf, err = dev.NewBuffer(len(mapping)); err != nil {
		return nil, 0, err
	}
	if err := upload(buf, mapping, queue); err != nil {
		buf.Release()
		return nil, 0, err
	}
	return buf, 0, nil
}

// upload copies src to the beginning of buf and waits for it.
func upload(buf gpu.Buffer, src []byte, queue gpu.Queue) error {
	var cmd gpu.Commands
	gpu.Encode(&cmd, gpu.Upload{Dst: gpu.View{Buf: buf}, Src: src})
	return run(&cmd, queue)
}

// run runs commands and waits for them.
func run(cmd *gpu.Commands, queue gpu.Queue) error {
	cmd.Tag = uint8(record.State)
	t, err := queue.Submit(cmd)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	t.OnDone(func(err error) { done <- err })
	return <-done
}

func (b *binder) network(n *network, m *model.Config) {
	n.embed = b.matrix("model.embed_tokens", m.VocabSize, m.HiddenSize)
	n.head = n.embed
	if !m.TieWordEmbeddings || b.w.Has("lm_head.weight") {
		n.head = b.matrix("lm_head", m.VocabSize, m.HiddenSize)
	}
	b.vector(&n.finalNorm, "model.norm.weight", m.HiddenSize)
	for i := range n.layers {
		l, prefix := &n.layers[i], fmt.Sprintf("model.layers.%d.", i)
		b.vector(&l.inputNorm, prefix+"input_layernorm.weight", m.HiddenSize)
		b.vector(&l.postNorm, prefix+"post_attention_layernorm.weight", m.HiddenSize)
		switch kind := m.Layers[i]; kind.Mixer {
		case model.LinearAttention:
			l.mixer = newLinear(b, m, prefix+"linear_attn.", kind.MixerIndex)
		case model.FullAttention, model.WindowAttention:
			l.mixer = newFull(b, m, prefix+"self_attn.", kind)
		case model.LatentAttention:
			l.mixer = newLatent(b, m, prefix+"self_attn.", kind)
		default:
			b.fail(fmt.Errorf("dispatch: layer %d has mixer %d, which no kernels serve", i, kind.Mixer))
		}
		if m.Layers[i].FFN == model.DenseMLP {
			l.dense = newMLP(b, prefix+"mlp.", m.HiddenSize, m.IntermediateSize)
			l.dense.clamp = clampOf(m.Layers[i].MLPClamp)
			continue
		}
		l.router = b.matrix(prefix+"mlp.gate", m.NumExperts, m.HiddenSize)
		b.bias(&l.routerBias, m.RouterBias, prefix+"mlp.gate.bias", m.NumExperts)
		b.bias(&l.bias, m.CorrectionBias, prefix+"mlp.gate.e_score_correction_bias", m.NumExperts)
		l.clamp = clampOf(m.Layers[i].Clamp)
		if m.ExpertBias {
			l.experts.bind(b, m, prefix+"mlp.switch_mlp.")
		}
		if m.SharedExpert != model.NoSharedExpert {
			l.shared = newSharedExpert(b, m, prefix+"mlp.")
			l.shared.clamp = clampOf(m.Layers[i].MLPClamp)
		}
	}
}

func (b *binder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

func (b *binder) matrix(name string, rows, cols int) gpu.Matrix {
	m, err := b.w.Matrix(name, rows, cols)
	if err != nil {
		b.fail(err)
		return gpu.Matrix{}
	}
	if !slices.Contains(b.formats, m.Format) {
		b.formats = append(b.formats, m.Format)
	}
	view := func(at int) gpu.View { return gpu.View{Buf: b.mapping, Offset: at} }
	g := gpu.Matrix{Rows: m.Rows, Cols: m.Cols, Format: m.Format, Weight: view(m.WeightOffset)}
	return g.With(view(m.ScalesOffset), view(m.BiasesOffset))
}

// vector remembers that *v shall view the tensor on the device, widened to float32.
func (b *binder) vector(v *gpu.View, name string, n int) {
	f, err := b.w.Vector(name, n)
	if err != nil {
		b.fail(err)
		return
	}
	b.uses = append(b.uses, vectorUse{v, len(b.floats)})
	b.floats = append(b.floats, f...)
	for len(b.floats)%16 != 0 { // each begins a cache line
		b.floats = append(b.floats, 0)
	}
}

// bias is vector for a projection that may have none.
func (b *binder) bias(v *gpu.View, wanted bool, name string, n int) {
	if wanted {
		b.vector(v, name, n)
	}
}

// upload puts the vectors on the device and waits for it.
func (b *binder) upload(dev gpu.Device, queue gpu.Queue) (gpu.Buffer, error) {
	buf, err := dev.NewBuffer(len(b.floats) * 4)
	if err != nil {
		return nil, err
	}
	for _, u := range b.uses {
		*u.view = gpu.View{Buf: buf}.Floats(u.at)
	}
	if err := upload(buf, gpu.FloatBytes(b.floats), queue); err != nil {
		buf.Release()
		return nil, fmt.Errorf("dispatch: uploading vectors: %w", err)
	}
	return buf, nil
}

func (n *network) release() {
	if n.vectors != nil {
		n.vectors.Release()
	}
	n.mapping.Release()
}

// expert returns an expert of a layer whose record begins at v.
func (n *network) expert(lay model.ExpertLayout, layer, expert int, v gpu.View) gpu.Expert {
	part := func(p *model.ExpertPart) gpu.Matrix {
		m := gpu.Matrix{Rows: p.Rows, Cols: p.Cols, Format: p.Format, Weight: v.At(p.WeightOffset)}
		return m.With(v.At(p.ScalesOffset), v.At(p.BiasesOffset))
	}
	e := gpu.Expert{Gate: part(&lay.Gate), Up: part(&lay.Up), Down: part(&lay.Down)}
	n.layers[layer].experts.add(&e, expert)
	return e
}
