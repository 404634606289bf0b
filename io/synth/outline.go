package synth

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/moeflux/moeflux-actor/internal/durable"
	"github.com/moeflux/moeflux-actor/io/expertfile"
)

// Outline writes the directory that Write would, but its large files are holes, which take no space
// on disk. It shows what a model of any size needs; nothing can be computed with it. dst must not
// exist.
func Outline(dst string, o Options) error {
	m, err := New(o)
	if err != nil {
		return err
	}
	if err := durable.MkdirAll(filepath.Join(dst, expertfile.DirName), durable.Shared); err != nil {
		return fmt.Errorf("synth: %w", err)
	}
	dense, tensors := m.weightsImage()
	files := []*image{dense}
	for _, layer := range m.layers() {
		files = append(files, m.expertImage(layer))
	}
	for _, f := range files {
		if err := makeHole(filepath.Join(dst, f.name), f.size()); err != nil {
			return fmt.Errorf("synth: %w", err)
		}
	}
	return m.writeSmall(dst, tensors)
}

// makeHole creates a file of that size without writing data.
func makeHole(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, durable.Shared.File())
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}
