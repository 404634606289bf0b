package host

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// The generator knows where the fields of blockArgs and of quant.Whole are.
func TestBlockArgs(t *testing.T) {
	var a blockArgs
	var w quant.Whole
	var r rowArgs
	var e shortEight
	var rest shortRest
	var m manyArgs
	var apart shortApart
	var sa stripeArgs
	var sr stripeRow
	for name, c := range map[string][2]uintptr{
		"codes": {unsafe.Offsetof(a.codes), 0}, "scales": {unsafe.Offsetof(a.scales), 8}, "biases": {unsafe.Offsetof(a.biases), 16},
		"cols": {unsafe.Offsetof(a.cols), 24}, "rows": {unsafe.Offsetof(a.rows), 32}, "x": {unsafe.Offsetof(a.x), 40},
		"y": {unsafe.Offsetof(a.y), 104}, "a number of y": {unsafe.Sizeof(a.y[0]), 4},
		"Scales": {unsafe.Offsetof(w.Scales), 0}, "Minima": {unsafe.Offsetof(w.Minima), 32}, "D": {unsafe.Offsetof(w.D), 64},
		"w": {unsafe.Offsetof(r.w), 0}, "rows of w": {unsafe.Offsetof(r.rows), 8}, "blocks": {unsafe.Offsetof(r.blocks), 16}, "x of a row": {unsafe.Offsetof(r.x), 24},
		"of": {unsafe.Offsetof(r.of), 32}, "sums": {unsafe.Offsetof(r.sums), 40}, "y of a row": {unsafe.Offsetof(r.y), 48},
		"back": {unsafe.Offsetof(r.back), 56}, "pages": {unsafe.Offsetof(r.pages), 64},
		"scale": {unsafe.Offsetof(e.scale), 256}, "sums of an eight": {unsafe.Offsetof(e.sums), 288}, "less": {unsafe.Offsetof(e.less), 320}, "an eight": {unsafe.Sizeof(e), 608},
		"w of many": {unsafe.Offsetof(m.w), 0}, "eights": {unsafe.Offsetof(m.eights), 8}, "rest": {unsafe.Offsetof(m.rest), 16}, "rows of many": {unsafe.Offsetof(m.rows), 24},
		"x of many": {unsafe.Offsetof(m.x), 32}, "y of many": {unsafe.Offsetof(m.y), 96},
		"codes apart": {unsafe.Offsetof(apart.codes), 0}, "scales apart": {unsafe.Offsetof(apart.scale), 256}, "biases apart": {unsafe.Offsetof(apart.biases), 288}, "an eight apart": {unsafe.Sizeof(apart), 320},
		"w of a stripe": {unsafe.Offsetof(sa.w), 0}, "numbers": {unsafe.Offsetof(sa.numbers), 8}, "other": {unsafe.Offsetof(sa.other), 16},
		"segments": {unsafe.Offsetof(sa.segments), 24}, "x of a stripe": {unsafe.Offsetof(sa.x), 32}, "of of a stripe": {unsafe.Offsetof(sa.of), 40},
		"lanes": {unsafe.Offsetof(sa.lanes), 48}, "y of a stripe": {unsafe.Offsetof(sa.y), 56},
		"a stripeShort": {unsafe.Sizeof(stripeShort{}), 12}, "a stripeWhole": {unsafe.Sizeof(stripeWhole{}), 36}, "sums of a stripeWhole": {unsafe.Offsetof(stripeWhole{}.sums), 4},
		"x of a stripeRow": {unsafe.Offsetof(sr.x), 0}, "numbers of X": {unsafe.Offsetof(sr.numbers), 8}, "sums of X": {unsafe.Offsetof(sr.sums), 16},
		"dst": {unsafe.Offsetof(sr.dst), 24}, "of of X": {unsafe.Offsetof(sr.of), 32}, "laneX": {unsafe.Offsetof(sr.laneX), 40},
		"laneOf": {unsafe.Offsetof(sr.laneOf), 48}, "count": {unsafe.Offsetof(sr.count), 56},
		"order": {unsafe.Offsetof(rest.order), 608}, "mask": {unsafe.Offsetof(rest.mask), 640},
		"DMin": {unsafe.Offsetof(w.DMin), 68}, "a Whole": {unsafe.Sizeof(w), 72},
	} {
		if c[0] != c[1] {
			t.Errorf("%s is at %d, want %d", name, c[0], c[1])
		}
	}
}

