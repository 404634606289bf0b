package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
)

// peers are the decoding speeds of other programs in tokens a second: medians of cold starts in a
// memory cgroup that counts cached file pages, 64 tokens, two AMD Zen 5 cores, a disk of 2 to 4
// GB/s. Their models had the same routing laws, and the limits were the same shares.
var peers = []struct {
	shape, route string
	share        int
	mapped       float64 // llama.cpp, mapping the file
	deferred     float64 // ik_llama.cpp with deferred experts; 0 if not measured
}{
	{"qwen3-30b-a3b", "mild", 25, 1.17, 1.55}, {"qwen3-30b-a3b", "mild", 50, 1.97, 3.0},
	{"qwen3-30b-a3b", "uniform", 25, 0.68, 0.81}, {"qwen3-30b-a3b", "uniform", 50, 0.80, 1.12},
	{"qwen3.5-35b-a3b", "mild", 25, 2.06, 2.8}, {"qwen3.5-35b-a3b", "mild", 50, 2.9, 3.6},
}

// limit is the time of a token if only disk and memory mattered and both worked at once.
type limit struct {
	// of a token: what the best possible cache reads, at the best bandwidth of the disk
	Disk float64 `json:"disk_seconds"`
	// of a token: what it touches, at the memory's bandwidth
	Compute float64 `json:"compute_seconds"`
	Speed   float64 `json:"tokens_per_second"`
}

// limitOf returns the limit of one run; ok is false if a bandwidth or the best cache is unknown.
func limitOf(d *doctor, run *benchRun) (l limit, ok bool) {
	disk := 0.0
	for _, r := range d.Disk {
		disk = max(disk, r.Median)
	}
	tokens := run.Cases[0].Runs[0].Decode.Tokens
	if d.Memory == nil || d.Memory.Median <= 0 || tokens == 0 || disk == 0 || run.Optimum == nil {
		return l, false
	}
	l.Disk = float64(run.Optimum.Bytes) / float64(tokens) / disk
	l.Compute = float64(run.Touched) / d.Memory.Median
	l.Speed = 1 / max(l.Disk, l.Compute)
	return l, true
}

// speed returns tokens a second of the decoding.
func (b *benchRun) speed() float64 { return b.Cases[0].Runs[0].Decode.TokensPerSecond }

// middle returns the run of median speed; of an even number, the slower of the middle two.
func (r *row) middle() *benchRun {
	runs := slices.Clone(r.Runs)
	slices.SortFunc(runs, func(a, b *benchRun) int {
		switch {
		case a.speed() < b.speed():
			return -1
		case a.speed() > b.speed():
			return 1
		}
		return 0
	})
	return runs[(len(runs)-1)/2]
}

// summary holds a row's figures: those of the run of median speed, and the spread of all.
type summary struct {
	Speed      float64  `json:"tokens_per_second"`
	Min        float64  `json:"min"`
	Max        float64  `json:"max"`
	HitRate    float64  `json:"expert_hit_rate"`
	KeptRate   float64  `json:"expert_kept_rate"`
	BestKept   float64  `json:"optimum_kept_rate"` // by the best possible cache with as many slots
	BytesRead  int64    `json:"bytes_read"`        // while decoding
	PeakBytes  int64    `json:"peak_bytes"`
	TopK       int      `json:"experts_per_token"`
	Mapped     float64  `json:"peer_mapped,omitempty"`
	Deferred   float64  `json:"peer_deferred,omitempty"`
	TimesBest  *float64 `json:"times_best_peer"` // null if there is none
	Limit      *limit   `json:"limit"`           // null if unknown
	LimitShare *float64 `json:"limit_share"`
	Forecast   *float64 `json:"forecast_share"` // the speed, as a share of bench's forecast
}

