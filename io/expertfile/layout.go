package expertfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// The names of the files.
const (
	DirName    = "packed_experts"
	LayoutName = "layout.json"

	dirName2Bit = "packed_experts_2bit" // of flash-moe, for two-bit codes
	rootDir     = "root"                // of moeflux
)

// LayerName returns the file name of a layer's experts.
func LayerName(layer int) string { return fmt.Sprintf("layer_%02d.bin", layer) }

// Layout is the content of layout.json: the record of one expert, block by block. The file lists
// blocks that are not in row order separately, under "arranged_components", so that a reader that
// knows no other order reports them missing. Where layers differ it lists the blocks of each, under
// "layer_components".
type Layout struct {
	ExpertSize int                 // bytes of a record
	NumLayers  int                 // of the model
	NumExperts int                 // records in a file
	MoELayers  []int               // nil if the file does not list them
	Components []Component         // of every layout
	Layers     map[int][]Component // by layer, in place of Components, whatever their order
}

// layoutFile is the form of a Layout in the file.
type layoutFile struct {
	ExpertSize int                 `json:"expert_size"`
	NumLayers  int                 `json:"num_layers"`
	NumExperts int                 `json:"num_experts"`
	MoELayers  []int               `json:"moe_layers,omitempty"`
	Components []Component         `json:"components"`
	Arranged   []Component         `json:"arranged_components,omitempty"`
	Layers     map[int][]Component `json:"layer_components,omitempty"`
}

// MarshalJSON returns the content of layout.json.
func (l Layout) MarshalJSON() ([]byte, error) {
	f := layoutFile{ExpertSize: l.ExpertSize, NumLayers: l.NumLayers, NumExperts: l.NumExperts, MoELayers: l.MoELayers, Components: []Component{}, Layers: l.Layers}
	for _, c := range l.Components {
		if c.Layout == quant.Rows {
			f.Components = append(f.Components, c)
		} else {
			f.Arranged = append(f.Arranged, c)
		}
	}
	return json.Marshal(f)
}

// Component is one block of a record: the codes, scales or biases of one projection.
type Component struct {
	Name   string `json:"name"`   // "gate_proj.weight", …, "down_proj.biases"
	Offset int    `json:"offset"` // bytes from the start of the record
	Size   int    `json:"size"`   // bytes
	DType  string `json:"dtype"`  // U32 for codes, BF16 or F32
	Shape  []int  `json:"shape"`  // as in row order
	// Layout is the order of codes and of their scales and biases.
	Layout quant.Layout `json:"layout,omitempty"`
}

// projections names a record's matrices in their order.
var projections = []string{"gate_proj", "up_proj", "down_proj"}

// Describe returns the content of layout.json for a model whose experts have the layout l.
func Describe(cfg *model.Config, l model.ExpertLayout) Layout {
	return Layout{ExpertSize: l.Bytes, NumLayers: cfg.NumHiddenLayers, NumExperts: cfg.NumExperts, MoELayers: cfg.MoELayers(), Components: componentsOf(l)}
}

// DescribeLayers is Describe where layers have layouts of their own, with as many bytes.
func DescribeLayers(cfg *model.Config, layouts map[int]model.ExpertLayout) Layout {
	out := Layout{NumLayers: cfg.NumHiddenLayers, NumExperts: cfg.NumExperts, MoELayers: cfg.MoELayers(), Layers: map[int][]Component{}}
	for layer, l := range layouts {
		out.ExpertSize, out.Layers[layer] = l.Bytes, componentsOf(l)
	}
	return out
}

func componentsOf(l model.ExpertLayout) (out []Component) {
	for i, p := range []model.ExpertPart{l.Gate, l.Up, l.Down} {
		for _, a := range p.Format.Arrays(p.Rows, p.Cols) {
			out = append(out, Component{Name: projections[i] + "." + a.Part.String(), Offset: p.Offset(a.Part),
				Size: a.Bytes, DType: a.DType, Shape: a.Shape, Layout: p.Format.Layout})
		}
	}
	return out
}

// readLayout reads layout.json; ok is false if there is none. layers is nil if all are alike;
// otherwise l is the first.
func readLayout(path string, cfg *model.Config) (l model.ExpertLayout, layers map[int]model.ExpertLayout, ok bool, err error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return model.ExpertLayout{}, nil, false, nil
	}
	if err != nil {
		return model.ExpertLayout{}, nil, false, fmt.Errorf("expertfile: %w", err)
	}
	l, layers, err = parseLayout(path, raw, cfg)
	return l, layers, err == nil, err
}

