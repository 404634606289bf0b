package modelfiles

import (
	"errors"
	"fmt"

	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/gguf"
	"github.com/moeflux/moeflux-actor/io/ggufmodel"
	"github.com/moeflux/moeflux-actor/io/weights"
	"github.com/moeflux/moeflux-actor/model"
)

// Check reports a path at which no model can be, without opening anything. The error is a
// *weights.NotModelError, or comes from the operating system.
func Check(path string) error {
	if gguf.Is(path) {
		return nil
	}
	return weights.CheckDir(path)
}

// Explain says for people why the model at a path does not open, for whatever reason that has.
func Explain(path string, err error) error {
	if gguf.Is(path) {
		return fmt.Errorf("the model in %s cannot be opened: %w", path, err)
	}
	return weights.Explain(path, err)
}

// Config reads the configuration of the model at a path. Errors are those of weights.ReadConfig and
// ggufmodel.Open.
func Config(path string) (*model.Config, error) {
	if !gguf.Is(path) {
		return weights.ReadConfig(path)
	}
	m, err := ggufmodel.Open(path)
	if err != nil {
		return nil, err
	}
	return m.Config, m.Close()
}

// Files is a model's configuration and its open files.
type Files struct {
	Config  *model.Config
	Weights *weights.File
	Experts *expertfile.File
}

// Where says which files are a model's.
type Where struct {
	Path       string // of the model
	ExpertsDir string // another place of its experts, see expertfile.OpenIn; "" for its own
	Partial    bool   // layers may lack experts, see expertfile.OpenPartial
}

// ErrWhole says that experts of a GGUF file cannot lie elsewhere.
var ErrWhole = errors.New("a GGUF file is used as a whole: its experts cannot be taken from another place or be left out; convert it to a packed directory for that")

// Open opens all files of a model.
func Open(w Where) (f *Files, err error) {
	if gguf.Is(w.Path) {
		return openGGUF(w)
	}
	f = &Files{}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	if f.Config, err = weights.ReadConfig(w.Path); err != nil {
		return f, err
	}
	if f.Weights, err = weights.Open(w.Path); err != nil {
		return f, err
	}
	if err = f.Weights.Check(f.Config); err != nil {
		return f, err
	}
	f.Experts, err = openPacked(w, f.Config)
	return f, err
}

func openGGUF(w Where) (*Files, error) {
	if w.ExpertsDir != "" || w.Partial {
		return nil, ErrWhole
	}
	l, err := convert.Load(w.Path)
	if err != nil {
		return nil, err
	}
	return &Files{l.Config, l.Weights, l.Experts}, nil
}

// Experts opens the experts of a model alone.
func Experts(w Where) (*expertfile.File, error) {
	if gguf.Is(w.Path) {
		f, err := openGGUF(w)
		if err != nil {
			return nil, err
		}
		return f.Experts, f.Weights.Close()
	}
	m, err := weights.ReadConfig(w.Path)
	if err != nil {
		return nil, err
	}
	return openPacked(w, m)
}

func openPacked(w Where, m *model.Config) (*expertfile.File, error) {
	switch {
	case w.Partial && w.ExpertsDir != "":
		return expertfile.OpenPartialIn(w.ExpertsDir, m)
	case w.Partial:
		return expertfile.OpenPartial(w.Path, m)
	case w.ExpertsDir != "":
		return expertfile.OpenIn(w.ExpertsDir, m)
	}
	return expertfile.Open(w.Path, m)
}

// Close closes what is open.
func (f *Files) Close() error {
	var errs []error
	if f.Experts != nil {
		errs = append(errs, f.Experts.Close())
	}
	if f.Weights != nil {
		errs = append(errs, f.Weights.Close())
	}
	return errors.Join(errs...)
}
