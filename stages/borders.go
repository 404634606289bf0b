package stages

// Borders say which part of a split device (gpu.Split) computes which layers: they are the first
// layers of all parts but the first, ascending. Where there are none, one device computes all.
type Borders []int

// Part returns which part computes a layer. The end of a step, after all layers, is the last
// part's.
func (b Borders) Part(layer int) int {
	n := 0
	for n < len(b) && b[n] <= layer {
		n++
	}
	return n
}

// Range returns the layers of a part, of a model with a number of layers: from first to before end.
func (b Borders) Range(part, layers int) (first, end int) {
	if part > 0 {
		first = b[part-1]
	}
	if end = layers; part < len(b) {
		end = b[part]
	}
	return first, end
}
