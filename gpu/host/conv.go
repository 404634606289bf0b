package host

import "github.com/moeflux/moeflux-actor/gpu"

// convTaps is the kernel size that the primitive handles.
const convTaps = 4

// convTask is the causal convolution; a chunk is some channels of one segment.
type convTask struct {
	*vectors
	x, w, y          []float32
	channels, kernel int
	segments         []gpu.StateSegment
	stateAt          int
	per, perSegment  int // channels in a chunk, chunks in a segment
}

func (t *convTask) do(s *scratch, chunk int) {
	seg := &t.segments[chunk/t.perSegment]
	c0 := chunk % t.perSegment * t.per
	c1 := min(c0+t.per, t.channels)
	past := t.kernel - 1
	var state []float32
	if past > 0 {
		state = floatsAt(seg.State.At(t.stateAt), past*t.channels)
	}
	// input returns the chunk's channels of the row that is i rows after the state's first.
	input := func(i int) []float32 {
		if i < past {
			return state[i*t.channels:][c0:c1]
		}
		return t.x[(seg.Row+i-past)*t.channels:][c0:c1]
	}
	n := c1 - c0
	if t.kernel == convTaps {
		t.touch(gpu.FloatBytes(t.w[c0*convTaps:c1*convTaps]), 4*convTaps*n, 0, 1)
		t.touch(gpu.FloatBytes(state[c0:]), 4*n, 4*t.channels, past)
		w := grow(&s.a, convTaps*n)
		t.transposeAll(w, t.w[c0*convTaps:], n, convTaps, n, convTaps)
		for r := range seg.Rows {
			t.conv(t.y[(seg.Row+r)*t.channels:][c0:c1], w, input(r), input(r+1), input(r+2), input(r+3))
		}
	} else {
		acc := grow(&s.a, n)
		for r := range seg.Rows {
			clear(acc)
			for j := range t.kernel {
				w := t.w[c0*t.kernel+j:]
				for c, v := range input(r + j) {
					acc[c] += float32(w[c*t.kernel] * v)
				}
			}
			y := t.y[(seg.Row+r)*t.channels:][c0:c1]
			for c, v := range acc {
				y[c] = silu(v)
			}
		}
	}
	for i := range past {
		copy(state[i*t.channels:][c0:c1], input(i+seg.Rows))
	}
}

func (x *executor) runConv(o *gpu.CausalConv) {
	rows, count := 0, 0
	for i := range o.Segments {
		rows = max(rows, o.Segments[i].Row+o.Segments[i].Rows)
		count += o.Segments[i].Rows
	}
	t := &x.conv
	*t = convTask{vectors: x.vectors, channels: o.Channels, kernel: o.Kernel, segments: o.Segments, stateAt: o.StateAt, per: x.width(o.Channels, lineFloats)}
	t.x, t.y = floatsAt(o.X, rows*o.Channels), floatsAt(o.Y, rows*o.Channels)
	t.w = floatsAt(o.W, o.Channels*o.Kernel)
	t.perSegment = chunks(o.Channels, t.per)
	x.parallel(t, t.perSegment*len(o.Segments), 2*x.vectors.exponentials(count*o.Channels))
	*t = convTask{}
}
