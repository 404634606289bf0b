package dispatch

import (
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages"
)

// bench is what a step in flight has on one part of the device.
type bench struct {
	// Device memory, float32, of ChunkRows rows unless said otherwise.
	hidden        gpu.View // the residual stream [rows, hidden]
	normed        gpu.View // input of mixer, router and experts [rows, hidden]
	mixed         gpu.View // the mixer's output [rows, hidden]
	mixer         gpu.View // the mixers' own use
	rope          gpu.View // [rows, rotary/2, 2]
	windowRope    gpu.View // likewise, where layers with a window turn otherwise
	queryRope     gpu.View // [rows, head/2, 2], where queries grow with their position
	scores        gpu.View // [rows, experts]
	shared        gpu.View // the output of the shared expert or of a dense layer [rows, hidden]
	sharedGate    gpu.View // [rows]
	sharedScratch gpu.View // [rows, 2·width]
	routed        gpu.View // [rows, TopK, hidden]
	expertScratch gpu.View // [rows·TopK, 2·intermediate]
	// picks: int32 [layers with experts, or 1 where they do not stay on the device, rows, TopK]
	chosen        gpu.View
	chosenWeights gpu.View // likewise
	positions     gpu.View // int32 [rows, IndexLists, IndexTopK], what the last indexer has chosen
	headIn        gpu.View // [headRows, hidden]
	logits        gpu.View // [headRows, vocab]
	best          gpu.View // [headRows, BestOf(vocab)], the largest of them
	bestTokens    gpu.View // int32, likewise
	bestStats     gpu.View // [headRows, 2]
	buffer        gpu.Buffer

	layout *kvLayout // of the part's pages
	// Host memory that operations point to: the same segments for all layers of a kind.
	full    [2]fullSegments // see attendsAll
	windows []fullSegments  // [slices]
	latent  latentSegments
	index   indexSegments
	state   []gpu.StateSegment // linear attention layers
	copies  []pageCopy         // of pages, before anything else
}

// lane is the memory of one step in flight, and what is known of that step.
type lane struct {
	*bench           // of the part whose layers are being encoded
	benches []*bench // [parts]

	// Host memory that operations point to.
	tokens   []int32
	angles   []float32
	turned   turned // in angles
	headRows []int32
	near     stages.NearSets // of the layers, as they were recorded; empty where no expert is far

	step        stages.StepID // the last that began here
	rows        int
	begun       int               // layers of it
	scored      int               // layers of it whose scores the router has
	sharedDone  gpu.Ticket        // of the shared expert, until the layer's last wave
	sharedID    uint64            // of that ticket, in this stage's numbering
	outstanding int               // tickets awaited, but for
	aheads      int               // those of predictions
	drain       *stages.DrainStep // the step has failed

	probed bool  // the step is a stages.Probe's
	layer  int   // that is being encoded
	dump   *dump // what the batch wants beside logits, or nil
}

// turned is the rotary tables of the rows of a step: as the lane has them on the device.
type turned struct{ all, windows, queries []float32 }

func newLane(cfg Config, parts []*part) (*lane, error) {
	m, n := cfg.Model, cfg.ChunkRows
	l := &lane{tokens: make([]int32, n), angles: make([]float32, 0, n*(m.RotaryDim+windowRotary(m)+queryRotary(m)))}
	for _, p := range parts {
		b, err := newBench(cfg, p)
		if err != nil {
			l.release()
			return nil, err
		}
		l.benches = append(l.benches, b)
	}
	l.bench = l.benches[0]
	if cfg.Far {
		l.near = make(stages.NearSets, len(m.MoELayers())*stages.NearWords(m.NumExperts))
	}
	return l, nil
}

// newBench makes the memory of a part. Rows have the same places in the memory of each.
func newBench(cfg Config, p *part) (*bench, error) {
	l := &bench{
		layout: &p.states.layout,
	}
	all := l.rooms(cfg.Model, cfg.TopK, cfg.ChunkRows, cfg.Resident)
	var err error
	if l.buffer, err = p.dev.NewBuffer(4 * floatsOf(all)); err != nil {
		return nil, err
	}
	at := gpu.View{Buf: l.buffer}
	for _, v := range all {
		*v.view = at
		at = at.Floats(v.padded())
	}
	return l, nil
}

