package tracetext

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/tracing/analyse"
)

// Show writes the tables of a recording and a waterfall.
func Show(r *analyse.Show, s Style) string {
	var b strings.Builder
	missing(&b, &r.Missing)
	fmt.Fprintf(&b, "%s, %s and %s in %s", r.Model, counted(r.Tokens, "token"), counted(r.Steps, "step"), Duration(r.ToNS-r.FromNS))
	if r.MedianNS > 0 {
		fmt.Fprintf(&b, "; half of the tokens that were decoded took at most %s", Duration(r.MedianNS))
	}
	b.WriteString("\n")
	if len(r.Slowest) > 0 {
		b.WriteString("\nThe slowest tokens (trace why --token N says more):\n")
		tokenTable(&b, r.Slowest, s)
	}
	if len(r.Sequences) > 1 {
		b.WriteString("\nSequences:\n")
		sequences(&b, r.Sequences, s)
	}
	b.WriteString("\nLayers, by the time for which tokens waited for them:\n")
	layers(&b, r.Layers, s)
	layerExperts(&b, r.Layers, s)
	b.WriteString("\nStages:\n")
	stages(&b, r, s)
	if r.Waterfall != nil && len(r.Waterfall.Rows) > 0 {
		b.WriteString("\n")
		waterfall(&b, r.Waterfall, s)
	}
	return b.String()
}

func sequences(b *strings.Builder, all []analyse.Sequence, s Style) {
	t := newTable([]int{7}, "sequence", "tokens", "rows", "wall", "device", "read", "others waited", "causes")
	for i := range all {
		q := &all[i]
		var why []string
		for n, c := range q.Causes {
			if n == 2 {
				break
			}
			why = append(why, fmt.Sprintf("%s %.0f %%", c.Cause, 100*c.Share))
		}
		t.add(fmt.Sprint(q.Seq), fmt.Sprint(q.Tokens), fmt.Sprint(q.Rows), Duration(q.WallNS), Duration(q.DeviceNS), bytes(q.ReadBytes), Duration(q.ForNS), strings.Join(why, ", "))
	}
	t.write(b, s.width())
}

func layers(b *strings.Builder, all []analyse.Layer, s Style) {
	t := newTable([]int{1}, "layer", "kind", "cost", "device", "disk", "hosts", "room", "line", "other")
	for i := range all {
		l := &all[i]
		var by [analyse.NumCauses]int64
		for _, c := range l.Causes {
			by[c.Cause] = c.NS
		}
		disk := by[analyse.Disk] + by[analyse.ReadQueue] + by[analyse.Guesses] + by[analyse.Upload]
		hosts := by[analyse.Network] + by[analyse.HostWait] + by[analyse.HostDisk] + by[analyse.HostCompute]
		line := by[analyse.Stage] + by[analyse.Mailbox] + by[analyse.DeviceStart]
		room := by[analyse.Room] + by[analyse.Credit]
		rest := l.CostNS - by[analyse.Device] - disk - hosts - line - room
		t.add(fmt.Sprint(l.Layer), l.Kind, Duration(l.CostNS), Duration(by[analyse.Device]), short(disk), short(hosts), short(room), short(line), short(rest))
	}
	t.write(b, s.width())
}

// layerExperts writes what became of the experts of layers, in the same order. It is a table of its
// own, so that both fit into a terminal: whether guesses were wasted must not depend on its width.
func layerExperts(b *strings.Builder, all []analyse.Layer, s Style) {
	t := newTable(nil, "layer", "hits", "late", "missing", "read", "guesses", "wasted")
	for i := range all {
		if l := &all[i]; l.Used+l.Issued > 0 {
			hits := fmt.Sprintf("%.0f %%", 100*float64(l.Resident)/float64(max(l.Used, 1)))
			t.add(fmt.Sprint(l.Layer), hits, fmt.Sprint(l.Late+l.Shared), fmt.Sprint(l.Missing), readBytes(l.ReadBytes), fmt.Sprint(l.Issued), fmt.Sprint(l.Wasted))
		}
	}
	if len(t.rows) > 0 {
		b.WriteString("\nTheir experts:\n")
		t.write(b, s.width())
	}
}

// short writes a duration; nothing for none.
func short(ns int64) string {
	if ns == 0 {
		return ""
	}
	return Duration(ns)
}

func readBytes(n int64) string {
	if n == 0 {
		return ""
	}
	return bytes(n)
}

func stages(b *strings.Builder, r *analyse.Show, s Style) {
	t := newTable([]int{0, 4}, "stage", "messages", "busy", "in mailbox", "mostly")
	for i := range r.Stages {
		g := &r.Stages[i]
		mostly := ""
		if k := slices.IndexFunc(r.Messages, func(m analyse.Message) bool { return m.Stage == g.Stage }); k >= 0 {
			m := &r.Messages[k]
			mostly = fmt.Sprintf("%s: %s in %s, at most %s", m.Message, counted(m.Count, "message"), Duration(m.BusyNS), Duration(m.MostNS))
		}
		t.add(g.Stage, fmt.Sprint(g.Messages), Duration(g.BusyNS), Duration(g.WaitNS), mostly)
	}
	t.write(b, s.width())
}
