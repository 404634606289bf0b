package launch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// defined is the value of a #define of a launch's kernel.
func defined(l *Launch, name string) string {
	_, rest, _ := strings.Cut(l.Kernel.Defines, "#define "+name+" ")
	value, _, _ := strings.Cut(rest, "\n")
	return value
}

// A kernel that writes rows makes their limbs for products that follow at once, in memory that
// these are given, whatever their number.
func TestLimbsMadeBefore(t *testing.T) {
	const dim = 256
	f := &fake{limbs: true}
	d := openFake(t, f)
	v, q := newBuffer(t, d, 1<<22), newQueue(t, d)
	x, y, z := v.Floats(1<<17), v.Floats(1<<18), v.Floats(1<<19)
	product := func(c *gpu.Commands, x gpu.View, group, rows int) {
		w := gpu.Matrix{Rows: 64, Cols: dim, Format: quant.Affine(4, group), Weight: v, Scales: v, Biases: v}
		gpu.Encode(c, gpu.MatMul{W: w, X: x, Y: z, Rows: rows})
	}
	norm := func(c *gpu.Commands, rows, stride int) {
		gpu.Encode(c, gpu.RMSNorm{X: x, Y: y, Vectors: rows, Dim: dim, YStride: stride})
	}
	for name, c := range map[string]struct {
		build func(c *gpu.Commands)
		want  string // kernels, rows, and what LIMBS or SPLIT is
	}{
		"one row":   {func(c *gpu.Commands) { norm(c, 1, 0); product(c, y, 64, 1) }, "rms_norm 64, limbs_matmul 1 1"},
		"nine rows": {func(c *gpu.Commands) { norm(c, 9, 0); product(c, y, 32, 9) }, "rms_norm 32, limbs_matmul 16 1"},
		"sum": {func(c *gpu.Commands) {
			gpu.Encode(c, gpu.Add{A: z, B: z, Y: x, N: 9 * dim})
			norm(c, 9, 0)
			product(c, y, 128, 9)
			product(c, y, 128, 9)
		}, "add_norm 128, limbs_matmul 16 1, limbs_matmul 16 1"},
		"a mark between":  {func(c *gpu.Commands) { norm(c, 9, 0); gpu.Encode(c, gpu.Mark{}); product(c, y, 64, 9) }, "rms_norm 64, limbs_matmul 16 1"},
		"another group":   {func(c *gpu.Commands) { norm(c, 9, 0); product(c, y, 64, 9); product(c, y, 32, 9) }, "rms_norm 64, limbs_matmul 16 1, limbs_split, limbs_matmul 16 1"},
		"other rows":      {func(c *gpu.Commands) { norm(c, 9, 0); product(c, x, 64, 9) }, "rms_norm 0, limbs_split, limbs_matmul 16 1"},
		"some rows":       {func(c *gpu.Commands) { norm(c, 9, 0); product(c, y, 64, 2) }, "rms_norm 0, limbs_matmul 2 0"},
		"rows apart":      {func(c *gpu.Commands) { norm(c, 2, 2*dim); product(c, y, 64, 2) }, "rms_norm 0, limbs_matmul 2 0"},
		"something first": {func(c *gpu.Commands) { norm(c, 2, 0); norm(c, 2, 0); product(c, y, 64, 2) }, "rms_norm 0, rms_norm 64, limbs_matmul 2 1"},
		"each by itself":  {func(c *gpu.Commands) { c.Plain = true; norm(c, 2, 0); product(c, y, 64, 2) }, "rms_norm 0, limbs_matmul 2 0"},
	} {
		t.Run(name, func(t *testing.T) {
			cmds := new(gpu.Commands)
			c.build(cmds)
			var got []string
			all := launchedBy(t, f, cmds, q)
			for i, kernel := range names(all) {
				l := &all[i]
				if value := defined(l, "LIMBS") + defined(l, "SPLIT"); value != "" {
					kernel += " " + value
				}
				got = append(got, kernel)
				if i == 0 || defined(l, "SPLIT") != "1" {
					continue
				}
				// Where the product finds limbs somebody has written them.
				from, found := &all[i-1], false
				for from.Kernel.Name == "limbs_matmul" {
					from = &all[i-2]
				}
				for _, a := range from.Args {
					found = found || a.Memory == l.Args[1].Memory && a.Offset == l.Args[1].Offset
				}
				if !found {
					t.Errorf("launch %d reads limbs at %v, and %s is given %v", i, l.Args[1], from.Kernel.Name, from.Args)
				}
			}
			if s := strings.Join(got, ", "); s != c.want {
				t.Errorf("%s, want %s", s, c.want)
			}
		})
	}
}

