package figures

import (
	"fmt"
	"strings"

	"github.com/moeflux/moeflux-actor/actors"
)

// Text describes the reads; "" if there were none.
func (c *ReadCounts) Text() string {
	var parts []string
	if c.Reads > 0 {
		s := Counted(c.Reads, "read")
		if more := nonzero(part{c.ReadsSpeculative, "ahead"}, part{c.ReadsHurried, "hurried"}); more != "" {
			s += " (" + more + ")"
		}
		parts = append(parts, s)
	}
	if troubles := nonzero(part{c.ReadsRetried, "retried"}, part{c.ReadsFailed, "failed"}, part{c.ReadsOverdue, "overdue"}); troubles != "" {
		parts = append(parts, troubles)
	}
	if c.Uploaded > 0 {
		parts = append(parts, fmt.Sprintf("%s uploaded, %s from the host's memory", Bytes(c.Uploaded), Counted(c.FromHost, "expert")))
	}
	return strings.Join(parts, "; ")
}

// AheadText describes what became of reading ahead; "" if nothing was predicted.
func (c *Counts) AheadText(predictor string, layersAhead int) string {
	if predictor == "" || predictor == string(actors.PrefetchOff) {
		return ""
	}
	var parts []string
	if s := nonzero(part{c.PrefetchIssued, "begun"}, part{c.UsedAhead(), "used"}, part{c.PrefetchLate, "of them late"},
		part{c.PrefetchWasted, "unused"}, part{c.PrefetchHeld, "held"}); s != "" {
		parts = append(parts, s)
	}
	if s := nonzero(part{c.PrefetchDropped, "dropped"}, part{c.PrefetchDeclined, "declined"}, part{c.PrefetchSkipped, "skipped"}); s != "" {
		parts = append(parts, "not read: "+s)
	}
	if c.PrefetchPauses > 0 || c.PrefetchPaused > 0 {
		var pauses []string
		if c.PrefetchPauses > 0 {
			pauses = append(pauses, Counted(c.PrefetchPauses, "pause"))
		}
		if c.PrefetchPaused > 0 {
			pauses = append(pauses, Counted(c.PrefetchPaused, "layer")+" paused now")
		}
		parts = append(parts, strings.Join(pauses, ", "))
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("read ahead (%s, %s): %s", predictor, Counted(layersAhead, "layer"), strings.Join(parts, "; "))
}

// PerToken describes where the time of a token went.
func (t *Times) PerToken(tokens int) string {
	ms := func(seconds float64) string { return fmt.Sprintf("%.1f ms", 1e3*seconds/float64(max(1, tokens))) }
	s := "a token computes for " + ms(t.Compute)
	if t.Read > 0 {
		s += fmt.Sprintf(", waits %s for the disk, reads for %s (%.0f%% of it while computing)", ms(t.DiskWait), ms(t.Read), 100*t.Overlap/t.Read)
	}
	return s
}

// nonzero lists the parts whose number is not 0.
func nonzero(parts ...part) string {
	var list []string
	for _, p := range parts {
		if p.n != 0 {
			list = append(list, fmt.Sprintf("%d %s", p.n, p.word))
		}
	}
	return strings.Join(list, ", ")
}

type part struct {
	n    int64
	word string
}

// Line appends a named line to a result.
func Line(b *strings.Builder, name, format string, args ...any) {
	fmt.Fprintf(b, "%-14s%s\n", name, fmt.Sprintf(format, args...))
}
