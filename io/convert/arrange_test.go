package convert

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/moeflux/moeflux-actor/model/quant"
)

// However rows are cut into pieces, the result is the matrix in panels, even if a panel is larger
// than what is arranged at a time.
func TestArranger(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	f := quant.Affine(4, 64).In(quant.Panels, quant.PanelRows)
	var a arranger
	for _, c := range []struct{ rows, cols, most int }{{16, 64, 7}, {160, 192, 3000}, {48, 64, 1 << 20}, {2048, 4096, 1 << 21}, {32, arrangedBytes, 1 << 22}} {
		for _, which := range []quant.Part{quant.Weight, quant.Scales, quant.Biases} {
			n := f.PartBytes(which, c.rows, c.cols)
			src, want := make([]byte, n), make([]byte, n)
			for i := range src {
				src[i] = byte(rng.Uint32())
			}
			f.ToPanels(which, want, src, c.rows, c.cols)
			var out bytes.Buffer
			a.begin(&out, block{format: f, array: which, src: (&found{rows: c.rows, cols: c.cols}).all()})
			for p := src; len(p) > 0; {
				k := min(len(p), 1+rng.IntN(c.most))
				if got, err := a.Write(p[:k]); got != k || err != nil {
					t.Fatalf("wrote %d of %d: %v", got, k, err)
				}
				p = p[k:]
			}
			if !bytes.Equal(out.Bytes(), want) || len(a.part) > 0 {
				t.Errorf("[%d, %d] %s: %d bytes differ from the %d of the whole in panels, %d held back", c.rows, c.cols, which, out.Len(), len(want), len(a.part))
			}
		}
	}
}

type fullDisk struct{ left int }

var errFull = errors.New("full")

func (d *fullDisk) Write(p []byte) (int, error) {
	if len(p) > d.left {
		return 0, errFull
	}
	d.left -= len(p)
	return len(p), nil
}

// An error of the underlying writer is returned.
func TestArrangerFails(t *testing.T) {
	f := quant.Affine(8, 64).In(quant.Panels, quant.PanelRows)
	for _, step := range []int{100, 1 << 20} {
		var a arranger
		a.begin(&fullDisk{left: 1 << 20}, block{format: f, src: (&found{rows: 1 << 14, cols: 128}).all()})
		var err error
		for at := 0; at < 1<<21 && err == nil; at += step {
			_, err = a.Write(make([]byte, min(step, 1<<21-at)))
		}
		if !errors.Is(err, errFull) {
			t.Errorf("pieces of %d: got %v, want %v", step, err, errFull)
		}
	}
}
