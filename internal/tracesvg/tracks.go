package tracesvg

import (
	"fmt"
	"strings"

	"github.com/moeflux/moeflux-actor/tracing/analyse"
)

// Tracks draws the time of a token as viewers of timelines show it: sequences, stages, the device
// and readers, with arrows from the message that asked for an expert to its read and to the wave
// that used it, and below them the counters that changed.
func Tracks(t *analyse.Tracks) string {
	c := &canvas{from: t.FromNS, to: t.ToNS}
	c.text("text title", 16, 24, "start", fmt.Sprintf("The time of token %d, %s", t.Token, duration(t.ToNS-t.FromNS)))
	c.y = 38
	c.axis()
	top := c.y
	middles := make([]float64, len(t.Tracks)) // 0: the track is not shown
	group := ""
	for i := range t.Tracks {
		k := &t.Tracks[i]
		if len(k.Slices) == 0 || k.Group == "steps" {
			continue
		}
		if k.Group != group {
			group, c.y = k.Group, c.y+6
		}
		high := 16.0
		if k.Group == "stages" {
			high = 10
		}
		c.label(c.y+high/2, trackName(k))
		for _, s := range k.Slices {
			c.slice(k.Group, s, high)
		}
		middles[i], c.y = c.y+high/2, c.y+high+3
	}
	for i := range t.Arrows {
		c.arrow(t.Arrows[i].Points, middles)
	}
	c.y += 6
	for i := range t.Counters {
		c.counter(&t.Counters[i])
	}
	behind := c.grid(top, c.y-4)
	c.y += 4
	c.legend([]key{{"device", "experts, by the device"}, {"other-work", "its other work"}, {"disk", "reads"}, {"guesses", "reads of guesses"}, {"stage", "messages in a stage"}})
	c.y += 4
	return c.document(behind)
}

// trackName returns a name that fits beside the track.
func trackName(k *analyse.Track) string {
	before, after, ok := strings.Cut(k.Name, ": ")
	switch {
	case ok && k.Group == "device":
		return "device, " + strings.TrimSuffix(before, " queue")
	case ok:
		return after
	}
	return k.Name
}

// slice draws a box with its name, if there is room for that.
func (c *canvas) slice(group string, s analyse.Slice, high float64) {
	class, name := classOf(s), shortName(s)
	c.rect(class, s.FromNS, s.ToNS, c.y, high, fmt.Sprintf("%s, %s", s.Name, duration(s.ToNS-s.FromNS)))
	from, to := c.x(s.FromNS), c.x(s.ToNS)
	if to-from > 6+charPx*float64(len(name)) && group != "stages" {
		inside := "inside"
		if s.Kind == "token" || class == "other-work" {
			inside = "text"
		}
		c.text(inside, (from+to)/2, c.y+high/2+nameTop, "middle", name)
	}
}

func classOf(s analyse.Slice) string {
	switch {
	case s.Kind == "cause":
		return s.Name
	case s.Kind == "message":
		return "stage"
	case s.Kind == "read":
		return "disk"
	case s.Kind == "guess":
		return "guesses"
	case s.Kind == "submission" && strings.HasPrefix(s.Name, "experts"):
		return "device"
	case s.Kind == "submission":
		return "other-work"
	}
	return "token"
}

// shortName returns a name that fits into a small box: layer and expert of a read.
func shortName(s analyse.Slice) string {
	var layer, expert int
	if n, _ := fmt.Sscanf(s.Name, "layer %d expert %d", &layer, &expert); n == 2 {
		return fmt.Sprintf("%d·%d", layer, expert)
	}
	return strings.Replace(s.Name, " of layer ", " ", 1)
}

// arrow draws the way of an expert between tracks that are shown.
func (c *canvas) arrow(points []analyse.Point, middles []float64) {
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		y0, y1 := middles[a.Track], middles[b.Track]
		if y0 == 0 || y1 == 0 || a.AtNS < c.from || b.AtNS > c.to {
			continue
		}
		x0, x1 := c.x(a.AtNS), c.x(b.AtNS)
		bend := max(8, (x1-x0)/2)
		fmt.Fprintf(&c.b, `<path class="faint" d="M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f"/><circle class="faint" cx="%.1f" cy="%.1f" r="1.8"/>`+"\n", x0, y0, x0+bend, y0, x1-bend, y1, x1, y1, x1, y1)
	}
}

// counter draws a number over time, unless it stays as it is.
func (c *canvas) counter(k *analyse.Counter) {
	const high = 26
	most, changes := 0.0, false
	for i, l := range k.Levels {
		most = max(most, l.Value)
		changes = changes || i > 0 && l.Value != k.Levels[i-1].Value
	}
	if !changes || strings.HasSuffix(k.Name, "empty") {
		return
	}
	base := c.y + high
	var d strings.Builder
	fmt.Fprintf(&d, "M%.1f %.1f", c.x(k.Levels[0].AtNS), base)
	y := base
	for _, l := range k.Levels {
		y = base - high*l.Value/most
		fmt.Fprintf(&d, "H%.1fV%.1f", c.x(l.AtNS), y)
	}
	fmt.Fprintf(&d, "H%.1fV%.1fZ", c.x(c.to), base)
	c.label(c.y+high/2-6, k.Name)
	c.text("faint", left-10, c.y+high/2+6+nameTop, "end", "up to "+number(most))
	fmt.Fprintf(&c.b, `<path class="mailbox" d="%s"/>`+"\n", d.String())
	c.y += high + 6
}

func number(n float64) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%.0f MiB", n/(1<<20))
	}
	return fmt.Sprint(n)
}
