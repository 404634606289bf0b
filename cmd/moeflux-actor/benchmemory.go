package main

import (
	"context"
	"fmt"

	"github.com/moeflux/moeflux-actor/internal/membw"
)

const (
	bandwidthBytes    = 1 << 30 // read in a pass
	memoryFirstPasses = 3
	bandwidthMinBytes = 128 << 20 // below that caches would be measured
)

// benchMemory is the memory's bandwidth, measured before every run or before the model was opened.
type benchMemory struct {
	spread         // bytes a second
	Threads int    `json:"threads"`
	Bytes   int    `json:"bytes"` // of a pass; a measurement is the median of several
	Loop    string `json:"loop"`  // which loads read
	First   bool   `json:"first"` // measured before the model was opened, not before every run

	rates []float64
}

// newBenchMemory returns what to measure with the device's threads; nil where memory is too short
// to tell it from a cache, and for a GPU, which has another memory.
func newBenchMemory(inv *invocation, threads int) (*benchMemory, error) {
	if threads == 0 {
		return nil, nil
	}
	free, err := inv.env.freeMemory()
	if err != nil {
		return nil, fmt.Errorf("cannot tell how much memory is free: %w", err)
	}
	bytes := min(bandwidthBytes, free/4) / membw.BlockBytes * membw.BlockBytes
	if bytes < max(bandwidthMinBytes, int64(threads)*membw.BlockBytes) {
		inv.say("%s of free memory are too few to measure its bandwidth", formatBytes(free))
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
