package bench

import (
	"fmt"
	"strings"
	"time"

	"github.com/moeflux/moeflux-actor/internal/figures"
)

// SoakHeads are the heads of the columns that SoakWindow.Text fills.
const SoakHeads = "    time    tokens/s    prompt     resident          own         heap  allocs/token  goroutines"

// Head describes the measurement before it begins.
func (r *SoakResult) Head() string {
	var b strings.Builder
	r.Setting.text(&b)
	figures.Line(&b, "soak", "%.0f s, %s of %d %s prompt tokens and %d decoded; %s, %s decoded before",
		r.Asked, figures.Counted(r.Sequences, "text"), r.PromptTokens, r.Prompts, r.GenTokens, r.State, figures.Counted(r.WarmupTokens, "token"))
	return b.String()
}

// Text formats a window that ends at the given time.
func (f *SoakWindow) Text(at time.Duration) string {
	bytes := func(n *int64) string {
		if n == nil {
			return "-"
		}
		return figures.Bytes(*n)
	}
	return fmt.Sprintf("%8s%12.2f%10d%13s%13s%13s%14.1f%12d", at.Round(100*time.Millisecond), f.TokensPerSecond, f.PromptTokens, bytes(f.Resident),
		bytes(f.Own), figures.Bytes(f.Heap), f.Allocations, f.Goroutines)
}

// Text formats the verdict, which is the last line.
func (r *SoakResult) Text() string {
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
	return fmt.Sprintf("verdict: %s; first %.2f, last %.2f tokens/s (%+.1f%%); own memory %s, heap %s, goroutines %+d; %.1f allocations a token; %s\n",
		word, v.First, v.Last, v.Percent(), own, signedBytes(v.Heap), v.Goroutines, v.Allocations, figures.Counted(r.Texts, "text"))
}

// signedBytes formats a change in bytes.
func signedBytes(n int64) string {
	if n < 0 {
		return "-" + figures.Bytes(-n)
	}
	return "+" + figures.Bytes(n)
}
