package frame

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/internal/testenv"
)

var shape = Shape{Layers: 3, Experts: 8, Hidden: 4}

// wide has rows that can go out as codes.
var wide = Shape{Layers: 3, Experts: 8, Hidden: 32}

// question is an ask of random experts and rows.
func question(r *rand.Rand) *Question {
	rows := 1 + r.IntN(5)
	q := &Question{Layer: r.IntN(shape.Layers), Urgent: r.IntN(2) == 0, Epoch: r.Uint32(), Inputs: make([]float32, rows*shape.Hidden)}
	for i := range q.Trace.TraceID {
		q.Trace.TraceID[i] = byte(r.Uint32())
	}
	q.Trace.SpanID[7], q.Trace.Flags = byte(r.Uint32()), byte(r.Uint32())
	for i := range q.Inputs {
		q.Inputs[i] = r.Float32()
	}
	for e := range shape.Experts {
		u := Use{Expert: e}
		for row := range rows {
			if r.IntN(3) == 0 {
				u.Rows = append(u.Rows, int32(row))
			}
		}
		if len(u.Rows) > 0 {
			q.Uses = append(q.Uses, u)
		}
	}
	if len(q.Uses) == 0 {
		q.Uses = []Use{{Expert: 0, Rows: []int32{0}}}
	}
	if r.IntN(2) == 0 {
		for range q.Picks() {
			q.Scales = append(q.Scales, 2*r.Float32()-1)
		}
	}
	return q
}

// reader reads frames of every kind.
func reader(b []byte) *Reader {
	r := NewReader(bytes.NewReader(b))
	r.Trust()
	return r
}

// appendAnswer makes an answer as a host does.
func appendAnswer(memory []byte, id uint64, r *Reply) []byte {
	f, rows := MakeAnswer(memory, id, r.Uses, len(r.Rows))
	copy(rows, r.Rows)
	Spend(f, r.Spent)
	return f
}