// Every variant takes random blocks apart as package quant does, to the bit, and widens them to the
// numbers that Unpack has.
func TestSplit(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, k := range available() {
		for c := range quant.Coding(quant.NumCodings) {
			b := c.Block()
			if b == nil {
				continue
			}
			for _, blocks := range []int{1, 3, 2 * 512 / b.Len, 33} {
				n, src := blocks*b.Len, bytesBeside(rng, blocks*b.Size)
				got, want := make([]float32, n), make([]float32, n)
				b.Unpack(want, src)
				k.codings[c].widen(got, src)
				sameBits(t, k.name, c, got, want)
				if b.Len == 1 {
					continue
				}
				groups := n / b.Group
				var codes [2][]int8
				var scales, biases [2][]float32
				for i := range 2 {
					codes[i], scales[i], biases[i] = make([]int8, n), make([]float32, groups), make([]float32, groups)
				}
				k.codings[c].split(codes[0], scales[0], biases[0], src)
				b.Split(codes[1], scales[1], biases[1], src)
				sameBits(t, k.name, c, scales[0], scales[1])
				sameBits(t, k.name, c, biases[0], biases[1])
				sameCodes(t, k.name, c, codes)
				if b.Len == wholeGroup {
					var wholes [2][]quant.Whole
					clear(codes[0])
					for i := range 2 {
						wholes[i] = make([]quant.Whole, blocks)
					}
					k.codings[c].whole(codes[0], wholes[0], src)
					b.Whole(codes[1], wholes[1], src)
					sameCodes(t, k.name, c, codes)
					for i, w := range wholes[0] {
						want := wholes[1][i]
						sameBits(t, k.name, c, []float32{w.D, w.DMin}, []float32{want.D, want.DMin})
						if w.Scales != want.Scales || w.Minima != want.Minima {
							t.Fatalf("%s: %v: block %d has %v, want %v", k.name, c, i, w, want)
						}
					}
				}
			}
		}
	}
}

func sameCodes(t *testing.T, name string, c quant.Coding, codes [2][]int8) {
	t.Helper()
	for i, q := range codes[0] {
		if q != codes[1][i] {
			t.Fatalf("%s: %v: code %d is %d, want %d", name, c, i, q, codes[1][i])
		}
	}
}

// finiteBlocks returns random blocks whose scales and biases are numbers.
func finiteBlocks(rng *rand.Rand, b *quant.Block, n int) []byte {
	src, codes := bytesBeside(rng, n*b.Size), make([]int8, b.Len)
	scales, biases := make([]float32, b.Len/b.Group), make([]float32, b.Len/b.Group)
	for i := 0; i < n; {
		block := src[i*b.Size : (i+1)*b.Size]
		sum := float32(0)
		b.Split(codes, scales, biases, block)
		for g := range scales {
			sum += 0*scales[g] + 0*biases[g]
		}
		if sum == 0 {
			i++
			continue
		}
		for j := range block {
			block[j] = byte(rng.Uint32())
		}
	}
	return src
}

// Kernels of one row of X have the bits of the definition: for rows that are eights of blocks and
// others, with inputs that are all as large as they get, and codes, too.
func TestOneRow(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for _, k := range available() {
		for c := range quant.Coding(quant.NumCodings) {
			b := c.Block()
			if b == nil || b.Len == 1 || k.blocks.arrange == nil {
				continue
			}
			if k.codings[c].oneRow == nil {
				t.Errorf("%s has no kernel for one row of %s", k.name, b)
				continue
			}
			for _, cols := range []int{256, 288, 480, 768, 1024, 2880} {
				if cols%b.Len != 0 {
					continue
				}
				const rows = 5
				src := finiteBlocks(rng, b, rows*cols/b.Len)
				for o, all := range map[int]byte{0: 0x00, 1: 0xff, 2: 0x80} { // of codes; the scales stay
					for i := o * cols / b.Len; i < (o+1)*cols/b.Len; i++ {
						for j := b.Size - 16; j < b.Size && b.Len == 32; j++ {
							src[i*b.Size+j] = all
						}
					}
				}
				if b.Name == "MXFP4" { // exponents that no shift makes a number of
					for i := range cols / b.Len {
						src[(3*cols/b.Len+i)*b.Size] = byte(i % 2)
					}
					src[4*cols/b.Len*b.Size] = 255
				}
				for _, most := range []bool{false, true} {
					record := roundedBeside(rng, b, cols, most)
					w := matrix{rows: rows, cols: cols, format: quant.InBlock(b), rowBytes: b.Bytes(1, cols), weight: src}
					in := rowList{mem: record, stride: len(record), width: len(record), int8s: true}
					y, want := make([]float32, rows), make([]float32, rows)
					var s, defined blockScratch
					for o := range rows {
						// both take a row alone and all together
						if !k.mulOne(&s, &w, o, o+1, record, y) {
							t.Fatalf("%s: %v: no kernel took rows of %d", k.name, c, cols)
						}
					}
					out := rowList{mem: gpu.FloatBytes(want), stride: 4 * rows, width: 4 * rows}
					portable.mulBlocks(&defined, &w, 0, rows, &in, &out, 0, 1)
					sameBits(t, fmt.Sprintf("%s, %d columns, most %v", k.name, cols, most), c, y, want)
					clear(y)
					k.mulOne(&s, &w, 0, rows, record, y)
					sameBits(t, fmt.Sprintf("%s, %d columns, most %v, together", k.name, cols, most), c, y, want)
					manyRows(t, rng, k, &w, most)
				}
			}
		}
	}
}

