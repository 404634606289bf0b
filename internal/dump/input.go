package dump

import (
	"fmt"
	"strings"

	"github.com/moeflux/moeflux-actor/io/safetensors"
)

// Input is what a dump is of: a text, and perhaps hidden states that come after it.
type Input struct {
	Name string
	Text []int32
	Rows []float32 // [rows, hidden]
}

// ReadInputs reads hidden states: each tensor of the file, [rows, hidden], under its name, less
// ".input" at the end. So a dump's own input of a layer can be put in again.
func ReadInputs(path string, hidden int) ([]Input, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []Input
	for _, name := range f.Names() {
		t, _ := f.Tensor(name)
		if len(t.Shape) != 2 || t.Shape[1] != hidden || t.Shape[0] == 0 {
			return nil, fmt.Errorf("%s: %s has shape %v; hidden states are [rows, %d]", path, name, t.Shape, hidden)
		}
		in := Input{Name: strings.TrimSuffix(name, ".input"), Rows: make([]float32, t.Elements())}
		if err := t.Floats(in.Rows, 0); err != nil {
			return nil, err
		}
		all = append(all, in)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no tensors", path)
	}
	return all, nil
}
