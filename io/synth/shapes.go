package synth

import (
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Shape is the configuration of a model, as a checkpoint publishes it.
type Shape struct {
	Name       string // for display
	Config     []byte // config.json
	Generation []byte // generation_config.json; nil for none
}

//go:embed shapes/*.json
var shapes embed.FS

// Names returns the names of the published shapes, sorted.
func Names() []string {
	entries, err := shapes.ReadDir("shapes")
	if err != nil {
		panic(fmt.Sprintf("synth: the embedded shapes cannot be listed: %v", err))
	}
	var out []string
	for _, e := range entries {
		out = append(out, strings.TrimSuffix(e.Name(), ".json"))
	}
	return out
}

// Named returns a published shape. The error is an *UnknownShapeError.
func Named(name string) (Shape, error) {
	if !slices.Contains(Names(), name) {
		return Shape{}, &UnknownShapeError{Name: name, Known: Names()}
	}
	raw, err := shapes.ReadFile(path.Join("shapes", name+".json"))
	var s struct {
		Config     json.RawMessage `json:"config"`
		Generation json.RawMessage `json:"generation_config"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil {
		panic(fmt.Sprintf("synth: the embedded shape %s cannot be read: %v", name, err))
	}
	return Shape{Name: name, Config: s.Config, Generation: s.Generation}, nil
}
