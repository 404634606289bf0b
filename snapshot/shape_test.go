package snapshot

import (
	"reflect"
	"testing"

	"github.com/moeflux/moeflux-actor/model"
)

// TestShapeOf holds the shapes of three kinds of models against what the format's description says
// of them.
func TestShapeOf(t *testing.T) {
	layers := func(kinds []model.Mixer) []model.Layer {
		var out []model.Layer
		for _, k := range kinds {
			out = append(out, model.Layer{Mixer: k})
		}
		return out
	}
	for _, c := range []struct {
		name    string
		m       model.Config
		want    *Shape
		fields  fields
		version int
	}{
		{"A3B", model.Config{NumAttentionHeads: 16, NumKeyValueHeads: 2, HeadDim: 256, LinearNumKeyHeads: 16, LinearNumValueHeads: 32,
			LinearKeyHeadDim: 128, LinearValueHeadDim: 128, LinearConvKernelDim: 4, Layers: layers(regular(40, 4, ful))},
			hybrid(40, 32, 8192), fields{40, 4, 2, 256, 98_304, 2_097_152, 0, 0}, 1},
		{"Cogito", model.Config{NumAttentionHeads: 128, NumKeyValueHeads: 128, HeadDim: 192, KVLoraRank: 512, QKNopeHeadDim: 128, QKRopeHeadDim: 64,
			VHeadDim: 128, QLoraRank: 1536, Layers: layers(regular(61, 1, lat))},
			&Shape{Layers: regular(61, 1, lat), KVHeads: 128, HeadDim: 192, KVLoraRank: 512, RopeDim: 64}, fields{61, 1, 128, 192, 0, 0, 512, 64}, 2},
		{"30B", model.Config{NumAttentionHeads: 32, NumKeyValueHeads: 4, HeadDim: 128, Layers: layers(regular(48, 1, ful))},
			&Shape{Layers: regular(48, 1, ful), KVHeads: 4, HeadDim: 128}, fields{48, 1, 4, 128, 0, 0, 0, 0}, 1},
	} {
		s := ShapeOf(&c.m)
		if !reflect.DeepEqual(s, c.want) || s.fields() != c.fields || s.version() != c.version {
			t.Errorf("%s: %+v of version %d, header %v; want %+v, %v", c.name, s, s.version(), s.fields(), c.want, c.fields)
		}
		if err := s.Validate(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
