package tracesvg

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// The picture's columns, in pixels.
const (
	wide    = 1000
	left    = 150 // where time begins
	right   = 16
	charPx  = 6.2 // of a small letter, about
	nameTop = 3.5 // from a line's middle down to the foot of its text
)

// shades are the colours of a class, on white and on black.
var shades = []struct{ class, light, dark string }{
	{"page", "#ffffff", "#0d1117"}, {"text", "#1f2328", "#e6edf3"}, {"faint", "#59636e", "#9198a1"}, {"grid", "#d8dee4", "#2a313c"}, {"inside", "#ffffff", "#0d1117"}, {"band", "#f6f8fa", "#151b23"},
	{"device", "#1a7f37", "#3fb950"}, {"other-work", "#82c996", "#1f6f35"}, {"disk", "#cf222e", "#f85149"}, {"read_queue", "#8250df", "#ab7df8"}, {"guesses", "#9a6700", "#d29922"},
	{"stage", "#0969da", "#4493f8"}, {"mailbox", "#218bff", "#1f6feb"}, {"device_start", "#1b7c83", "#39c5cf"}, {"room", "#bc4c00", "#f0883e"}, {"credit", "#bf3989", "#f778ba"},
	{"upload", "#7d4e00", "#bb8009"}, {"other_request", "#6e7781", "#8b949e"}, {"lingering", "#57606a", "#b1bac4"}, {"memory", "#a40e26", "#ff7b72"}, {"caller", "#8c959f", "#6e7681"}, {"unexplained", "#24292f", "#f0f6fc"},
	{"network", "#0a7d5a", "#2fbf8f"}, {"host_wait", "#7a6a00", "#c4b030"}, {"host_disk", "#b3412a", "#e8846d"}, {"host_compute", "#1f5f8b", "#5aa7d6"},
	{"token", "#d0d7de", "#3d444d"},
}

// canvas is a picture that grows downwards.
type canvas struct {
	b        strings.Builder
	y        float64 // where the next line begins
	from, to int64   // the time from left to right, in nanoseconds
}

// x returns where a time lies.
func (c *canvas) x(ns int64) float64 {
	share := float64(ns-c.from) / float64(max(1, c.to-c.from))
	return left + (wide-left-right)*min(1, max(0, share))
}

// rect draws a box from one time to another, which says what it is when it is pointed at.
func (c *canvas) rect(class string, from, to int64, y, high float64, says string) {
	x := c.x(from)
	fmt.Fprintf(&c.b, `<rect class="%s" x="%.2f" y="%.1f" width="%.2f" height="%.1f">`, class, x, y, max(0.6, c.x(to)-x), high)
	if says != "" {
		fmt.Fprintf(&c.b, "<title>%s</title>", html.EscapeString(says))
	}
	c.b.WriteString("</rect>\n")
}

// text writes at a place.
func (c *canvas) text(class string, x, y float64, anchor, text string) {
	fmt.Fprintf(&c.b, `<text class="%s" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", class, x, y, anchor, html.EscapeString(text))
}

// label names a line whose middle is at y.
func (c *canvas) label(y float64, text string) { c.text("text", left-10, y+nameTop, "end", text) }

// axis draws the time above what is below, down to a height that is not known yet: it returns where
// its lines are to begin, for grid.
func (c *canvas) axis() {
	for _, t := range c.ticks() {
		c.text("faint", c.x(c.from+t), c.y+10, "middle", duration(t))
	}
	c.y += 16
}

// grid draws the lines of the axis between two heights.
func (c *canvas) grid(top, bottom float64) string {
	var b strings.Builder
	for _, t := range c.ticks() {
		x := c.x(c.from + t)
		fmt.Fprintf(&b, `<path class="grid" d="M%.1f %.1fV%.1f"/>`+"\n", x, top, bottom)
	}
	return b.String()
}

// ticks returns round times from the beginning on.
func (c *canvas) ticks() (all []int64) {
	span := float64(max(1, c.to-c.from))
	step := math.Pow(10, math.Floor(math.Log10(span/6)))
	for _, by := range []float64{1, 2, 5, 10} {
		if span/(step*by) <= 9 {
			step *= by
			break
		}
	}
	for t := 0.0; t <= span; t += max(1, step) {
		all = append(all, int64(t))
	}
	return all
}

// duration writes a round time.
func duration(ns int64) string {
	switch {
	case ns >= 1e9:
		return fmt.Sprintf("%.3g s", float64(ns)/1e9)
	case ns >= 1e6 || ns == 0:
		return fmt.Sprintf("%.4g ms", float64(ns)/1e6)
	}
	return fmt.Sprintf("%.4g µs", float64(ns)/1e3)
}

// key is a line of a legend.
type key struct{ class, text string }

// legend explains classes, from left to right and on as many lines as they need.
func (c *canvas) legend(keys []key) {
	x := float64(left)
	for _, k := range keys {
		need := 24 + charPx*float64(len([]rune(k.text)))
		if x+need > wide-right && x > left {
			x, c.y = left, c.y+18
		}
		fmt.Fprintf(&c.b, `<rect class="%s" x="%.1f" y="%.1f" width="12" height="10"/>`+"\n", k.class, x, c.y+3)
		c.text("text", x+17, c.y+12, "start", k.text)
		x += need + 12
	}
	c.y += 22
}

// document returns the picture. Behind is drawn below all else.
func (c *canvas) document(behind string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" width="%d" height="%.0f" font-family="-apple-system, Segoe UI, Helvetica, Arial, sans-serif" font-size="11.5">`+"\n<style>\n", wide, c.y, wide, c.y)
	rules := func(dark bool) {
		for _, s := range shades {
			colour := s.light
			if dark {
				colour = s.dark
			}
			fmt.Fprintf(&b, ".%s{fill:%s}", s.class, colour)
			if s.class == "grid" || s.class == "faint" {
				fmt.Fprintf(&b, "path.%s{fill:none;stroke:%s}", s.class, colour)
			}
		}
	}
	rules(false)
	b.WriteString("\n.title{font-size:15px;font-weight:600}.inside{font-size:10px}path.faint{stroke-width:.8;opacity:.75}\n@media(prefers-color-scheme:dark){")
	rules(true)
	b.WriteString("}\n</style>\n")
	fmt.Fprintf(&b, `<rect class="page" width="%d" height="%.0f"/>`+"\n", wide, c.y)
	b.WriteString(behind)
	b.WriteString(c.b.String())
	b.WriteString("</svg>\n")
	return b.String()
}
