package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/device"
	"github.com/moeflux/moeflux-actor/io/synth"
	"github.com/moeflux/moeflux-actor/tracing/record"
	"github.com/moeflux/moeflux-actor/tracing/whatif"
)

// recordMemory holds all records of a run.
const recordMemory = 256 << 20

// others are the settings that are predicted, for a memory of some bytes.
func others(bytes int64) []whatif.Settings {
	return []whatif.Settings{
		{RingDepth: 1}, {Prefetch: "off"}, {Prefetch: "last-token"}, {Prefetch: "next-gate"}, {ReadWorkers: 1}, {ReadWorkers: 8},
		{ExpertMemory: bytes * 7 / 10}, {ExpertMemory: bytes * 5 / 4}, {ExpertMemory: bytes * 7 / 10, Prefetch: "off", ReadWorkers: 1},
	}
}

// measure measures one share.
func (o *options) measure(ctx context.Context, model string, share int) (*table, error) {
	s, err := synth.Load(model)
	if err != nil {
		return nil, err
	}
	chain := s.Chain(o.warm + o.prompt)
	warm, text := chain[:o.warm], chain[o.warm:]
	plan, err := o.run(ctx, model, text, text, whatif.Settings{}, 1)
	if err != nil {
		return nil, err
	}
	m := &plan.Meta.Model
	stride := (m.SlotBytes + 4095) / 4096 * 4096
	bytes := int64(m.Layers*m.Experts) * stride * int64(share) / 100
	settings := append([]whatif.Settings{{}}, others(bytes)...)
	got := make([][]whatif.Result, len(settings))
	var base []*record.Recording // of the defaults
	for range o.runs {
		for i, set := range settings {
			if set.ExpertMemory == 0 {
				set.ExpertMemory = bytes
			}
			r, err := o.run(ctx, model, warm, text, set, o.gen)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", set, err)
			}
			if i == 0 {
				base = append(base, r)
			}
			got[i] = append(got[i], whatif.Measure(r))
		}
	}
	t := &table{Shape: o.shape, Layers: o.layers, Share: share}
	return t, t.predict(o, settings, got, base)
}

// run decodes a text and returns the records.
func (o *options) run(ctx context.Context, model string, warm, text []int32, set whatif.Settings, gen int) (_ *record.Recording, err error) {
	dev, err := device.Open(device.Config{Name: "host"})
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	e, err := actors.Open(ctx, actors.Config{
		Model: model, Device: dev, ExpertIO: actors.ExpertIODirect, ExpertMemory: set.ExpertMemory, RingDepth: set.RingDepth, Prefetch: actors.Prefetch(set.Prefetch),
		ReadWorkers: set.ReadWorkers, RecordMemory: recordMemory, Context: 4096,
	})
	if err != nil {
		return nil, err
	}
	defer e.Close(ctx)
	// A prompt of many rows fills all slots: the first touch of memory costs more than a read.
	if err := generate(ctx, e, warm, 1); err != nil {
		return nil, err
	}
	if err := e.ForgetExperts(ctx); err != nil {
		return nil, err
	}
	if err := generate(ctx, e, text, gen+1); err != nil {
		return nil, err
	}
	time.Sleep(20 * time.Millisecond) // reads that were begun ahead end
	return e.Recording(ctx)
}

// generate decodes greedily in a sequence of its own.
func generate(ctx context.Context, e *actors.Engine, prompt []int32, n int) error {
	seq, err := e.NewSequence(ctx)
	if err != nil {
		return err
	}
	for _, err := range seq.Generate(ctx, prompt, actors.GenerateOptions{MaxTokens: n, IgnoreEOS: true}) {
		if err != nil {
			return err
		}
	}
	return seq.Close()
}

// predict predicts all settings from the recording of the defaults whose speed is the median.
func (t *table) predict(o *options, settings []whatif.Settings, got [][]whatif.Result, base []*record.Recording) error {
	slices.SortFunc(base, func(a, b *record.Recording) int {
		if whatif.Measure(a).DecodeRate < whatif.Measure(b).DecodeRate {
			return -1
		}
		return 1
	})
	rec := base[len(base)/2]
	if o.record != "" {
		if err := t.keep(t.name(o.record), rec); err != nil {
			return err
		}
	}
	for i, set := range settings {
		t.Rows = append(t.Rows, newRow(set, got[i]))
	}
	return t.foretell(rec)
}

// foretell fills in the predictions of a recording.
func (t *table) foretell(rec *record.Recording) error {
	r, err := whatif.New(rec)
	if err != nil {
		return err
	}
	t.Error = r.Error()
	for i := range t.Rows {
		row := &t.Rows[i]
		if i == 0 {
			row.Predicted, row.PredictedHits = r.Replayed().DecodeRate, r.Replayed().HitRate()
			continue
		}
		p, err := r.Predict(row.Set)
		if row.Refused = ""; err != nil {
			row.Refused = err.Error()
			continue
		}
		row.Predicted, row.PredictedHits = p.DecodeRate, p.Changed.HitRate()
	}
	return nil
}

// again predicts anew from the recording that was kept in a folder.
func (t *table) again(folder string) error {
	f, err := os.Open(t.name(folder))
	if err != nil {
		return err
	}
	defer f.Close()
	rec, err := record.ReadRecording(f)
	if err != nil {
		return err
	}
	return t.foretell(rec)
}

func (t *table) name(folder string) string {
	return filepath.Join(folder, fmt.Sprintf("%s-%d.rec", t.Shape, t.Share))
}

func (t *table) keep(name string, r *record.Recording) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := r.Write(f); err != nil {
		return err
	}
	return f.Close()
}
