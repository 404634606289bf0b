package bench

import (
	"slices"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/figures"
	"github.com/moeflux/moeflux-actor/internal/forecast"
)

// Result is what Runs measured.
type Result struct {
	Setting
	GenTokens   int  `json:"gen_tokens"` // of one sequence
	Repeat      int  `json:"repeat"`     // runs asked for
	Interrupted bool `json:"interrupted"`

	Memory *forecast.Memory `json:"memory"` // null if there was too little memory to measure it
	// as the engine reads; null where experts are mapped, or if it was interrupted
	Disk []forecast.DiskRate `json:"disk"`
	// of one text that decodes; null if something that it needs is unknown, or with expert hosts
	Forecast *forecast.Forecast `json:"forecast"`
	// with Options.Cold, if there are fewer slots than experts
	Optimum *Optimum `json:"optimum"`

	Cases []*Case `json:"cases"`
}

// Case is one length of prompts with one number of sequences.
type Case struct {
	PromptTokens int `json:"prompt_tokens"` // of one sequence
	Sequences    int `json:"sequences"`
	// bytes of keys, values and recurrent state that a decoded token reads, the mean
	StatePerToken int64 `json:"state_per_token"`

	Prefill Summary `json:"prefill"`
	Decode  Summary `json:"decode"`
	Runs    []Run   `json:"runs"`
}

// Summary is one part of all runs of a case.
type Summary struct {
	TokensPerSecond figures.Spread `json:"tokens_per_second"`
	MultiplyAdds    float64        `json:"multiply_adds_per_second"` // of weight matrices, the median
	// median bytes touched a second, of the most that memory gave; null if that is unknown
	BandwidthShare *float64 `json:"bandwidth_share"`
	// median tokens a second, of the forecast at best; null for prompts, for several texts, and
	// without a forecast
	ForecastShare *float64 `json:"forecast_share"`
	Counts
}

// Run is one run.
type Run struct {
	Prefill Part `json:"prefill"`
	Decode  Part `json:"decode"`
}

func (r *Run) seconds() float64 { return r.Prefill.Seconds + r.Decode.Seconds }

// Part is one part of one run, all sequences together.
type Part struct {
	Seconds         float64 `json:"seconds"`
	TokensPerSecond float64 `json:"tokens_per_second"`
	MultiplyAdds    int64   `json:"multiply_adds"` // of weight matrices
	Counts
}

// Counts are what the engine counted.
type Counts struct {
	Tokens int `json:"tokens"`
	// passes through the model; sequences that decode together share them
	Steps int64 `json:"steps"`
	// weights that the steps used, each counted once a step
	Touched int64 `json:"bytes_touched"`
	figures.Totals
}

// count sets what was counted between two moments.
func (c *Counts) count(before, after *actors.Stats, s *Setting) {
	c.Steps = after.Steps - before.Steps
	c.Totals = figures.Between(before, after)
	c.Touched = c.Steps*s.TouchedDense + (c.ExpertHits+c.ExpertMisses)*s.record
}

// summarise derives figures from the runs and drops cases that have none.
func (r *Result) summarise() {
	r.Cases = slices.DeleteFunc(r.Cases, func(c *Case) bool { return len(c.Runs) == 0 })
	for _, c := range r.Cases {
		c.Prefill, c.Decode = summarise(c.Runs, r.Memory)
		if r.Forecast != nil && c.Sequences == 1 {
			share := c.Decode.TokensPerSecond.Median / r.Forecast.TokensPerSecond
			c.Decode.ForecastShare = &share
		}
	}
}

// summarise returns both parts of one run or more.
func summarise(runs []Run, memory *forecast.Memory) (prefill, decode Summary) {
	return summary(runs, memory, func(r *Run) *Part { return &r.Prefill }), summary(runs, memory, func(r *Run) *Part { return &r.Decode })
}

func summary(runs []Run, memory *forecast.Memory, part func(*Run) *Part) Summary {
	var (
		s                     Summary
		speeds, work, touched []float64
	)
	for i := range runs {
		p := part(&runs[i])
		seconds := max(p.Seconds, 1e-9) // a clock that stands still
		speeds = append(speeds, p.TokensPerSecond)
		work = append(work, float64(p.MultiplyAdds)/seconds)
		touched = append(touched, float64(p.Touched)/seconds)
		s.Tokens += p.Tokens
		s.Steps += p.Steps
		s.Touched += p.Touched
		s.Add(&p.Totals)
	}
	s.TokensPerSecond, s.MultiplyAdds = figures.SpreadOf(speeds), figures.SpreadOf(work).Median
	if memory != nil && memory.Max > 0 {
		share := figures.SpreadOf(touched).Median / memory.Max
		s.BandwidthShare = &share
	}
	return s
}
