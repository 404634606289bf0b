package forecast

import (
	"context"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/diskbw"
	"github.com/moeflux/moeflux-actor/internal/figures"
)

// DiskRate is how fast the disk delivers records of the model's experts, in bytes a second.
type DiskRate struct {
	Mode           diskbw.Mode `json:"mode"`  // direct, past the page cache, or buffered, through it
	Depth          int         `json:"depth"` // reads at once
	figures.Spread             // of several turns
	ReadSeconds    float64     `json:"read_seconds"` // of one read, the mean
}

// MeasureDisk reads records of the expert files that a Config names: in the given modes and with as
// many reads at once as depths say; nil means all of them. The page cache loses what it holds of
// the files. A file system that has none of the modes gives a *diskbw.UnsupportedError.
func MeasureDisk(ctx context.Context, of actors.Config, modes []diskbw.Mode, depths []int) ([]DiskRate, error) {
	f, err := actors.OpenExperts(of)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c := diskbw.Config{RecordBytes: f.Layout().Bytes, Seed: 1, Modes: modes, Depths: depths}
	for _, layer := range f.Layers() {
		c.Files = append(c.Files, f.Path(layer))
	}
	rates, err := diskbw.Measure(ctx, c)
	if err != nil {
		return nil, err
	}
	var out []DiskRate
	for _, r := range rates {
		out = append(out, DiskRate{r.Mode, r.Depth, figures.Spread{Median: r.Median, Min: r.Min, Max: r.Max}, r.PerRead.Seconds()})
	}
	return out, nil
}

// ModeOf returns the mode that an engine reads in.
func ModeOf(io actors.ExpertIO) diskbw.Mode {
	if io == actors.ExpertIODirect {
		return diskbw.Direct
	}
	return diskbw.Buffered
}

// RateAt returns the rate of a mode that was measured nearest to a depth; nil if there is none.
func RateAt(rates []DiskRate, mode diskbw.Mode, depth int) *DiskRate {
	var near *DiskRate
	for i := range rates {
		r := &rates[i]
		if r.Mode == mode && (near == nil || max(r.Depth-depth, depth-r.Depth) < max(near.Depth-depth, depth-near.Depth)) {
			near = r
		}
	}
	return near
}

// Best returns the fastest rate of a mode; nil if there is none.
func Best(rates []DiskRate, mode diskbw.Mode) *DiskRate {
	var top *DiskRate
	for i := range rates {
		if r := &rates[i]; r.Mode == mode && (top == nil || r.Median > top.Median) {
			top = r
		}
	}
	return top
}

// clearlyFaster is how much faster reads must be before another number of them is advised.
const clearlyFaster = 1.1

// Faster returns the fastest rate of a mode if it is clearly faster, in every round, than that with
// the given number of reads at once; else nil. used is the rate with that number.
func Faster(rates []DiskRate, mode diskbw.Mode, workers int) (top, used *DiskRate) {
	used, top = RateAt(rates, mode, workers), Best(rates, mode)
	if used == nil || used.Depth != workers || top.Min < used.Max || top.Median < clearlyFaster*used.Median {
		return nil, used
	}
	return top, used
}
