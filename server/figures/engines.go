package figures

import (
	"context"
	"errors"
	"log/slog"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/server/access"
	"github.com/moeflux/moeflux-actor/server/models"
	"github.com/moeflux/moeflux-actor/server/visit"
)

// engineFigure is a figure of an engine: what is read of its Stats.
type engineFigure struct {
	name, unit, what string
	grows            bool // it is a counter, else a level
	of               func(s *moeflux.Stats, i *moeflux.Info) float64
}

// sum adds up a figure of all layers.
func sum(of func(l *moeflux.LayerStats) int64) func(*moeflux.Stats, *moeflux.Info) float64 {
	return func(s *moeflux.Stats, _ *moeflux.Info) float64 {
		n := int64(0)
		for i := range s.Layers {
			n += of(&s.Layers[i])
		}
		return float64(n)
	}
}

// stat is a figure of all of an engine.
func stat[N int | int64](of func(s *moeflux.Stats) N) func(*moeflux.Stats, *moeflux.Info) float64 {
	return func(s *moeflux.Stats, _ *moeflux.Info) float64 { return float64(of(s)) }
}

func seconds(of func(s *moeflux.Stats) int64) func(*moeflux.Stats, *moeflux.Info) float64 {
	return func(s *moeflux.Stats, _ *moeflux.Info) float64 { return float64(of(s)) / 1e9 }
}

