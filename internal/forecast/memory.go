package forecast

import (
	"context"

	"github.com/moeflux/moeflux-actor/internal/figures"
	"github.com/moeflux/moeflux-actor/internal/membw"
)

const (
	bandwidthBytes    = 1 << 30   // of the array
	bandwidthMinBytes = 128 << 20 // less would measure the caches
	beforeOpening     = 3         // measurements
)

// Memory is the memory's bandwidth, by several measurements. Max, the most of them, is what a run
// is compared with: one that caught other work on the machine must not make a run look faster than
// memory.
type Memory struct {
	figures.Spread        // bytes a second
	Threads        int    `json:"threads"`
	Bytes          int    `json:"bytes"` // of the array; a measurement is the median of many passes
	Loop           string `json:"loop"`  // the fastest, of the last measurement
	First          bool   `json:"first"` // measured before the model was opened, not around every run

	rates []float64
}

// NewMemory returns what to measure with the device's threads, given the free memory. It is nil for
// a GPU, which has memory of its own and no threads, and if there is too little free memory to
// exceed the caches, which note is told.
func NewMemory(threads int, free int64, note func(format string, args ...any)) *Memory {
	if threads == 0 {
		return nil
	}
	bytes := min(bandwidthBytes, free/4) / membw.BlockBytes * membw.BlockBytes
	if bytes < max(bandwidthMinBytes, int64(threads)*membw.BlockBytes) {
		note("%s of free memory is too little to measure its bandwidth", figures.Bytes(free))
		return nil
	}
	return &Memory{Threads: threads, Bytes: int(bytes)}
}

// Measure adds one measurement.
func (m *Memory) Measure(ctx context.Context) error {
	r, err := membw.Measure(ctx, membw.Config{Threads: m.Threads, Bytes: m.Bytes})
	if err != nil {
		return err
	}
	m.Loop, m.rates = r.Loop, append(m.rates, r.Median)
	m.Spread = figures.SpreadOf(m.rates)
	return nil
}

// MeasureBefore adds the measurements that are taken before a model is opened.
func (m *Memory) MeasureBefore(ctx context.Context) error {
	for range beforeOpening {
		if err := m.Measure(ctx); err != nil {
			return err
		}
	}
	return nil
}