func (r *row) summary() summary {
	m := r.middle()
	d := m.Cases[0].Runs[0].Decode
	s := summary{Speed: m.speed(), Min: m.speed(), Max: m.speed(), HitRate: d.HitRate, KeptRate: d.KeptRate, BytesRead: d.Bytes, TopK: m.TopK}
	for _, run := range r.Runs {
		s.Min, s.Max, s.PeakBytes = min(s.Min, run.speed()), max(s.Max, run.speed()), max(s.PeakBytes, run.PeakBytes)
	}
	if m.Optimum != nil {
		s.BestKept = m.Optimum.KeptRate
	}
	share := func(of float64) *float64 {
		x := s.Speed / of
		return &x
	}
	for _, p := range peers {
		if p.shape == r.Shape && p.route == r.Route && p.share == r.Share && r.Layers == 0 {
			s.Mapped, s.Deferred, s.TimesBest = p.mapped, p.deferred, share(max(p.mapped, p.deferred))
		}
	}
	if l, ok := limitOf(r.Doctor, m); ok {
		s.Limit, s.LimitShare = &l, share(l.Speed)
	}
	if f := m.Forecast; f != nil && f.TokensPerSecond > 0 {
		s.Forecast = share(f.TokensPerSecond)
	}
	return s
}

// writeTable prints the table as Markdown.
func writeTable(w io.Writer, o *options, rows []*row) error {
	number := func(format string, x *float64, times float64) string {
		if x == nil {
			return "-"
		}
		return fmt.Sprintf(format, times**x)
	}
	peer := func(x float64) string {
		if x == 0 {
			return "-"
		}
		return fmt.Sprintf("%.2f", x)
	}
	_, err := fmt.Fprintf(w, "Cold start, prompts of %d tokens, %d decoded, medians of %d runs in turns (least to most); limits are shares of the model's size and count file pages.\n"+
		"The limit of speed is max(disk, compute): what the best possible cache with as many slots reads at doctor's best disk bandwidth, or what a token touches at the memory's.\n\n", o.prompt, o.gen, o.runs)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(w, "| model, routing | limit | K | tokens/s | hits | kept | best cache keeps | read | most memory | llama.cpp, mmap | ik_llama.cpp, deferred experts | times the best | limit of speed: disk, compute | share of it | of bench's forecast |\n"+
		"| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"); err != nil {
		return err
	}
	for _, r := range rows {
		s := r.summary()
		name := r.Shape
		if r.Layers > 0 {
			name += fmt.Sprintf(" (%d layers)", r.Layers)
		}
		bound := "-"
		if s.Limit != nil {
			bound = fmt.Sprintf("%.2f: %.0f ms, %.0f ms", s.Limit.Speed, 1e3*s.Limit.Disk, 1e3*s.Limit.Compute)
		}
		if _, err := fmt.Fprintf(w, "| %s (%.1f GB), %s | %.1f GB (%d %%) | %d | %.2f (%.2f to %.2f) | %.1f %% | %.1f %% | %.1f %% | %.2f GB | %.2f GB | %s | %s | %s | %s | %s | %s |\n",
			name, float64(r.ModelBytes)/1e9, r.Route, float64(r.Limit)/1e9, r.Share, s.TopK, s.Speed, s.Min, s.Max, 100*s.HitRate, 100*s.KeptRate, 100*s.BestKept,
			float64(s.BytesRead)/1e9, float64(s.PeakBytes)/1e9, peer(s.Mapped), peer(s.Deferred), number("%.1f", s.TimesBest, 1), bound,
			number("%.0f %%", s.LimitShare, 100), number("%.0f %%", s.Forecast, 100)); err != nil {
			return err
		}
	}
	return nil
}

// writeJSON writes all figures, unless path is "".
func writeJSON(path string, rows []*row) error {
	if path == "" {
		return nil
	}
	type full struct {
		*row
		Summary summary `json:"summary"`
	}
	var out []full
	for _, r := range rows {
		out = append(out, full{r, r.summary()})
	}
	raw, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(raw, '\n'), 0o644)
}
