package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"math"
	"os"
	"slices"
	"strings"
)

// speedFigures are measured speeds of engines by the share of a model that memory holds, as in
// docs/speed.json.
type speedFigures struct {
	Title   string       `json:"title"`
	X       string       `json:"x"`
	Y       string       `json:"y"`
	Notes   []string     `json:"notes"`   // below the panels, a line each
	Engines []string     `json:"engines"` // in the order of the legend
	Panels  []speedPanel `json:"panels"`
}

// speedPanel is one model on one machine.
type speedPanel struct {
	Model   string       `json:"model"`
	Machine string       `json:"machine"`
	Points  []speedPoint `json:"points"`
}

// speedPoint is one measured speed in tokens a second.
type speedPoint struct {
	Engine string  `json:"engine"`
	Share  float64 `json:"share"` // of the model's size, in percent
	Speed  float64 `json:"speed"`
	Min    float64 `json:"min"` // 0 if unknown
	Max    float64 `json:"max"` // likewise
	Source string  `json:"source"`
}

// runPlot draws the figures of the first file into the second.
func runPlot(args []string) error {
	if len(args) != 2 {
		return errors.New("plot needs two files: measure plot docs/speed.json docs/speed.svg")
	}
	raw, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	f, err := readFigures(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return os.WriteFile(args[1], f.svg(), 0o644)
}

// readFigures parses and checks figures: each has a machine, a source, and its place in the legend.
func readFigures(raw []byte) (*speedFigures, error) {
	f := new(speedFigures)
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(f); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("there is more after the figures")
	}
	if len(f.Panels) == 0 || len(f.Engines) == 0 || len(f.Engines) > len(engineStyles) {
		return nil, fmt.Errorf("%d panels and %d engines, must be 1 or more, and 1 to %d", len(f.Panels), len(f.Engines), len(engineStyles))
	}
	var errs []error
	for _, p := range f.Panels {
		if p.Model == "" || p.Machine == "" || len(p.Points) == 0 {
			errs = append(errs, fmt.Errorf("panel %q on %q with %d points: model, machine or points are missing", p.Model, p.Machine, len(p.Points)))
		}
		for _, x := range p.Points {
			ranged := x.Min == 0 && x.Max == 0 || x.Min > 0 && x.Min <= x.Speed && x.Speed <= x.Max
			if !slices.Contains(f.Engines, x.Engine) || x.Source == "" || !(x.Share > 0 && x.Share <= 100) || !(x.Speed > 0 && x.Speed < 1e6) || !ranged {
				errs = append(errs, fmt.Errorf("%s: %+v is not a figure with an engine, a share of 0 to 100, a speed, and a source", p.Model, x))
			}
		}
	}
	return f, errors.Join(errs...)
}

// engineStyles are the color and the dashes of each engine's line; they differ without colors, too.
var engineStyles = []struct{ color, dash string }{{"#0b5fa5", ""}, {"#c2410c", "7 4"}, {"#6b7280", "2 3"}, {"#15803d", "9 3 2 3"}}

// The layout, in pixels.
const (
	panelWidth, panelHeight = 330, 300
	plotLeft, plotRight     = 44, 38 // of a panel
	plotTop, plotBottom     = 62, 34
	headHeight              = 62
	noteHeight              = 17
)