// room is a part of a bench's memory.
type room struct {
	view   *gpu.View
	floats int
}

// padded is its float32s, in whole cache lines.
func (r room) padded() int {
	const line = 64 / 4
	return (r.floats + line - 1) / line * line
}

func floatsOf(all []room) (n int) {
	for _, r := range all {
		n += r.padded()
	}
	return n
}

// LaneBytes returns how much memory of a device a step of so many rows has for itself.
func LaneBytes(m *model.Config, topK, rows int, resident bool) int64 {
	return 4 * int64(floatsOf(new(bench).rooms(m, topK, rows, resident)))
}

// rooms lists the memory of steps of n rows.
func (l *bench) rooms(m *model.Config, topK, n int, resident bool) []room {
	chosen := n * topK
	if resident {
		chosen *= max(1, len(m.MoELayers()))
	}
	return []room{
		{&l.hidden, n * m.HiddenSize},
		{&l.normed, n * m.HiddenSize},
		{&l.mixed, n * m.HiddenSize},
		{&l.mixer, n * mixerFloats(m)},
		{&l.rope, n * m.RotaryDim},
		{&l.windowRope, n * windowRotary(m)},
		{&l.queryRope, n * queryRotary(m)},
		{&l.scores, n * m.NumExperts},
		{&l.shared, n * m.HiddenSize},
		{&l.sharedGate, n},
		{&l.sharedScratch, n * 2 * max(m.SharedExpertIntermediateSize, m.IntermediateSize)},
		{&l.routed, n * topK * m.HiddenSize},
		{&l.expertScratch, n * topK * 2 * m.MoEIntermediateSize},
		{&l.chosen, chosen},
		{&l.chosenWeights, chosen},
		{&l.positions, n * m.IndexLists() * m.IndexTopK},
		{&l.headIn, headRows * m.HiddenSize},
		{&l.logits, headRows * m.VocabSize},
		{&l.best, headRows * stages.BestOf(m.VocabSize)},
		{&l.bestTokens, headRows * stages.BestOf(m.VocabSize)},
		{&l.bestStats, headRows * 2},
	}
}

func (l *lane) release() {
	for _, b := range l.benches {
		b.buffer.Release()
	}
}

// begin gives the lane to a step. The sequencer does so only when the step before is over.
func (l *lane) begin(id stages.StepID, b *stages.Batch, cfg Config) {
	l.step, l.rows, l.begun, l.scored, l.drain, l.sharedDone = id, len(b.Rows), 0, 0, nil, nil
	l.dump, l.probed = nil, b.Probe != nil
	if len(b.Wants) > 0 {
		l.dump = newDump(b, cfg)
	}
}

// pickRows lists the rows that want logits.
func (l *lane) pickRows(b *stages.Batch) {
	l.headRows = l.headRows[:0]
	for i := range b.Rows {
		if b.Rows[i].Logits {
			l.headRows = append(l.headRows, int32(i))
		}
	}
}

// mixerFloats returns the float32s of lane.mixer that one row needs, whichever mixer the layer has.
func mixerFloats(m *model.Config) int {
	linear := 2*m.LinearConvDim() + 2*m.LinearValueDim() + 2*m.LinearNumValueHeads
	full := 0
	for _, mixer := range []model.Mixer{model.FullAttention, model.WindowAttention} {
		a := m.Attention(mixer)
		full = max(full, a.Heads*(2*a.HeadDim+a.ValueDim)+a.KeyDim()+a.ValuesDim()+indexerFloats(m)+a.Heads)
	}
	heads := m.NumAttentionHeads
	// The indexer is done before latent attention uses the same scratch.
	scratch := max(heads*(m.LatentDim()+m.KVLoraRank), indexerFloats(m))
	latent := m.QLoraRank + m.LatentDim() + heads*(m.QKNopeHeadDim+m.QKRopeHeadDim+m.VHeadDim) + scratch
	return max(linear, full, latent)
}
