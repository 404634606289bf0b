package launch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// launchedBy runs commands on a fake and returns its launches.
func launchedBy(t *testing.T, f *fake, c *gpu.Commands, q gpu.Queue) []Launch {
	t.Helper()
	f.launched, f.record = nil, true
	if err := wait(t, q, c); err != nil {
		t.Fatal(err)
	}
	return f.launched
}

// names are the launches' kernels with the rows that they take at most.
func names(all []Launch) (s []string) {
	for _, l := range all {
		name := l.Kernel.Name
		if _, rest, ok := strings.Cut(l.Kernel.Defines, "XROWS "); ok {
			rows, _, _ := strings.Cut(rest, "\n")
			name += " " + rows
		}
		s = append(s, name)
	}
	return s
}

// Affine matrices are multiplied by the back end's own kernels if it has them, others by the
// portable ones; which of them follows from the rows.
func TestLimbChoice(t *testing.T) {
	q4 := quant.Affine(4, 64).In(quant.Panels, quant.PanelRows)
	for _, c := range []struct {
		limbs  bool
		format quant.Format
		rows   int
		want   string
		groups [3]int
		warps  int
	}{
		{false, q4, 1, "[matmul 1]", [3]int{4, 1, 1}, 8},
		{true, quant.BF16, 1, "[matmul 1]", [3]int{16, 1, 1}, 8},
		{true, q4, 1, "[limbs_matmul 1]", [3]int{4, 1, 1}, 4},
		{true, q4, 4, "[limbs_matmul 4]", [3]int{4, 1, 1}, 4},
		{true, q4, 5, "[limbs_split limbs_matmul 8]", [3]int{4, 1, 1}, 4},
		{true, q4, 16, "[limbs_split limbs_matmul 16]", [3]int{4, 1, 1}, 4},
		{true, q4, 100, "[limbs_split limbs_matmul 32]", [3]int{4, 4, 1}, 4},
	} {
		t.Run(fmt.Sprintf("limbs=%v/%v/rows=%d", c.limbs, c.format, c.rows), func(t *testing.T) {
			f := &fake{limbs: c.limbs}
			d := openFake(t, f)
			v, q := newBuffer(t, d, 1<<22), newQueue(t, d)
			const out, in = 64, 2048
			cmds := new(gpu.Commands)
			w := gpu.Matrix{Rows: out, Cols: in, Format: c.format, Weight: v}
			if c.format.Codes() {
				w.Scales, w.Biases = v, v
			}
			gpu.Encode(cmds, gpu.MatMul{W: w, X: v.Floats(1 << 18), Y: v.Floats(1 << 19), Rows: c.rows})
			all := launchedBy(t, f, cmds, q)
			if got := fmt.Sprint(names(all)); got != c.want {
				t.Fatalf("%s, want %s", got, c.want)
			}
			last := all[len(all)-1]
			if last.Groups != c.groups || last.Threads != 32*c.warps {
				t.Errorf("%v threadgroups of %d threads, want %v of %d", last.Groups, last.Threads, c.groups, 32*c.warps)
			}
		})
	}
}

// On a GPU that is small for them, or for matrices that are large, many rows are staged: a
// threadgroup has tiles for each of its warps.
func TestLimbsStaged(t *testing.T) {
	for _, c := range []struct {
		processors, out, rows int
		staged                string
		groups                [3]int
		threads               int
	}{
		{1, 64, 64, "1", [3]int{1, 2, 1}, 128},
		{1, 400, 33, "1", [3]int{4, 2, 1}, 128},
		{1, 400, 32, "0", [3]int{13, 1, 1}, 256},
		{1, 48, 64, "0", [3]int{2, 2, 1}, 256},
		{132, 5120, 96, "0", [3]int{160, 3, 1}, 256},
		{132, 5120, 128, "1", [3]int{40, 4, 1}, 128},
	} {
		f := &fake{limbs: true, processors: c.processors}
		d := openFake(t, f)
		v, q := newBuffer(t, d, 1<<24), newQueue(t, d)
		w := gpu.Matrix{Rows: c.out, Cols: 4096, Format: quant.Affine(4, 64), Weight: v, Scales: v, Biases: v}
		cmds := new(gpu.Commands)
		gpu.Encode(cmds, gpu.MatMul{W: w, X: v.Floats(1 << 20), Y: v.Floats(1 << 21), Rows: c.rows})
		all := launchedBy(t, f, cmds, q)
		l := &all[len(all)-1]
		if got := defined(l, "STAGED"); got != c.staged || l.Groups != c.groups || l.Threads != c.threads {
			t.Errorf("%d processors, %d rows of X and %d of W: staged %s, %v threadgroups of %d threads, want %s, %v of %d", c.processors, c.rows, c.out, got, l.Groups, l.Threads, c.staged, c.groups, c.threads)
		}
	}
}

