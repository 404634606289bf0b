package dump

import (
	"slices"
	"testing"
)

func TestParseLayers(t *testing.T) {
	for text, want := range map[string][]int{
		"0": {0}, "7,3,3": {3, 7}, "0-": {0, 1, 2, 3, 4, 5, 6, 7}, "6-,1-2": {1, 2, 6, 7}, "5-5": {5},
		"": nil, "8": nil, "-1": nil, "3-2": nil, "a": nil, "1-b": nil, "1,": nil, "0-8": nil,
	} {
		got, err := ParseLayers(text, 8)
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
}

// A file's tensors are taken in the order of computation, whatever their order there is.
func TestOrder(t *testing.T) {
	want := []string{
		"b.c.embedding", "b.c.layer.0.input", "b.c.layer.0.qkv", "b.c.layer.0.heads", "b.c.layer.0.output", "b.c.layer.2.input", "b.c.layer.10.q",
		"b.c.hidden", "b.c.final_norm", "b.c.logits", "b.c.router_idx", "a.layer.0.input", "a.layer.x.input",
	}
	got := []string{want[6], want[4], want[11], want[10], want[9], want[12], want[8], want[7], want[5], want[3], want[2], want[1], want[0]}
	if sortByComputation(got); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
