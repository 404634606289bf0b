//go:build cuda && linux && (amd64 || arm64)

package cuda

import (
	"encoding/binary"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu/launch"
)

// stepKernel makes y of words all over x; later threadgroups take longer.
const stepKernel = `
kernel void step(device const uint* x [[buffer(0)]], device uint* y [[buffer(1)]], constant uint& n [[buffer(2)]], constant uint& add [[buffer(3)]],
		uint i [[thread_position_in_grid]]) {
	uint v = x[(i * 7919 + add) % n];
	for (uint k = 0; k < (i >> 8) * 4; k++) v = v * 1664525 + 1013904223;
	y[i] = v + i;
}`

// TestProbeOverlap replays a chain in which each kernel reads what threadgroups all over the one
// before wrote and writes over what that one read, with other constants each time, and two such
// graphs behind one another. Without griddepcontrol.wait nearly all words are wrong.
func TestProbeOverlap(t *testing.T) {
	const n, steps, rounds = 1 << 14, 20, 20
	b, _ := openProbe(t)
	t.Logf("%s: kernels of a graph overlap: %v", b.Name(), b.overlaps())
	p := compileProbe(t, b, parse(t, stepKernel), "step")
	s, memory := newStream(t, b), [2]launch.Memory{newMemory(t, b, 4*n), newMemory(t, b, 4*n)}
	want, next := make([]uint32, n), make([]uint32, n)
	out := make([]byte, 4*n)
	wrong := 0
	for round := range rounds {
		for i := range steps {
			if i == steps/2 { // ends a chain
				must(t, s.CopyOut(out[:4], memory[i%2], 0))
			}
			add := uint32(round*31 + i)
			must(t, s.Launch(p, &launch.Launch{Groups: [3]int{n / 256, 1, 1}, Threads: 256,
				Args: []launch.Arg{{Memory: memory[i%2]}, {Memory: memory[1-i%2]}, {Bytes: u32(n)}, {Bytes: u32(add)}}}))
			for j := range next {
				v := want[(uint32(j)*7919+add)%n]
				for range (j >> 8) * 4 {
					v = v*1664525 + 1013904223
				}
				next[j] = v + uint32(j)
			}
			want, next = next, want
		}
		must(t, s.CopyOut(out, memory[0], 0))
		wait(t, s)
		for j, w := range want {
			if binary.LittleEndian.Uint32(out[4*j:]) != w {
				wrong++
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d words are wrong", wrong, rounds*n)
	}
}
