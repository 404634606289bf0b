package main

import (
	"fmt"
	"strings"
	"time"
)

// soakResult is what bench --soak prints.
type soakResult struct {
	benchSetting
	PromptTokens int     `json:"prompt_tokens"` // of one text
	GenTokens    int     `json:"gen_tokens"`    // likewise; the first texts are shorter
	Sequences    int     `json:"sequences"`
	Asked        float64 `json:"soak_seconds"`
	Seconds      float64 `json:"seconds"`
	Texts        int64   `json:"texts"` // that decoded all their tokens
	// decoded in all; the windows leave out a last rest of less than half a window
	Tokens      int64 `json:"tokens"`
	Interrupted bool  `json:"interrupted"`

	Windows []soakFigures `json:"windows"`
	Verdict soakVerdict   `json:"verdict"`
}

// soakFigures describe one window. Memory and goroutines are those at its end.
type soakFigures struct {
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

// soakVerdict compares the first quarter of the windows with the last, by medians.
type soakVerdict struct {
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
	soakSpeedLoss   = 0.05
	soakOwnGrowth   = 16 << 20
	soakHeapGrowth  = 4 << 20
	soakGoroutines  = 4
	soakColumns     = "    time    tokens/s    prompt     resident          own         heap  allocs/token  goroutines"
	soakColumnsLine = "%8s%12.2f%10d%13s%13s%13s%14.1f%12d"
)

// elapsed returns the summed time of all windows.
func (r *soakResult) elapsed() time.Duration {
	sum := 0.0
	for _, w := range r.Windows {
		sum += w.Seconds
	}
	return time.Duration(sum * float64(time.Second))
}

// line formats a window that ends at the given time.
func (f *soakFigures) line(at time.Duration) string {
	bytes := func(n *int64) string {
		if n == nil {
			return "-"
		}
		return formatBytes(*n)
	}
	return fmt.Sprintf(soakColumnsLine, at.Round(100*time.Millisecond), f.TokensPerSecond, f.PromptTokens, bytes(f.Resident), bytes(f.Own), formatBytes(f.Heap), f.Allocations, f.Goroutines)
}

// judge sets the verdict. There must be a window.
func (r *soakResult) judge() {
	n := (len(r.Windows) + 3) / 4
	first, last := r.Windows[:n], r.Windows[len(r.Windows)-n:]
	v := soakVerdict{Findings: []string{}}
	change := func(of func(soakFigures) float64) (from, to float64) {
		median := func(ws []soakFigures) float64 {
			var x []float64
			for _, w := range ws {
				x = append(x, of(w))
			}
			return spreadOf(x).Median
		}
		return median(first), median(last)
	}
	find := func(bad bool, format string, args ...any) {
		if bad {
			v.Findings = append(v.Findings, fmt.Sprintf(format, args...))
		}
	}
	v.First, v.Last = change(func(f soakFigures) float64 { return f.TokensPerSecond })
	find(v.Last < (1-soakSpeedLoss)*v.First, "slower by %.1f%%", -v.percent())
	if r.Windows[0].Own != nil {
		from, to := change(func(f soakFigures) float64 { return float64(*f.Own) })
		grown := int64(to - from)
		v.Own = &grown
		find(grown > soakOwnGrowth, "own memory grew by %s", formatBytes(grown))
	}
	from, to := change(func(f soakFigures) float64 { return float64(f.Heap) })
	v.Heap = int64(to - from)
	find(v.Heap > soakHeapGrowth, "the Go heap grew by %s", formatBytes(v.Heap))
	from, to = change(func(f soakFigures) float64 { return float64(f.Goroutines) })
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

// percent is the change of speed in percent.
func (v *soakVerdict) percent() float64 {
	if v.First == 0 {
		return 0
	}
	return 100 * (v.Last/v.First - 1)
}

// verdict formats the last line.
func (r *soakResult) verdict() string {
	v := &r.Verdict
	word := "steady"
	if !v.Steady {
		word = "not steady, " + strings.Join(v.Findings, ", ")
	}
	if r.Interrupted {
		word = fmt.Sprintf("interrupted after %.0f s; %s until then", r.Seconds, word)
	}
	own := "unknown"
	if v.Own != nil {
		own = signedBytes(*v.Own)
	}
	return fmt.Sprintf("verdict: %s; first %.2f, last %.2f tokens/s (%+.1f%%); own memory %s, heap %s, goroutines %+d; %.1f allocations a token; %s",
		word, v.First, v.Last, v.percent(), own, signedBytes(v.Heap), v.Goroutines, v.Allocations, counted(r.Texts, "text"))
}

// signedBytes formats a change in bytes.
func signedBytes(n int64) string {
	if n < 0 {
		return "-" + formatBytes(-n)
	}
	return "+" + formatBytes(n)
}
