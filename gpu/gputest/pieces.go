package gputest

import (
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/numcmp"
)

// testPieces takes one sequence through the operations that have a state, whole and in pieces, as a
// prompt is cut into chunks: outputs and states must have the same bits.
func testPieces(t *testing.T, d gpu.Device) {
	const rows = 23
	whole := []int{rows}
	for _, c := range []struct {
		name  string
		build func(s *setup, pieces []int) []*operand
	}{{"causalconv", piecesConv}, {"deltarule", piecesDelta},
		{"choose", func(s *setup, pieces []int) []*operand { return piecesChosen(s, pieces, 0, 0) }},
		{"choose/int8", func(s *setup, pieces []int) []*operand { return piecesChosen(s, pieces, 16, 0) }},
		{"choose/blocks", func(s *setup, pieces []int) []*operand { return piecesChosen(s, pieces, 0, 12) }},
		{"attention", func(s *setup, pieces []int) []*operand {
			return piecesCached(s, pieces, cachedPieces{4, 2, 16, 0, false, 0})
		}},
		{"attention/int8", func(s *setup, pieces []int) []*operand {
			return piecesCached(s, pieces, cachedPieces{4, 2, 16, 16, false, 0})
		}},
		// Where vectors can be loaded a device may take many rows of a sequence together, and few
		// otherwise.
		{"attention/dim=64", func(s *setup, pieces []int) []*operand {
			return piecesAligned(s, pieces, cachedPieces{12, 2, 64, 0, false, 0})
		}},
		{"attention/dim=64/sinks", func(s *setup, pieces []int) []*operand {
			return piecesAligned(s, pieces, cachedPieces{12, 2, 64, 0, true, 0})
		}},
		{"attention/window", func(s *setup, pieces []int) []*operand {
			return piecesCached(s, pieces, cachedPieces{4, 2, 16, 0, true, 6})
		}},
		{"attention/dim=64/window", func(s *setup, pieces []int) []*operand {
			return piecesAligned(s, pieces, cachedPieces{12, 2, 64, 0, true, 10})
		}},
		{"attention/dim=64/window=40", func(s *setup, pieces []int) []*operand {
			return piecesAligned(s, pieces, cachedPieces{12, 2, 64, 0, true, 40})
		}},
		{"attention/dim=128", func(s *setup, pieces []int) []*operand {
			return piecesAligned(s, pieces, cachedPieces{8, 1, 128, 0, false, 0})
		}},
		{"attention/dim=256", func(s *setup, pieces []int) []*operand {
			return piecesAligned(s, pieces, cachedPieces{2, 2, 256, 0, false, 0})
		}},
		{"attention/dim=128/int8", func(s *setup, pieces []int) []*operand {
			return piecesAligned(s, pieces, cachedPieces{4, 1, 128, 128, false, 0})
		}}} {
		t.Run(c.name, func(t *testing.T) {
			compute := func(pieces []int) [][]float32 {
				s := newSetup(t, d, c.name)
				operands := c.build(s, pieces)
				s.run()
				var out [][]float32
				for _, o := range operands {
					out = append(out, o.floats())
				}
				return out
			}
			want := compute(whole)
			for _, pieces := range [][]int{{1, 22}, {20, 3}, {1, 1, 1, 2, 5, 13}} {
				for i, got := range compute(pieces) {
					if err := numcmp.Equal(got, want[i]); err != nil {
						t.Errorf("pieces %v, operand %d: %v", pieces, i, err)
					}
				}
			}
		})
	}
}

func total(pieces []int) (n int) {
	for _, p := range pieces {
		n += p
	}
	return n
}

func piecesConv(s *setup, pieces []int) []*operand {
	const channels, kernel = 40, 4
	n := total(pieces)
	x, w := s.input("X", s.normal(n*channels)), s.input("W", s.normal(channels*kernel))
	y, state := s.output("Y", n*channels), s.inout("state", s.normal((kernel-1)*channels))
	row := 0
	for _, p := range pieces {
		gpu.Encode(&s.cmds, gpu.CausalConv{X: x.view(), W: w.view(), Y: y.view(), Channels: channels, Kernel: kernel,
			Segments: []gpu.StateSegment{{Row: row, Rows: p, State: state.view()}}})
		row += p
	}
	return []*operand{y, state}
}

func piecesDelta(s *setup, pieces []int) []*operand {
	d := deltaShape{keyHeads: 1, valueHeads: 2, keyDim: 48, valueDim: 35}
	op, y, _ := d.op(s, total(pieces))
	state := s.inout("state", s.normal(d.valueHeads*d.valueDim*d.keyDim))
	row := 0
	for _, p := range pieces {
		op.Segments = []gpu.StateSegment{{Row: row, Rows: p, State: state.view()}}
		gpu.Encode(&s.cmds, op)
		row += p
	}
	return []*operand{y, state}
}

// cachedPieces is an attention that piecesCached cuts; group is that of a cache of 8 bits, or 0.
type cachedPieces struct {
	heads, kvHeads, dim, group int
	sinks                      bool
	window                     int
}

func piecesAligned(s *setup, pieces []int, a cachedPieces) []*operand {
	s.aligned = true
	return piecesCached(s, pieces, a)
}

// piecesCached appends each piece and attends to what is there.
func piecesCached(s *setup, pieces []int, a cachedPieces) []*operand {
	const before = 1010
	n := total(pieces)
	c := s.cache("sequence", cacheShape{4, a.kvHeads * a.dim, a.group, 0}, before+n, before)
	for _, p := range c.pages {
		p.where(func(int) bool { return true })
	}
	q, y := s.input("Q", s.normal(n*a.heads*a.dim)), s.output("Y", n*a.heads*a.dim)
	k, v := s.input("K", s.normal(n*a.kvHeads*a.dim)), s.input("V", s.normal(n*a.kvHeads*a.dim))
	var sinks gpu.View
	if a.sinks {
		sinks = s.input("Sinks", s.normal(a.heads)).view()
	}
	row := 0
	for _, p := range pieces {
		segments := []gpu.KVSegment{{Row: row, Rows: p, Pos: before + row, Pages: c.kv.Pages}}
		gpu.Encode(&s.cmds, gpu.AppendKV{K: k.view(), V: v.view(), Cache: c.kv.KVLayout, Segments: segments})
		gpu.Encode(&s.cmds, gpu.Attention{Q: q.view(), Sinks: sinks, Y: y.view(), QRowStride: a.heads * a.dim, QHeadStride: a.dim, Heads: a.heads,
			KVHeads: a.kvHeads, HeadDim: a.dim, Window: a.window, Scale: 0.25, Cache: c.kv.KVLayout, Segments: segments})
		row += p
	}
	return []*operand{y}
}
