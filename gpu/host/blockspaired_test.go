package host

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// ggufFormats are the formats of GGUF files that the benchmarks compare.
func ggufFormats() (formats []quant.Format) {
	for _, name := range []string{"Q4_K", "Q5_K", "Q6_K", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "IQ4_NL", "MXFP4", "Q2_K", "Q3_K", "IQ4_XS", "F16"} {
		formats = append(formats, quant.InBlock(quant.BlockNamed(name)))
	}
	return formats
}

// smallScales gives random blocks scales around 0.01, as models have them. Random bits would be
// infinite, or too small for a normal number, often enough to slow a product down.
func smallScales(b *quant.Block, w []byte) {
	for ; len(w) >= b.Size; w = w[b.Size:] {
		for _, at := range b.Halves {
			w[at+1] = 0x20 | w[at+1]&3
		}
		if b.Power {
			w[0] = 112 + w[0]%16
		}
	}
}

// BenchmarkBlocksPaired multiplies rows of X by matrices of the engine's own 4 bits and of a format
// of GGUF files, in turns within one run. One of each stays in a cache of 16 MB. Eight, 38 MB of
// own 4 bits, come from memory where the cache is no larger, and 64, 300 MB, mostly do elsewhere. A
// share is the format's bytes a second over those of own 4 bits.
func BenchmarkBlocksPaired(b *testing.B) {
	const out, in = 2048, 4096
	own := q4.In(quant.Panels, quant.PanelRows)
	for _, c := range []struct{ rows, matrices int }{{1, 1}, {1, 8}, {1, 64}, {64, 1}} {
		for _, threads := range threadCounts() {
			for _, f := range ggufFormats() {
				b.Run(fmt.Sprintf("rows=%d/matrices=%d/threads=%d/format=%v", c.rows, c.matrices, threads, f), func(b *testing.B) {
					d := openConfig(b, Config{Threads: threads, Activations: Int8})
					x, y := benchFloats(b, d, c.rows*in), benchFloats(b, d, c.rows*out)
					commands := make([][2]gpu.Commands, c.matrices)
					var times [2][]time.Duration
					for j := range commands {
						for i, f := range []quant.Format{own, f} {
							gpu.Encode(&commands[j][i], gpu.MatMul{W: benchMatrix(b, d, out, in, f), X: x, Y: y, Rows: c.rows})
						}
					}
					for b.Loop() {
						for j := range commands {
							for i := range times {
								began := time.Now()
								if err := d.Run(&commands[j][i]); err != nil {
									b.Fatal(err)
								}
								times[i] = append(times[i], time.Since(began))
							}
						}
					}
					reportPair(b, times, own.Bytes(out, in), f.Bytes(out, in))
				})
			}
		}
	}
}

// reportPair reports bytes a second of two products that took turns, medians and best.
func reportPair(b *testing.B, times [2][]time.Duration, ownBytes, bytes int) {
	for _, of := range []struct {
		name string
		pick func([]time.Duration) time.Duration
	}{{"median", func(t []time.Duration) time.Duration { return t[len(t)/2] }}, {"best", func(t []time.Duration) time.Duration { return t[0] }}} {
		var speed [2]float64
		for i, n := range []int{ownBytes, bytes} {
			slices.Sort(times[i])
			speed[i] = float64(n) / of.pick(times[i]).Seconds() / 1e9
		}
		b.ReportMetric(speed[0], "own-"+of.name+"-GB/s")
		b.ReportMetric(speed[1], of.name+"-GB/s")
		b.ReportMetric(speed[1]/speed[0], of.name+"-share")
	}
}
