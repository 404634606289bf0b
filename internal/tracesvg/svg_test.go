package tracesvg

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/tracing/analyse"
)

// element is what an SVG file has.
type element struct {
	name, class, text string
	at                map[string]float64
}

// parse reads a picture, and holds it to what any must have: it is XML, every class has its
// colours, and nothing lies outside.
func parse(t *testing.T, svg string) []element {
	t.Helper()
	var all []element
	var open []*element
	dec := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		switch k := token.(type) {
		case xml.StartElement:
			e := &element{name: k.Name.Local, at: make(map[string]float64)}
			for _, a := range k.Attr {
				if a.Name.Local == "class" {
					e.class = a.Value
				}
				if n, err := strconv.ParseFloat(a.Value, 64); err == nil {
					e.at[a.Name.Local] = n
				}
			}
			open = append(open, e)
		case xml.CharData:
			if len(open) > 0 {
				open[len(open)-1].text += string(k)
			}
		case xml.EndElement:
			e := open[len(open)-1]
			open, all = open[:len(open)-1], append(all, *e)
			if e.name == "title" {
				open[len(open)-1].text += e.text
			}
		}
	}
	page := all[len(all)-1]
	for _, e := range all {
		for _, class := range strings.Fields(e.class) {
			if class != "title" && strings.Count(svg, "."+class+"{") < 2 {
				t.Errorf("the class %s has no colours in light and dark", class)
			}
		}
		if x, y := e.at["x"]+e.at["width"], e.at["y"]+e.at["height"]; e.at["x"] < 0 || x > page.at["width"]+0.01 || y > page.at["height"]+0.01 {
			t.Errorf("%+v lies outside of %v × %v", e, page.at["width"], page.at["height"])
		}
	}
	return all
}

// find returns the elements of a class that say something.
func find(all []element, class, says string) (some []element) {
	for _, e := range all {
		if e.class == class && strings.Contains(e.text, says) {
			some = append(some, e)
		}
	}
	return some
}

func TestWaterfall(t *testing.T) {
	w := &analyse.Waterfall{Token: 7, FromNS: 1e6, ToNS: 11e6,
		Path: []analyse.Piece{{FromNS: 1e6, ToNS: 4e6, Cause: analyse.Device, Where: "a<b", Layer: 0}, {FromNS: 4e6, ToNS: 10_950_000, Cause: analyse.Disk, Layer: 1}, {FromNS: 10_950_000, ToNS: 11e6, Cause: analyse.Stage, Layer: -1}},
		Rows: []analyse.Waterline{
			{Layer: 0, Name: "full_attention", Bars: []analyse.Bar{{FromNS: 1e6, ToNS: 3e6, Kind: analyse.Computing}, {FromNS: 3e6, ToNS: 4e6, Kind: analyse.Computing}, {FromNS: 5e6, ToNS: 6e6, Kind: analyse.Computing}}},
			{Layer: 1, Name: "head", Bars: []analyse.Bar{{FromNS: 2e6, ToNS: 6e6, Kind: analyse.Guessing}, {FromNS: 6e6, ToNS: 11e6, Kind: analyse.Reading}}},
		}}
	all := parse(t, Waterfall(w))
	// A rectangle covers its share of the time, where the axis says.
	disk := find(all, "disk", "disk: 6.95 ms, layer 1")
	if len(disk) != 1 || math.Abs(disk[0].at["width"]-0.695*(wide-left-right)) > 0.1 || math.Abs(disk[0].at["x"]-left-0.3*(wide-left-right)) > 0.1 {
		t.Errorf("the disk's part of the path is %v", disk)
	}
	if got := len(find(all, "device", "computes")); got != 2 {
		t.Errorf("the device computes in %d boxes, want 2: those that touch are one", got)
	}
	for _, label := range []string{"Token 7, 10 ms", "0 full_attention", "head", "device 30 %", "disk 70 %", "critical path", "2 ms"} {
		found := false
		for _, e := range all {
			found = found || e.name == "text" && e.text == label
		}
		if !found {
			t.Errorf("no text says %q", label)
		}
	}
	if find(all, "text", "stage ") != nil {
		t.Error("the legend has a cause of less than a hundredth")
	}
	if g, r := find(all, "guesses", "guesses: 4 ms"), find(all, "disk", "waited for: 5 ms"); len(g) != 1 || len(r) != 1 || g[0].at["y"] != r[0].at["y"] {
		t.Errorf("guesses %v and reads %v are not in one line", g, r)
	}
}

