package launch

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// product submits a product of so many rows with a matrix of 64 by 2048 and returns its kernels.
func product(t *testing.T, f *fake, v gpu.View, q gpu.Queue, rows int) string {
	t.Helper()
	c := new(gpu.Commands)
	w := gpu.Matrix{Rows: 64, Cols: 2048, Format: quant.Affine(4, 64), Weight: v, Scales: v, Biases: v}
	gpu.Encode(c, gpu.MatMul{W: w, X: v.Floats(1 << 18), Y: v.Floats(1 << 19), Rows: rows})
	return fmt.Sprint(names(launchedBy(t, f, c, q)))
}

// While the compiler is at work on a product's best kernel, the best of those that are compiled
// computes it; when that is over, it does. Only the first product waits, and one of very many rows,
// for which nothing else will do.
func TestCompileAhead(t *testing.T) {
	f := &fake{limbs: true, ahead: 2, hold: make(chan struct{})}
	d := openFake(t, f)
	v, q := newBuffer(t, d, 1<<24), newQueue(t, d)
	steps := func(all ...any) {
		t.Helper()
		for i := 0; i < len(all); i += 2 {
			if got := product(t, f, v, q, all[i].(int)); got != all[i+1] {
				t.Errorf("%d rows: %s, want %s", all[i], got, all[i+1])
			}
		}
	}
	steps(1, "[limbs_matmul 1]") // nothing else is there: it is compiled at once
	steps(8, "[limbs_matmul 1]", 2, "[limbs_matmul 1]", 9, "[limbs_split limbs_matmul 16]", 8, "[limbs_split limbs_matmul 16]",
		40, "[limbs_split limbs_matmul 16]", 4, "[limbs_split limbs_matmul 16]", 1, "[limbs_matmul 1]")
	close(f.hold)
	d.ahead.workers.Wait()
	steps(8, "[limbs_split limbs_matmul 8]", 2, "[limbs_matmul 2]", 40, "[limbs_split limbs_matmul 32]", 4, "[limbs_matmul 4]", 1, "[limbs_matmul 1]")
	counts := map[Kernel]int{}
	for _, k := range append(f.compiled, f.prepared...) {
		counts[k]++
	}
	if len(counts) != 7 || len(f.prepared) != 4 { // 6 shapes and limbs_split, of which 3 were needed before
		t.Errorf("%d kernels, %d of them ahead", len(counts), len(f.prepared))
	}
}

// A kernel that cannot be compiled ahead is chosen for nothing, and whoever needs it meets the
// error.
func TestCompileAheadFails(t *testing.T) {
	broken := errors.New("no such instruction")
	f := &fake{limbs: true, ahead: 1, prepareErr: broken}
	d := openFake(t, f)
	v, q := newBuffer(t, d, 1<<22), newQueue(t, d)
	product(t, f, v, q, 1)
	d.ahead.workers.Wait()
	if got := product(t, f, v, q, 8); got != "[limbs_matmul 1]" {
		t.Errorf("8 rows: %s", got)
	}
	f.compileErr = broken
	c := new(gpu.Commands)
	w := gpu.Matrix{Rows: 64, Cols: 2048, Format: quant.Affine(4, 64), Weight: v, Scales: v, Biases: v}
	gpu.Encode(c, gpu.MatMul{W: w, X: v.Floats(1 << 18), Y: v.Floats(1 << 19), Rows: 9})
	if err := wait(t, q, c); !errors.Is(err, broken) {
		t.Errorf("9 rows: %v, want %v", err, broken)
	}
}

// A device that is closed begins nothing more and waits for what is being compiled.
func TestCloseEndsCompiling(t *testing.T) {
	f := &fake{limbs: true, ahead: 1, hold: make(chan struct{})}
	d := openFake(t, f)
	v, q := newBuffer(t, d, 1<<22), newQueue(t, d)
	product(t, f, v, q, 1)
	go func() {
		for ended := false; !ended; runtime.Gosched() {
			d.ahead.mu.Lock()
			ended = d.ahead.closed
			d.ahead.mu.Unlock()
		}
		close(f.hold)
	}()
	d.ahead.close()
	if n := len(f.prepared); n > 1 {
		t.Errorf("%d kernels were compiled after the close", n)
	}
}
