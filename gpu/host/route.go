package host

import (
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/route"
)

// routeTask chooses experts; a chunk is some rows.
type routeTask struct {
	rule             *route.Rule
	bias             []float32 // nil: none
	scores, weights  []float32
	picks            []int32
	rows, n, k, each int // n experts; each rows a chunk
}

func (t *routeTask) do(s *scratch, chunk int) {
	for r := chunk * t.each; r < min((chunk+1)*t.each, t.rows); r++ {
		row, picks, weights := t.scores[r*t.n:(r+1)*t.n], t.picks[r*t.k:(r+1)*t.k], t.weights[r*t.k:(r+1)*t.k]
		if e := route.NotFinite(row); e >= 0 {
			for i := range picks {
				picks[i], weights[i] = int32(-1-e), 0
			}
			continue
		}
		s.chooser.Choose(t.rule, t.bias, row, picks, weights)
	}
}

// routeNS is about how many nanoseconds a row takes for each of its experts.
const routeNS = 10

func (x *executor) runRoute(o *gpu.Route) {
	t := &x.router
	*t = routeTask{rule: &o.Rule, rows: o.Rows, n: o.Experts, k: o.TopK, each: x.width(o.Rows, 1)}
	t.scores, t.picks, t.weights = floatsAt(o.Scores, o.Rows*o.Experts), intsAt(o.Picks, o.Rows*o.TopK), floatsAt(o.Weights, o.Rows*o.TopK)
	if !o.Bias.IsZero() {
		t.bias = floatsAt(o.Bias, o.Experts)
	}
	x.parallel(t, chunks(o.Rows, t.each), routeNS*o.Rows*o.Experts)
	*t = routeTask{}
}
