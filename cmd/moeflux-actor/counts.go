package main

import (
	"fmt"
	"strings"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/figures"
)

// readsText describes the reads; "" if there were none.
func readsText(c *figures.ReadCounts) string {
	var parts []string
	if c.Reads > 0 {
		s := counted(c.Reads, "read")
		if more := nonzero(figurePart{c.ReadsSpeculative, "ahead"}, figurePart{c.ReadsHurried, "hurried"}); more != "" {
			s += " (" + more + ")"
		}
		parts = append(parts, s)
	}
	if troubles := nonzero(figurePart{c.ReadsRetried, "retried"}, figurePart{c.ReadsFailed, "failed"}, figurePart{c.ReadsOverdue, "overdue"}); troubles != "" {
		parts = append(parts, troubles)
	}
	if c.Uploaded > 0 {
		parts = append(parts, fmt.Sprintf("%s uploaded, %s from the host's memory", formatBytes(c.Uploaded), counted(c.FromHost, "expert")))
	}
	return strings.Join(parts, "; ")
}

// aheadText describes what became of reading ahead; "" if nothing was predicted.
func aheadText(c *figures.Counts, predictor string, layersAhead int) string {
	if predictor == "" || predictor == string(actors.PrefetchOff) {
		return ""
	}
	var parts []string
	if s := nonzero(figurePart{c.PrefetchIssued, "begun"}, figurePart{c.UsedAhead(), "used"}, figurePart{c.PrefetchLate, "of them late"},
		figurePart{c.PrefetchWasted, "unused"}, figurePart{c.PrefetchHeld, "held"}); s != "" {
		parts = append(parts, s)
	}
	if s := nonzero(figurePart{c.PrefetchDropped, "dropped"}, figurePart{c.PrefetchDeclined, "declined"}, figurePart{c.PrefetchSkipped, "skipped"}); s != "" {
		parts = append(parts, "not read: "+s)
	}
	if c.PrefetchPauses > 0 || c.PrefetchPaused > 0 {
		var pauses []string
		if c.PrefetchPauses > 0 {
			pauses = append(pauses, counted(c.PrefetchPauses, "pause"))
		}
		if c.PrefetchPaused > 0 {
			pauses = append(pauses, counted(c.PrefetchPaused, "layer")+" paused now")
		}
		parts = append(parts, strings.Join(pauses, ", "))
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("read ahead (%s, %s): %s", predictor, counted(int64(layersAhead), "layer"), strings.Join(parts, "; "))
}

// perToken describes where the time of a token went.
func perToken(t *figures.Times, tokens int) string {
	ms := func(seconds float64) string { return fmt.Sprintf("%.1f ms", 1e3*seconds/float64(max(1, tokens))) }
	s := "a token computes for " + ms(t.Compute)
	if t.Read > 0 {
		s += fmt.Sprintf(", waits %s for the disk, reads for %s (%.0f%% of it while computing)", ms(t.DiskWait), ms(t.Read), 100*t.Overlap/t.Read)
	}
	return s
}

// counted writes a number and its noun: 1 read, 2 reads.
func counted[N int | int64](n N, noun string) string { return figures.Counted(n, noun) }

// nonzero lists the parts whose number is not 0.
func nonzero(parts ...figurePart) string {
	var list []string
	for _, p := range parts {
		if p.n != 0 {
			list = append(list, fmt.Sprintf("%d %s", p.n, p.word))
		}
	}
	return strings.Join(list, ", ")
}

type figurePart struct {
	n    int64
	word string
}
