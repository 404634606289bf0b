package expertfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/moeflux/moeflux-actor/model"
)

// Open opens the expert files of every layer that has experts: in dir/packed_experts; in
// packed_experts_2bit beside it, if only that exists; or in dir/root, where moeflux puts both. If
// there is a layout.json beside them, it gives the layout of records and must agree with the model;
// otherwise the format follows from the size of the files. The error joins a *MissingError or
// *SizeError for every file at fault, or is a *LayoutError.
func Open(dir string, cfg *model.Config) (*File, error) { return open(Find(dir, cfg), cfg, false) }

// OpenIn is Open with the expert files of another place than the model's own: dir itself, if the
// layer files are in it, or the folders below it that Open looks into. It chooses among packs of
// two and of four bits where a model has both.
func OpenIn(dir string, cfg *model.Config) (*File, error) {
	return open(FindIn(dir, cfg), cfg, false)
}

// OpenPartial is Open where files may be missing, but not all: reading an expert of a layer without
// a file fails with a *MissingError.
func OpenPartial(dir string, cfg *model.Config) (*File, error) {
	return open(Find(dir, cfg), cfg, true)
}

// OpenPartialIn is OpenIn where files may be missing, as with OpenPartial.
func OpenPartialIn(dir string, cfg *model.Config) (*File, error) {
	return open(FindIn(dir, cfg), cfg, true)
}

// FindIn returns the folder whose layer files OpenIn opens.
func FindIn(dir string, cfg *model.Config) string {
	if layers := cfg.MoELayers(); len(layers) > 0 {
		if _, err := os.Stat(filepath.Join(dir, LayerName(layers[0]))); err == nil {
			return dir
		}
	}
	return Find(dir, cfg)
}

func open(packed string, cfg *model.Config, partial bool) (*File, error) {
	layout, layouts, known, err := readLayout(filepath.Join(packed, LayoutName), cfg)
	if err != nil {
		return nil, err
	}
	f := &File{dir: packed, layout: layout, layouts: layouts, experts: cfg.NumExperts, layers: cfg.MoELayers(), files: map[int]*layerFile{}}
	var errs []error
	var sizes []int64 // of each layer, -1 for a file that could not be opened
	for _, layer := range f.layers {
		size, err := f.open(layer, filepath.Join(packed, LayerName(layer)))
		if missing, ok := errors.AsType[*MissingError](err); ok && partial {
			f.missing = append(f.missing, missing)
		} else if err != nil {
			errs = append(errs, err)
		}
		sizes = append(sizes, size)
	}
	for _, size := range sizes {
		if known {
			break
		}
		f.layout, known = guessLayout(cfg, size)
	}
	for i, layer := range f.layers {
		want := int64(f.layout.Bytes) * int64(f.experts) // 0 if no layout is known
		if sizes[i] >= 0 && (sizes[i] != want || !known) {
			errs = append(errs, &SizeError{Path: f.files[layer].path, Layer: layer, Want: want, Got: sizes[i]})
		}
	}
	if n := len(f.missing); n > 0 && n == len(f.layers) {
		errs = append(errs, f.missing[0])
	}
	if len(f.layers) == 0 {
		errs = append(errs, errors.New("expertfile: the model has no layer with experts"))
	}
	if len(errs) > 0 {
		f.Close()
		return nil, errors.Join(errs...)
	}
	return f, nil
}

// Find returns the folder whose layer files Open opens: the first of those it knows that has the
// file of the first layer with experts.
func Find(dir string, cfg *model.Config) string {
	usual := filepath.Join(dir, DirName)
	layers := cfg.MoELayers()
	if len(layers) == 0 {
		return usual
	}
	for _, d := range []string{usual, filepath.Join(dir, dirName2Bit), filepath.Join(dir, rootDir, DirName), filepath.Join(dir, rootDir, dirName2Bit)} {
		if _, err := os.Stat(filepath.Join(d, LayerName(layers[0]))); err == nil {
			return d
		}
	}
	return usual
}

// open opens one layer's file and returns its size.
func (f *File) open(layer int, path string) (int64, error) {
	l, size, err := f.openFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return -1, &MissingError{Path: path, Layer: layer, Err: err}
	}
	if err != nil {
		return -1, fmt.Errorf("expertfile: %w", err)
	}
	f.files[layer] = l
	return size, nil
}

// openFile opens a regular file and returns its size.
func (f *File) openFile(path string) (*layerFile, int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, -1, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	var raw syscall.RawConn
	if err == nil {
		raw, err = file.SyscallConn()
	}
	if err != nil {
		file.Close()
		return nil, -1, err
	}
	l := &layerFile{path: path, file: file, raw: raw, calls: &f.calls}
	l.read = l
	return l, info.Size(), nil
}
