package bench

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/figures"
	"github.com/moeflux/moeflux-actor/internal/forecast"
	"github.com/moeflux/moeflux-actor/stages"
)

// The first error stops the others and is returned.
func TestTogether(t *testing.T) {
	bad := errors.New("bad")
	err := together(t.Context(), 3, func(ctx context.Context, i int) error {
		if i == 1 {
			return bad
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if err != bad {
		t.Errorf("got %v, want %v", err, bad)
	}
	if err := together(t.Context(), 3, func(context.Context, int) error { return nil }); err != nil {
		t.Errorf("without an error: %v", err)
	}
}

// A measurement of memory that caught other work on the machine does not lift the share of a run.
func TestBandwidthShareOfMost(t *testing.T) {
	m := &forecast.Memory{Spread: figures.SpreadOf([]float64{12e9, 11e9, 31e9, 12e9})}
	run := Run{Decode: Part{Seconds: 1, Counts: Counts{Touched: 30e9}}}
	s := summary([]Run{run}, m, func(r *Run) *Part { return &r.Decode })
	if want := 30.0 / 31; s.BandwidthShare == nil || math.Abs(*s.BandwidthShare-want) > 1e-9 {
		t.Errorf("30 of 12, 11, 31 and 12 GB/s: a share of %v, want %g", s.BandwidthShare, want)
	}
	if s := summary([]Run{run}, nil, func(r *Run) *Part { return &r.Decode }); s.BandwidthShare != nil {
		t.Errorf("memory was not measured: a share of %g, want none", *s.BandwidthShare)
	}
}

// TestCount has what steps touch besides the engine's own counts.
func TestCount(t *testing.T) {
	before := &actors.Stats{Steps: 4, Layers: []stages.LayerStats{{Hits: 10, Misses: 5}}}
	after := &actors.Stats{Steps: 6, Layers: []stages.LayerStats{{Hits: 16, Misses: 7}}}
	var c Counts
	if c.count(before, after, &Setting{TouchedDense: 1000, record: 7}); c.Steps != 2 || c.Touched != 2056 {
		t.Errorf("%d steps touch %d bytes, want 2 and 2056", c.Steps, c.Touched)
	}
}
