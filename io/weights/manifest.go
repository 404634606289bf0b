package weights

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// The names of the two files.
const (
	ManifestName = "model_weights.json"
	DataName     = "model_weights.bin"
)

// Manifest is the content of model_weights.json. The file lists tensors that are not in row order
// separately, under "arranged_tensors", so that a reader that knows no other order reports them
// missing.
type Manifest struct {
	// where the weights come from, for display
	Model      string                `json:"model"`
	NumTensors int                   `json:"num_tensors"` // for display
	Tensors    map[string]Descriptor `json:"tensors"`     // of every layout
	// object with the model's sizes; may be absent
	Config json.RawMessage `json:"config,omitempty"`
}

// manifestFile is the form of a Manifest in the file.
type manifestFile struct {
	Model      string                `json:"model"`
	NumTensors int                   `json:"num_tensors"`
	Tensors    map[string]Descriptor `json:"tensors"`
	Arranged   map[string]Descriptor `json:"arranged_tensors,omitempty"`
	Config     json.RawMessage       `json:"config,omitempty"`
}

// MarshalJSON returns the content of model_weights.json.
func (m Manifest) MarshalJSON() ([]byte, error) {
	f := manifestFile{Model: m.Model, NumTensors: m.NumTensors, Tensors: map[string]Descriptor{}, Arranged: map[string]Descriptor{}, Config: m.Config}
	for name, d := range m.Tensors {
		if d.Layout == quant.Rows {
			f.Tensors[name] = d
		} else {
			f.Arranged[name] = d
		}
	}
	return json.Marshal(f)
}

// UnmarshalJSON reads what MarshalJSON writes. It does not check it against a data file; Open does.
func (m *Manifest) UnmarshalJSON(raw []byte) error {
	got, err := decodeManifest(ManifestName, raw)
	if err != nil {
		return err
	}
	*m = *got
	return nil
}

// Descriptor is one tensor of the manifest.
type Descriptor struct {
	Offset int64 `json:"offset"` // bytes from the start of model_weights.bin
	Size   int64 `json:"size"`   // bytes
	// as stored: columns of codes count 32-bit words
	Shape []int             `json:"shape"`
	DType safetensors.DType `json:"dtype"` // F16, or what quant.Format.Arrays says
	// of a code; 0 if the manifest does not say
	Bits int `json:"bits,omitempty"`
	// Layout is the order of codes and of their scales and biases. Shape is as in row order.
	Layout quant.Layout `json:"layout,omitempty"`
}

// ManifestError reports a manifest that cannot be read, or that contradicts itself or the data
// file.
type ManifestError struct {
	Path   string
	Tensor string // "" if no single tensor is at fault
	Why    string
	Err    error // cause, if another error is one
}

func (e *ManifestError) Error() string {
	if e.Tensor == "" {
		return fmt.Sprintf("weights: %s: %s", e.Path, e.Why)
	}
	return fmt.Sprintf("weights: %s: tensor %q: %s", e.Path, e.Tensor, e.Why)
}

func (e *ManifestError) Unwrap() error { return e.Err }

// parseManifest reads a manifest and checks it against the length of the data file. It reports all
// tensors at fault together.
func parseManifest(path string, raw []byte, dataLen int64) (*Manifest, error) {
	m, err := decodeManifest(path, raw)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, name := range sortedNames(m.Tensors) {
		if why := checkTensor(name, m.Tensors, dataLen); why != "" {
			errs = append(errs, &ManifestError{Path: path, Tensor: name, Why: why})
		}
	}
	if err := joinSome(errs); err != nil {
		return nil, err
	}
	return m, nil
}

