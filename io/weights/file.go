package weights

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/moeflux/moeflux-actor/internal/mapfault"
	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// maxManifest bounds the size of a manifest.
const maxManifest = 256 << 20

// File is the opened weights of a packed model, mapped read-only. It may be used from many
// goroutines until Close.
type File struct {
	dir      string
	manifest *Manifest
	mapping  []byte // nil after Close
	made     string // the file of another form that the weights were made of; "" if mapped
}

// Matrix says where a weight matrix [Rows, Cols] lies in Mapping. ScalesOffset and BiasesOffset
// count only if the format has scales and biases.
type Matrix struct {
	Rows, Cols                               int
	Format                                   quant.Format
	WeightOffset, ScalesOffset, BiasesOffset int // bytes
}

// TensorError reports a tensor that is missing or is not what the architecture needs.
type TensorError struct {
	Name string
	Want string // e.g. "[256, 128] in a format for matrices"
	Got  string // "missing", or what the file holds
}

func (e *TensorError) Error() string {
	return fmt.Sprintf("weights: tensor %q: found %s, expected %s", e.Name, e.Got, e.Want)
}

// Open opens the weights in dir, or in dir/artifacts if they are there, and checks the manifest
// against the data file. Errors are *ManifestErrors, or come from the operating system.
func Open(dir string) (*File, error) {
	dir = filesDir(dir)
	manifestPath := filepath.Join(dir, ManifestName)
	raw, err := readBounded(manifestPath)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(dir, DataName))
	if err != nil {
		return nil, fmt.Errorf("weights: %w", err)
	}
	defer f.Close() // the mapping outlives the descriptor
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("weights: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("weights: %s is not a regular file", f.Name())
	}
	m, err := parseManifest(manifestPath, raw, info.Size())
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 {
		return nil, fmt.Errorf("weights: %s is empty", f.Name())
	}
	mapping, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("weights: map %s: %w", f.Name(), err)
	}
	return &File{dir: dir, manifest: m, mapping: mapping}, nil
}

func readBounded(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("weights: %w", err)
	}
	if info.Size() > maxManifest {
		return nil, &ManifestError{Path: path, Why: fmt.Sprintf("%d bytes exceed the limit of %d", info.Size(), maxManifest)}
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("weights: %w", err)
	}
	return raw, nil
}

// Mapping returns all of model_weights.bin, read-only and valid until Close. It begins at a page
// boundary.
func (f *File) Mapping() []byte { return f.mapping }

// Path returns the path of the data file, or of the file of another form that it was made of.
func (f *File) Path() string { return cmp.Or(f.made, filepath.Join(f.dir, DataName)) }

// Made reports whether the weights are memory of the process, which the system cannot take back and
// read again.
func (f *File) Made() bool { return f.made != "" }

// Manifest returns the manifest. It is shared, read-only.
func (f *File) Manifest() *Manifest { return f.manifest }

// Config returns the manifest's config object, nil if it has none.
func (f *File) Config() json.RawMessage { return f.manifest.Config }

// Names returns the names of all tensors, sorted.
func (f *File) Names() []string { return sortedNames(f.manifest.Tensors) }

