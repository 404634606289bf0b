package actors

import (
	"context"
	"fmt"

	"github.com/moeflux/moeflux-actor/actors/metering"
	"github.com/moeflux/moeflux-actor/actors/runtime"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/model/route"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/combine"
	"github.com/moeflux/moeflux-actor/stages/dispatch"
	"github.com/moeflux/moeflux-actor/stages/expertio"
	"github.com/moeflux/moeflux-actor/stages/router"
	"github.com/moeflux/moeflux-actor/stages/sequencer"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// queuedReads is how many reads expert-IO asks for at once for each worker that reads, for steps
// that can wait: one that is under way, and one that begins when it ends.
const queuedReads = 2

// build makes the memory, the queue and the five cores.
func (e *Engine) build(
	ctx context.Context, cfg Config,
) (cores [stages.NumStages]stages.Core, err error) {
	i, m := &e.info, e.model
	mapped := !i.ExpertIO.Streams()
	if err := e.memory.Open(ctx, i.plan); err != nil {
		return cores, err
	}
	i.VerifyReads = e.memory.Verifies()
	if e.queue, err = cfg.Device.NewQueue(); err != nil {
		return cores, err
	}
	e.records = record.NewLog(int(i.RecordMemory))
	e.meter = metering.New(len(m.Layers), e.rt.Now, e.records)
	e.queue = e.meter.Measured(e.queue, len(gpu.PartsOf(cfg.Device)))
	window, windowRows := dispatch.Windows(m, cfg.kv(), pageRows, cfg.windowPages)
	cores[stages.Sequencer] = sequencer.New(sequencer.Config{
		Layers: len(m.Layers), Vocab: m.VocabSize, ChunkRows: i.ChunkRows, RingDepth: i.RingDepth,
		StepsInFlight: i.StepsInFlight, PromptShare: i.PromptShare, Resident: i.Resident, LayerTimes: cfg.LayerTimes, MaxPositions: i.Context, PageRows: pageRows, StateBytes: i.StateMemory,
		RecurrentBytes: i.StateBytes, Window: window, WindowRows: windowRows, PageBytes: int64(dispatch.PageBytes(m, cfg.kv(), pageRows)), Checkpoints: i.Checkpoints, CheckpointBytes: i.CheckpointMemory, Parks: cfg.ParkedMemory > 0 || cfg.StateDir != "",
		MaxSequences: i.MaxSequences, MaxWaiting: i.MaxWaiting, Preempts: preempts(cfg.Device), Borders: e.borders,
	})
	rule, err := e.rule()
	if err != nil {
		return cores, err
	}
	ahead := i.lookAhead(cfg, m)
	cores[stages.Router] = router.New(router.Config{
		Layers: len(m.Layers), Experts: m.NumExperts, First: ahead.first, TopK: i.TopK, Rule: rule,
		LastToken: i.lastToken(), NextGate: i.nextGate(),
		Ahead: i.PrefetchLayers, AheadRows: ahead.rows, PrefetchSlots: i.plan.Slots - i.WaveSlots,
		Far: i.NearSlots > 0,
	})
	var chances []float64
	if !mapped || i.NearSlots > 0 { // who has all experts prefers none of them
		chances = e.openProfile(cfg)
	}
	if cores[stages.ExpertIO], err = expertio.New(expertio.Config{
		Layers: len(m.Layers), Experts: m.NumExperts, First: ahead.first, ExpertBytes: i.SlotBytes,
		Slots: i.plan.Slots, Parts: i.plan.Parts, Borders: e.borders, WaveSlots: i.WaveSlots,
		RingDepth: i.RingDepth, Reads: queuedReads * i.ReadWorkers, Mapped: mapped,
		Near: i.NearSlots, Chances: chances, Hosts: e.hosts.Hosts(), AskPicks: e.hosts.AskPicks(),
	}); err != nil {
		return cores, err
	}
	if e.dispatch, err = dispatch.New(dispatch.Config{
		Model: m, Layout: e.experts.LayoutOf, RecordBytes: e.experts.Layout().Bytes, TopK: i.TopK, Borders: e.borders, ChunkRows: i.ChunkRows, Lanes: i.StepsInFlight + 1, PageRows: pageRows,
		MaxPages: i.kvPages, KV: cfg.kv(), WindowPages: cfg.windowPages, Ahead: ahead.gates, AheadRows: ahead.gateRows, AheadAlways: cfg.CountAhead,
		Resident: i.Resident, Far: i.NearSlots > 0, Transit: i.transit(m),
		LayerTimes: cfg.LayerTimes, Rule: rule.Rule, Away: e.hosts.Hosts() > 0,
	}, cfg.Device, e.queue, e.weights, e.memory); err != nil {
		return cores, e.lostFile(err)
	}
	cores[stages.Dispatch] = e.dispatch
	e.info.Exactness = e.exactness(cfg.Device)
	e.meta = e.describe(cfg)
	cores[stages.Combine] = &combine.Core{Borders: e.borders}
	return cores, nil
}

// lostFile returns err, which came from the device, or names the mapped file that was truncated
// under it.
func (e *Engine) lostFile(err error) error {
	if lost := e.weights.Lost(err); lost != nil {
		return lost
	}
	if lost := e.experts.Lost(err); lost != nil {
		return lost
	}
	return err
}

// rule returns the model's rule for choosing experts.
func (e *Engine) rule() (router.Rule, error) {
	m := e.model
	r := router.Rule{Rule: route.Rule{
		Sigmoid: m.Scoring == model.SigmoidScores, NGroup: m.NGroup, TopKGroup: m.TopKGroup, NormTopK: m.NormTopKProb, Scale: m.RoutedScalingFactor,
	}}
	if !m.CorrectionBias {
		return r, nil
	}
	r.Bias = make([][]float32, len(m.Layers))
	for _, i := range m.MoELayers() {
		var err error
		if r.Bias[i], err = e.weights.Vector(fmt.Sprintf("model.layers.%d.mlp.gate.e_score_correction_bias", i), m.NumExperts); err != nil {
			return r, err
		}
	}
	return r, nil
}

// spawn starts the actors.
func (e *Engine) spawn(cfg Config, cores [stages.NumStages]stages.Core) {
	if cfg.wrapCore != nil {
		for id := range cores {
			cores[id] = cfg.wrapCore(stages.StageID(id), cores[id])
		}
	}
	kinds := make([]string, len(e.model.Layers))
	for i, l := range e.model.Layers {
		kinds[i] = l.Mixer.String()
	}
	var away runtime.Hosts // nil, and not a nil *remote.Client
	if e.hosts != nil {
		away = e.hosts
	}
	e.rt.Start(runtime.Parts{
		Hosts: away,
		Cores: cores, Meter: e.meter, Parking: e.parking, Texts: e.texts, Experts: e.memory, Explain: e.lostFile, Records: e.records,
		Tracing: runtime.Tracing{
			Provider: cfg.Tracer, LayerKinds: kinds, SlotBytes: e.info.SlotBytes, TopK: e.info.TopK,
			Host: e.hosts.Addr, Exactness: e.info.Exactness,
		},
	})
	if (e.info.ExpertIO.Streams() || e.info.NearSlots > 0) && !cfg.Partial {
		e.rt.Send(stages.ExpertIO, new(stages.WarmSlots))
	}
}