// decodeManifest reads a manifest.
func decodeManifest(path string, raw []byte) (*Manifest, error) {
	var f struct {
		manifestFile
		Tensors  json.RawMessage `json:"tensors"`
		Arranged json.RawMessage `json:"arranged_tensors"`
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, &ManifestError{Path: path, Why: "not valid JSON: " + err.Error(), Err: err}
	}
	if f.Tensors == nil || string(f.Tensors) == "null" {
		return nil, &ManifestError{Path: path, Why: `no key "tensors"`}
	}
	m := &Manifest{Model: f.Model, NumTensors: f.NumTensors, Tensors: map[string]Descriptor{}, Config: f.Config}
	if err := parseTensors(m.Tensors, path, tensorsKey, f.Tensors); err != nil {
		return nil, err
	}
	if f.Arranged != nil && string(f.Arranged) != "null" {
		if err := parseTensors(m.Tensors, path, arrangedKey, f.Arranged); err != nil {
			return nil, err
		}
	}
	if len(m.Tensors) == 0 {
		return nil, &ManifestError{Path: path, Why: "names no tensor"}
	}
	return m, nil
}

// The keys of the two objects of descriptors.
const (
	tensorsKey  = "tensors"
	arrangedKey = "arranged_tensors"
)

// joinSome joins errors, and counts those beyond a few: one wrong offset tends to spoil all that
// follow.
func joinSome(errs []error) error {
	const most = 3
	if len(errs) > most {
		rest := len(errs) - most
		errs = append(errs[:most:most], fmt.Errorf("weights: and %d more", rest))
	}
	return errors.Join(errs...)
}

// parseTensors adds the descriptors of one of the two objects to out. It reads key by key, because
// a map would hide duplicate names.
func parseTensors(out map[string]Descriptor, path, key string, raw []byte) error {
	broken := func(name string, err error) error {
		return &ManifestError{Path: path, Tensor: name, Why: err.Error(), Err: err}
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return &ManifestError{Path: path, Why: fmt.Sprintf("%q is not an object", key), Err: err}
	}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return broken("", err)
		}
		name := tok.(string) // a key of an object that was valid as a whole
		if _, twice := out[name]; twice {
			return &ManifestError{Path: path, Tensor: name, Why: "named twice"}
		}
		var d struct {
			Offset *int64             `json:"offset"`
			Size   *int64             `json:"size"`
			Shape  *[]int             `json:"shape"`
			DType  *safetensors.DType `json:"dtype"`
			Bits   int                `json:"bits"`
			Layout quant.Layout       `json:"layout"`
		}
		if err := dec.Decode(&d); err != nil {
			return broken(name, err)
		}
		if d.Offset == nil || d.Size == nil || d.Shape == nil || d.DType == nil {
			return &ManifestError{Path: path, Tensor: name, Why: "lacks offset, size, shape or dtype"}
		}
		if (d.Layout == quant.Rows) != (key == tensorsKey) {
			return &ManifestError{Path: path, Tensor: name, Why: fmt.Sprintf("is in layout %s but listed under %q", d.Layout, key)}
		}
		out[name] = Descriptor{Offset: *d.Offset, Size: *d.Size, Shape: *d.Shape, DType: *d.DType, Bits: d.Bits, Layout: d.Layout}
	}
	if _, err := dec.Token(); err != nil && !errors.Is(err, io.EOF) {
		return broken("", err)
	}
	return nil
}

// checkTensor says what is wrong with a descriptor, "" if nothing is.
func checkTensor(name string, all map[string]Descriptor, dataLen int64) string {
	d := all[name]
	// This subtracts because an offset near 2^63 would overflow a sum.
	if d.Offset < 0 || d.Size < 0 || d.Offset > dataLen || d.Size > dataLen-d.Offset {
		return fmt.Sprintf("%d bytes at offset %d go past the end of %s, which has %d bytes", d.Size, d.Offset, DataName, dataLen)
	}
	if !slices.Contains(dtypes, string(d.DType)) {
		return fmt.Sprintf("dtype %q is not one of %s", string(d.DType), strings.Join(dtypes, ", "))
	}
	want, err := d.bytes()
	if err != nil {
		return err.Error()
	}
	if int64(want) != d.Size {
		return fmt.Sprintf("%s %v takes %d bytes, but size is %d", d.DType, d.Shape, want, d.Size)
	}
	if d.Offset%4 != 0 {
		return fmt.Sprintf("offset %d is not a multiple of 4", d.Offset)
	}
	if d.isCodes() {
		return checkCodes(name, all)
	}
	codes := codesOf(name, all)
	switch {
	case d.Bits != 0:
		return fmt.Sprintf("bits %d with dtype %s", d.Bits, d.DType)
	case d.Layout != quant.Rows && !codes.isCodes():
		return fmt.Sprintf("layout %s is only for codes, scales and biases", d.Layout)
	}
	return ""
}