// engineFigures are all of them. docs/figures.md defines those of experts and reads.
var engineFigures = []engineFigure{
	{"moeflux.num_requests_waiting", "", "Requests that wait for memory for their state.", false, stat(func(s *moeflux.Stats) int { return s.Admission.Waiting })},
	{"moeflux.sequences", "", "Texts that have memory for their state.", false, stat(func(s *moeflux.Stats) int { return s.Admission.Sequences })},
	{"moeflux.kv_cache_usage_perc", "", "The share of pages for keys and values that is in use, from 0 to 1.", false, func(s *moeflux.Stats, _ *moeflux.Info) float64 {
		return float64(s.PagesUsed) / float64(max(s.PagesMax, 1))
	}},
	{"moeflux.engine_steps", "", "Steps: rows that passed the layers together.", true, stat(func(s *moeflux.Stats) int64 { return s.Steps })},
	{"moeflux.engine_rows", "", "Rows of steps: tokens that were evaluated.", true, stat(func(s *moeflux.Stats) int64 { return s.Rows })},
	{"moeflux.engine_steps_failed", "", "Steps that failed.", true, stat(func(s *moeflux.Stats) int64 { return s.FailedSteps })},
	{"moeflux.ring_depth", "", "Waves that may be submitted and not retired.", false, func(_ *moeflux.Stats, i *moeflux.Info) float64 { return float64(i.RingDepth) }},
	{"moeflux.ring_high_water", "", "The most waves that were submitted and not retired at once.", false, stat(func(s *moeflux.Stats) int { return s.RingHighWater })},

	{"moeflux.slots", "", "Expert slots.", false, stat(func(s *moeflux.Stats) int { return s.Slots })},
	{"moeflux.slots_in_use", "", "Expert slots that hold an expert or are being read into.", false, stat(func(s *moeflux.Stats) int { return s.SlotsUsed })},
	{"moeflux.expert_hits", "", "Uses of an expert that was in a slot, or on its way on a guess.", true, sum(func(l *moeflux.LayerStats) int64 { return l.Hits })},
	{"moeflux.expert_misses", "", "Uses of an expert that had to be read.", true, sum(func(l *moeflux.LayerStats) int64 { return l.Misses })},
	{"moeflux.expert_away", "", "Of the misses, those that expert hosts computed.", true, sum(func(l *moeflux.LayerStats) int64 { return l.Away })},
	{"moeflux.expert_evictions", "", "Experts that lost their slots.", true, sum(func(l *moeflux.LayerStats) int64 { return l.Evictions })},
	{"moeflux.expert_bytes_read", "", "Bytes of experts that were read, for whatever reason.", true, sum(func(l *moeflux.LayerStats) int64 { return l.BytesRead })},
	{"moeflux.prefetch_issued", "", "Experts that were read on a guess: hit, late, wasted, or held.", true, sum(func(l *moeflux.LayerStats) int64 { return l.PrefetchIssued })},
	{"moeflux.prefetch_hit", "", "Experts that were read on a guess and then used.", true, sum(func(l *moeflux.LayerStats) int64 { return l.PrefetchHit })},
	{"moeflux.prefetch_late", "", "Experts that were used while they were still being read on a guess.", true, sum(func(l *moeflux.LayerStats) int64 { return l.PrefetchLate })},
	{"moeflux.prefetch_wasted", "", "Experts that were read on a guess and never used, and reads on a guess that were recalled.", true, sum(func(l *moeflux.LayerStats) int64 { return l.PrefetchWasted })},

	{"moeflux.reads", "", "Reads of experts that ended.", true, stat(func(s *moeflux.Stats) int64 { return s.Reads.Ended })},
	{"moeflux.reads_failed", "", "Reads of experts that failed for good.", true, stat(func(s *moeflux.Stats) int64 { return s.Reads.Failed })},
	{"moeflux.reads_retried", "", "Reads of experts that were tried a second time.", true, stat(func(s *moeflux.Stats) int64 { return s.Reads.Retried })},
	{"moeflux.reads_corrupt", "", "Reads that brought other bytes than were packed.", true, stat(func(s *moeflux.Stats) int64 { return s.Reads.Corrupt })},
	{"moeflux.reads_in_flight", "", "Reads of experts that were asked for and have not ended.", false, stat(func(s *moeflux.Stats) int { return s.Reads.Queued + s.Reads.Running })},
	{"moeflux.read_bytes_in_flight", "", "Bytes of experts that were asked for and are not there.", false, func(s *moeflux.Stats, i *moeflux.Info) float64 {
		return float64(s.Reads.Queued+s.Reads.Running) * float64(i.SlotBytes)
	}},
	{"moeflux.disk_busy", "s", "Time during which at least one expert was being read.", true, seconds(func(s *moeflux.Stats) int64 { return int64(s.Reads.BusyTime) })},
	{"moeflux.device_busy", "s", "Time during which the device worked, of several devices that of all together.", true, seconds(func(s *moeflux.Stats) int64 { return s.ComputeNS })},
	{"moeflux.device_disk_wait", "s", "Time during which the device had nothing to do because experts were missing.", true, seconds(func(s *moeflux.Stats) int64 { return s.DiskWaitNS })},

	{"moeflux.states_evicted", "", "Kept states that were given up for lack of memory.", true, stat(func(s *moeflux.Stats) int64 { return s.States.Evicted })},
	{"moeflux.states_parked", "", "States of texts that lie in host memory or in files.", false, stat(func(s *moeflux.Stats) int { return s.States.Parked })},
	{"moeflux.states_stored", "", "States of texts that were written to disk.", true, stat(func(s *moeflux.Stats) int64 { return s.States.Stored })},
	{"moeflux.states_recalled", "", "States of texts that were brought back from disk.", true, stat(func(s *moeflux.Stats) int64 { return s.States.Recalled })},
	{"moeflux.states_disk_bytes", "", "Bytes of files with states of texts.", false, stat(func(s *moeflux.Stats) int64 { return s.States.StoredDisk })},
	{"moeflux.requests_turned_away", "", "Requests that found the queue full.", true, stat(func(s *moeflux.Stats) int64 { return s.Admission.TurnedAway })},
	{"moeflux.trace_steps_lost", "", "Traced steps whose spans are missing.", true, stat(func(s *moeflux.Stats) int64 { return s.Tracing.StepsLost })},
}

// Sources is what is looked at whenever somebody reads figures.
type Sources struct {
	Models   models.List
	Keys     *access.Ring
	UnderWay *visit.UnderWay
	Logger   *slog.Logger
}