func read(t *testing.T, b []byte) Frame {
	t.Helper()
	f, err := reader(b).Next()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		q := question(r)
		f := read(t, AppendAsk(nil, 7, shape.Hidden, q))
		got, err := f.Question(shape)
		if err != nil || f.ID != 7 || !reflect.DeepEqual(got, q) {
			t.Fatalf("an ask came as %+v, %v; want %+v", got, err, q)
		}
		a, rows := &Reply{Spent: Spent{Waited: 1, Read: time.Second, Computed: 3}}, []int(nil)
		for i := range q.Uses {
			rows = append(rows, len(q.Uses[i].Rows))
			if r.IntN(2) == 0 || i == 0 {
				a.Uses = append(a.Uses, int32(i))
				for range rows[i] * shape.Hidden {
					a.Rows = append(a.Rows, r.Float32())
				}
			}
		}
		f = read(t, appendAnswer([]byte("before"), 9, a))
		back, err := f.Reply(shape.Hidden, rows)
		if err != nil || f.ID != 9 || !reflect.DeepEqual(back, a) {
			t.Fatalf("an answer came as %+v, %v; want %+v", back, err, a)
		}
	}
	g := Greeting{Version: Version, Shape: shape, Fingerprint: [32]byte{1, 31: 2}, Token: [32]byte{3, 31: 4}}
	var f Frame
	for _, kind := range []Kind{Hello, Join} {
		f = read(t, AppendHello(nil, kind, &g))
		if got, err := f.Greeting(); err != nil || got != g || f.Kind != kind {
			t.Errorf("a greeting of kind %d came as %+v, %v", kind, got, err)
		}
	}
	for name, as := range map[string]string{"host (2 threads)": "host (2 threads)", "": "", "a\xff": "a?", strings.Repeat("x", 999): strings.Repeat("x", mostName)} {
		f = read(t, AppendWelcome(nil, Room{100, 16, 1 << 40, name}))
		if got, err := f.Room(); err != nil || got != (Room{100, 16, 1 << 40, as}) {
			t.Errorf("a welcome came as %+v, %v", got, err)
		}
	}
	for _, n := range []struct{ padding, back int }{{0, 0}, {1, MostPadding}, {MostPadding, 3}} {
		f = read(t, AppendPing([]byte("before")[:0], 6, n.padding, n.back))
		if got, err := f.Back(); err != nil || got != n.back || f.ID != 6 || len(f.Body) != pingFixed+n.padding {
			t.Errorf("a ping of %+v came with %d bytes and asks for %d, %v", n, len(f.Body), got, err)
		}
		if f = read(t, AppendPong(nil, 6, n.back)); f.Kind != Pong || f.ID != 6 || len(f.Body) != n.back {
			t.Errorf("a pong of %d bytes came with %d", n.back, len(f.Body))
		}
	}
	for _, keys := range [][]int32{{}, {0}, {23, 0, 5}} {
		f = read(t, AppendShare(nil, 1<<31, keys))
		if got, err := f.Placed(shape); err != nil || got.Epoch != 1<<31 || !slices.Equal(got.Keys, keys) {
			t.Errorf("a share of %v came as %+v, %v", keys, got, err)
		}
	}
	if f = read(t, AppendShare(nil, 1, make([]int32, 2<<20))); len(f.Body) != MaxBytes {
		t.Errorf("a share of more than a frame has %d bytes", len(f.Body))
	}
	for _, body := range []string{"", "1234567", "\x01\x00\x00\x00\x01\x00\x00\x00", "\x01\x00\x00\x00\x00\x00\x00\x00xxxx", "\x01\x00\x00\x00\x01\x00\x00\x00\x18\x00\x00\x00", "\x01\x00\x00\x00\x01\x00\x00\x00\xff\xff\xff\xff"} {
		if _, err := (&Frame{Kind: Share, Body: []byte(body)}).Placed(shape); !errors.Is(err, ErrContent) {
			t.Errorf("a share of %q: %v", body, err)
		}
	}
	if f = read(t, AppendReason(nil, Failed, 5, string(make([]byte, 2000)))); len(f.Body) != MaxReason || f.ID != 5 {
		t.Errorf("a reason of %d bytes", len(f.Body))
	}
	if f = read(t, AppendEmpty(nil, Ping, 6)); f.Kind != Ping || f.ID != 6 || len(f.Body) != 0 {
		t.Errorf("a ping came as %+v", f)
	}
	if n, err := f.Back(); n != 0 || err != nil {
		t.Errorf("an empty ping asks for %d bytes, %v", n, err)
	}
	for _, body := range []string{"x", "\xff\xff\xff\xff"} {
		if _, err := (&Frame{Kind: Ping, Body: []byte(body)}).Back(); !errors.Is(err, ErrContent) {
			t.Errorf("a ping of %q: %v", body, err)
		}
	}
}

// TestSums has hosts add up what asks want summed, against sums in float64, and reads their
// answers.
func TestSums(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		q := question(r)
		rows, h := len(q.Inputs)/shape.Hidden, shape.Hidden
		if q.Scales == nil {
			continue
		}
		outputs, want, size := make([][]float32, len(q.Uses)), make([]float64, rows*h), make([]float64, rows*h)
		a, pick := &Reply{Spent: Spent{1, 2, 3}, Rows: make([]float32, rows*h)}, 0
		for i := range q.Uses {
			a.Uses = append(a.Uses, int32(i))
			for _, row := range q.Uses[i].Rows {
				for c := range h {
					v := 2*r.Float32() - 1
					outputs[i] = append(outputs[i], v)
					product := float64(q.Scales[pick]) * float64(v)
					want[int(row)*h+c] += product
					size[int(row)*h+c] += math.Abs(product)
				}
				pick++
			}
		}
		f, sums := MakeAnswer(bytes.Repeat([]byte{0xff}, 4096), 9, a.Uses, rows*h)
		q.Sum(sums, h, outputs)
		for i, w := range want { // a product and a sum of at most eight are rounded
			if off := math.Abs(float64(sums[i]) - w); off > 9*0x1p-24*size[i] {
				t.Fatalf("sum %d is %v, want %v", i, sums[i], w)
			}
		}
		copy(a.Rows, sums)
		Spend(f, a.Spent)
		came := read(t, f)
		if back, err := came.Sums(h, len(q.Uses), rows); err != nil || !reflect.DeepEqual(back, a) {
			t.Fatalf("sums came as %+v, %v; want %+v", back, err, a)
		}
		if _, err := came.Sums(h, len(q.Uses)+1, rows); !errors.Is(err, ErrContent) {
			t.Fatalf("sums of fewer experts than were asked for: %v", err)
		}
		if _, err := came.Sums(h, len(q.Uses), rows+1); !errors.Is(err, ErrContent) {
			t.Fatalf("sums of fewer rows than were asked for: %v", err)
		}
	}
}

