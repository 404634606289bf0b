package tracetext

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/moeflux/moeflux-actor/tracing/analyse"
)

// glyphs is how each kind of work is drawn: without colour, and the colour's number on a terminal.
var glyphs = [...]struct {
	glyph  rune
	colour int
	name   string
}{
	analyse.Computing:   {'█', 32, "the device computes"},
	analyse.Reading:     {'▒', 31, "reads that are waited for"},
	analyse.Guessing:    {'░', 33, "reads of guesses"},
	analyse.Queueing:    {'·', 35, "reads in line"},
	analyse.Handling:    {'+', 36, "stages"},
	analyse.NothingDone: {' ', 0, ""},
}

// waterfall draws a token: a line for each layer, from left to right in time.
func waterfall(b *strings.Builder, f *analyse.Waterfall, s Style) {
	name := 0
	for i := range f.Rows {
		name = max(name, utf8.RuneCountInString(label(&f.Rows[i])))
	}
	width := s.width() - name - 4
	fmt.Fprintf(b, "Token %d, %s from left to right:\n", f.Token, Duration(f.ToNS-f.FromNS))
	for i := range f.Rows {
		l := label(&f.Rows[i])
		line := bar(f, &f.Rows[i], width, s)
		fmt.Fprintf(b, "  %s%s  %s\n", l, strings.Repeat(" ", name-utf8.RuneCountInString(l)), line)
	}
	var legend []string
	for _, g := range glyphs[:analyse.NothingDone] {
		legend = append(legend, paint(string(g.glyph), g.colour, s)+" "+g.name)
	}
	b.WriteString("  " + strings.Join(legend, "  ") + "\n")
}

func label(l *analyse.Waterline) string {
	if l.Name == "head" {
		return l.Name
	}
	return fmt.Sprintf("%d %s", l.Layer, l.Name)
}

// bar draws a line: each cell is what was done in its part of the time, and the first kind of
// several.
func bar(f *analyse.Waterfall, l *analyse.Waterline, width int, s Style) string {
	cells := make([]analyse.Work, width)
	for i := range cells {
		cells[i] = analyse.NothingDone
	}
	all := max(1, f.ToNS-f.FromNS)
	for _, k := range l.Bars {
		from := int((k.FromNS - f.FromNS) * int64(width) / all)
		to := int(((k.ToNS-f.FromNS)*int64(width) + all - 1) / all)
		for c := from; c < min(max(to, from+1), width); c++ {
			cells[c] = min(cells[c], k.Kind)
		}
	}
	var b strings.Builder
	for from := 0; from < width; {
		to := from
		for to < width && cells[to] == cells[from] {
			to++
		}
		g := glyphs[cells[from]]
		b.WriteString(paint(strings.Repeat(string(g.glyph), to-from), g.colour, s))
		from = to
	}
	return strings.TrimRight(b.String(), " ")
}

func paint(text string, colour int, s Style) string {
	if !s.Colour || colour == 0 {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", colour, text)
}