// bytes returns the bytes that type and shape make. Rows of matrices in blocks are whole blocks.
func (d *Descriptor) bytes() (int, error) {
	b := quant.BlockNamed(string(d.DType))
	if b == nil || b.Len == 1 {
		return d.DType.Bytes(d.Shape)
	}
	if len(d.Shape) != 2 || d.Shape[0] < 0 {
		return 0, fmt.Errorf("%s %v is not a matrix", d.DType, d.Shape)
	}
	if err := b.Validate(d.Shape[1]); err != nil {
		return 0, err
	}
	return safetensors.U8.Bytes([]int{d.Shape[0], d.Shape[1] / b.Len, b.Size})
}

// dtypes are the types that a tensor may have.
var dtypes = slices.Compact(slices.Sorted(slices.Values(slices.Concat([]string{string(safetensors.F16)},
	quant.DTypes(quant.Weight), quant.DTypes(quant.Scales), quant.DTypes(quant.Biases)))))

// isCodes reports whether a tensor is the codes of a matrix, which have scales beside them.
func (d *Descriptor) isCodes() bool { return slices.Contains(quant.CodeDTypes(), string(d.DType)) }

// arrays returns what the manifest says of the arrays of a matrix, for quant.FromArrays.
func (m *Manifest) arrays(name string) func(p quant.Part) (string, []int, bool) {
	return arraysOf(name, m.Tensors)
}

func arraysOf(name string, all map[string]Descriptor) func(p quant.Part) (string, []int, bool) {
	return func(p quant.Part) (string, []int, bool) {
		d, ok := all[name+"."+p.String()]
		return string(d.DType), d.Shape, ok
	}
}

// codesOf returns the codes that the scales or biases with this name belong to. For other tensors
// it returns the zero value.
func codesOf(name string, all map[string]Descriptor) Descriptor {
	for _, part := range []quant.Part{quant.Scales, quant.Biases} {
		if base, ok := strings.CutSuffix(name, "."+part.String()); ok {
			return all[base+"."+quant.Weight.String()]
		}
	}
	return Descriptor{}
}

// checkCodes says what is wrong with a tensor of codes and its scales and biases. How many inputs a
// row has, and so which format it is, only a configuration tells.
func checkCodes(name string, all map[string]Descriptor) string {
	d := all[name]
	base, ok := strings.CutSuffix(name, "."+quant.Weight.String())
	if !ok {
		return fmt.Sprintf("%s, but its name does not end in .weight", d.DType)
	}
	fits := func(f quant.Format) bool {
		if !f.Codes() || len(d.Shape) != 2 || d.Shape[1] > math.MaxInt/32 || d.Bits != 0 && d.Bits != f.Bits() {
			return false
		}
		got, err := quant.FromArrays(d.Shape[0], d.Shape[1]*8*f.WordBytes()/f.Bits(), arraysOf(base, all))
		return err == nil && got == f
	}
	if !slices.ContainsFunc(quant.Formats(), fits) {
		s, b := all[base+".scales"], all[base+".biases"]
		return fmt.Sprintf("codes %s %v of %d bits with scales %s %v and biases %s %v: there is no such format",
			d.DType, d.Shape, d.Bits, s.DType, s.Shape, b.DType, b.Shape)
	}
	for _, part := range []quant.Part{quant.Scales, quant.Biases} {
		if x, ok := all[base+"."+part.String()]; ok && x.Layout != d.Layout {
			return fmt.Sprintf("codes are in layout %s, %s in %s", d.Layout, part, x.Layout)
		}
	}
	if d.Layout == quant.Panels && d.Shape[0]%quant.PanelRows != 0 {
		return fmt.Sprintf("%d rows in layout %s, which needs a multiple of %d", d.Shape[0], d.Layout, quant.PanelRows)
	}
	return ""
}
