package whatif

import (
	"fmt"
	"math"

	"github.com/moeflux/moeflux-actor/model/route"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/combine"
	"github.com/moeflux/moeflux-actor/stages/expertio"
	"github.com/moeflux/moeflux-actor/stages/router"
	"github.com/moeflux/moeflux-actor/stages/sequencer"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// replay is one run in simulated time.
type replay struct {
	e       *engine
	callers *callers
	o       *observed
}

// newReplay builds the stages of a setup over what was observed.
func newReplay(m *record.Meta, set setup, o *observed, s *script) (*replay, error) {
	o.count, o.used = make(map[uint64]int), make(map[readOf]int)
	laws := o.laws
	if set.rate > 0 {
		laws.disk = diskLaw{Each: float64(m.Model.SlotBytes) / set.rate * 1e9}
	}
	e := newEngine(laws, set.ReadWorkers, set.Preempts)
	e.bytes = m.Model.SlotBytes
	r := &replay{e: e, o: o, callers: newCallers(e, s, m.Model.TopK, m.Model.Experts)}
	e.laws.op = func(op *operation) float64 { return o.takes(op, r.callers.whole(op.step.Batch)) }
	e.laws.start = func(op *operation, woken bool) float64 { return o.starts(op, r.callers.whole(op.step.Batch), woken) }
	e.laws.work, e.laws.lag = o.work, o.lag
	e.laws.source = func(s *stages.Step) uint64 {
		if s.Batch == nil { // a warm start
			return 0
		}
		return r.callers.row(s.Batch, 0).step.id
	}
	return r, r.build(m, set)
}

// build makes the cores.
func (r *replay) build(m *record.Meta, set setup) error {
	model := &m.Model
	c := &r.e.cores
	const plenty = math.MaxInt64 / 4
	c[stages.Sequencer] = sequencer.New(sequencer.Config{
		Layers: model.Layers, Vocab: 1, ChunkRows: set.ChunkRows, RingDepth: set.RingDepth,
		StepsInFlight: set.StepsInFlight, PromptShare: set.PromptShare, MaxPositions: math.MaxInt32, PageRows: 1 << 16, PageBytes: 1,
		StateBytes: plenty, CheckpointBytes: plenty, Preempts: set.Preempts, MaxWaiting: 1 << 20, Borders: set.Borders,
	})
	c[stages.Router] = router.New(router.Config{
		Layers: model.Layers, Experts: model.Experts, First: set.FirstRouted, TopK: model.TopK, Rule: router.Rule{Rule: route.Rule{NormTopK: true}},
		LastToken: set.LastToken, NextGate: set.NextGate, Ahead: set.Ahead, AheadRows: set.AheadRows, PrefetchSlots: set.Slots - set.WaveSlots,
	})
	var order expertio.Order
	if set.policy == "lru" {
		order = newLRU(model.Layers, model.Experts)
	}
	eio, err := expertio.New(expertio.Config{
		Layers: model.Layers, Experts: model.Experts, First: set.FirstRouted, ExpertBytes: int(model.SlotBytes), Slots: set.Slots, WaveSlots: set.WaveSlots,
		Borders: set.Borders, Parts: set.SlotParts, RingDepth: set.RingDepth, Reads: set.QueuedReads, Order: order, Chances: r.o.known,
	})
	if err != nil {
		return fmt.Errorf("whatif: %w", err)
	}
	c[stages.ExpertIO], c[stages.Combine] = eio, &combine.Core{Borders: set.Borders}
	shared := make([]bool, model.Layers)
	for _, s := range r.o.steps {
		for i := range s.layers {
			shared[i] = shared[i] || s.layers[i].shareNS > 0
		}
	}
	c[stages.Dispatch] = newDispatcher(dispatchConfig{
		layers: model.Layers, experts: model.Experts, topK: model.TopK, routed: model.Routed, shared: shared,
		ahead: set.ScoresAhead, aheadRows: set.ScoresAheadRows, lanes: set.StepsInFlight + 1,
	}, &r.e.device, r.callers)
	return nil
}

// run plays the script to its end.
func (r *replay) run() error {
	r.e.at(1, func() { r.e.post(stages.ExpertIO, new(stages.WarmSlots)) })
	r.callers.begin()
	for r.callers.left > 0 {
		if len(r.e.events) == 0 {
			return fmt.Errorf("whatif: the replay stands still at %d ns with %d requests to go", r.e.now, r.callers.left)
		}
		if err := r.e.run(r.e.events[0].at); err != nil {
			return err
		}
	}
	return r.e.err
}

// stats returns the stages' own figures.
func (r *replay) stats() (*stages.Stats, error) {
	var got *stages.Stats
	before := r.callers.before
	defer func() { r.callers.before = before }()
	r.e.answered = func(m stages.Message, _ int64) {
		if s, ok := m.(*stages.CollectStats); ok {
			got = s.Stats
		}
	}
	r.e.post(stages.Sequencer, &stages.CollectStats{Stats: new(stages.Stats)})
	for got == nil && len(r.e.events) > 0 && r.e.err == nil {
		if err := r.e.run(r.e.events[0].at); err != nil {
			return nil, err
		}
	}
	if got == nil {
		return nil, fmt.Errorf("whatif: the stages tell no figures: %w", r.e.err)
	}
	return got, nil
}
