package host

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/numcmp"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// bytesBeside returns n random bytes in a slice without spare capacity.
func bytesBeside(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b[:n:n]
}

// bf16s returns n random bf16 of magnitude 1/32 or so.
func bf16s(rng *rand.Rand, n int) []byte {
	b := make([]byte, 2*n)
	for i := range n {
		v := math.Float32bits(float32(rng.NormFloat64() / 32))
		b[2*i], b[2*i+1] = byte(v>>16), byte(v>>24)
	}
	return b
}

func normals(rng *rand.Rand, n int) []float32 {
	f := make([]float32, n)
	for i := range f {
		f[i] = float32(rng.NormFloat64())
	}
	return f
}

// plainRow is a row of W and two rows of X, the operands of plainKernels.
type plainRow struct {
	row []byte
	x   [2][]float32
}

func newPlainRow(f quant.Format, cols int) *plainRow {
	rng := rand.New(rand.NewPCG(uint64(cols), uint64(f.Coding())))
	r := &plainRow{row: bf16s(rng, cols)}
	if f == quant.F32 {
		r.row = gpu.FloatBytes(normals(rng, cols))
	}
	for i := range r.x {
		r.x[i] = normals(rng, cols)
	}
	return r
}

// TestPlainKernels checks for each variant that one, two and last give the same bits, near the
// exact product, and that widening a row writes nothing beside it.
func TestPlainKernels(t *testing.T) {
	for _, k := range available() {
		for _, f := range []quant.Format{quant.BF16, quant.F32} {
			stored := &k.codings[f.Coding()]
			for _, cols := range []int{1, 3, 31, 32, 63, 64, 65, 127, 128, 200, 4099} {
				r := newPlainRow(f, cols)
				name := fmt.Sprintf("%s/%v/cols=%d", k.name, f, cols)
				q, want := make([]float32, cols+16), make([]float32, cols)
				for i := range q {
					q[i] = -7
				}
				stored.widen(q[:cols], r.row)
				f.Unpack(want, cols, r.row, nil, nil, 0)
				for i, v := range q {
					if w := float32(-7); i >= cols && v != w || i < cols && v != want[i] {
						t.Fatalf("%s: widened element %d is %v", name, i, v)
					}
				}
				q = q[:cols]
				var two [2]float32
				two[0], two[1] = k.plain.two(q, r.x[0], r.x[1])
				for i := range two {
					one, last := stored.one(r.row, r.x[i]), k.plain.last(q, r.x[i])
					if math.Float32bits(one) != math.Float32bits(two[i]) || math.Float32bits(one) != math.Float32bits(last) {
						t.Errorf("%s: row %d of X: one %v, two %v, last %v, want the same", name, i, one, two[i], last)
					}
					exact, magnitude := 0., 0.
					for c, x := range r.x[i] {
						exact += float64(q[c]) * float64(x)
						magnitude += math.Abs(float64(q[c]) * float64(x))
					}
					// A lane adds up to a 16th of the products, then the lanes.
					if limit := 32 * magnitude / (1 << 24); !(math.Abs(float64(one)-exact) <= limit) {
						t.Errorf("%s: row %d of X: %v, want %v within %v", name, i, one, exact, limit)
					}
				}
			}
		}
	}
}

// TestPlainBounds passes each operand with one element too few, which must not reach the assembly.
func TestPlainBounds(t *testing.T) {
	panics := func(name string, f func()) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("%s one too short did not panic", name)
			}
		}()
		f()
	}
	for _, k := range available() {
		q, x := make([]float32, 256), make([]float32, 256)
		short := x[:255:255]
		panics("one: bf16 row", func() { k.codings[quant.BF16.Coding()].one(make([]byte, 511), x) })
		panics("last: x", func() { k.plain.last(q, short) })
		panics("two: x0", func() { k.plain.two(q, short, x) })
		panics("two: x1", func() { k.plain.two(q, x, short) })
		panics("widen: row", func() { k.codings[quant.BF16.Coding()].widen(q, make([]byte, 511)) })
	}
}

