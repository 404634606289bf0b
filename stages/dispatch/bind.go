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

	places  []*place       // [parts]
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
	at      *place // of the layer that is being bound
	formats []quant.Format
	err     error
}

// bind finds every tensor of the model and puts the small ones on the device. Of several parts each
// gets the matrices of its own layers: they are bound twice, first to see which these are.
func bind(m *model.Config, parts []*part, queue gpu.Queue, w *weights.File) (n *network, err error) {
	var places []*place
	for _, p := range parts {
		places = append(places, newPlace(p))
	}
	defer func() {
		if err != nil {
			releasePlaces(places)
		}
	}()
	if len(parts) == 1 {
		err = places[0].whole(w.Mapping(), queue)
	} else {
		b := &binder{w: w}
		b.network(newNetwork(m, places), m, parts)
		for _, p := range places {
			if err = b.err; err == nil {
				err = p.gather(w.Mapping(), queue)
			}
		}
	}
	if err != nil {
		return nil, err
	}
	n, b := newNetwork(m, places), &binder{w: w}
	b.network(n, m, parts)
	n.formats = b.formats
	for _, p := range places {
		if b.err == nil {
			b.err = p.upload(queue)
		}
	}
	return n, b.err
}

func newNetwork(m *model.Config, places []*place) *network {
	return &network{places: places, layers: make([]layer, len(m.Layers))}
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

// network binds all parts: the first has the embedding, the last the head.
func (b *binder) network(n *network, m *model.Config, parts []*part) {
	b.at = n.places[0]
	n.embed = b.matrix("model.embed_tokens", m.VocabSize, m.HiddenSize)
	b.at = n.places[len(parts)-1]
	if !m.TieWordEmbeddings || b.w.Has("lm_head.weight") {
		n.head = b.matrix("lm_head", m.VocabSize, m.HiddenSize)
	} else {
		n.head = b.matrix("model.embed_tokens", m.VocabSize, m.HiddenSize)
	}
	b.vector(&n.finalNorm, "model.norm.weight", m.HiddenSize)
	for i, p := range parts {
		b.at = n.places[i]
		b.layers(n, m, p)
	}
}

// layers binds the layers of a part.
func (b *binder) layers(n *network, m *model.Config, p *part) {
	for i := p.first; i < p.end; i++ {
		l, prefix := &n.layers[i], fmt.Sprintf("model.layers.%d.", i)
		b.vector(&l.inputNorm, prefix+"input_layernorm.weight", m.HiddenSize)
		b.vector(&l.postNorm, prefix+"post_attention_layernorm.weight", m.HiddenSize)
		switch kind := p.model.Layers[i-p.first]; kind.Mixer {
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
	view := func(offset, n int) gpu.View { return b.at.view(offset, n) }
	g := gpu.Matrix{Rows: m.Rows, Cols: m.Cols, Format: m.Format, Weight: view(m.WeightOffset, m.Format.WeightBytes(rows, cols))}
	return g.With(view(m.ScalesOffset, m.Format.ScaleBytes(rows, cols)), view(m.BiasesOffset, m.Format.BiasBytes(rows, cols)))
}

// vector remembers that *v shall view the tensor on the device, widened to float32.
func (b *binder) vector(v *gpu.View, name string, n int) {
	f, err := b.w.Vector(name, n)
	if err != nil {
		b.fail(err)
		return
	}
	b.at.vector(v, f)
}

// bias is vector for a projection that may have none.
func (b *binder) bias(v *gpu.View, wanted bool, name string, n int) {
	if wanted {
		b.vector(v, name, n)
	}
}

func (n *network) release() { releasePlaces(n.places) }

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
