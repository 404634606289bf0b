package frame

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// hardRows are rows whose groups are hard to round: scales of which 127·s is no magnitude, halves,
// numbers that are nearly nothing or not finite, and random ones.
func hardRows(r *rand.Rand, n, group int) []float32 {
	x := make([]float32, n)
	bits := math.Float32frombits
	special := []float32{0, bits(1 << 31), bits(1), bits(gpu.Int8LeastBits - 1), bits(gpu.Int8LeastBits), math.MaxFloat32, float32(math.Inf(1)), float32(math.NaN())}
	for at := 0; at < n; at += group {
		scale := float32(math.Ldexp(1+r.Float64(), r.IntN(200)-100))
		switch g := x[at : at+group]; r.IntN(8) {
		case 0:
			g[r.IntN(group)] = special[r.IntN(len(special))]
		case 1: // halves
			for i := range g {
				g[i] = (float32(r.IntN(254)) - 126.5) * scale
			}
			g[r.IntN(group)] = -127 * scale
		default:
			for i := range g {
				g[i] = float32(r.NormFloat64()) * scale
			}
		}
	}
	return x
}

// rounding is what a device makes of a group, by its definition.
func rounding(x []float32) (codes []int32, scale float32) {
	most := float32(0)
	codes = make([]int32, len(x))
	for _, v := range x {
		if v-v != 0 {
			return codes, float32(math.NaN())
		}
		most = max(most, v, -v)
	}
	if math.Float32bits(most) < gpu.Int8LeastBits {
		return codes, 0
	}
	scale = most / 127
	for i, v := range x {
		codes[i] = int32(math.RoundToEven(float64(v / scale)))
	}
	return codes, scale
}

// TestRounded wants rows that went out as codes to be rounded as those that were sent. It shows
// that codes and scales would not do: some scales would change.
func TestRounded(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	changed := 0
	for _, group := range []int{16, 32, 64, 128, 256} {
		const hidden = 512
		s := Shape{Layers: 1, Experts: 1, Hidden: hidden}
		for range 200 {
			q := &Question{Group: group, Uses: []Use{{Rows: []int32{0, 1}}}, Inputs: hardRows(r, 2*hidden, group)}
			f := read(t, AppendAsk(nil, 1, hidden, q))
			got, err := f.Question(s)
			if err != nil || got.Group != group || len(f.Body) > askFixed+16+2*RowBytes(hidden, group) || RowBytes(hidden, group) > hidden*5/4 {
				t.Fatalf("groups of %d came as %d in %d bytes, %v", group, got.Group, len(f.Body), err)
			}
			for at := 0; at < len(q.Inputs); at += group {
				want, scale := rounding(q.Inputs[at:][:group])
				codes, again := rounding(got.Inputs[at:][:group])
				if !slices.Equal(codes, want) || math.Float32bits(again) != math.Float32bits(scale) {
					t.Fatalf("%v\nis rounded to %v times %g, and came as\n%v\nwhich is rounded to %v times %g", q.Inputs[at:][:group], want, scale, got.Inputs[at:][:group], codes, again)
				}
				if float32(127*scale)/127 != scale && scale == scale {
					changed++
				}
			}
		}
	}
	if leastBits != gpu.Int8LeastBits || infiniteBits != gpu.Int8InfiniteBits {
		t.Error("devices have other bounds")
	}
	if changed == 0 {
		t.Error("codes and scales alone would do, by these rows")
	}
}

// TestRoundedProducts multiplies rows that went out as codes, and those that were sent: the bits
// are the same with every variant of the processor's kernels, for few rows and many.
func TestRoundedProducts(t *testing.T) {
	const hidden, outs = 256, 24
	r := rand.New(rand.NewPCG(5, 5))
	for _, group := range []int{32, 64, 128} {
		format, err := quant.AffineF32(4, group)
		if err != nil {
			t.Fatal(err)
		}
		weights := make([]byte, format.Bytes(outs, hidden))
		for i := range format.WeightBytes(outs, hidden) {
			weights[i] = byte(r.Uint32())
		}
		for i := format.WeightBytes(outs, hidden); i < len(weights); i += 4 {
			binary.LittleEndian.PutUint32(weights[i:], math.Float32bits(float32(r.NormFloat64())))
		}
		for _, rows := range []int{1, 20} {
			q := &Question{Group: group, Uses: []Use{{Rows: []int32{0}}}, Inputs: hardRows(r, rows*hidden, group)}
			f := read(t, AppendAsk(nil, 1, hidden, q))
			came, err := f.Question(Shape{Layers: 1, Experts: 1, Hidden: hidden})
			if err != nil {
				t.Fatal(err)
			}
			for _, variant := range host.Variants() {
				d, err := host.New(host.Config{Threads: 1, Activations: host.Int8, Variant: variant})
				if err != nil {
					t.Fatal(err)
				}
				got, want := product(t, d, format, weights, came.Inputs, outs), product(t, d, format, weights, q.Inputs, outs)
				if !slices.EqualFunc(got, want, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
					t.Errorf("%s: %d rows in groups of %d have other products", variant, rows, group)
				}
				d.Close()
			}
		}
	}
}

