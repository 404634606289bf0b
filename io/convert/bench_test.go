package convert

import (
	"fmt"
	"io"
	"testing"

	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// BenchmarkEmit quantises one matrix from each encoding. Bytes are those of the source.
func BenchmarkEmit(b *testing.B) {
	const rows, cols = 2048, 2048
	bytes := func(n int) safetensors.Tensor {
		return safetensors.Tensor{DType: safetensors.BF16, Data: make([]byte, n)}
	}
	for _, c := range []struct {
		from string
		m    found
		bits int
	}{
		{"q4", found{enc: coded, codes: quant.Affine(4, 64), weight: bytes(rows * cols / 2), scales: bytes(rows * cols / 32), biases: bytes(rows * cols / 32)}, 4},
		{"bf16", found{weight: bytes(rows * cols * 2)}, 4},
		{"q4", found{enc: coded, codes: quant.Affine(4, 64), weight: bytes(rows * cols / 2), scales: bytes(rows * cols / 32), biases: bytes(rows * cols / 32)}, 2},
		{"fp8", float8s(rows, cols), 4},
	} {
		for _, layout := range []quant.Layout{quant.Rows, quant.Panels} {
			b.Run(fmt.Sprintf("from=%s/bits=%d/layout=%s", c.from, c.bits, layout), func(b *testing.B) {
				m := c.m
				m.rows, m.cols = rows, cols
				m.format = quant.Affine(c.bits, 64)
				blocks, err := m.all().blocks("x", layout)
				if err != nil {
					b.Fatal(err)
				}
				e := newEmitter(func([]byte) {})
				e.w = io.Discard
				b.SetBytes(int64(len(m.weight.Data)))
				b.ReportAllocs()
				for b.Loop() {
					for _, block := range blocks {
						if err := e.write(block); err != nil {
							b.Fatal(err)
						}
					}
				}
				b.ReportMetric(float64(rows*cols)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mweights/s")
			})
		}
	}
}

// float8s is a matrix of 8-bit floats with one scale.
func float8s(rows, cols int) found {
	weight := safetensors.Tensor{DType: safetensors.F8E4M3, Data: make([]byte, rows*cols)}
	r := &recipe{codes: bytesOf(weight), scale: func(dst []byte, _ int) error {
		putF32(dst, []float32{1})
		return nil
	}}
	f, _ := quant.FP8(128)
	return found{enc: recoded, codes: f, weight: weight, recipe: r}
}