// TestAskPicks builds the largest asks that are allowed, in the two shapes that take most bytes,
// and their answers.
func TestAskPicks(t *testing.T) {
	for _, hidden := range []int{4, 2048, 7168, 16384} {
		s := Shape{Layers: 1, Experts: 1 << 16, Hidden: hidden}
		n := s.AskPicks()
		one, each := Use{}, &Question{Inputs: make([]float32, min(n, mostRows)*hidden)}
		for i := range min(n, mostRows) {
			one.Rows = append(one.Rows, int32(i))
			each.Uses = append(each.Uses, Use{Expert: i, Rows: []int32{int32(i)}})
		}
		summed := *each
		summed.Scales = make([]float32, each.Picks())
		for _, q := range []*Question{{Uses: []Use{one}, Inputs: each.Inputs}, each, &summed} {
			f := read(t, AppendAsk(nil, 1, hidden, q))
			if _, err := f.Question(s); err != nil {
				t.Errorf("hidden %d: %d picks of %d experts: %v", hidden, q.Picks(), len(q.Uses), err)
			}
			a, rows := &Reply{Rows: make([]float32, q.Picks()*hidden)}, []int(nil)
			for i := range q.Uses {
				a.Uses, rows = append(a.Uses, int32(i)), append(rows, len(q.Uses[i].Rows))
			}
			f = read(t, appendAnswer(nil, 1, a))
			if _, err := f.Reply(hidden, rows); err != nil {
				t.Errorf("hidden %d: the answer to %d picks of %d experts: %v", hidden, q.Picks(), len(q.Uses), err)
			}
		}
	}
}

// TestRefused changes one number of an ask at a time to one that does not fit.
func TestRefused(t *testing.T) {
	q := &Question{Layer: 1, Uses: []Use{{2, []int32{0, 2}}, {5, []int32{1}}}, Inputs: make([]float32, 3*shape.Hidden)}
	good := AppendAsk(nil, 1, shape.Hidden, q)
	h, u := headerBytes, headerBytes+askFixed
	for name, change := range map[string]func([]byte) []byte{
		"layer":         func(b []byte) []byte { b[h] = 3; return b },
		"no experts":    func(b []byte) []byte { b[h+4] = 0; return b },
		"many experts":  func(b []byte) []byte { binary.LittleEndian.PutUint32(b[h+4:], math.MaxUint32); return b },
		"no rows":       func(b []byte) []byte { b[h+8] = 0; return b },
		"many rows":     func(b []byte) []byte { binary.LittleEndian.PutUint32(b[h+8:], math.MaxUint32); return b },
		"after a span":  func(b []byte) []byte { b[u-1] = 1; return b },
		"sums":          func(b []byte) []byte { b[u-2] = 2; return b },
		"no scales":     func(b []byte) []byte { b[u-2] = 1; return b },
		"scale":         func([]byte) []byte { return scaled(q, 1.01) },
		"no number":     func([]byte) []byte { return scaled(q, float32(math.NaN())) },
		"urgent":        func(b []byte) []byte { b[h+12] = 2; return b },
		"expert":        func(b []byte) []byte { b[u+8] = 8; return b },
		"descending":    func(b []byte) []byte { b[u+8] = 2; return b },
		"rows of none":  func(b []byte) []byte { b[u+12] = 0; return b },
		"row":           func(b []byte) []byte { b[u+18] = 3; return b },
		"row twice":     func(b []byte) []byte { b[u+18] = 0; return b },
		"short":         func(b []byte) []byte { return resized(b[:len(b)-4]) },
		"long":          func(b []byte) []byte { return resized(append(b, 0, 0, 0, 0)) },
		"a few bytes":   func(b []byte) []byte { return resized(b[:h+3]) },
		"another shape": func(b []byte) []byte { return AppendAsk(nil, 1, 2, q) },
	} {
		f := read(t, change(slices.Clone(good)))
		if _, err := f.Question(shape); !errors.Is(err, ErrContent) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, kind := range []Kind{0, kinds, 99} {
		if _, err := reader(AppendEmpty(nil, kind, 1)).Next(); !errors.Is(err, ErrKind) {
			t.Errorf("kind %d: %v", kind, err)
		}
	}
	if _, err := NewReader(bytes.NewReader(good)).Next(); !errors.Is(err, ErrKind) {
		t.Errorf("an ask of a stranger: %v", err)
	}
	huge := slices.Clone(good)
	binary.LittleEndian.PutUint32(huge, MaxBytes+1)
	if _, err := reader(huge).Next(); !errors.Is(err, ErrSize) {
		t.Errorf("a huge frame: %v", err)
	}
	if _, err := reader(good[:len(good)-1]).Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a frame that ends early: %v", err)
	}
}

