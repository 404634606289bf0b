package synth

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/moeflux/moeflux-actor/io/expertfile"
)

// checkExpertsOf checks that everything that decides the bytes of experts is the same in the model
// in ExpertsOf.
func (m *Model) checkExpertsOf(files []*image) error {
	dir := m.o.ExpertsOf
	other, err := Load(dir)
	if err != nil {
		return err
	}
	r, mine := other.record(), m.record()
	r.Route, r.Topics, r.Run, r.Shape = mine.Route, mine.Topics, mine.Run, mine.Shape
	if r != mine || !bytes.Equal(other.config, m.config) {
		return &OptionError{
			What: fmt.Sprintf("experts of %s", dir),
			Want: "a model of the same shape, layers, vocabulary, experts, seed and layout: only the route may differ",
		}
	}
	for _, f := range files {
		info, err := os.Stat(filepath.Join(dir, f.name))
		if err != nil {
			return fmt.Errorf("synth: %w", err)
		}
		if info.Size() != f.size() {
			return &FormatError{Path: filepath.Join(dir, f.name), Why: fmt.Sprintf("has %d bytes, expected %d", info.Size(), f.size())}
		}
	}
	return nil
}

// sumsName is the file of the records' checksums.
var sumsName = filepath.Join(expertfile.DirName, expertfile.SumsName)

// linkExperts creates hard links in dir to the expert files of the model in ExpertsOf, and to their
// checksums if it has them.
func (m *Model) linkExperts(dir string, files []*image) error {
	for _, f := range files {
		if err := os.Link(filepath.Join(m.o.ExpertsOf, f.name), filepath.Join(dir, f.name)); err != nil {
			return fmt.Errorf("synth: both models must be on one file system that supports hard links: %w", err)
		}
	}
	if len(files) == 0 {
		return nil
	}
	if err := os.Link(filepath.Join(m.o.ExpertsOf, sumsName), filepath.Join(dir, sumsName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("synth: %w", err)
	}
	return nil
}
