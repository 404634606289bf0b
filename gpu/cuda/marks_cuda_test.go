//go:build cuda && linux && (amd64 || arm64)

package cuda

import (
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/gpu/launch"
)

// spinKernel keeps a thread busy for some rounds.
const spinKernel = `
kernel void spin(device uint* y [[buffer(0)]], constant uint& rounds [[buffer(1)]], uint i [[thread_position_in_grid]]) {
	uint v = y[i] + i;
	for (uint k = 0; k < rounds; k++) { v = v * 1664525 + 1013904223; v ^= v >> 13; }
	y[i] = v;
}`

// TestMarksWallTime compares the events of marks with the clock on the wall: three parts of a
// batch, of 1, 2 and 4 times as much work, with what the same parts take as batches of their own.
// Each part is a chain of kernels, which is replayed as a graph from its second time on.
func TestMarksWallTime(t *testing.T) {
	const rounds, slack = 1 << 20, 300 * time.Microsecond
	b, _ := openProbe(t)
	p := compileProbe(t, b, parse(t, spinKernel), "spin")
	s, memory := newStream(t, b), newMemory(t, b, 4*256)
	work := func(part int) {
		for range 4 { // a chain, of which each part has other constants
			must(t, s.Launch(p, &launch.Launch{Groups: [3]int{1, 1, 1}, Threads: 256, Args: []launch.Arg{{Memory: memory}, {Bytes: u32(rounds << part)}}}))
		}
	}
	near := func(a, b, share float64) bool {
		return a-b <= share*b+float64(slack) && b-a <= share*b+float64(slack)
	}
	for range 20 { // the GPU's clock goes up
		work(2)
		wait(t, s)
	}
	for round := range 4 {
		var alone, wall [3]float64 // by the device's clock, and on the wall
		for part := range alone {
			began := time.Now()
			work(part)
			alone[part], wall[part] = float64(wait(t, s)), float64(time.Since(began))
			if !near(alone[part], wall[part], 0.05) {
				t.Errorf("round %d: part %d took %.0f ns by events and %.0f ns on the wall", round, part, alone[part], wall[part])
			}
		}
		var marks [3]int64
		began := time.Now()
		for part := range marks {
			work(part)
			must(t, s.Mark(&marks[part]))
		}
		ns := wait(t, s)
		all := float64(time.Since(began))
		if float64(ns) > all || !near(float64(ns), all, 0.05) || marks[2] > ns || !near(float64(marks[2]), float64(ns), 0.01) {
			t.Errorf("round %d: all parts took %d ns by events, the last mark is at %d, the wall says %.0f", round, ns, marks[2], all)
		}
		before := int64(0)
		for part, at := range marks {
			if took := float64(at - before); !near(took, wall[part], 0.1) || !near(took, alone[part], 0.1) {
				t.Errorf("round %d: part %d took %.0f ns between marks, alone %.0f, and on the wall %.0f", round, part, took, alone[part], wall[part])
			}
			before = at
		}
		t.Logf("round %d: marks at %v of %d ns; alone %.0f, on the wall %.0f; together on the wall %.0f", round, marks, ns, alone, wall, all)
	}
}