// Products of the same rows that follow one another share their limbs; an operation between them,
// other rows or another group end that.
func TestSplitOnce(t *testing.T) {
	f := &fake{limbs: true}
	d := openFake(t, f)
	v, q := newBuffer(t, d, 1<<22), newQueue(t, d)
	c := new(gpu.Commands)
	product := func(x gpu.View, group, rows int) {
		w := gpu.Matrix{Rows: 64, Cols: 256, Format: quant.Affine(4, group), Weight: v, Scales: v, Biases: v}
		gpu.Encode(c, gpu.MatMul{W: w, X: x, Y: v.Floats(1 << 19), Rows: rows})
	}
	a, b := v.Floats(1<<17), v.Floats(1<<18)
	product(a, 64, 9)
	product(a, 64, 9)
	product(a, 64, 9)
	product(a, 32, 9)
	product(b, 32, 9)
	product(b, 32, 10)
	gpu.Encode(c, gpu.Add{A: v, B: v, Y: v, N: 4})
	product(b, 32, 10)
	product(b, 32, 10)
	product(b, 32, 1) // makes its own
	product(b, 32, 10)
	want := "[limbs_split limbs_matmul 16 limbs_matmul 16 limbs_matmul 16 limbs_split limbs_matmul 16 limbs_split limbs_matmul 16 limbs_split limbs_matmul 16 add " +
		"limbs_split limbs_matmul 16 limbs_matmul 16 limbs_matmul 1 limbs_split limbs_matmul 16]"
	for range 2 {
		if got := fmt.Sprint(names(launchedBy(t, f, c, q))); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Experts with few pairs share launches of small jobs, those with many have jobs of 32; where one
// matrix is not affine, the portable kernel sets the size of jobs for all.
func TestLimbExperts(t *testing.T) {
	p4 := quant.Affine(4, 64).In(quant.Panels, quant.PanelRows)
	q8 := quant.Affine(8, 32)
	for _, c := range []struct {
		rows           int
		gate, up, down quant.Format
		want           string
		jobs           int
	}{
		{1, p4, p4, p4, "[expert_jobs limbs_experts 8 limbs_experts 8]", 1},
		{5, p4, p4, p4, "[expert_jobs limbs_experts 8 limbs_experts 8]", 2},
		{70, p4, p4, p4, "[expert_jobs limbs_split limbs_experts 48 limbs_split limbs_experts 48]", 2},
		{2, p4, q8, p4, "[expert_jobs limbs_experts 8 limbs_experts 8 experts_swiglu 1 limbs_experts 8]", 2},
		{70, p4, p4, quant.Format{}, "[expert_jobs limbs_split limbs_experts 8 experts_product 8]", 9},
	} {
		f := &fake{limbs: true}
		d := openFake(t, f)
		v, q := newBuffer(t, d, 1<<22), newQueue(t, d)
		const dim, inner = 128, 64
		matrix := func(rows, cols int, f quant.Format) gpu.Matrix {
			m := gpu.Matrix{Rows: rows, Cols: cols, Format: f, Weight: v}
			if f.Codes() {
				m.Scales, m.Biases = v, v
			}
			return m
		}
		e := gpu.Expert{Gate: matrix(inner, dim, c.gate), Up: matrix(inner, dim, c.up), Down: matrix(dim, inner, c.down)}
		cmds := new(gpu.Commands)
		gpu.Encode(cmds, gpu.Experts{X: v.Floats(1 << 17), Y: v.Floats(1 << 18), Scratch: v.Floats(1 << 19), Rows: c.rows, TopK: 1,
			Table: &gpu.ExpertTable{Experts: []gpu.Expert{e}}, Picks: gpu.List[int32]{Host: make([]int32, c.rows)}})
		all := launchedBy(t, f, cmds, q)
		if got := fmt.Sprint(names(all)); got != c.want {
			t.Errorf("%d rows: %s, want %s", c.rows, got, c.want)
		}
		if last := all[len(all)-1]; last.Groups[1] != c.jobs {
			t.Errorf("%d rows: %d jobs, want %d", c.rows, last.Groups[1], c.jobs)
		}
	}
}

// Slices are those of gpu/cuda/override/product.cu: a warp each, at most 8, none empty.
func TestLimbSlices(t *testing.T) {
	f := quant.Affine(4, 64)
	for cols, want := range map[int]int{64: 1, 512: 1, 576: 2, 768: 2, 2048: 4, 4096: 8, 4160: 8, 4224: 8, 18432: 8, 64 * 9 * 8: 8, 64 * 57: 8} {
		if got := limbSlices(f, cols); got != want {
			t.Errorf("%d columns: %d slices, want %d", cols, got, want)
		}
	}
}

// The table's kernels are no portable ones, and a variant holds their values.
func TestLimbKernels(t *testing.T) {
	for name, defines := range limbKernels {
		if kernelDefines[name] != nil || len(defines) > len(variant{}.values) || slices.Contains(defines, "") {
			t.Errorf("%s with %v", name, defines)
		}
	}
}

// A router's product, the choice of experts by it and their gates and ups share the limbs of the
// rows; other rows, groups of another size and a choice that is written over the rows do not.
func TestSplitOnceForExperts(t *testing.T) {
	for name, c := range map[string]struct {
		group       int // of the router
		other, over bool
		rows        int
		want        string
	}{
		"shared":        {group: 64, rows: 9, want: "[limbs_split limbs_matmul 16 route_jobs limbs_experts 8 limbs_split limbs_experts 8]"},
		"40 rows":       {group: 64, rows: 40, want: "[limbs_split limbs_matmul 32 route expert_jobs limbs_experts 48 limbs_split limbs_experts 48]"},
		"few rows":      {group: 64, rows: 4, want: "[limbs_matmul 4 route_jobs limbs_experts 8 limbs_experts 8]"},
		"another group": {group: 32, rows: 9, want: "[limbs_split limbs_matmul 16 route_jobs limbs_split limbs_experts 8 limbs_split limbs_experts 8]"},
		"other rows":    {group: 64, rows: 9, other: true, want: "[limbs_split limbs_matmul 16 route_jobs limbs_split limbs_experts 8 limbs_split limbs_experts 8]"},
		"written over":  {group: 64, rows: 9, over: true, want: "[limbs_split limbs_matmul 16 route_jobs limbs_split limbs_experts 8 limbs_split limbs_experts 8]"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{limbs: true}
			d := openFake(t, f)
			v, q := newBuffer(t, d, 1<<22), newQueue(t, d)
			const dim, inner, experts, topK = 256, 64, 4, 2
			matrix := func(rows, cols, bits, group int) gpu.Matrix {
				return gpu.Matrix{Rows: rows, Cols: cols, Format: quant.Affine(bits, group), Weight: v, Scales: v, Biases: v}
			}
			x, scores, picks, weights := v.Floats(1<<18), v.Floats(1<<17), v.Floats(9<<16), v.Floats(10<<16)
			cmds, of := new(gpu.Commands), x
			gpu.Encode(cmds, gpu.MatMul{W: matrix(experts, dim, 8, c.group), X: x, Y: scores, Rows: c.rows})
			if c.other {
				of = x.Floats(dim)
			}
			if c.over {
				weights = x.Floats(4)
			}
			gpu.Encode(cmds, gpu.Route{Scores: scores, Picks: picks, Weights: weights, Rows: c.rows, Experts: experts, TopK: topK})
			e := gpu.Expert{Gate: matrix(inner, dim, 4, 64), Up: matrix(inner, dim, 4, 64), Down: matrix(dim, inner, 4, 64)}
			gpu.Encode(cmds, gpu.Experts{X: of, Y: v.Floats(11 << 16), Scratch: v.Floats(13 << 16), Rows: c.rows, TopK: topK,
				Table: &gpu.ExpertTable{Experts: []gpu.Expert{e, e, e, e}}, Picks: gpu.List[int32]{At: picks}})
			if got := fmt.Sprint(names(launchedBy(t, f, cmds, q))); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// Limbs are of one Submit: the rows may be others in the next one.
func TestSplitOnceEndsWithSubmit(t *testing.T) {
	f := &fake{limbs: true}
	d := openFake(t, f)
	v, q := newBuffer(t, d, 1<<22), newQueue(t, d)
	product := gpu.MatMul{W: gpu.Matrix{Rows: 64, Cols: 256, Format: quant.Affine(4, 64), Weight: v, Scales: v, Biases: v}, X: v.Floats(1 << 17),
		Y: v.Floats(1 << 19), Rows: 9}
	first, second := new(gpu.Commands), new(gpu.Commands)
	gpu.Encode(first, product)
	gpu.Encode(second, gpu.Upload{Dst: product.X, Src: make([]byte, 4)})
	gpu.Encode(second, product)
	for _, c := range []*gpu.Commands{first, second} {
		if got, want := fmt.Sprint(names(launchedBy(t, f, c, q))), "[limbs_split limbs_matmul 16]"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
