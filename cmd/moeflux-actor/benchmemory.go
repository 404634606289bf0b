package main

import (
	"context"
	"fmt"

	"github.com/moeflux/moeflux-actor/internal/membw"
)

const (
	bandwidthBytes    = 1 << 30 // of the array
	memoryFirstPasses = 3
	bandwidthMinBytes = 128 << 20 // less would measure the caches
)

// benchMemory is the memory's bandwidth, measured before every run and after the last, or before
// the model was opened. Max, the most of these measurements, is what a run is compared with: one
// that caught other work on the machine must not make a run look faster than memory.
type benchMemory struct {
	spread         // bytes a second
	Threads int    `json:"threads"`
	Bytes   int    `json:"bytes"` // of the array; a measurement is the median of many passes
	Loop    string `json:"loop"`  // the fastest, of the last measurement
	First   bool   `json:"first"` // measured before the model was opened, not around every run

	rates []float64
}

// newBenchMemory returns what to measure with the device's threads; nil for a GPU, which has memory
// of its own, and if there is too little free memory to exceed the caches.
func newBenchMemory(inv *invocation, threads int) (*benchMemory, error) {
	if threads == 0 {
		return nil, nil
	}
	free, err := inv.env.freeMemory()
	if err != nil {
		return nil, fmt.Errorf("the amount of free memory is unknown: %w", err)
	}
	bytes := min(bandwidthBytes, free/4) / membw.BlockBytes * membw.BlockBytes
	if bytes < max(bandwidthMinBytes, int64(threads)*membw.BlockBytes) {
		inv.say("%s of free memory is too little to measure its bandwidth", formatBytes(free))
		return nil, nil
	}
	return &benchMemory{Threads: threads, Bytes: int(bytes)}, nil
}

// measure adds one measurement.
func (m *benchMemory) measure(ctx context.Context) error {
	r, err := membw.Measure(ctx, membw.Config{Threads: m.Threads, Bytes: m.Bytes})
	if err != nil {
		return err
	}
	m.Loop, m.rates = r.Loop, append(m.rates, r.Median)
	m.spread = spreadOf(m.rates)
	return nil
}

// measureMemory adds one measurement between runs, if that is when memory is measured.
func (r *benchResult) measureMemory(ctx context.Context) error {
	if r.Memory == nil || r.Memory.First {
		return nil
	}
	return r.Memory.measure(ctx)
}
