package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const (
	docsFigures = "../../docs/speed.json"
	docsPlot    = "../../docs/speed.svg"
)

// TestPlotOfDocs draws docs/speed.json again: the picture that the README shows is made of these
// figures, and not by hand.
func TestPlotOfDocs(t *testing.T) {
	out := filepath.Join(t.TempDir(), "speed.svg")
	if err := run(t.Context(), []string{"plot", docsFigures, out}, nil, nil); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(docsPlot)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("docs/speed.svg is not what docs/speed.json gives (%v); run: go run ./internal/measure plot docs/speed.json docs/speed.svg", err)
	}
}

// TestPlotPlaces reads the circles back from the picture: every figure has one, at a height above
// its panel's ground that is proportional to the speed, and at a distance that is proportional to
// the share.
func TestPlotPlaces(t *testing.T) {
	raw, err := os.ReadFile(docsFigures)
	if err != nil {
		t.Fatal(err)
	}
	f, err := readFigures(raw)
	if err != nil {
		t.Fatal(err)
	}
	var picture struct {
		Circles []struct {
			X     float64 `xml:"cx,attr"`
			Y     float64 `xml:"cy,attr"`
			Title string  `xml:"title"`
		} `xml:"circle"`
		Texts []string `xml:"text"`
	}
	if err := xml.Unmarshal(f.svg(), &picture); err != nil {
		t.Fatal(err)
	}
	const ground, width = headHeight + panelHeight - plotBottom, panelWidth - plotLeft - plotRight
	all := strings.Join(picture.Texts, "\n")
	n, scale := 0, 0.0
	for i, p := range f.Panels {
		for _, want := range append(strings.SplitN(p.Machine, ", ", 2), p.Model) {
			if !strings.Contains(all, want) {
				t.Errorf("the picture does not say %q", want)
			}
		}
		for _, pt := range p.Points {
			n++
			title, found := fmt.Sprintf("%s, %s, %g %%: %g tokens/s (%s)", pt.Engine, p.Model, pt.Share, pt.Speed, pt.Source), false
			for _, c := range picture.Circles {
				left := float64(8 + panelWidth*i + plotLeft)
				if c.Title != title || math.Abs(c.X-left-pt.Share/100*width) > 0.06 {
					continue
				}
				found = true
				if scale == 0 {
					scale = (ground - c.Y) / pt.Speed
				}
				if math.Abs(ground-c.Y-scale*pt.Speed) > 0.2 {
					t.Errorf("%s: %g above the ground, want %g", title, ground-c.Y, scale*pt.Speed)
				}
			}
			if !found {
				t.Errorf("no point %q at its share", title)
			}
		}
	}
	if n != len(picture.Circles) || n < 20 {
		t.Errorf("%d circles for %d figures", len(picture.Circles), n)
	}
}

// TestPlotFiguresRefused finds what is missing or wrong in a file of figures.
func TestPlotFiguresRefused(t *testing.T) {
	good := `{"engines":["a"],"panels":[{"model":"m","machine":"c","points":[{"engine":"a","share":25,"speed":2,"min":1,"max":3,"source":"s"}]}]}`
	if _, err := readFigures([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{
		{`"machine":"c"`, `"machine":""`}, {`"source":"s"`, `"source":""`}, {`"engine":"a"`, `"engine":"b"`}, {`"share":25`, `"share":125`}, {`"share":25`, `"share":0`},
		{`"speed":2`, `"speed":0`}, {`"speed":2`, `"speed":4`}, {`"min":1`, `"min":2.5`}, {`"min":1`, `"min":-1`}, {`"model":"m"`, `"modell":"m"`}, {`["a"]`, `[]`},
		{`"points":[`, `"points":[],"x":[`}, {`]}]}`, `]}]}{}`}, {`]}]}`, ``},
	} {
		bad := strings.Replace(good, c[0], c[1], 1)
		if _, err := readFigures([]byte(bad)); err == nil || bad == good {
			t.Errorf("%s: no error", bad)
		}
	}
	if err := runPlot([]string{docsFigures}); err == nil {
		t.Error("plot without an output: no error")
	}
}

func TestNiceStep(t *testing.T) {
	for in, want := range map[float64]string{4.8: "5", 0.3: "0.5", 1: "1", 1.1: "2", 7: "10", 130: "200"} {
		if got := strconv.FormatFloat(niceStep(in), 'g', 6, 64); got != want {
			t.Errorf("step for %g: %s, want %s", in, got, want)
		}
	}
}