// engineMetrics has the figures of engines read whenever somebody reads figures, at most once for
// all of them.
type engineMetrics struct {
	watched Sources
	names   map[string]string          // of keys, as attributes have them
	figures []metric.Float64Observable // of engineFigures
	hosts   []metric.Float64Observable // of hostFigures
	running metric.Float64Observable
	loaded  metric.Float64Observable
	weight  metric.Float64Observable
	records metric.Float64Observable
}

// Observe makes the instruments of engines and keys. Keys have the names that they have in m.
func (m *Requests) Observe(meters metric.MeterProvider, w Sources) error {
	meter, x := meters.Meter(Scope), &engineMetrics{watched: w, names: m.names}
	var errs []error
	level := func(name, unit, what string) metric.Float64Observable {
		g, err := meter.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(what))
		errs = append(errs, err)
		return g
	}
	growing := func(name, unit, what string) metric.Float64Observable {
		c, err := meter.Float64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(what))
		errs = append(errs, err)
		return c
	}
	for _, f := range engineFigures {
		make := level
		if f.grows {
			make = growing
		}
		x.figures = append(x.figures, make(f.name, f.unit, f.what))
	}
	for _, f := range hostFigures {
		make := level
		if f.grows {
			make = growing
		}
		x.hosts = append(x.hosts, make(f.name, f.unit, f.what))
	}
	x.running = level("moeflux.num_requests_running", "", "Answers under way that do not wait for memory.")
	x.loaded = level("moeflux.model_loaded", "", "1 if the model is in memory.")
	x.weight = level("moeflux.key_weight", "", "How large the shares of a key are among those of its class.")
	x.records = growing("moeflux.records", "", "Records that the engine has written of its work, by table.")
	all := append([]metric.Observable{x.running, x.loaded, x.weight, x.records}, observables(append(x.figures, x.hosts...))...)
	_, err := meter.RegisterCallback(x.read, all...)
	return errors.Join(append(errs, err)...)
}

func observables(of []metric.Float64Observable) (all []metric.Observable) {
	for _, o := range of {
		all = append(all, o)
	}
	return all
}

// read reads the figures of all engines in memory.
func (x *engineMetrics) read(ctx context.Context, to metric.Observer) error {
	answers := make(map[string]int)
	for _, t := range x.watched.UnderWay.All() {
		answers[t.Model] += t.Open()
	}
	for i := range x.watched.Models {
		m := &x.watched.Models[i]
		of := metric.WithAttributeSet(attribute.NewSet(attribute.String(attrModel, m.Name)))
		waiting, loaded := 0, m.Engine == nil
		if e := m.Watched(); e != nil {
			loaded = true
			waiting = x.engine(ctx, to, e, m.Name, of)
		}
		to.ObserveFloat64(x.running, float64(max(0, answers[m.Name]-waiting)), of)
		in := 0.0
		if loaded {
			in = 1
		}
		to.ObserveFloat64(x.loaded, in, of)
	}
	x.weights(to)
	return nil
}

// weights reads the weights of the keys that have a name among the figures.
func (x *engineMetrics) weights(to metric.Observer) {
	for _, k := range x.watched.Keys.All() {
		if name := x.names[k.Name]; name != "" && name != access.Others {
			to.ObserveFloat64(x.weight, float64(max(k.Weight, 1)), label(attrKey, name))
		}
	}
}

// engine reads the figures of one, and returns how many requests wait. An engine that does not
// answer has none.
func (x *engineMetrics) engine(ctx context.Context, to metric.Observer, e models.Engine, model string, of metric.MeasurementOption) (waiting int) {
	for table, n := range e.Records().Totals() {
		to.ObserveFloat64(x.records, float64(n), metric.WithAttributes(attribute.String(attrModel, model), attribute.String(attrTable, table)))
	}
	ctx, cancel := context.WithTimeout(ctx, models.StatsTime)
	defer cancel()
	s, err := e.Stats(ctx)
	if err != nil {
		x.watched.Logger.Warn("an engine does not tell its figures", "model", model, "error", err)
		return 0
	}
	info := e.Info()
	for i, f := range engineFigures {
		to.ObserveFloat64(x.figures[i], f.of(s, &info), of)
	}
	x.hostsOf(to, s.Hosts, model)
	return s.Admission.Waiting
}