func TestTracks(t *testing.T) {
	k := &analyse.Tracks{Token: 3, FromNS: 0, ToNS: 10e6,
		Tracks: []analyse.Track{
			{Group: "sequences", Name: "sequence 1", Slices: []analyse.Slice{{Name: "token 3", Kind: "token", ToNS: 10e6}}},
			{Group: "stages", Name: "expert-io", Slices: []analyse.Slice{{Name: "LayerRouted", Kind: "message", FromNS: 1e6, ToNS: 2e6}}},
			{Group: "device", Name: "urgent queue: decode steps", Slices: []analyse.Slice{{Name: "experts of layer 2", Kind: "submission", FromNS: 6e6, ToNS: 9e6}}},
			{Group: "reads", Name: "reader 1", Slices: []analyse.Slice{{Name: "layer 2 expert 17", Kind: "read", FromNS: -1e6, ToNS: 5e6}}},
			{Group: "reads", Name: "reader 2"},
		},
		Arrows:   []analyse.Arrow{{Points: []analyse.Point{{Track: 1, AtNS: 1e6}, {Track: 3, AtNS: 2e6}, {Track: 2, AtNS: 6e6}}}, {Points: []analyse.Point{{Track: 1, AtNS: 1e6}, {Track: 4, AtNS: 2e6}}}},
		Counters: []analyse.Counter{{Name: "slots used", Levels: []analyse.Level{{AtNS: 0, Value: 3}, {AtNS: 5e6, Value: 4}}}, {Name: "still", Levels: []analyse.Level{{AtNS: 0, Value: 3}, {AtNS: 5e6, Value: 3}}}},
	}
	svg := Tracks(k)
	all := parse(t, svg)
	for _, label := range []string{"The time of token 3, 10 ms", "device, urgent", "experts 2", "2·17", "slots used", "up to 4", "reader 1"} {
		if !strings.Contains(svg, ">"+label+"<") {
			t.Errorf("no text says %q", label)
		}
	}
	if strings.Contains(svg, "reader 2") || strings.Contains(svg, ">still<") {
		t.Error("a track without slices, or a counter that stays, is drawn")
	}
	if got := strings.Count(svg, "<circle"); got != 2 {
		t.Errorf("%d arrows are drawn, want the two between tracks that are shown", got)
	}
	if r := find(all, "disk", "layer 2 expert 17"); len(r) != 1 || r[0].at["x"] != left {
		t.Errorf("a read that began before the picture is %v", r)
	}
}

// Text can be read and boxes be told from the page, in light and in dark, by the contrast that the
// guidelines for web pages (WCAG 2) define: 4.5 for text, 3 for what is drawn.
func TestContrast(t *testing.T) {
	for _, dark := range []bool{false, true} {
		of := make(map[string]float64)
		for _, s := range shades {
			of[s.class] = luminance(t, s.light)
			if dark {
				of[s.class] = luminance(t, s.dark)
			}
		}
		check := func(class, on string, least float64) {
			a, b := max(of[class], of[on]), min(of[class], of[on])
			if got := (a + 0.05) / (b + 0.05); got < least {
				t.Errorf("dark %v: %s on %s has a contrast of %.2f, less than %.1f", dark, class, on, got, least)
			}
		}
		check("text", "page", 4.5)
		check("faint", "page", 4.5)
		for _, on := range []string{"token", "other-work"} {
			check("text", on, 4.5)
		}
		for i := range analyse.NumCauses {
			class := analyse.Cause(i).String()
			check(class, "page", 3)
			check("inside", class, 3)
		}
	}
}

func luminance(t *testing.T, colour string) float64 {
	var rgb [3]int
	if _, err := fmt.Sscanf(colour, "#%02x%02x%02x", &rgb[0], &rgb[1], &rgb[2]); err != nil {
		t.Fatalf("%s: %v", colour, err)
	}
	var l float64
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		v := float64(rgb[i]) / 255
		if v <= 0.04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		l += weight * v
	}
	return l
}
