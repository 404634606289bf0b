package bench

import (
	"fmt"
	"time"

	"github.com/moeflux/moeflux-actor/internal/figures"
)

// SoakResult is what Soak measured.
type SoakResult struct {
	Setting
	PromptTokens int     `json:"prompt_tokens"` // of one text
	GenTokens    int     `json:"gen_tokens"`    // likewise; the first texts are shorter
	Sequences    int     `json:"sequences"`
	Asked        float64 `json:"soak_seconds"`
	Seconds      float64 `json:"seconds"`
	Texts        int64   `json:"texts"` // that decoded all their tokens
	// decoded in all; the windows leave out a last rest of less than half a window
	Tokens      int64 `json:"tokens"`
	Interrupted bool  `json:"interrupted"`

	Windows []SoakWindow `json:"windows"`
	Verdict Verdict      `json:"verdict"`
}

// SoakWindow describes one window. Memory and goroutines are those at its end.
type SoakWindow struct {
	Seconds         float64 `json:"seconds"`
	Tokens          int64   `json:"tokens"` // decoded, of all texts
	TokensPerSecond float64 `json:"tokens_per_second"`
	PromptTokens    int64   `json:"prompt_tokens"`  // read meanwhile
	Resident        *int64  `json:"resident_bytes"` // null if unknown
	Own             *int64  `json:"own_bytes"`      // likewise; without mapped files
	Heap            int64   `json:"heap_bytes"`     // live, of Go
	Allocations     float64 `json:"allocations_per_token"`
	Goroutines      int     `json:"goroutines"`
}

// Verdict compares the first quarter of the windows with the last, by medians.
type Verdict struct {
	Steady      bool     `json:"steady"`   // no findings
	Findings    []string `json:"findings"` // what became worse
	First       float64  `json:"first_tokens_per_second"`
	Last        float64  `json:"last_tokens_per_second"`
	Own         *int64   `json:"own_growth_bytes"` // null if unknown
	Heap        int64    `json:"heap_growth_bytes"`
	Goroutines  int      `json:"goroutine_growth"`
	Allocations float64  `json:"allocations_per_token"` // of all windows
}

// What a soak tolerates: as much as the speed of an idle machine varies from minute to minute, and
// as much memory as the system and Go round up.
const (
	soakSpeedLoss  = 0.05
	soakOwnGrowth  = 16 << 20
	soakHeapGrowth = 4 << 20
	soakGoroutines = 4
)

// elapsed returns the summed time of all windows.
func (r *SoakResult) elapsed() time.Duration {
	sum := 0.0
	for _, w := range r.Windows {
		sum += w.Seconds
	}
	return time.Duration(sum * float64(time.Second))
}

// Judge sets the verdict. There must be a window.
func (r *SoakResult) Judge() {
	v := Verdict{Findings: []string{}}
	find := func(bad bool, format string, args ...any) {
		if bad {
			v.Findings = append(v.Findings, fmt.Sprintf(format, args...))
		}
	}
	v.First, v.Last = r.change(func(w *SoakWindow) float64 { return w.TokensPerSecond })
	find(v.Last < (1-soakSpeedLoss)*v.First, "slower by %.1f%%", -v.Percent())
	if r.Windows[0].Own != nil {
		from, to := r.change(func(w *SoakWindow) float64 { return float64(*w.Own) })
		grown := int64(to - from)
		v.Own = &grown
		find(grown > soakOwnGrowth, "own memory grew by %s", figures.Bytes(grown))
	}
	from, to := r.change(func(w *SoakWindow) float64 { return float64(w.Heap) })
	v.Heap = int64(to - from)
	find(v.Heap > soakHeapGrowth, "the Go heap grew by %s", figures.Bytes(v.Heap))
	from, to = r.change(func(w *SoakWindow) float64 { return float64(w.Goroutines) })
	v.Goroutines = int(to - from)
	find(v.Goroutines > soakGoroutines, "%d more goroutines", v.Goroutines)
	allocations, tokens := 0.0, int64(0)
	for _, w := range r.Windows {
		allocations += w.Allocations * float64(max(w.Tokens, 1))
		tokens += w.Tokens
	}
	v.Allocations = allocations / float64(max(tokens, 1))
	v.Steady = len(v.Findings) == 0
	r.Verdict = v
}

// change returns the medians of a figure in the first quarter of the windows and in the last.
func (r *SoakResult) change(of func(*SoakWindow) float64) (from, to float64) {
	median := func(ws []SoakWindow) float64 {
		var x []float64
		for i := range ws {
			x = append(x, of(&ws[i]))
		}
		return figures.SpreadOf(x).Median
	}
	n := (len(r.Windows) + 3) / 4
	return median(r.Windows[:n]), median(r.Windows[len(r.Windows)-n:])
}

// Percent is the change of speed in percent.
func (v *Verdict) Percent() float64 {
	if v.First == 0 {
		return 0
	}
	return 100 * (v.Last/v.First - 1)
}
