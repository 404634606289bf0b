package launch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
	"github.com/moeflux/moeflux-actor/model/route"
)

// The choice of experts for up to 32 rows makes the lists by which they are computed, where nothing
// between the two could change what it chose.
func TestRouteJobs(t *testing.T) {
	p4 := quant.Affine(4, 64).In(quant.Panels, quant.PanelRows)
	for name, c := range map[string]struct {
		rows, topK, experts int
		rule                route.Rule
		between             string
		plain, limbs        bool
		want                string
	}{
		"one row":            {rows: 1, topK: 8, experts: 128, want: "[route experts_gate_up experts_product]"},
		"2 rows":             {rows: 2, topK: 8, experts: 128, want: "[route_jobs/8 experts_gate_up experts_product]"},
		"9 rows":             {rows: 9, topK: 8, experts: 128, want: "[route_jobs/32 experts_gate_up experts_product]"},
		"32 rows":            {rows: 32, topK: 8, experts: 128, limbs: true, want: "[route_jobs/32 limbs_split limbs_experts limbs_split limbs_experts]"},
		"33 rows":            {rows: 33, topK: 8, experts: 128, want: "[route expert_jobs experts_gate_up experts_product]"},
		"8 rows, groups":     {rows: 8, topK: 8, experts: 256, rule: route.Rule{NGroup: 8, TopKGroup: 4}, want: "[route_jobs/8 experts_gate_up experts_product]"},
		"9 rows, groups":     {rows: 9, topK: 8, experts: 256, rule: route.Rule{NGroup: 8, TopKGroup: 4}, want: "[route expert_jobs experts_gate_up experts_product]"},
		"no room":            {rows: 8, topK: 8, experts: 1024, want: "[route expert_jobs experts_gate_up experts_product]"},
		"a product between":  {rows: 8, topK: 8, experts: 128, between: "product", want: "[route_jobs/8 matmul experts_gate_up experts_product]"},
		"an upload between":  {rows: 8, topK: 8, experts: 128, between: "upload", want: "[route expert_jobs experts_gate_up experts_product]"},
		"one by one":         {rows: 8, topK: 8, experts: 128, plain: true, want: "[route expert_jobs experts_gate_up experts_product]"},
		"others' picks":      {rows: 8, topK: 8, experts: 128, between: "others", want: "[route expert_jobs experts_gate_up experts_product]"},
		"a choice between":   {rows: 8, topK: 8, experts: 128, between: "route", want: "[route route expert_jobs experts_gate_up experts_product]"},
		"experts a row more": {rows: 8, topK: 8, experts: 128, between: "rows", want: "[route expert_jobs experts_gate_up experts_product]"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{limbs: c.limbs}
			d := openFake(t, f)
			v, q := newBuffer(t, d, 1<<22), newQueue(t, d)
			picks, rows := v.Floats(1<<19), c.rows
			cmds := &gpu.Commands{Plain: c.plain}
			choice := gpu.Route{Scores: v, Picks: picks, Weights: v.Floats(3 << 18), Rows: rows, Experts: c.experts, TopK: c.topK, Rule: c.rule}
			gpu.Encode(cmds, choice)
			switch c.between {
			case "product":
				gpu.Encode(cmds, gpu.MatMul{W: gpu.Matrix{Rows: 4, Cols: 64, Weight: v}, X: v, Y: v.Floats(1 << 18), Rows: 1})
			case "upload":
				gpu.Encode(cmds, gpu.Upload{Dst: picks, Src: make([]byte, 4)})
			case "others":
				picks = v.Floats(5 << 17)
			case "route":
				choice.Picks = v.Floats(1 << 18)
				gpu.Encode(cmds, choice)
			case "rows":
				rows++
			}
			const dim, inner = 128, 64
			matrix := func(rows, cols int) gpu.Matrix {
				return gpu.Matrix{Rows: rows, Cols: cols, Format: p4, Weight: v, Scales: v, Biases: v}
			}
			table := &gpu.ExpertTable{}
			for range c.experts {
				table.Experts = append(table.Experts, gpu.Expert{Gate: matrix(inner, dim), Up: matrix(inner, dim), Down: matrix(dim, inner)})
			}
			gpu.Encode(cmds, gpu.Experts{X: v, Y: v.Floats(1 << 17), Scratch: v.Floats(1 << 18), Rows: rows, TopK: c.topK, Table: table, Picks: gpu.List[int32]{At: picks}})
			var got []string
			for _, l := range launchedBy(t, f, cmds, q) {
				name := l.Kernel.Name
				if name == "route_jobs" {
					_, room, _ := strings.Cut(l.Kernel.Defines, "#define ROWS ")
					room, _, _ = strings.Cut(room, "\n")
					name += "/" + room
					if l.Threads != 32*c.rows || l.Groups != [3]int{1, 1, 1} {
						t.Errorf("%d rows: %v threadgroups of %d threads", c.rows, l.Groups, l.Threads)
					}
				}
				got = append(got, name)
			}
			if fmt.Sprint(got) != c.want {
				t.Errorf("%v, want %s", got, c.want)
			}
		})
	}
}