// roundedBeside returns a random row of X in int8 as products with blocks of b take it. If most,
// all are as large as they get.
func roundedBeside(rng *rand.Rand, b *quant.Block, cols int, most bool) []byte {
	x := make([]float32, cols)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
		if most {
			x[i] = float32(math.Copysign(3, float64(x[i])))
		}
	}
	record := make([]byte, recordBytes(cols, b.Len))
	quantiseGo((*int8)(unsafe.Pointer(&record[0])), (*float32)(unsafe.Pointer(&record[cols])), &x[0], b.Len, cols/b.Len)
	if b.Len == wholeGroup {
		sumSixteens(record, cols)
	}
	return record
}

// manyRows compares products with more rows of X than a kernel takes at once with the definition.
func manyRows(t *testing.T, rng *rand.Rand, k *kernels, w *matrix, most bool) {
	const n = blockTile + 3
	b := w.format.Block()
	if b.Len == 32 && k.codings[w.format.Coding()].many == nil {
		t.Errorf("%s has no kernel for rows of %s", k.name, b)
		return
	}
	in := rowList{stride: recordBytes(w.cols, b.Len), width: recordBytes(w.cols, b.Len), int8s: true}
	for range n {
		in.mem = append(in.mem, roundedBeside(rng, b, w.cols, most)...)
	}
	var y [2][]float32
	for i, k := range []*kernels{k, &portable} {
		y[i] = make([]float32, n*w.rows)
		out := rowList{mem: gpu.FloatBytes(y[i]), stride: 4 * w.rows, width: 4 * w.rows}
		k.mulBlocks(new(blockScratch), w, 0, w.rows, &in, &out, 0, n)
	}
	sameBits(t, fmt.Sprintf("%s, %d columns, most %v, many rows", k.name, w.cols, most), w.format.Coding(), y[0], y[1])
}

// BenchmarkBlocks compares formats of GGUF files with the engine's own 4 bits, on matrices of real
// models, one thread. Its pairs are for runs one after the other: see docs/experiments.md.
func BenchmarkBlocks(b *testing.B) {
	formats := append([]quant.Format{q4.In(quant.Panels, quant.PanelRows)}, ggufFormats()...)
	for _, shape := range [][2]int{{2048, 768}, {2048, 4096}} {
		for _, rows := range []int{1, 64} {
			for _, f := range formats {
				for _, a := range []Activations{F32, Int8} {
					b.Run(fmt.Sprintf("out=%d/in=%d/rows=%d/format=%v/x=%v", shape[0], shape[1], rows, f, a), func(b *testing.B) {
						d := openConfig(b, Config{Threads: 1, Activations: a})
						var c gpu.Commands
						gpu.Encode(&c, gpu.MatMul{W: benchMatrix(b, d, shape[0], shape[1], f), X: benchFloats(b, d, rows*shape[1]),
							Y: benchFloats(b, d, rows*shape[0]), Rows: rows})
						best := measure(b, d, &c, f.Bytes(shape[0], shape[1]))
						b.ReportMetric(float64(rows*shape[0]*shape[1])/best.Seconds()/1e9, "best-GMAC/s")
					})
				}
			}
		}
	}
}

// sameBits compares numbers. One that is none may be another that is none.
func sameBits(t *testing.T, name string, c quant.Coding, got, want []float32) {
	t.Helper()
	for i, v := range got {
		if math.Float32bits(v) != math.Float32bits(want[i]) && (v == v || want[i] == want[i]) {
			t.Fatalf("%s: %v: number %d is %v, want %v", name, c, i, v, want[i])
		}
	}
}
