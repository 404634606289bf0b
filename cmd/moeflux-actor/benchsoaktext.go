package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/moeflux/moeflux-actor/internal/bench"
)

const (
	soakColumns     = "    time    tokens/s    prompt     resident          own         heap  allocs/token  goroutines"
	soakColumnsLine = "%8s%12.2f%10d%13s%13s%13s%14.1f%12d"
)

// soakWatch prints a soak's lines as they come: to stdout, or to stderr if stdout is for JSON.
type soakWatch struct {
	inv  *invocation
	bar  *progress
	json bool
}

// Begin prints the setting and the column heads.
func (w *soakWatch) Begin(r *bench.SoakResult) error {
	var b strings.Builder
	if !w.json {
		settingText(&b, &r.Setting)
		figureLine(&b, "soak", "%.0f s, %s of %d %s prompt tokens and %d decoded; %s, %s decoded before",
			r.Asked, counted(int64(r.Sequences), "text"), r.PromptTokens, r.Prompts, r.GenTokens, r.State, counted(int64(r.WarmupTokens), "token"))
		b.WriteByte('\n')
	}
	b.WriteString(soakColumns)
	return w.line(b.String())
}

// Window prints a window.
func (w *soakWatch) Window(end time.Duration, f *bench.SoakWindow) error {
	return w.line(windowText(f, end))
}

func (w *soakWatch) line(text string) error {
	w.bar.clear()
	if w.json {
		w.inv.say("%s", text)
		return nil
	}
	_, err := w.inv.stdout.Write([]byte(text + "\n"))
	return err
}

// windowText formats a window that ends at the given time.
func windowText(f *bench.SoakWindow, at time.Duration) string {
	bytes := func(n *int64) string {
		if n == nil {
			return "-"
		}
		return formatBytes(*n)
	}
	return fmt.Sprintf(soakColumnsLine, at.Round(100*time.Millisecond), f.TokensPerSecond, f.PromptTokens, bytes(f.Resident), bytes(f.Own), formatBytes(f.Heap), f.Allocations, f.Goroutines)
}

// verdictText formats the last line.
func verdictText(r *bench.SoakResult) string {
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
		word, v.First, v.Last, v.Percent(), own, signedBytes(v.Heap), v.Goroutines, v.Allocations, counted(r.Texts, "text"))
}

// signedBytes formats a change in bytes.
func signedBytes(n int64) string {
	if n < 0 {
		return "-" + formatBytes(-n)
	}
	return "+" + formatBytes(n)
}
