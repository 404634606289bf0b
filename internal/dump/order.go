package dump

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/moeflux/moeflux-actor/stages"
)

// place is where in a computation a tensor arises: the text, the layer, and what in it.
type place struct{ text, layer, what int }

// The layers of what is before the first one and after the last.
const (
	beforeLayers = -1
	afterLayers  = 1 << 30
)

// outside is what no layer has, in the order of computation.
var outside = []string{"hidden", "final_norm", "logits", "decode_logits"}

// sortByComputation orders the names of a file's tensors as they are computed, text after text.
// What has another name comes at a text's end.
func sortByComputation(names []string) {
	texts := map[string]int{}
	places := make(map[string]place, len(names))
	for _, name := range names {
		text, p := placeOf(name)
		if _, ok := texts[text]; !ok {
			texts[text] = len(texts)
		}
		p.text = texts[text]
		places[name] = p
	}
	slices.SortStableFunc(names, func(a, b string) int {
		x, y := places[a], places[b]
		return cmp.Or(cmp.Compare(x.text, y.text), cmp.Compare(x.layer, y.layer), cmp.Compare(x.what, y.what))
	})
}

// placeOf takes a name apart. A text's name may have dots.
func placeOf(name string) (text string, p place) {
	if parts := strings.Split(name, "."); len(parts) > 3 && parts[len(parts)-3] == "layer" {
		layer, err := strconv.Atoi(parts[len(parts)-2])
		if q, ok := stages.ParseQuantity(parts[len(parts)-1]); err == nil && ok {
			return strings.Join(parts[:len(parts)-3], "."), place{layer: layer, what: int(q)}
		}
	}
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return "", place{layer: afterLayers, what: len(outside)}
	}
	text, last := name[:i], name[i+1:]
	if last == "embedding" {
		return text, place{layer: beforeLayers}
	}
	what := slices.Index(outside, last)
	if what < 0 {
		what = len(outside)
	}
	return text, place{layer: afterLayers, what: what}
}
