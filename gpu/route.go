package gpu

import "github.com/moeflux/moeflux-actor/model/route"

// Route chooses each row's experts by its scores, float32 [Rows, Experts], as Rule says: Picks is
// int32 [Rows, TopK], heaviest first, Weights float32 [Rows, TopK]. Bias is float32 [Experts]; the
// zero View means none. Of equal keys the lower expert goes first.
//
// A row with a score that is not finite has no experts: its picks are -1-e, where e is the
// first such score's expert, and its weights 0.
type Route struct {
	Scores, Bias, Picks, Weights View
	Rows, Experts, TopK          int
	Rule                         route.Rule
}

// Kind returns the kind, see Op.
func (o *Route) Kind() Kind { return KindRoute }

// Name returns the operation's name, see Op.
func (o *Route) Name() string { return "route" }

// Check reports sizes and views that do not fit, see Op. The error is an *OpError.
func (o *Route) Check() error {
	c := checker{op: o.Name()}
	c.positive("Rows", o.Rows)
	c.positive("Experts", o.Experts)
	c.positive("TopK", o.TopK)
	if c.ok() && o.TopK > o.Experts {
		c.fail("%d picks of %d experts", o.TopK, o.Experts)
	}
	c.expertGroups(&o.Rule, o.Experts, o.TopK)
	scores := c.dense("Scores", o.Scores, o.Rows, o.Experts)
	picks := c.dense("Picks", o.Picks, o.Rows, o.TopK)
	weights := c.dense("Weights", o.Weights, o.Rows, o.TopK)
	c.apart("Scores", scores, "Picks", picks)
	c.apart("Scores", scores, "Weights", weights)
	c.apart("Picks", picks, "Weights", weights)
	if !o.Bias.IsZero() {
		bias := c.floats("Bias", o.Bias, o.Experts)
		c.apart("Bias", bias, "Picks", picks)
		c.apart("Bias", bias, "Weights", weights)
	}
	return c.result()
}

// expertGroups requires groups of equal size, and that the groups kept hold k experts.
func (c *checker) expertGroups(r *route.Rule, experts, k int) {
	if n := r.NGroup; c.ok() && n > 1 && (experts%n != 0 || r.TopKGroup < 1 || r.TopKGroup > n || r.TopKGroup*(experts/n) < k) {
		c.fail("%d of %d groups of %d experts for %d picks", r.TopKGroup, n, experts, k)
	}
}
