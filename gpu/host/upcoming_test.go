package host

import (
	"testing"
	"unsafe"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// TestFollows runs products as two tokens have them and checks what is expected after each: parts
// of the one that came after it in the first token, as many as there are threads, where each
// thread's share of the rows begins.
func TestFollows(t *testing.T) {
	const threads, rows, cols = 3, 3072, 1024
	d := open(t, threads)
	f := q4.In(quant.Panels, quant.PanelRows)
	var products []gpu.MatMul
	c, y := new(gpu.Commands), benchFloats(t, d, rows)
	for range 3 {
		m := gpu.MatMul{W: benchMatrix(t, d, rows, cols, f), X: benchFloats(t, d, cols), Y: y, Rows: 1}
		products = append(products, m)
		gpu.Encode(c, m)
	}
	for range 2 {
		if err := d.Run(c); err != nil {
			t.Fatal(err)
		}
	}
	at := func(m *gpu.MatMul) uintptr { return uintptr(unsafe.Pointer(&m.W.Weight.Buf.Bytes()[0])) }
	follows := &d.idle[0].follows
	for i := range products {
		next := &products[(i+1)%len(products)]
		follows.last = at(&products[i])
		got := follows.next()
		if len(got) != threads {
			t.Fatalf("after product %d %d threads know what they read, want %d", i, len(got), threads)
		}
		share, rowBytes := f.WeightBytes(rows, cols)/threads, f.WeightBytes(1, cols)
		for k, s := range got {
			if off := int(s.at-at(next)) - k*share; off < -2*panelRows*rowBytes || off > 2*panelRows*rowBytes || s.bytes != upcomingBytes {
				t.Errorf("after product %d thread %d reads %d bytes from its share's byte %d on", i, k, s.bytes, off)
			}
		}
	}
	follows.experts()
	if got := follows.next(); got != nil {
		t.Errorf("after experts that never ran %v is expected", got)
	}
	many := new(gpu.Commands)
	m := products[0]
	m.Rows, m.X, m.Y = upcomingRows+1, benchFloats(t, d, (upcomingRows+1)*cols), benchFloats(t, d, (upcomingRows+1)*rows)
	gpu.Encode(many, m)
	if err := d.Run(many); err != nil {
		t.Fatal(err)
	}
	if got := d.idle[0].follows.next(); got != nil {
		t.Errorf("after many rows %v is expected", got)
	}
}

// TestFetchNothing asks for memory that is not there.
func TestFetchNothing(t *testing.T) {
	for _, at := range []uintptr{0, 4096, 1 << 46, ^uintptr(0) - 4095} {
		fetch(at, 64)
	}
}
