package expertfile

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/model/quant"
)

func encode(t testing.TB, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// The offsets of the published 4-bit model with hidden size 4096 and intermediate size 1024.
func TestDescribeOffsets(t *testing.T) {
	cfg := &model.Config{NumHiddenLayers: 60, HiddenSize: 4096, MoEIntermediateSize: 1024, NumExperts: 512, Layers: make([]model.Layer, 60)}
	got := Describe(cfg, model.NewExpertLayout(4096, 1024, q4, q4, q4))
	want := []int{0, 2097152, 2228224, 2359296, 4456448, 4587520, 4718592, 6815744, 6946816}
	names := []string{"gate_proj.weight", "gate_proj.scales", "gate_proj.biases", "up_proj.weight", "up_proj.scales", "up_proj.biases",
		"down_proj.weight", "down_proj.scales", "down_proj.biases"}
	if got.ExpertSize != 7077888 || len(got.Components) != len(want) {
		t.Fatalf("got %d bytes and %d components, want 7077888 and 9", got.ExpertSize, len(got.Components))
	}
	for i, c := range got.Components {
		if c.Offset != want[i] || c.Name != names[i] {
			t.Errorf("component %d: got %s at %d, want %s at %d", i, c.Name, c.Offset, names[i], want[i])
		}
	}
}

// Projections may have formats of their own.
func TestLayoutMixed(t *testing.T) {
	cfg := small()
	l := model.NewExpertLayout(cfg.HiddenSize, cfg.MoEIntermediateSize, q4, quant.BF16, quant.Affine(8, 32))
	got, _, err := parseLayout("x", encode(t, Describe(cfg, l)), cfg)
	if err != nil || got != l {
		t.Errorf("got %+v, %v, want %+v", got, err, l)
	}
}

var q4p = quant.Affine(4, 64).In(quant.Panels, quant.PanelRows)

// layout.json says which components are in panels, and lists them separately from those in rows.
func TestLayoutPanels(t *testing.T) {
	cfg := small()
	l := model.NewExpertLayout(cfg.HiddenSize, cfg.MoEIntermediateSize, q4p, quant.BF16, q4)
	raw := encode(t, Describe(cfg, l))
	got, _, err := parseLayout("x", raw, cfg)
	if err != nil || got != l {
		t.Errorf("got %+v, %v, want %+v", got, err, l)
	}
	var keys struct {
		Components []struct{ Name, Layout string } `json:"components"`
		Arranged   []struct{ Name, Layout string } `json:"arranged_components"`
	}
	if err := json.Unmarshal(raw, &keys); err != nil || len(keys.Components) != 4 || len(keys.Arranged) != 3 {
		t.Fatalf("%s: %v, want four components in rows and three apart", raw, err)
	}
	for _, c := range keys.Arranged {
		if c.Layout != "panels" || !strings.HasPrefix(c.Name, "gate_proj.") {
			t.Errorf("apart: %+v, want those of gate_proj in panels", c)
		}
	}
	dir, want := pack(t, cfg, q4p, true)
	x, err := Open(dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if x.Layout() != want || x.Layout().Down.Format != q4p {
		t.Errorf("got %+v, want %+v", x.Layout(), want)
	}
	// Nothing but layout.json says panels.
	if err := os.Remove(filepath.Join(dir, DirName, LayoutName)); err != nil {
		t.Fatal(err)
	}
	y, err := Open(dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer y.Close()
	if y.Layout().Gate.Format != q4 {
		t.Errorf("without layout.json: got %v, want rows", y.Layout().Gate.Format)
	}
}

func TestLayoutPanelsRefuses(t *testing.T) {
	cfg := small()
	d := encode(t, Describe(cfg, model.NewExpertLayout(cfg.HiddenSize, cfg.MoEIntermediateSize, q4p, q4p, q4p)))
	for _, c := range []struct{ name, from, to, names, why string }{
		{"unknown layout", `"layout":"panels"`, `"layout":"columns"`, "gate_proj.weight", `"columns"`},
		{"no name of a layout", `"layout":"panels"`, `"layout":7`, "gate_proj.weight", ""},
		{"rows", `"layout":"panels"`, `"layout":"rows"`, "gate_proj.weight", "rows"},
		{"listed among rows", `"arranged_components"`, `"components"`, "gate_proj.weight", `under "components"`},
		{"BF16", `"dtype":"U32"`, `"dtype":"BF16"`, "gate_proj.weight", ""},
	} {
		bad := strings.Replace(string(d), c.from, c.to, 1)
		if c.to == `"components"` {
			bad = strings.Replace(bad, `"components":[],`, "", 1)
		}
		_, _, err := parseLayout("x", []byte(bad), cfg)
		var e *LayoutError
		if !errors.As(err, &e) || c.name != "BF16" && e.Component != c.names || !strings.Contains(err.Error(), c.why) || e.Path != "x" {
			t.Errorf("%s: got %v, want a *LayoutError of %q that says %s", c.name, err, c.names, c.why)
		}
	}
	// Scales in another layout than their codes.
	l := Describe(cfg, model.NewExpertLayout(cfg.HiddenSize, cfg.MoEIntermediateSize, q4p, q4p, q4p))
	l.Components[4].Layout = quant.Rows
	var e *LayoutError
	if _, _, err := parseLayout("x", encode(t, l), cfg); !errors.As(err, &e) || e.Component != "up_proj.scales" {
		t.Errorf("scales in rows: got %v, want a *LayoutError of up_proj.scales", err)
	}
	// Eight rows do not fill a panel.
	cfg.MoEIntermediateSize = 8
	q := quant.BF16
	l = Describe(cfg, model.NewExpertLayout(cfg.HiddenSize, cfg.MoEIntermediateSize, q4p, q4p, q))
	if _, _, err := parseLayout("x", encode(t, l), cfg); !errors.As(err, &e) || e.Component != "gate_proj.weight" || !strings.Contains(err.Error(), "8 rows") {
		t.Errorf("half a panel: got %v, want a *LayoutError of gate_proj.weight", err)
	}
}

func TestLayoutRefuses(t *testing.T) {
	cfg := small()
	l := model.NewExpertLayout(cfg.HiddenSize, cfg.MoEIntermediateSize, q4, q4, q4)
	for _, c := range []struct {
		name   string
		names  string // the component
		change func(*Layout)
	}{
		{"experts", "", func(l *Layout) { l.NumExperts = 5 }},
		{"record size", "", func(l *Layout) { l.ExpertSize++ }},
		{"one component less", "down_proj.weight", func(l *Layout) { l.Components = l.Components[:8] }},
		{"no components", "gate_proj.weight", func(l *Layout) { l.Components = nil }},
		{"no scales", "up_proj.weight", func(l *Layout) { l.Components[4].Name = "x" }},
		{"a stranger", "up_proj.weight", func(l *Layout) { l.Components[5].Name = "x" }},
		{"twice", "gate_proj.weight", func(l *Layout) { l.Components[1].Name = "gate_proj.weight" }},
		{"offset", "down_proj.scales", func(l *Layout) { l.Components[7].Offset += 2 }},
		{"size", "down_proj.scales", func(l *Layout) { l.Components[7].Size = -1 }},
		{"dtype of codes", "gate_proj.weight", func(l *Layout) { l.Components[0].DType = "I32" }},
		{"dtype of scales", "gate_proj.weight", func(l *Layout) { l.Components[1].DType = "F16" }},
		{"rows", "up_proj.weight", func(l *Layout) { l.Components[3].Shape = []int{1, 16} }},
		{"columns", "up_proj.weight", func(l *Layout) { l.Components[3].Shape = []int{256, 24} }},
		{"axes", "up_proj.weight", func(l *Layout) { l.Components[3].Shape = nil }},
		{"groups", "down_proj.weight", func(l *Layout) { l.Components[7].Shape = []int{128, 0} }},
	} {
		d := Describe(cfg, l)
		c.change(&d)
		_, _, err := parseLayout("x", encode(t, d), cfg)
		var bad *LayoutError
		if !errors.As(err, &bad) || bad.Component != c.names {
			t.Errorf("%s: got %v, want a *LayoutError of %q", c.name, err, c.names)
		}
	}
	for _, raw := range []string{"", "[]", "{}", "null", `{"components":3}`, strings.Repeat("[", 1<<20)} {
		var bad *LayoutError
		if _, _, err := parseLayout("x", []byte(raw), cfg); !errors.As(err, &bad) {
			t.Errorf("%.20q: got %v, want a *LayoutError", raw, err)
		}
	}
}

// A layout.json that contradicts the files is refused, not ignored.
func TestOpenBelievesLayout(t *testing.T) {
	cfg := small()
	dir, _ := pack(t, cfg, q4, true)
	q8 := quant.Affine(8, 64)
	other := Describe(cfg, model.NewExpertLayout(cfg.HiddenSize, cfg.MoEIntermediateSize, q8, q8, q8))
	path := filepath.Join(dir, DirName, LayoutName)
	write(t, path, encode(t, other))
	var size *SizeError
	if _, err := Open(dir, cfg); !errors.As(err, &size) || size.Want != int64(other.ExpertSize*4) {
		t.Errorf("got %v, want a *SizeError", err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	var bad *LayoutError
	if _, err := Open(dir, cfg); !errors.As(err, &bad) {
		t.Errorf("got %v, want a *LayoutError", err)
	}
}

func FuzzParseLayout(f *testing.F) {
	cfg := small()
	for _, format := range []quant.Format{q4, q4p, quant.BF16, quant.F32} {
		f.Add(encode(f, Describe(cfg, model.NewExpertLayout(cfg.HiddenSize, cfg.MoEIntermediateSize, format, format, format))))
	}
	f.Add([]byte(`{"num_experts":4,"components":[],"arranged_components":[{"name":"gate_proj.weight","dtype":"U32","shape":[16,2],"layout":"columns"}]}`))
	f.Add([]byte(`{"num_experts":4,"components":[{"name":"gate_proj.weight","dtype":"U32","shape":[1,2]},{"name":"gate_proj.scales","shape":[1,-3]}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		l, _, err := parseLayout("x", raw, cfg)
		if err != nil {
			var bad *LayoutError
			if !errors.As(err, &bad) {
				t.Errorf("got %T: %v", err, err)
			}
			return
		}
		if want := model.NewExpertLayout(cfg.HiddenSize, cfg.MoEIntermediateSize, l.Gate.Format, l.Up.Format, l.Down.Format); l != want {
			t.Errorf("got %+v, want %+v", l, want)
		}
	})
}