// TestPanelArgs compares the fields' offsets with those in gen/panel.go.
func TestPanelArgs(t *testing.T) {
	var a panelArgs
	for _, f := range []struct {
		name      string
		got, want uintptr
	}{
		{"w", unsafe.Offsetof(a.w), 0}, {"wStep", unsafe.Offsetof(a.wStep), 8}, {"scales", unsafe.Offsetof(a.scales), 16},
		{"biases", unsafe.Offsetof(a.biases), 24}, {"sStep", unsafe.Offsetof(a.sStep), 32}, {"cols", unsafe.Offsetof(a.cols), 40},
		{"group", unsafe.Offsetof(a.group), 48}, {"groupBytes", unsafe.Offsetof(a.groupBytes), 56},
		{"yStep", unsafe.Offsetof(a.yStep), 64}, {"x", unsafe.Offsetof(a.x), 80}, {"y", unsafe.Offsetof(a.y), 128},
		{"far.mask", unsafe.Offsetof(a.far) + unsafe.Offsetof(a.far.mask), 176},
		{"far.shift", unsafe.Offsetof(a.far) + unsafe.Offsetof(a.far.shift), 184},
		{"far.ahead", unsafe.Offsetof(a.far) + unsafe.Offsetof(a.far.ahead), 192},
		{"far.step", unsafe.Offsetof(a.far) + unsafe.Offsetof(a.far.step), 200},
	} {
		if f.got != f.want {
			t.Errorf("%s is at %d, the generator has %d", f.name, f.got, f.want)
		}
	}
}

// panelCase is a matrix in both layouts and rows of X.
type panelCase struct {
	rows, panels matrix
	x            [][]float32
}

func newPanelCase(f quant.Format, rows, cols, rowsOfX int) *panelCase {
	rng := rand.New(rand.NewPCG(uint64(cols), uint64(f.Bits()+f.Group())))
	f.Layout = quant.Rows
	m := matrix{rows: rows, cols: cols, format: f, rowBytes: f.WeightBytes(1, cols), weight: codesBeside(rng, f, f.WeightBytes(rows, cols))}
	m.fillNumbers(rng)
	c := &panelCase{rows: m, panels: m}
	if rows%panelRows == 0 {
		c.panels = inPanels(&m)
	}
	for range rowsOfX {
		c.x = append(c.x, normals(rng, cols))
	}
	return c
}

// inPanels returns a matrix that is in rows in panels.
func inPanels(m *matrix) matrix {
	p := *m
	p.format.Layout = quant.Panels
	p.weight, p.scales, p.biases = make([]byte, len(m.weight)), make([]byte, len(m.scales)), make([]byte, len(m.biases))
	m.format.ToPanels(quant.Weight, p.weight, m.weight, m.rows, m.cols)
	m.format.ToPanels(quant.Scales, p.scales, m.scales, m.rows, m.cols)
	m.format.ToPanels(quant.Biases, p.biases, m.biases, m.rows, m.cols)
	return p
}

// inputs returns the rows of X as k's kernels take them.
func (c *panelCase) inputs(k *kernels, int8s bool) rowList {
	cols, group := c.rows.cols, c.rows.format.Group()
	l := rowList{stride: 4 * cols, width: 4 * cols}
	if int8s {
		n := recordBytes(cols, group)
		l = rowList{stride: n, width: n, int8s: true}
	}
	for _, x := range c.x {
		if !int8s {
			l.mem = append(l.mem, gpu.FloatBytes(x)...)
			continue
		}
		record := make([]byte, l.width)
		k.quantiser(group)((*int8)(unsafe.Pointer(&record[0])), &gpu.Floats(record[cols:], 1)[0], &x[0], group, cols/group)
		l.mem = append(l.mem, record...)
	}
	return l
}

// multiply returns W·X, [rows of X][rows of W], taking count rows of X at a time. It fails if
// anything is written beside the result.
func (c *panelCase) multiply(t *testing.T, k *kernels, w *matrix, int8s bool, count int) []float32 {
	t.Helper()
	var s scratch
	const beside = 32
	in, n := c.inputs(k, int8s), len(c.x)
	y := make([]float32, n*(w.rows+beside))
	for i := range y {
		y[i] = float32(math.NaN())
	}
	out := rowList{mem: gpu.FloatBytes(y), stride: 4 * (w.rows + beside), width: 4 * w.rows}
	for i := 0; i < n; i += count {
		s.panels.far.pages = i/count%2 == 1 // results must not depend on it
		k.mulPanels(&s.panels, w, 0, chunks(w.rows, panelRows), &in, &out, i, min(i+count, n))
	}
	var dense []float32
	for i := range n {
		row := y[i*(w.rows+beside):][:w.rows+beside]
		dense = append(dense, row[:w.rows]...)
		for _, v := range row[w.rows:] {
			if v == v {
				t.Fatalf("wrote %v after row %d", v, i)
			}
		}
	}
	return dense
}

func panelFormats() []quant.Format {
	return slices.DeleteFunc(quant.Formats(), func(f quant.Format) bool { return !f.Codes() })
}

