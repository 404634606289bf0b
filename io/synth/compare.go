package synth

import (
	"fmt"
	"slices"
)

// Difference reports where an engine departs from the laws.
type Difference struct {
	Token     int32 // the input
	Layer     int   // in the model, for wrong picks; -1 for a wrong next token
	Got, Want []int32
}

func (d *Difference) Error() string {
	if d.Layer < 0 {
		return fmt.Sprintf("synth: after token %d: found token %d, expected %d", d.Token, d.Got, d.Want)
	}
	return fmt.Sprintf("synth: token %d, layer %d: found experts %v, expected %v", d.Token, d.Layer, d.Got, d.Want)
}

// Compare compares what an engine did with one token of the chain with the laws: the token with the
// largest logit, and the picks of each layer with experts, [layers with experts][K], as sets. It
// ignores nil picks. K may be smaller than the model's. It returns the differences, and how many
// layers were too close to tell.
func (m *Model) Compare(token, next int32, picks [][]int32) (diffs []*Difference, unsure int) {
	if want, ok := m.Next(token); ok && want != next {
		diffs = append(diffs, &Difference{Token: token, Layer: -1, Got: []int32{next}, Want: []int32{want}})
	}
	if picks == nil {
		return diffs, 0
	}
	for i, want := range m.Routing(token) {
		var got []int32
		if i < len(picks) {
			got = slices.Sorted(slices.Values(picks[i]))
		}
		expected := want.Experts
		if k := len(got); k > 0 && k < len(expected) {
			expected = expected[:k]
		}
		expected = slices.Sorted(slices.Values(expected))
		switch {
		case slices.Equal(got, expected):
		case want.Close && len(got) == len(expected):
			unsure++
		default:
			diffs = append(diffs, &Difference{Token: token, Layer: want.Layer, Got: got, Want: expected})
		}
	}
	return diffs, unsure
}
