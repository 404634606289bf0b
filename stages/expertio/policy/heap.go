package policy

// value orders the experts of a layer: it is the score, or more if the expert is popular or if
// Expect said so.
func (o *Order) value(at int, key int32) float64 {
	hope := max(o.expect[Ordinary].chance[key], o.expect[Urgent].chance[key])
	return max(o.by.score[key], o.popular.score[key]*o.layers[at].anew, hope*o.by.layers[at].weight)
}

// before reports whether a leaves before b of the same layer.
func (o *Order) before(at int, a, b int32) bool {
	va, vb := o.value(at, a), o.value(at, b)
	return va < vb || va == vb && a < b
}

// raised restores the heap after an expert's value has grown.
func (o *Order) raised(at, key int) {
	if i := o.place[key]; i >= 0 {
		o.down(at, int(i))
		o.look(at)
	}
}

// heapify orders a whole layer.
func (o *Order) heapify(at int) {
	o.layers[at].stale = false
	for i := len(o.layers[at].heap)/2 - 1; i >= 0; i-- {
		o.down(at, i)
	}
}

func (o *Order) up(at, i int) {
	h := o.layers[at].heap
	k := h[i]
	for i > 0 && o.before(at, k, h[(i-1)/2]) {
		h[i] = h[(i-1)/2]
		o.place[h[i]] = int32(i)
		i = (i - 1) / 2
	}
	h[i], o.place[k] = k, int32(i)
}

func (o *Order) down(at, i int) {
	h := o.layers[at].heap
	k := h[i]
	for 2*i+1 < len(h) {
		c := 2*i + 1
		if c+1 < len(h) && o.before(at, h[c+1], h[c]) {
			c++
		}
		if !o.before(at, h[c], k) {
			break
		}
		h[i] = h[c]
		o.place[h[i]] = int32(i)
		i = c
	}
	h[i], o.place[k] = k, int32(i)
}
