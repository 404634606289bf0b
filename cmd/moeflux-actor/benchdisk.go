package main

import (
	"context"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/diskbw"
	"github.com/moeflux/moeflux-actor/io/weights"
)

// diskRate is how fast the disk delivers records of the model's experts, in bytes a second.
type diskRate struct {
	Mode        string  `json:"mode"`  // direct, past the page cache, or buffered, through it
	Depth       int     `json:"depth"` // reads at once
	spread              // of several turns
	ReadSeconds float64 `json:"read_seconds"` // of one read, the mean
}

// measureDisk reads records of the packed files in dir: in all modes and depths, or, if depth is
// not 0, at that depth and as an engine with this expert I/O reads. The page cache loses what it
// holds of the files.
func measureDisk(ctx context.Context, e *engineFlags, dir string, io actors.ExpertIO, depth int) ([]diskRate, error) {
	cfg, err := weights.ReadConfig(dir)
	if err != nil {
		return nil, err
	}
	f, err := e.openExperts(dir, cfg)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c := diskbw.Config{RecordBytes: f.Layout().Bytes, Seed: 1}
	for _, layer := range f.Layers() {
		c.Files = append(c.Files, f.Path(layer))
	}
	if depth > 0 {
		c.Depths, c.Modes = []int{depth}, []diskbw.Mode{diskMode(io)}
	}
	rates, err := diskbw.Measure(ctx, c)
	if err != nil {
		return nil, err
	}
	var out []diskRate
	for _, r := range rates {
		out = append(out, diskRate{string(r.Mode), r.Depth, spread{r.Median, r.Min, r.Max}, r.PerRead.Seconds()})
	}
	return out, nil
}

// diskMode returns the mode that an engine reads in.
func diskMode(io actors.ExpertIO) diskbw.Mode {
	if io == actors.ExpertIODirect {
		return diskbw.Direct
	}
	return diskbw.Buffered
}

// rateAt returns the rate of a mode that was measured nearest to a depth; nil if there is none.
func rateAt(rates []diskRate, mode diskbw.Mode, depth int) *diskRate {
	var near *diskRate
	for i := range rates {
		r := &rates[i]
		if r.Mode == string(mode) && (near == nil || max(r.Depth-depth, depth-r.Depth) < max(near.Depth-depth, depth-near.Depth)) {
			near = r
		}
	}
	return near
}

// best returns the fastest rate of a mode; nil if there is none.
func best(rates []diskRate, mode diskbw.Mode) *diskRate {
	var top *diskRate
	for i := range rates {
		if r := &rates[i]; r.Mode == string(mode) && (top == nil || r.Median > top.Median) {
			top = r
		}
	}
	return top
}