// The merge of an attention makes the limbs of all rows, or nobody does.
func TestLimbsOfAttention(t *testing.T) {
	for _, c := range []struct {
		at   []int // positions of the rows
		dim  int
		want string
	}{
		{[]int{600}, 64, "[attention attention_merge limbs_matmul 1]"},
		{[]int{600, 3, 600, 5, 600}, 64, "[attention attention_merge limbs_matmul 8]"},
		{[]int{3, 3, 3, 3, 3}, 64, "[attention limbs_split limbs_matmul 8]"},
		{[]int{600, 600, 600, 600, 600}, 32, "[attention attention_merge limbs_split limbs_matmul 8]"},
	} {
		f := &fake{limbs: true}
		d := openFake(t, f)
		v, q := newBuffer(t, d, 1<<22), newQueue(t, d)
		op := gpu.Attention{Q: v, Y: v.Floats(1 << 18), QRowStride: 2 * c.dim, QHeadStride: c.dim, Heads: 2, KVHeads: 1, HeadDim: c.dim, Scale: 1}
		for i, pos := range c.at {
			kv := gpu.KV{KVLayout: gpu.KVLayout{PageRows: 1024, Dim: c.dim, VOffset: 4096 * c.dim}, Pages: gpu.PagesOf(v)}
			op.Cache, op.Segments = kv.KVLayout, append(op.Segments, gpu.KVSegment{Row: i, Rows: 1, Pos: pos, Pages: kv.Pages})
		}
		w := gpu.Matrix{Rows: 64, Cols: 2 * c.dim, Format: quant.Affine(4, 64), Weight: v, Scales: v, Biases: v}
		cmds := new(gpu.Commands)
		gpu.Encode(cmds, op)
		gpu.Encode(cmds, gpu.MatMul{W: w, X: op.Y, Y: v.Floats(1 << 19), Rows: len(c.at)})
		if got := fmt.Sprint(names(launchedBy(t, f, cmds, q))); got != c.want {
			t.Errorf("rows at %v of %d channels: %s, want %s", c.at, c.dim, got, c.want)
		}
	}
}

// Where the device rounds, a norm makes limbs of both kinds: those of the router, which is exact,
// and the one of the experts. Each product is given its own.
func TestLimbsOfBothKinds(t *testing.T) {
	const dim, inner, experts, topK, rows = 256, 64, 4, 2, 9
	f := &fake{limbs: true, rounds: true}
	d := openFake(t, f)
	v, q := newBuffer(t, d, 1<<23), newQueue(t, d)
	matrix := func(rows, cols, bits int) gpu.Matrix {
		return gpu.Matrix{Rows: rows, Cols: cols, Format: quant.Affine(bits, 64), Weight: v, Scales: v, Biases: v}
	}
	x, y, scores, picks, weights := v.Floats(1<<18), v.Floats(3<<18), v.Floats(1<<17), v.Floats(9<<16), v.Floats(10<<16)
	cmds := new(gpu.Commands)
	gpu.Encode(cmds, gpu.RMSNorm{X: x, Y: y, Vectors: rows, Dim: dim})
	gpu.Encode(cmds, gpu.MatMul{W: matrix(experts, dim, 8), X: y, Y: scores, Rows: rows, Exact: true})
	gpu.Encode(cmds, gpu.Route{Scores: scores, Picks: picks, Weights: weights, Rows: rows, Experts: experts, TopK: topK})
	e := gpu.Expert{Gate: matrix(inner, dim, 4), Up: matrix(inner, dim, 4), Down: matrix(dim, inner, 4)}
	gpu.Encode(cmds, gpu.Experts{X: y, Y: v.Floats(11 << 16), Scratch: v.Floats(13 << 16), Rows: rows, TopK: topK,
		Table: &gpu.ExpertTable{Experts: []gpu.Expert{e, e, e, e}}, Picks: gpu.List[int32]{At: picks}})
	all := launchedBy(t, f, cmds, q)
	if got, want := fmt.Sprint(names(all)), "[rms_norm limbs_matmul 16 route_jobs limbs_experts 8 limbs_split limbs_experts 8]"; got != want {
		t.Fatalf("%s, want %s", got, want)
	}
	norm, router, gates, split := &all[0], &all[1], &all[3], &all[4]
	if defined(norm, "LIMBS") != "64" || defined(norm, "ROUNDED") != "64" || defined(router, "ROUNDED") != "0" || defined(gates, "ROUNDED") != "1" || defined(split, "ROUNDED") != "1" {
		t.Errorf("defines %q, %q, %q and %q", norm.Kernel.Defines, router.Kernel.Defines, gates.Kernel.Defines, split.Kernel.Defines)
	}
	same := func(what string, a, b []Arg) {
		for i := range a {
			if a[i].Memory != b[i].Memory || a[i].Offset != b[i].Offset {
				t.Errorf("%s of the norm are at %v, and are read at %v", what, a, b)
			}
		}
	}
	same("the three limbs", norm.Args[3:5], router.Args[1:3])
	same("the one limb", norm.Args[5:7], gates.Args[4:6])
	if norm.Args[3].Offset == norm.Args[5].Offset || norm.Args[4].Offset == norm.Args[6].Offset {
		t.Error("both kinds lie in one place")
	}
}