func sortedNames(tensors map[string]Descriptor) []string {
	out := make([]string, 0, len(tensors))
	for name := range tensors {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// PanelBytes returns the bytes of all tensors that are in panels.
func (f *File) PanelBytes() int64 {
	n := int64(0)
	for _, d := range f.manifest.Tensors {
		if d.Layout == quant.Panels {
			n += d.Size
		}
	}
	return n
}

// Has reports whether there is a tensor with this full name.
func (f *File) Has(name string) bool {
	_, ok := f.manifest.Tensors[name]
	return ok
}

// Matrix finds the matrix [rows, cols] called name, which is the tensors' name without ".weight".
// The format follows from types and shapes and must agree with the manifest's bits. The manifest
// gives the layout, rows by default. The error is a *TensorError.
func (f *File) Matrix(name string, rows, cols int) (Matrix, error) {
	fail := func(format string, args ...any) (Matrix, error) {
		return Matrix{}, &TensorError{Name: name + ".weight", Want: fmt.Sprintf("[%d, %d] in a format for matrices", rows, cols),
			Got: fmt.Sprintf(format, args...)}
	}
	d, ok := f.manifest.Tensors[name+".weight"]
	if !ok {
		return fail("missing")
	}
	format, err := quant.FromArrays(rows, cols, f.manifest.arrays(name))
	if err != nil {
		return fail("%v", err)
	}
	if d.Bits != 0 && d.Bits != format.Bits() {
		return fail("codes %s %v, which are %d bits wide, but the manifest says %d", d.DType, d.Shape, format.Bits(), d.Bits)
	}
	format.Layout = d.Layout
	m := Matrix{Rows: rows, Cols: cols, Format: format, WeightOffset: int(d.Offset)}
	if format.Codes() { // Open has checked that these exist, as far as the format has them
		m.ScalesOffset, m.BiasesOffset = int(f.manifest.Tensors[name+".scales"].Offset), int(f.manifest.Tensors[name+".biases"].Offset)
	}
	return m, nil
}

// Vector returns the n numbers of the tensor with this full name, widened to float32. The tensor
// may have any shape of n elements. The caller owns the slice. The error is a *TensorError, or a
// *mapfault.FileError if the file was truncated meanwhile.
func (f *File) Vector(name string, n int) ([]float32, error) {
	fail := func(format string, args ...any) ([]float32, error) {
		return nil, &TensorError{Name: name, Want: fmt.Sprintf("%d numbers in F32, BF16 or F16", n), Got: fmt.Sprintf(format, args...)}
	}
	d, ok := f.manifest.Tensors[name]
	if !ok {
		return fail("missing")
	}
	t := safetensors.Tensor{Name: name, DType: d.DType, Shape: d.Shape, Data: f.mapping[d.Offset : d.Offset+d.Size]}
	if t.Elements() != n || d.Layout != quant.Rows {
		return fail("%s %v", d.DType, d.Shape)
	}
	out := make([]float32, n)
	err := mapfault.Guard(func() error { return t.Floats(out, 0) })
	if lost := f.Lost(err); lost != nil {
		return nil, lost
	}
	if err != nil {
		return fail("%v", err)
	}
	return out, nil
}

// Lost returns the *mapfault.FileError of a fault, which err wraps, in Mapping, or nil if err is
// something else.
func (f *File) Lost(err error) error { return mapfault.In(f.Path(), f.mapping, err) }

// Check compares the manifest's config object with a configuration, so that the weights of one
// model do not run with the sizes of another. Keys that the manifest lacks are not compared. The
// error joins a *ManifestError for each key that differs.
func (f *File) Check(cfg *model.Config) error {
	if f.manifest.Config == nil {
		return nil
	}
	path := filepath.Join(f.dir, ManifestName)
	var got map[string]json.RawMessage
	if err := json.Unmarshal(f.manifest.Config, &got); err != nil {
		return &ManifestError{Path: path, Why: "config is not an object", Err: err}
	}
	var errs []error
	for _, s := range cfg.Sizes() {
		raw, ok := got[s.Key]
		if !ok {
			continue
		}
		if !says(raw, s.Value) {
			errs = append(errs, &ManifestError{Path: path, Why: fmt.Sprintf("config.%s is %s, but config.json says %d", s.Key, raw, s.Value)})
		}
	}
	return joinSome(errs)
}

// says reports whether raw is a number, or a list of that number alone, one for each layer.
func says(raw json.RawMessage, want int) bool {
	var one int
	if json.Unmarshal(raw, &one) == nil {
		return one == want
	}
	var list []int
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return false
	}
	return !slices.ContainsFunc(list, func(n int) bool { return n != want })
}

// Close unmaps the file. Mapping must not be used afterwards. A second Close does nothing.
func (f *File) Close() error {
	if f.mapping == nil {
		return nil
	}
	m := f.mapping
	f.mapping = nil
	if err := unix.Munmap(m); err != nil {
		return fmt.Errorf("weights: unmap %s: %w", filepath.Join(f.dir, DataName), err)
	}
	return nil
}