// product multiplies rows by a matrix.
func product(t *testing.T, d gpu.Device, format quant.Format, weights []byte, x []float32, outs int) []float32 {
	t.Helper()
	buf := func(bytes int) gpu.Buffer {
		b, err := d.NewBuffer(bytes)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Release)
		return b
	}
	hidden := 256
	rows := len(x) / hidden
	w, in, out := gpu.View{Buf: buf(len(weights))}, gpu.View{Buf: buf(4 * len(x))}, gpu.View{Buf: buf(4 * rows * outs)}
	m := gpu.Matrix{Rows: outs, Cols: hidden, Format: format, Weight: w}
	scales := format.WeightBytes(outs, hidden)
	m = m.With(w.At(scales), w.At(scales+format.ScaleBytes(outs, hidden)))
	y := make([]float32, rows*outs)
	var cmd gpu.Commands
	gpu.Encode(&cmd, gpu.Upload{Dst: w, Src: weights})
	gpu.Encode(&cmd, gpu.Upload{Dst: in, Src: gpu.FloatBytes(x)})
	gpu.Encode(&cmd, gpu.MatMul{W: m, X: in, Y: out, Rows: rows})
	gpu.Encode(&cmd, gpu.Download{Src: out, Dst: gpu.FloatBytes(y)})
	queue, err := d.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	defer queue.Close()
	ticket, err := queue.Submit(&cmd)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	ticket.OnDone(func(err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return y
}

// TestRoundedRefused sends groups and magnitudes that cannot be.
func TestRoundedRefused(t *testing.T) {
	const hidden = 64
	s := Shape{Layers: 1, Experts: 1, Hidden: hidden}
	ask := func() []byte {
		return AppendAsk(nil, 1, hidden, &Question{Group: 32, Uses: []Use{{Rows: []int32{0}}}, Inputs: make([]float32, hidden)})
	}
	power, values := headerBytes+askFixed-3, len(ask())-RowBytes(hidden, 32)
	for name, change := range map[string]func(b []byte){
		"small groups":       func(b []byte) { b[power] = 3 },
		"large groups":       func(b []byte) { b[power] = 9 },
		"a shift":            func(b []byte) { b[power] = 255 },
		"more than a row":    func(b []byte) { b[power] = 7 },
		"other bytes":        func(b []byte) { b[power] = 4 },
		"not rounded":        func(b []byte) { b[power] = 0 },
		"negative magnitude": func(b []byte) { binary.LittleEndian.PutUint32(b[values:], math.Float32bits(-1)) },
		"endless magnitude":  func(b []byte) { binary.LittleEndian.PutUint32(b[values:], math.Float32bits(float32(math.Inf(1)))) },
	} {
		b := ask()
		if f := read(t, b); f.Kind != Ask {
			t.Fatal(f)
		}
		change(b)
		f := read(t, b)
		if _, err := f.Question(s); !errors.Is(err, ErrContent) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// BenchmarkRows measures making and reading the rows of a token and of a prompt.
func BenchmarkRows(b *testing.B) {
	const hidden, group = 2048, 64
	x := make([]float32, hidden)
	for i := range x {
		x[i] = float32(math.Sin(float64(i)))
	}
	var out []byte
	b.Run("append", func(b *testing.B) {
		for b.Loop() {
			out = appendRows(out[:0], x, group)
		}
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if err := readRows(x, out, group); err != nil {
				b.Fatal(err)
			}
		}
	})
}
