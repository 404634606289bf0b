package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/moeflux/moeflux-actor/internal/durable"
	"github.com/moeflux/moeflux-actor/io/synth"
	"github.com/moeflux/moeflux-actor/tracing/record"
	"github.com/moeflux/moeflux-actor/tracing/whatif"
)

// subject is what a recording is of.
type subject struct {
	Shape  string `json:"shape"`
	Layers int    `json:"layers"`
	Share  int    `json:"share"` // percent of the experts that memory holds
	Texts  int    `json:"texts"` // that decode at once
	Device string `json:"device"`
}

const hostDevice = "host"

func (s subject) String() string {
	text := fmt.Sprintf("%s, %d layers, memory for %d %% of the experts", s.Shape, s.Layers, s.Share)
	if s.Texts > 1 {
		text += fmt.Sprintf(", %d texts at once", s.Texts)
	}
	if s.Device != hostDevice {
		text += ", on " + s.Device
	}
	return text
}

// settings are the defaults and those that are predicted, for a memory of some bytes.
func settings(bytes int64) []whatif.Settings {
	half := bytes / 2
	return []whatif.Settings{
		{}, {RingDepth: 1}, {Prefetch: "off"}, {Prefetch: "last-token"}, {Prefetch: "next-gate"}, {ReadWorkers: 1}, {ExpertMemory: half}, {ExpertMemory: bytes * 13 / 10},
		{Prefetch: "off", ReadWorkers: 1}, {ExpertMemory: half, Prefetch: "off", ReadWorkers: 1}, {ExpertMemory: bytes * 7 / 10, Prefetch: "last-token", ReadWorkers: 2},
	}
}

// results is what has been measured of a subject.
type results struct {
	Subject subject `json:"subject"`
	Bytes   int64   `json:"bytes"` // that the share of the experts takes
	Runs    [][]one `json:"runs"`  // [settings], in order of turns
	name    string  // of its files, without an ending
}

// one is one run.
type one struct {
	Rate float64 `json:"tokens_per_s"` // decoded
	Hits float64 `json:"hits"`
	// Others is the share of the processors that other programs used.
	Others float64 `json:"others"`
}

// results reads what has been measured of a subject.
func (o *options) results(s subject) (*results, error) {
	r := &results{Subject: s, name: filepath.Join(o.dir, fmt.Sprintf("%s-%d-%d-%d", s.Shape, s.Layers, s.Share, s.Texts))}
	if s.Device != hostDevice {
		r.name += "-" + s.Device
	}
	text, err := os.ReadFile(r.name + ".json")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, nil
	case err != nil:
		return nil, err
	}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s.json: %w", r.name, err)
	}
	return r, nil
}

// keep writes what has been measured.
func (r *results) keep() error {
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return durable.WriteFile(r.name+".json", durable.Shared, text)
}

// left returns how many runs there are to do.
func (r *results) left(runs int) (n int) {
	for i := range settings(r.Bytes) {
		n += runs
		if i < len(r.Runs) {
			n -= min(runs, len(r.Runs[i]))
		}
	}
	return n
}

// recording reads that of the defaults of a turn.
func (r *results) recording(turn int) (*record.Recording, error) {
	f, err := os.Open(r.recordingName(turn))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return record.ReadRecording(f)
}

func (r *results) recordingName(turn int) string { return fmt.Sprintf("%s-%d.records", r.name, turn) }

// table predicts all settings from the recording of the defaults whose speed is the median.
func (r *results) table() (*table, error) {
	turns := make([]int, len(r.Runs[0]))
	for i := range turns {
		turns[i] = i
	}
	slices.SortFunc(turns, func(a, b int) int {
		if r.Runs[0][a].Rate < r.Runs[0][b].Rate {
			return -1
		}
		return 1
	})
	rec, err := r.recording(turns[len(turns)/2])
	if err != nil {
		return nil, err
	}
	p, err := whatif.New(rec)
	if err != nil {
		return nil, err
	}
	t := &table{subject: r.Subject, off: p.Error()}
	for i, set := range settings(r.Bytes) {
		row := newRow(set, r.Bytes, r.Runs[i])
		switch got, err := p.Predict(set); {
		case i == 0:
			row.predicted, row.predictedHits = p.Replayed().DecodeRate, p.Replayed().HitRate()
		case err != nil:
			row.refused = err.Error()
		default:
			row.predicted, row.predictedHits = got.DecodeRate, got.Changed.HitRate()
		}
		t.rows = append(t.rows, row)
	}
	t.others = r.others()
	return t, nil
}

// others returns which share of the processors other programs used beside the usual run.
func (r *results) others() float64 {
	var all []float64
	for _, runs := range r.Runs {
		for _, m := range runs {
			all = append(all, m.Others)
		}
	}
	return median(all)
}

// vocab is the size of the models' vocabulary.
const vocab = 16384

// model returns the directory of a subject's model, and makes the model if it is missing.
func (o *options) model(ctx context.Context, s subject) (string, error) {
	dir := filepath.Join(o.dir, fmt.Sprintf("%s-%d-%d-%s", s.Shape, s.Layers, vocab, synth.Mild))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	shape, err := synth.Named(s.Shape)
	if err != nil {
		return "", err
	}
	return dir, synth.Write(ctx, dir, synth.Options{Shape: shape, Layers: s.Layers, Vocab: vocab, Seed: 1, Route: synth.Mild}, nil)
}