// scaled is an ask for sums, whose last output is multiplied by a number.
func scaled(q *Question, by float32) []byte {
	s := *q
	s.Scales = []float32{1, -1, by}
	return AppendAsk(nil, 1, shape.Hidden, &s)
}

// resized sets a frame's size to what it has.
func resized(b []byte) []byte {
	binary.LittleEndian.PutUint32(b, uint32(len(b)-headerBytes))
	return b
}

// FuzzFrames reads a stream of arbitrary bytes as every kind of frame.
func FuzzFrames(f *testing.F) {
	r := rand.New(rand.NewPCG(2, 2))
	f.Add(AppendAsk(AppendHello(nil, Hello, &Greeting{Version: 1}), 1, shape.Hidden, question(r)))
	f.Add(append(AppendWelcome(AppendPing(nil, 1, 9, 9), Room{1, 1, 1, "x"}), appendAnswer(nil, 1, &Reply{Uses: []int32{0}, Rows: make([]float32, shape.Hidden)})...))
	f.Add(AppendShare(nil, 7, []int32{1, 2}))
	f.Add(AppendGroup(nil, []string{"a:1", "10.0.0.2:8090"}))
	f.Add(AppendAsk(nil, 1, wide.Hidden, &Question{Group: 16, Uses: []Use{{Expert: 1, Rows: []int32{0, 1}}}, Inputs: hardRows(r, 2*wide.Hidden, 16)}))
	f.Add(AppendReason(AppendEmpty(nil, Ping, 1), Refused, 0, "no"))
	f.Fuzz(func(t *testing.T, stream []byte) { readAll(t, stream) })
}

func readAll(t *testing.T, stream []byte) {
	in := reader(stream)
	for {
		f, err := in.Next()
		if err != nil {
			return
		}
		_, _ = f.Greeting()
		_, _ = f.Room()
		_, _ = f.Back()
		_, _ = f.Placed(shape)
		_, _ = f.Members()
		for _, of := range []Shape{shape, wide} {
			q, err := f.Question(of)
			if err != nil {
				continue
			}
			if again := AppendAsk(nil, f.ID, of.Hidden, q); !bytes.Equal(again[headerBytes:headerBytes+askFixed], f.Body[:askFixed]) || len(again) != headerBytes+len(f.Body) {
				t.Fatalf("%x was read as %+v", f.Body, q)
			}
		}
		if a, err := f.Reply(shape.Hidden, []int{1, 2, 3}); err == nil && len(a.Rows) == 0 {
			t.Fatalf("%x was read as %+v", f.Body, a)
		}
	}
}

// TestDamaged reads 100,000 frames (10,000 under -short) with a few bytes changed.
func TestDamaged(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	taken := 0
	var asks [64][]byte
	for i := range asks {
		asks[i] = AppendAsk(nil, 1, shape.Hidden, question(r))
	}
	all := testenv.Rounds(10_000, 30_000, 1_000_000)
	for i := range all {
		b := slices.Clone(asks[i%len(asks)])
		for range 1 + r.IntN(4) {
			b[r.IntN(len(b))] = byte(r.Uint32())
		}
		readAll(t, b)
		if f, err := reader(b).Next(); err == nil {
			if _, err := f.Question(shape); err == nil {
				taken++
			}
		}
	}
	t.Logf("%d of %d damaged frames could be read as asks", taken, all)
}
