package tune

import (
	"fmt"
	"strings"

	"github.com/moeflux/moeflux-actor/internal/figures"
)

// Text formats the result for people.
func (r *Result) Text() string {
	var b strings.Builder
	line := func(name, format string, args ...any) { figures.Line(&b, name, format, args...) }
	line("model", "%s", r.Model)
	line("time", "%.0f s of %.0f s", r.Seconds.Took, r.Seconds.Given)
	if r.Replay.Why != "" {
		line("replay", "none: %s", r.Replay.Why)
	} else {
		line("replay", "%s predicted from a recorded run; that of the defaults is %.1f%% off", figures.Counted(r.Replay.Settings, "setting"), 100*r.Replay.Error)
	}
	if t := r.Texts; r.Rounds > 0 || r.Tested != nil {
		line("measured", "%s prompts of %s, %s decoded after each; warm, %s decoded before; %s", t.Prompts, figures.Counted(t.PromptTokens, "token"),
			figures.Counted(t.GenTokens, "token"), figures.Counted(t.WarmupTokens, "token"), figures.Counted(r.Rounds, "round"))
	}
	b.WriteByte('\n')
	r.table(&b)
	fmt.Fprintf(&b, "%s\n", r.conclusion())
	return b.String()
}

// table lists the candidates.
func (r *Result) table(b *strings.Builder) {
	if len(r.Candidates) == 0 {
		return
	}
	fmt.Fprintf(b, "%-52s%12s%6s%10s\n", "settings", "prediction", "runs", "seconds")
	row := func(name string, c *Candidate) {
		predicted, seconds := "", ""
		if c.Predicted != nil {
			predicted = fmt.Sprintf("%+.1f%%", -100**c.Predicted)
		}
		if len(c.Seconds) > 0 {
			seconds = fmt.Sprintf("%.3f", figures.SpreadOf(c.Seconds).Median)
		}
		fmt.Fprintf(b, "%-52s%12s%6d%10s\n", name, predicted, len(c.Seconds), seconds)
	}
	row("the defaults", r.Defaults)
	for _, c := range r.Candidates {
		row(c.String(), c)
	}
	b.WriteByte('\n')
}

// conclusion says what was found, and what became of it.
func (r *Result) conclusion() string {
	for _, c := range r.Candidates {
		if c.OtherTokens {
			return fmt.Sprintf("%s made other tokens than the defaults, which no setting may: that is a bug of the engine, or of this machine's memory or disk. %s", c, r.stays())
		}
	}
	v := r.Verdict
	switch {
	case r.Interrupted:
		return r.interrupted()
	case len(r.Candidates) == 0:
		return "no other setting changes how this model runs here: the defaults stay." + r.removed()
	case v == nil:
		return "no candidate was faster than the defaults in any run: the defaults stay." + r.removed()
	}
	tested := fmt.Sprintf("the median of %s with the same tokens (%s, p %s)", figures.Counted(len(v.Pairs), "pair"), v.Test, chance(v.P))
	if v.Significant {
		text := fmt.Sprintf("faster: %s takes %.1f%% less time than the defaults, %s\n\n    %s\n", r.Tested, 100*v.Gain, tested, r.Command)
		if r.Kept.Saved {
			text += fmt.Sprintf("\nrun, serve and the library take this by default for this model on this machine (--tuned off: not); it is kept in %s", r.Kept.Path)
		}
		return text
	}
	change := fmt.Sprintf("%.1f%% less", 100*v.Gain)
	if v.Gain < 0 {
		change = fmt.Sprintf("%.1f%% more", -100*v.Gain)
	}
	return fmt.Sprintf("no difference beyond the spread: the defaults stay. %s took %s time, %s.%s", r.Tested, change, tested, r.removed())
}

// chance writes a probability.
func chance(p float64) string {
	if p < 0.0005 {
		return "< 0.001"
	}
	return fmt.Sprintf("= %.3f", p)
}

// interrupted says what there is of an interrupted search.
func (r *Result) interrupted() string {
	best := r.Tested
	if best == nil {
		best = r.rank()
	}
	text := "interrupted before anything was measured. "
	switch {
	case best != nil:
		text = fmt.Sprintf("interrupted before it was certain: %s is the best so far. ", best)
	case r.Rounds > 0:
		text = "interrupted: nothing is faster than the defaults so far. "
	}
	return text + r.stays()
}

// stays says that nothing was changed.
func (r *Result) stays() string { return "Nothing is saved; what was kept before stays." }

// removed says what became of earlier settings.
func (r *Result) removed() string {
	if r.Kept.Removed {
		return " The settings that were kept before are removed."
	}
	return ""
}
