package tracetext

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/tracing/analyse"
)

// Why says where the time of a token went, or of all, and what to change.
func Why(w *analyse.Why, s Style) string {
	var b strings.Builder
	missing(&b, &w.Missing)
	if len(w.Tokens) == 1 {
		t := &w.Tokens[0]
		fmt.Fprintf(&b, "Token %d (%s) took %s:\n", t.Token, who(t), Duration(t.WallNS))
	} else {
		fmt.Fprintf(&b, "%s took %s together, in %s:\n", counted(len(w.Tokens), "token"), Duration(w.WallNS), Duration(w.Device.ToNS-w.Device.FromNS))
	}
	causes(&b, w.Causes, s)
	advice(&b, w.Causes, w.Settings, s)
	if len(w.Devices) == 0 {
		idle(&b, "The device", &w.Device, s)
	}
	for i := range w.Devices {
		idle(&b, fmt.Sprintf("Device %d of %d", i+1, len(w.Devices)), &w.Devices[i], s)
	}
	idle(&b, "The disk", &w.Disk, s)
	experts(&b, &w.Experts, s)
	if len(w.Tokens) > 1 {
		slow(&b, w.Tokens, s)
	}
	return b.String()
}

// who names a token.
func who(t *analyse.Token) string {
	text := fmt.Sprintf("sequence %d, position %d", t.Seq, t.Pos)
	if t.Rows > 1 {
		text = fmt.Sprintf("sequence %d, %d positions from %d, %s", t.Seq, t.Rows, t.Pos, counted(t.Steps, "step"))
	}
	if t.Outcome != "answered" {
		text += ", " + t.Outcome
	}
	return text
}

// causes lists causes with their shares.
func causes(b *strings.Builder, all []analyse.Share, s Style) {
	for _, c := range all {
		text := c.Cause.Words()
		if parts := parts(c.Parts, c.NS); parts != "" {
			text += ": " + parts
		}
		fmt.Fprintf(b, "  %7s  %8s  %-13s  %s\n", percent(c.Share), Duration(c.NS), c.Cause, wrapped(text, max(30, s.width()-38), 38))
	}
}

// parts lists what a cause consists of, if that says more than the cause.
func parts(all []analyse.Part, of int64) string {
	var list []string
	for i, p := range all {
		if i == 3 {
			list = append(list, "others")
			break
		}
		if p.NS*20 < of && i > 0 {
			break
		}
		if p.NS == of {
			return p.Where
		}
		list = append(list, p.Where+" "+Duration(p.NS))
	}
	return strings.Join(list, ", ")
}

// adviceFrom is the least share of a cause for which something is advised.
const adviceFrom = 0.1

// advice says what to change about the largest causes, at most three.
func advice(b *strings.Builder, all []analyse.Share, settings map[string]string, s Style) {
	said := 0
	for _, c := range all {
		if c.Advice == "" || c.Share < adviceFrom || said == 3 {
			continue
		}
		if said++; said == 1 {
			b.WriteString("What to change:\n")
		}
		fmt.Fprintf(b, "  %-13s  %s\n", c.Cause, wrapped(c.Advice+now(c.Advice, settings), s.width()-17, 17))
	}
}

var flag = regexp.MustCompile(`--([a-z-]+)`)

// now says how the flags are set that an advice names.
func now(advice string, settings map[string]string) string {
	var set []string
	for _, m := range flag.FindAllStringSubmatch(advice, -1) {
		if v := settings[m[1]]; v != "" && !slices.Contains(set, m[1]+" "+v) {
			set = append(set, m[1]+" "+v)
		}
	}
	if len(set) == 0 {
		return ""
	}
	return " (now: " + strings.Join(set, ", ") + ")"
}

// idle says how much of the time something was idle, and why.
func idle(b *strings.Builder, what string, i *analyse.Busy, s Style) {
	all := i.ToNS - i.FromNS
	if all <= 0 {
		return
	}
	text := fmt.Sprintf("%s worked for %s of the time and was idle for %s", what, percent(float64(i.BusyNS)/float64(all)), percent(float64(i.IdleNS)/float64(all)))
	var why []string
	for k, c := range i.Idle {
		if k == 4 || c.NS*100 < all {
			break
		}
		why = append(why, fmt.Sprintf("%s %s", c.Cause, percent(float64(c.NS)/float64(all))))
	}
	if len(why) > 0 {
		text += ", for: " + strings.Join(why, ", ")
	}
	b.WriteString(wrapped(text+".", s.width()-2, 2) + "\n")
}

// experts says what was found of the experts.
func experts(b *strings.Builder, e *analyse.Experts, s Style) {
	if e.Used == 0 {
		return
	}
	away := ""
	if e.Away > 0 {
		away = fmt.Sprintf("%d were computed by expert hosts, ", e.Away)
	}
	if e.Far > 0 {
		away += fmt.Sprintf("%d were in the host's memory, where the device read them, ", e.Far)
	}
	text := fmt.Sprintf("Of %s, %d were in memory, %d were late (being read on a guess), %d were being read for another step, %s%d were missing", counted(e.Used, "use")+" of experts", e.Resident, e.Late, e.Shared, away, e.Missing)
	var why []string
	for _, c := range []struct {
		n    int
		text string
	}{
		{e.Unguessed, "nobody had guessed"}, {e.Declined, "were guessed, but not worth a read or too late"}, {e.Dropped, "were guessed, but no slot was spare"},
		{e.Skipped, "were guessed while guesses for the layer were paused"}, {e.Gone, "had left again before they were used"},
	} {
		if c.n > 0 {
			why = append(why, fmt.Sprintf("%d %s", c.n, c.text))
		}
	}
	if len(why) > 0 {
		text += ": " + strings.Join(why, ", ")
	}
	b.WriteString(wrapped(text+".", s.width()-2, 2) + "\n")
}

// slow lists the slowest tokens.
func slow(b *strings.Builder, tokens []analyse.Token, s Style) {
	all := slices.Clone(tokens)
	slices.SortStableFunc(all, func(x, y analyse.Token) int { return cmp.Compare(y.WallNS, x.WallNS) })
	b.WriteString("The slowest:\n")
	tokenTable(b, all[:min(5, len(all))], s)
}

// tokenTable lists tokens with their largest causes.
func tokenTable(b *strings.Builder, tokens []analyse.Token, s Style) {
	t := newTable([]int{5}, "token", "sequence", "position", "rows", "wall", "causes")
	for i := range tokens {
		k := &tokens[i]
		var why []string
		for n, c := range k.Causes {
			if n == 3 {
				break
			}
			why = append(why, fmt.Sprintf("%s %.0f %%", c.Cause, 100*c.Share))
		}
		t.add(fmt.Sprint(k.Token), fmt.Sprint(k.Seq), fmt.Sprint(k.Pos), fmt.Sprint(k.Rows), Duration(k.WallNS), strings.Join(why, ", "))
	}
	t.write(b, s.width())
}
