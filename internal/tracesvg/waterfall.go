package tracesvg

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/tracing/analyse"
)

// works is how each kind of work is drawn in the line of a layer: what the device does above, reads
// below, so that nothing hides what went on beside it.
var works = [...]struct {
	class, text string
	top, high   float64
}{
	analyse.Computing: {"device", "the device computes", 0, 8},
	analyse.Reading:   {"disk", "reads that are waited for", 9, 6},
	analyse.Guessing:  {"guesses", "reads of guesses", 9, 6},
	analyse.Queueing:  {"read_queue", "reads in line", 16, 3},
	analyse.Handling:  {"stage", "stages", 0, 8},
}

// Waterfall draws a token: what it spent its time on, and below that a line for each layer.
func Waterfall(w *analyse.Waterfall) string {
	const lineHigh = 23
	c := &canvas{from: w.FromNS, to: w.ToNS}
	c.text("text title", 16, 24, "start", fmt.Sprintf("Token %d, %s", w.Token, duration(w.ToNS-w.FromNS)))
	c.y = 38
	c.legend(pathKeys(w))
	c.axis()
	top := c.y
	c.label(c.y+9, "critical path")
	for i := range w.Path {
		p := &w.Path[i]
		c.rect(p.Cause.String(), p.FromNS, p.ToNS, c.y, 17, pieceText(p))
	}
	c.y += 28
	for i := range w.Rows {
		r := &w.Rows[i]
		c.label(c.y+9, lineName(r))
		for kind := range works {
			c.line(r, analyse.Work(kind))
		}
		c.y += lineHigh
	}
	behind := c.grid(top, c.y-4)
	c.y += 4
	var keys []key
	for _, k := range works {
		keys = append(keys, key{k.class, k.text})
	}
	c.legend(keys)
	c.y += 4
	return c.document(behind)
}

// line draws one kind of work of a layer.
func (c *canvas) line(r *analyse.Waterline, kind analyse.Work) {
	k := works[kind]
	var bars []analyse.Bar
	for _, b := range r.Bars {
		if b.Kind == kind {
			bars = append(bars, b)
		}
	}
	slices.SortFunc(bars, func(a, b analyse.Bar) int { return cmp.Compare(a.FromNS, b.FromNS) })
	for i := 0; i < len(bars); {
		to, n := bars[i].ToNS, 1
		for i+n < len(bars) && bars[i+n].FromNS <= to { // several at once are one box
			to = max(to, bars[i+n].ToNS)
			n++
		}
		says := fmt.Sprintf("%s: %s", k.text, duration(to-bars[i].FromNS))
		if n > 1 {
			says += fmt.Sprintf(", %d of them", n)
		}
		c.rect(k.class, bars[i].FromNS, to, c.y+k.top, k.high, says)
		i += n
	}
}

func lineName(r *analyse.Waterline) string {
	if r.Name == "head" {
		return r.Name
	}
	return fmt.Sprintf("%d %s", r.Layer, r.Name)
}

func pieceText(p *analyse.Piece) string {
	text := fmt.Sprintf("%s: %s", p.Cause, duration(p.NS()))
	if p.Where != "" {
		text += ", " + p.Where
	}
	if p.Layer >= 0 {
		text += fmt.Sprintf(", layer %d", p.Layer)
	}
	return text
}

// pathKeys returns the causes of a token that took a hundredth of its time or more, the largest
// first.
func pathKeys(w *analyse.Waterfall) (keys []key) {
	var ns [analyse.NumCauses]int64
	for i := range w.Path {
		ns[w.Path[i].Cause] += w.Path[i].NS()
	}
	var causes []analyse.Cause
	for i := range ns {
		if 100*ns[i] >= w.ToNS-w.FromNS && ns[i] > 0 {
			causes = append(causes, analyse.Cause(i))
		}
	}
	slices.SortStableFunc(causes, func(a, b analyse.Cause) int { return cmp.Compare(ns[b], ns[a]) })
	for _, k := range causes {
		keys = append(keys, key{k.String(), fmt.Sprintf("%s %.0f %%", k, 100*float64(ns[k])/float64(max(1, w.ToNS-w.FromNS)))})
	}
	return keys
}
