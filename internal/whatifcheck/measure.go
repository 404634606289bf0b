package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/device"
	"github.com/moeflux/moeflux-actor/internal/durable"
	"github.com/moeflux/moeflux-actor/io/synth"
	"github.com/moeflux/moeflux-actor/tracing/record"
	"github.com/moeflux/moeflux-actor/tracing/whatif"
)

const (
	recordMemory = 256 << 20 // holds all records of a run
	// A prompt of many rows fills all slots before the run that counts: the first touch of memory
	// costs more than a read.
	warmRows   = 160
	promptRows = 8
	decoded    = 50 // tokens of each text
	// apart is how far texts begin from one another in the model's chain.
	apart = 1000
)

// bench is a model and the texts of a subject.
type bench struct {
	model string
	warm  []int32
	texts [][]int32
	gen   int
	// dev is its device, and folder where kernels are kept that are compiled for it.
	dev, folder string
	// others is the largest share of the processors that other programs may use during a run.
	others float64
}

// measure does the runs of a subject that are missing, in turns, as long as there is time.
func (o *options) measure(ctx context.Context, r *results) error {
	if r.left(o.runs) == 0 {
		return nil
	}
	model, err := o.model(ctx, r.Subject)
	if err != nil {
		return err
	}
	s, err := synth.Load(model)
	if err != nil {
		return err
	}
	chain := s.Chain((r.Subject.Texts + 1) * apart)
	b := &bench{model: model, warm: chain[:warmRows], gen: decoded, others: o.others, dev: r.Subject.Device, folder: o.dir}
	for i := range r.Subject.Texts {
		b.texts = append(b.texts, chain[(i+1)*apart:][:promptRows])
	}
	if r.Bytes == 0 {
		if r.Bytes, err = b.share(ctx, r.Subject.Share); err != nil {
			return err
		}
	}
	all := settings(r.Bytes)
	if r.Runs == nil {
		r.Runs = make([][]one, len(all))
	}
	disturbed := 0
	for turn := range o.runs {
		for i, set := range all {
			for len(r.Runs[i]) <= turn {
				if !o.measureNoMore.IsZero() && time.Now().After(o.measureNoMore) {
					return nil
				}
				if disturbed == 20 {
					return errors.New("other programs use these processors; end them, or wait")
				}
				share, err := b.turn(ctx, r, i, set)
				if err != nil {
					return fmt.Errorf("%s: %w", set, err)
				}
				if share > b.others {
					disturbed++
					fmt.Fprintf(os.Stderr, "%s: other programs used %.0f %% of the processors; the run does not count\n", set, 100*share)
				}
			}
		}
	}
	return nil
}

// turn does one run, and keeps it unless other programs disturbed it: it returns which share of the
// processors they used.
func (b *bench) turn(ctx context.Context, r *results, i int, set whatif.Settings) (others float64, err error) {
	if set.ExpertMemory == 0 {
		set.ExpertMemory = r.Bytes
	}
	before := loadNow()
	rec, err := b.run(ctx, set)
	if others = before.others(); err != nil || others > b.others {
		return others, err
	}
	if i == 0 {
		if err := durable.Replace(r.recordingName(len(r.Runs[i])), durable.Shared, func(w io.Writer) error { return rec.Write(w) }); err != nil {
			return others, err
		}
	}
	m := whatif.Measure(rec)
	r.Runs[i] = append(r.Runs[i], one{m.DecodeRate, m.HitRate(), others})
	return others, r.keep()
}

// share returns how many bytes a share of the experts takes, in percent.
func (b *bench) share(ctx context.Context, percent int) (int64, error) {
	one := &bench{model: b.model, warm: b.warm[:1], texts: [][]int32{b.warm[:1]}, dev: b.dev, folder: b.folder}
	rec, err := one.run(ctx, whatif.Settings{})
	if err != nil {
		return 0, err
	}
	m := &rec.Meta.Model
	stride := (m.SlotBytes + 4095) / 4096 * 4096
	return int64(m.Layers*m.Experts) * stride * int64(percent) / 100, nil
}

// run decodes the texts at once and returns the records.
func (b *bench) run(ctx context.Context, set whatif.Settings) (_ *record.Recording, err error) {
	dev, err := device.Open(device.Config{Name: b.dev, CacheDir: func() (string, error) { return b.folder, nil }})
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	// On the host device it changes nothing; else experts would be read once, and then come from
	// the host's memory, which replays know nothing of.
	const hostMemory = 64 << 20
	e, err := actors.Open(ctx, actors.Config{
		Model: b.model, Device: dev, ExpertIO: actors.ExpertIODirect, ExpertMemory: set.ExpertMemory, RingDepth: set.RingDepth, Prefetch: actors.Prefetch(set.Prefetch),
		ReadWorkers: set.ReadWorkers, RecordMemory: recordMemory, Context: 4096, HostMemory: hostMemory,
	})
	if err != nil {
		return nil, err
	}
	defer e.Close(ctx)
	if err := generate(ctx, e, b.warm, 1); err != nil {
		return nil, err
	}
	if err := e.ForgetExperts(ctx); err != nil {
		return nil, err
	}
	done := make(chan error, len(b.texts))
	for _, text := range b.texts {
		go func() { done <- generate(ctx, e, text, b.gen+1) }()
	}
	for range b.texts {
		err = errors.Join(err, <-done)
	}
	if err != nil {
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