// TestPanelKernels checks that rows of X give the same bits alone and with any number of others, in
// both layouts, and with int8 in all variants; and that products are near those of float64.
func TestPanelKernels(t *testing.T) {
	const rowsOfX = 13
	shapes := [][2]int{{16, 1}, {48, 3}, {35, 5}, {32, 2}, {80, 9}, {13, 1}, {21, 3}, {35, 17}}
	shapes = shapes[:testenv.Rounds(3, 5, len(shapes))] // the portable kernels take long
	counts := []int{1, 2, 3, 4, 5, 6, 7, rowsOfX}
	for _, f := range panelFormats() {
		for i, shape := range shapes {
			rows, cols := shape[0], shape[1]*f.Group()
			c := newPanelCase(f, rows, cols, rowsOfX)
			var int8Bits []float32
			for _, k := range available() {
				for _, int8s := range inputKinds(f) {
					want := c.multiply(t, k, &c.rows, int8s, 1)
					name := fmt.Sprintf("%s/%v/%dx%d/int8=%t", k.name, f, rows, cols, int8s)
					for j, count := range counts {
						if !testenv.ShareOf(t, f.String(), i*len(counts)+j, len(shapes)*len(counts), testenv.Rounds(3, 2, 1)) {
							continue // each count is with some of the shapes
						}
						for _, w := range []*matrix{&c.rows, &c.panels} {
							if err := numcmp.Equal(c.multiply(t, k, w, int8s, count), want); err != nil {
								t.Fatalf("%s: %d rows of X together, %v: %v", name, count, w.format, err)
							}
						}
					}
					exact, limit := c.exact(int8s)
					if err := numcmp.Scaled(want, exact, limit, 1); err != nil {
						t.Errorf("%s: %v", name, err)
					}
					if int8s && int8Bits == nil {
						int8Bits = want
					} else if err := numcmp.Equal(want, int8Bits); int8s && err != nil {
						t.Errorf("%s differs from %s: %v", name, available()[0].name, err)
					}
				}
			}
		}
	}
}

// TestLeastScale checks that the least scale of MXFP4, which is no normal number, is not taken for
// 0.
func TestLeastScale(t *testing.T) {
	c := newPanelCase(quant.MXFP4, 2*panelRows, 96, 3)
	clear(c.rows.scales)
	clear(c.panels.scales)
	for _, x := range c.x {
		for i := range x {
			x[i] *= 1e35
		}
	}
	for _, k := range available() {
		for _, int8s := range []bool{false, true} {
			exact, limit := c.exact(int8s)
			for _, count := range []int{1, 3} {
				if err := numcmp.Scaled(c.multiply(t, k, &c.panels, int8s, count), exact, limit, 1); err != nil {
					t.Errorf("%s, int8 %t, %d rows of X: %v", k.name, int8s, count, err)
				}
			}
		}
	}
}

// exact returns W·X in float64, of rounded inputs if int8s, and how far off float32 may be.
func (c *panelCase) exact(int8s bool) (y, limit []float64) {
	w, f := &c.rows, c.rows.format
	for _, x := range c.x {
		x64 := make([]float64, len(x))
		for i := range x {
			x64[i] = float64(x[i])
			if int8s {
				s := scaleOf(x[i/f.Group()*f.Group():][:f.Group()])
				x64[i] = math.RoundToEven(x64[i]/s) * s
			}
		}
		for o := range w.rows {
			sum, magnitude := 0., 0.
			for i := range x64 {
				p, b := w.meant(o, i)
				p, b = p*x64[i], b*x64[i]
				sum += p + b
				magnitude += math.Abs(p) + math.Abs(b)
			}
			y = append(y, sum)
			limit = append(limit, (8+math.Sqrt(float64(w.cols)))*magnitude/(1<<24)+1e-37)
		}
	}
	return y, limit
}

// scaleOf returns max|x|/127, 1 if that is 0.
func scaleOf(x []float32) float64 {
	most := 0.
	for _, v := range x {
		most = max(most, math.Abs(float64(v)))
	}
	if most == 0 {
		return 1
	}
	return float64(float32(most) / 127)
}

func codeAt(row []byte, i, bits int) byte { return row[i*bits/8] >> (i * bits % 8) & (1<<bits - 1) }

