package tracetext

import (
	"fmt"
	"strings"

	"github.com/moeflux/moeflux-actor/tracing/analyse"
)

// Diff writes what changed between two recordings.
func Diff(d *analyse.Diff, s Style) string {
	var b strings.Builder
	for _, r := range []struct {
		name string
		run  *analyse.Run
	}{{"A", &d.A}, {"B", &d.B}} {
		var m strings.Builder
		if missing(&m, &r.run.Missing); m.Len() > 0 {
			fmt.Fprintf(&b, "%s: %s", r.name, m.String())
		}
	}
	for _, c := range d.Settings {
		fmt.Fprintf(&b, "  %s: %s → %s\n", c.Name, orNone(c.A), orNone(c.B))
	}
	fmt.Fprintf(&b, "%s, in pairs: %s\n", counted(d.Tokens, "decoded token"), verdict(&d.Wall))
	changes(&b, "\nCauses:", "cause", d.Causes, s)
	changes(&b, "\nStages, while they handled messages:", "stage", d.Stages, s)
	changes(&b, "\nLayers, by the time for which tokens waited for them:", "layer", d.Layers, s)
	fmt.Fprintf(&b, "\nOf %s, %s were in memory; then %s of %d.\n", counted(d.ExpertsA.Used, "use")+" of experts", hits(&d.ExpertsA), hits(&d.ExpertsB), d.ExpertsB.Used)
	return b.String()
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}

// verdict says how the time of a token changed.
func verdict(c *analyse.Change) string {
	text := fmt.Sprintf("%s → %s in the middle", Duration(c.A.Median), Duration(c.B.Median))
	switch {
	case !c.Beyond:
		return text + fmt.Sprintf(", which is within the spread (p = %.2g)", c.P)
	case c.NS > 0:
		return text + fmt.Sprintf(", slower by %s (p = %.2g)", Duration(c.NS), c.P)
	}
	return text + fmt.Sprintf(", faster by %s (p = %.2g)", Duration(-c.NS), c.P)
}

func hits(e *analyse.Experts) string {
	return percent(float64(e.Resident) / float64(max(e.Used, 1)))
}

// most is how many rows of a table of changes are shown.
const most = 12

func changes(b *strings.Builder, title, what string, all []analyse.Change, s Style) {
	if len(all) == 0 {
		return
	}
	b.WriteString(title + "\n")
	t := newTable([]int{0}, what, "A", "half within", "B", "half within", "change", "clear", "p")
	for i := range all[:min(most, len(all))] {
		c := &all[i]
		note := ""
		if c.Beyond {
			note = "yes"
		}
		change := Duration(c.NS)
		if c.NS > 0 {
			change = "+" + change
		}
		t.add(c.Name, Duration(c.A.Median), between(&c.A), Duration(c.B.Median), between(&c.B), change, note, fmt.Sprintf("%.2g", c.P))
	}
	t.write(b, s.width())
	if n := len(all) - most; n > 0 {
		fmt.Fprintf(b, "  and %d more\n", n)
	}
}

func between(s *analyse.Spread) string { return Duration(s.Low) + " … " + Duration(s.High) }