// svg draws one panel beside the other.
func (f *speedFigures) svg() []byte {
	var b strings.Builder
	width, height := panelWidth*len(f.Panels)+16, headHeight+panelHeight+24+noteHeight*len(f.Notes)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="Helvetica, Arial, sans-serif" font-size="12" fill="#1f2937">`+"\n",
		width, height, width, height)
	b.WriteString(`<rect width="100%" height="100%" fill="#ffffff"/>` + "\n")
	text(&b, 16, 24, `font-size="16" font-weight="bold"`, f.Title)
	for i, name := range f.Engines {
		x := 16 + 150*i
		fmt.Fprintf(&b, `<path d="M%d 44H%d" fill="none" %s/>`+"\n", x, x+32, stroke(i))
		text(&b, float64(x+38), 48, "", name)
	}
	top := 0.0
	for _, p := range f.Panels {
		for _, x := range p.Points {
			top = max(top, x.Speed, x.Max)
		}
	}
	step := niceStep(top / 6)
	for i := range f.Panels {
		f.panel(&b, i, step, math.Ceil(top/step)*step)
	}
	y := headHeight + panelHeight + 14
	text(&b, float64(width)/2, float64(y), `text-anchor="middle"`, f.X)
	for i, note := range f.Notes {
		text(&b, 16, float64(y+6+noteHeight*(i+1)), `font-size="11" fill="#4b5563"`, note)
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

// niceStep rounds up to 1, 2 or 5 times a power of ten.
func niceStep(x float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, n := range []float64{1, 2, 5} {
		if n*power >= x {
			return n * power
		}
	}
	return 10 * power
}

// panel draws panel i, with a line at each multiple of step up to top.
func (f *speedFigures) panel(b *strings.Builder, i int, step, top float64) {
	p, left := &f.Panels[i], float64(8+panelWidth*i)
	x := func(share float64) float64 { return left + plotLeft + share/100*(panelWidth-plotLeft-plotRight) }
	y := func(speed float64) float64 {
		return headHeight + plotTop + (1-speed/top)*(panelHeight-plotTop-plotBottom)
	}
	text(b, left+8, headHeight+18, `font-weight="bold"`, p.Model)
	for k, line := range strings.SplitN(p.Machine, ", ", 2) {
		text(b, left+8, headHeight+33+float64(14*k), `font-size="11" fill="#4b5563"`, line)
	}
	for v := 0.0; v <= top+step/2; v += step {
		fmt.Fprintf(b, `<path d="M%.1f %.1fH%.1f" stroke="#e5e7eb"/>`+"\n", x(0), y(v), x(100))
		text(b, x(0)-6, y(v)+4, `text-anchor="end"`, fmt.Sprintf("%g", v))
	}
	if i == 0 {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle" transform="rotate(-90 %.1f %.1f)">%s</text>`+"\n", left+10, y(top/2), left+10, y(top/2), html.EscapeString(f.Y))
	}
	var shares []float64
	for _, pt := range p.Points {
		shares = append(shares, pt.Share)
	}
	slices.Sort(shares)
	for _, share := range slices.Compact(shares) {
		text(b, x(share), headHeight+panelHeight-plotBottom+18, `text-anchor="middle"`, fmt.Sprintf("%g %%", share))
	}
	for e, engine := range f.Engines {
		f.line(b, p, e, engine, x, y)
	}
}

// line draws the figures of one engine, with their spread where it is known.
func (f *speedFigures) line(b *strings.Builder, p *speedPanel, style int, engine string, x, y func(float64) float64) {
	var points []speedPoint
	for _, pt := range p.Points {
		if pt.Engine == engine {
			points = append(points, pt)
		}
	}
	slices.SortFunc(points, func(a, b speedPoint) int { return int(math.Copysign(1, a.Share-b.Share)) })
	path, move := "", "M"
	for _, pt := range points {
		path, move = path+fmt.Sprintf("%s%.1f %.1f", move, x(pt.Share), y(pt.Speed)), "L"
	}
	if path == "" {
		return
	}
	fmt.Fprintf(b, `<path d="%s" fill="none" %s/>`+"\n", path, stroke(style))
	color := engineStyles[style].color
	for k, pt := range points {
		if pt.Max > 0 {
			fmt.Fprintf(b, `<path d="M%.1f %.1fV%.1f" stroke="%s" stroke-width="5" opacity="0.35"/>`+"\n", x(pt.Share), y(pt.Max), y(pt.Min), color)
		}
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"><title>%s</title></circle>`+"\n", x(pt.Share), y(pt.Speed), color,
			html.EscapeString(fmt.Sprintf("%s, %s, %g %%: %g tokens/s (%s)", pt.Engine, p.Model, pt.Share, pt.Speed, pt.Source)))
		if style == 0 { // the others crowd near the ground
			at, anchor := [2]float64{x(pt.Share), y(max(pt.Speed, pt.Max)) - 8}, "middle"
			if k == len(points)-1 {
				at, anchor = [2]float64{x(pt.Share) + 8, y(pt.Speed) + 4}, "start"
			}
			text(b, at[0], at[1], `text-anchor="`+anchor+`" font-weight="bold" fill="`+color+`"`, fmt.Sprintf("%.1f", pt.Speed))
		}
	}
}

func stroke(i int) string {
	s := fmt.Sprintf(`stroke="%s" stroke-width="2.2"`, engineStyles[i].color)
	if d := engineStyles[i].dash; d != "" {
		s += fmt.Sprintf(` stroke-dasharray="%s"`, d)
	}
	return s
}

func text(b *strings.Builder, x, y float64, attributes, s string) {
	if attributes != "" {
		attributes = " " + attributes
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f"%s>%s</text>`+"\n", x, y, attributes, html.EscapeString(s))
}