// parseLayout derives the layout from the components' types and shapes, and checks every offset and
// size against it.
func parseLayout(path string, raw []byte, cfg *model.Config) (model.ExpertLayout, map[int]model.ExpertLayout, error) {
	none := model.ExpertLayout{}
	fail := func(component, format string, args ...any) error {
		return &LayoutError{Path: path, Component: component, Why: fmt.Sprintf(format, args...)}
	}
	var got struct {
		layoutFile
		Components []json.RawMessage         `json:"components"`
		Arranged   []json.RawMessage         `json:"arranged_components"`
		Layers     map[int][]json.RawMessage `json:"layer_components"`
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		return none, nil, &LayoutError{Path: path, Why: "not valid JSON: " + err.Error(), Err: err}
	}
	if got.NumExperts != cfg.NumExperts {
		return none, nil, fail("", "num_experts is %d, but the model has %d", got.NumExperts, cfg.NumExperts)
	}
	if got.Layers == nil {
		l, err := parseComponents(path, got.ExpertSize, []componentList{{"components", got.Components, inRows}, {"arranged_components", got.Arranged, arranged}}, cfg)
		if err == nil && l.Used() != got.ExpertSize {
			err = fail("", "expert_size is %d, but the components make %d", got.ExpertSize, l.Used())
		}
		return l, nil, err
	}
	layers, first := map[int]model.ExpertLayout{}, none
	for i, layer := range cfg.MoELayers() {
		if len(got.Layers[layer]) == 0 {
			return none, nil, fail("", "layer_components has no layer %d", layer)
		}
		l, err := parseComponents(path, got.ExpertSize, []componentList{{"layer_components", got.Layers[layer], anyOrder}}, cfg)
		if err != nil {
			return none, nil, err
		}
		if l.Used() > got.ExpertSize {
			return none, nil, fail("", "expert_size is %d, but the components of layer %d make %d", got.ExpertSize, layer, l.Used())
		}
		if layers[layer] = l; i == 0 {
			first = l
		}
	}
	if len(got.Layers) != len(layers) || len(got.Components) > 0 || len(got.Arranged) > 0 {
		return none, nil, fail("", "layer_components must list %d layers, and nothing else may list components", len(layers))
	}
	return first, layers, nil
}

// componentList is a list of components and which order its blocks may be in.
type componentList struct {
	key        string
	components []json.RawMessage
	order      int
}

const (
	inRows = iota
	arranged
	anyOrder
)

// parseComponents derives the layout of records of size bytes.
func parseComponents(path string, size int, lists []componentList, cfg *model.Config) (model.ExpertLayout, error) {
	fail := func(component, format string, args ...any) (model.ExpertLayout, error) {
		return model.ExpertLayout{}, &LayoutError{Path: path, Component: component, Why: fmt.Sprintf(format, args...)}
	}
	byName := map[string]Component{}
	for _, list := range lists {
		for _, raw := range list.components {
			var c Component
			if err := json.Unmarshal(raw, &c); err != nil {
				return model.ExpertLayout{}, &LayoutError{Path: path, Component: c.Name, Why: err.Error(), Err: err}
			}
			if _, twice := byName[c.Name]; twice {
				return fail(c.Name, "named twice")
			}
			if list.order != anyOrder && (c.Layout != quant.Rows) != (list.order == arranged) {
				return fail(c.Name, "is in layout %s, but listed under %q", c.Layout, list.key)
			}
			byName[c.Name] = c
		}
	}
	var formats [3]quant.Format
	for i, p := range projections {
		rows, cols := cfg.MoEIntermediateSize, cfg.HiddenSize
		if i == 2 {
			rows, cols = cols, rows
		}
		f, err := componentFormat(byName, p, rows, cols)
		if err != nil {
			return fail(p+".weight", "%v", err)
		}
		formats[i] = f
	}
	l := model.NewExpertLayout(cfg.HiddenSize, cfg.MoEIntermediateSize, formats[0], formats[1], formats[2])
	want := componentsOf(l)
	if len(byName) != len(want) {
		return fail("", "%d components, want %d", len(byName), len(want))
	}
	for _, w := range want {
		g, ok := byName[w.Name]
		if !ok {
			return fail(w.Name, "missing")
		}
		if g.Layout != w.Layout {
			return fail(w.Name, "layout %s, want %s", g.Layout, w.Layout)
		}
		if g.Offset != w.Offset || g.Size != w.Size || g.DType != w.DType || !slices.Equal(g.Shape, w.Shape) {
			return fail(w.Name, "%s %v, %d bytes at %d; want %s %v, %d bytes at %d",
				g.DType, g.Shape, g.Size, g.Offset, w.DType, w.Shape, w.Size, w.Offset)
		}
	}
	l.Bytes = size
	return l, nil
}

// componentFormat returns the format of a projection [rows, cols].
func componentFormat(byName map[string]Component, projection string, rows, cols int) (quant.Format, error) {
	w, ok := byName[projection+".weight"]
	if !ok {
		return quant.Format{}, errors.New("missing")
	}
	f, err := quant.FromArrays(rows, cols, func(p quant.Part) (string, []int, bool) {
		c, ok := byName[projection+"."+p.String()]
		return c.DType, c.Shape, ok
	})
	f.Layout = w.Layout
	if err == nil && !f.HoldsRows(rows) {
		err = fmt.Errorf("%d rows of %v in layout %s, which takes multiples of %d rows of codes", rows, f, f.Layout, quant.PanelRows)
	}
	return f, err
}

// guessLayout returns the layout in rows whose records make a file of the given size. Files without
// layout.json are of other programs, whose formats have different sizes and come first in the list.
func guessLayout(cfg *model.Config, fileBytes int64) (model.ExpertLayout, bool) {
	for _, f := range quant.Formats() {
		if f.Block() != nil || f.Validate(cfg.HiddenSize) != nil || f.Validate(cfg.MoEIntermediateSize) != nil {
			continue
		}
		l := model.NewExpertLayout(cfg.HiddenSize, cfg.MoEIntermediateSize, f, f, f)
		if int64(l.Bytes)*int64(cfg.NumExperts) == fileBytes {
			return l, true
		}
	}
	return model.ExpertLayout{}, false
}
