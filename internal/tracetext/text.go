package tracetext

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/moeflux/moeflux-actor/tracing/analyse"
)

// Style is how text looks.
type Style struct {
	Width  int  // columns; 0 means 100
	Colour bool // for a terminal
}

func (s Style) width() int {
	if s.Width <= 0 {
		return 100
	}
	return max(s.Width, 40)
}

// Duration writes nanoseconds with three digits.
func Duration(ns int64) string {
	x := float64(ns)
	switch {
	case ns < 0:
		return "-" + Duration(-ns)
	case x < 999.5e3:
		return digits(x/1e3) + " µs"
	case x < 999.5e6:
		return digits(x/1e6) + " ms"
	}
	return digits(x/1e9) + " s"
}

// digits writes a number with three digits, or all that it has before the point.
func digits(x float64) string {
	switch {
	case x < 9.995:
		return fmt.Sprintf("%.2f", x)
	case x < 99.95:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

// bytes writes a number of bytes with three digits.
func bytes(n int64) string {
	x := float64(n)
	for _, unit := range []string{"B", "KiB", "MiB", "GiB"} {
		if x < 999.5 {
			if unit == "B" {
				return fmt.Sprintf("%d B", n)
			}
			return digits(x) + " " + unit
		}
		x /= 1024
	}
	return digits(x) + " TiB"
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// counted writes a number and a noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// wrapped breaks words into lines of a width. All but the first begin with an indent, which does
// not count. A number and its unit stay together.
func wrapped(text string, width, indent int) string {
	var b strings.Builder
	at := 0
	for i, w := range words(text) {
		n := utf8.RuneCountInString(w)
		switch {
		case i == 0:
		case at+1+n > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = 0
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(w)
		at += n
	}
	return b.String()
}

func words(text string) (all []string) {
	for _, w := range strings.Fields(text) {
		switch strings.TrimRight(w, ".,:") {
		case "µs", "ms", "s", "%":
			if n := len(all) - 1; n >= 0 {
				all[n] += " " + w
				continue
			}
		}
		all = append(all, w)
	}
	return all
}

// missing says which records are not there.
func missing(b *strings.Builder, m *analyse.Missing) {
	n := uint64(0)
	for _, k := range m.Forgotten {
		n += k
	}
	if n > 0 {
		fmt.Fprintf(b, "%d records are missing: the engine's memory for them was full. What follows is of the rest.\n", n)
	}
	if m.Cut {
		b.WriteString("The file ends amid its records: the program that wrote it was stopped, or the disk was full.\n")
	}
}