// TestQuantise checks that codes, scales and sums of all variants follow the definition, whatever
// the numbers.
func TestQuantise(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	inf, nan, tiny := float32(math.Inf(1)), float32(math.NaN()), math.Float32frombits
	special := [][]float32{
		{0, float32(math.Copysign(0, -1))}, {nan}, {inf}, {-inf, 1}, {nan, inf, 3}, {math.MaxFloat32, -math.MaxFloat32}, {tiny(1)},
		{tiny(0x007fffff)}, {tiny(0x00800000)}, {tiny(gpu.Int8LeastBits - 1)}, {tiny(gpu.Int8LeastBits), -tiny(gpu.Int8LeastBits - 1)}, {tiny(1<<31 | gpu.Int8LeastBits)},
		{127, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 126.5, -126.5}, {tiny(0xffc00001)}, {tiny(gpu.Int8InfiniteBits + 1)},
	}
	for _, group := range []int{32, 64, 128} {
		var x []float32
		for _, s := range special {
			for _, at := range []int{0, group - len(s)} {
				g := make([]float32, group)
				copy(g[at:], s)
				x = append(x, g...)
			}
		}
		for range 200 * group {
			x = append(x, float32(rng.NormFloat64()*math.Pow(2, rng.Float64()*4-2)))
		}
		groups := len(x) / group
		for _, k := range available() {
			q, scales := make([]int8, len(x)+32), make([]float32, 2*groups+8)
			q[len(x)], scales[2*groups] = 77, 77
			k.quantise(&q[0], &scales[0], &x[0], group, groups)
			if q[len(x)] != 77 || scales[2*groups] != 77 {
				t.Errorf("%s: wrote beside the row", k.name)
			}
			for g := range groups {
				checkGroup(t, fmt.Sprintf("%s: group %d of %d", k.name, g, group), x[g*group:(g+1)*group], q[g*group:(g+1)*group], scales[2*g:])
			}
		}
	}
}

func checkGroup(t *testing.T, name string, x []float32, q []int8, scales []float32) {
	t.Helper()
	most, finite := float32(0), true
	for _, v := range x {
		finite = finite && v-v == 0
		most = max(most, v, -v)
	}
	want, scale, sum := make([]int8, len(x)), float32(0), float32(0)
	switch {
	case !finite:
		scale, sum = float32(math.NaN()), float32(math.NaN())
	case most/127 >= math.Float32frombits(0x00800000):
		scale = most / 127
		total := 0
		for i, v := range x {
			want[i] = int8(math.RoundToEven(float64(v / scale)))
			total += int(want[i])
		}
		sum = scale * float32(total)
	}
	if !bytes.Equal(asBytes(q), asBytes(want)) {
		t.Errorf("%s: codes %v of %v, want %v", name, q, x, want)
	}
	if !sameNumber(scales[0], scale) || !sameNumber(scales[1], sum) {
		t.Errorf("%s: scale %v and sum %v of %v, want %v and %v", name, scales[0], scales[1], x, scale, sum)
	}
}

func sameNumber(a, b float32) bool { return a == b || a != a && b != b }

func asBytes(q []int8) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(&q[0])), len(q)) }

// TestArrange checks that each variant gives the bytes of ToPanels.
func TestArrange(t *testing.T) {
	for _, f := range panelFormats() {
		for _, groups := range []int{1, 2, 3, 7, 8, 9, 16, 21} {
			c := newPanelCase(f, 32, groups*f.Group(), 1)
			for _, k := range available() {
				var s panelScratch
				k.loadPanels(&s, &c.rows, 0, 2)
				want := &c.panels
				if !bytes.Equal(s.codes[:len(want.weight)], want.weight) || !bytes.Equal(s.scales[:len(want.scales)], want.scales) ||
					!bytes.Equal(s.biases[:len(want.biases)], want.biases) {
					t.Errorf("%s: %v, %d groups: not the panels of ToPanels", k.name, f, groups)
				}
			}
		}
	}
}

// TestHeight checks that tiles add up to all rows, that there is a kernel for each, and that a tile
// of one row stands alone only where its kernel takes as many panels as the others.
func TestHeight(t *testing.T) {
	for _, k := range available() {
		for _, c := range quant.Codings() {
			for b, table := range [][]panelKernel{k.codings[c].int8s, k.codings[c].floats} {
				if b == 0 && !c.Stepped() { // rows of X are never rounded
					continue
				}
				for n := 2; n < 40; n++ {
					var tiles []int
					for left := n; left > 0; left -= tiles[len(tiles)-1] {
						tiles = append(tiles, k.height(table, left))
					}
					for _, h := range tiles {
						if h < k.pair || table[h-1] == nil {
							t.Errorf("%s, %v, table %d: %d rows of X are taken as %d", k.name, c, b, n, tiles)
							break
						}
					}
				}
			}
		}
	}
}
