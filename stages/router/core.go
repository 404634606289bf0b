package router

import (
	"errors"
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
)

// Config sizes the stage.
type Config struct {
	Layers, Experts int
	TopK            int
	Rule            Rule
	LastToken       bool // foretell by the row before
	NextGate        bool // foretell by the next layer's router
	PrefetchSlots   int  // experts worth foretelling at once; a larger union is not sent
}

// Core is the stage.
type Core struct {
	cfg  Config
	past map[stages.SeqID]*past
	rule chooser

	layers []stages.LayerStats // the fields that are the router's
	ahead  map[stages.StepID]*foretold
	mark   []bool  // [experts], all false between calls
	counts []int32 // [experts]
}

// past is what a sequence's last row picked.
type past struct {
	picks [][]int32 // [layers]; nil before the first row
}

// foretold is what the layer before foretold for the next layer of a step.
type foretold struct {
	layer int
	picks []int32 // [rows, TopK]
}

var _ stages.Core = (*Core)(nil)

// New returns the stage without predictions.
func New(cfg Config) *Core {
	c := &Core{
		cfg: cfg, rule: chooser{Rule: cfg.Rule}, past: make(map[stages.SeqID]*past), ahead: make(map[stages.StepID]*foretold),
		layers: make([]stages.LayerStats, cfg.Layers), mark: make([]bool, cfg.Experts), counts: make([]int32, cfg.Experts),
	}
	for i := range c.layers {
		c.layers[i].Uses = make([]int64, cfg.Experts)
	}
	return c
}

// Step handles one message.
func (c *Core) Step(in stages.Message, out *stages.Outbox) error {
	switch m := in.(type) {
	case *stages.BeginLayer:
		return c.beginLayer(m, out)
	case *stages.ScoresReady:
		return c.scoresReady(m, out)
	case *stages.ForgetSequence:
		delete(c.past, m.Seq)
	case *stages.DrainStep:
		delete(c.ahead, m.ID)
		out.Send(stages.ExpertIO, m)
	case *stages.CollectStats:
		return c.collectStats(m, out)
	default:
		return fmt.Errorf("router: unexpected message %T", in)
	}
	return nil
}

// beginLayer foretells the layer's experts by the row before of each sequence.
func (c *Core) beginLayer(m *stages.BeginLayer, out *stages.Outbox) error {
	if err := c.check(m.Head()); err != nil || !c.cfg.LastToken {
		return err
	}
	hint := out.Spent().PrefetchExperts(m.Step)
	for _, g := range m.Batch.Segments {
		if p := c.past[g.Seq]; p != nil {
			hint.Experts = c.unite(hint.Experts, p.picks[m.Layer])
		}
	}
	c.foretell(hint, c.cfg.LastToken, out)
	return nil
}

// check reports a message about a layer that there is not.
func (c *Core) check(s *stages.Step) error {
	if s.Batch == nil || s.Layer < 0 || s.Layer >= c.cfg.Layers {
		return fmt.Errorf("router: message for %v of a model with %d layers", s, c.cfg.Layers)
	}
	return nil
}

// foretell sends a hint if it is wanted and that many experts can be held. They were united.
func (c *Core) foretell(hint *stages.PrefetchExperts, wanted bool, out *stages.Outbox) {
	for _, e := range hint.Experts {
		c.mark[e] = false
	}
	if n := len(hint.Experts); !wanted || n == 0 || n > c.cfg.PrefetchSlots {
		out.Spent().Handled(hint)
		return
	}
	slices.Sort(hint.Experts)
	out.Send(stages.ExpertIO, hint)
}

// unite appends the experts that dst does not have yet, and marks them until foretell.
func (c *Core) unite(dst, experts []int32) []int32 {
	for _, e := range experts {
		if !c.mark[e] {
			c.mark[e] = true
			dst = append(dst, e)
		}
	}
	return dst
}

func (c *Core) scoresReady(m *stages.ScoresReady, out *stages.Outbox) error {
	if err := c.check(m.Head()); err != nil {
		return err
	}
	rows, k := len(m.Batch.Rows), c.cfg.TopK
	if len(m.Scores) != rows*c.cfg.Experts {
		return fmt.Errorf("router: %d scores for %v, want %d", len(m.Scores), &m.Step, rows*c.cfg.Experts)
	}
	plan := out.Spent().RoutePlan(rows*k, k)
	if err := c.pick(m.Layer, m.Scores, plan); err != nil {
		out.Send(stages.Sequencer, &stages.StepFailed{Step: m.Step, Stage: stages.Router, Err: err})
		return nil
	}
	c.cut(plan)
	c.remember(m, plan)
	out.Send(stages.ExpertIO, out.Spent().LayerRouted(m.Step, plan))
	return c.lookAhead(m, out)
}

// pick fills the plan's picks and weights.
func (c *Core) pick(layer int, scores []float32, plan *stages.RoutePlan) error {
	k, e := c.cfg.TopK, c.cfg.Experts
	for r := 0; r*k < len(plan.Picks); r++ {
		row := scores[r*e : (r+1)*e]
		if i := notFinite(row); i >= 0 {
			return &stages.ScoreError{Row: r, Expert: i, Value: row[i]}
		}
		c.rule.choose(layer, row, plan.Picks[r*k:(r+1)*k], plan.Weights[r*k:(r+1)*k])
	}
	return nil
}

// remember counts, and keeps each sequence's last picks for its next row.
func (c *Core) remember(m *stages.ScoresReady, plan *stages.RoutePlan) {
	k, st := c.cfg.TopK, &c.layers[m.Layer]
	for _, e := range plan.Picks {
		st.Uses[e]++
	}
	if f := c.ahead[m.ID]; f != nil && f.layer == m.Layer {
		for r := 0; r*k < len(plan.Picks); r++ {
			st.AheadPicks += int64(k)
			st.AheadHits += c.common(f.picks[r*k:(r+1)*k], plan.Picks[r*k:(r+1)*k])
		}
		delete(c.ahead, m.ID)
	}
	for _, g := range m.Batch.Segments {
		p := c.past[g.Seq]
		if p == nil {
			p = &past{picks: make([][]int32, c.cfg.Layers)}
			c.past[g.Seq] = p
		}
		before := p.picks[m.Layer]
		for r := g.Row; r < g.Row+g.Rows; r++ {
			now := plan.Picks[r*k : (r+1)*k]
			if before != nil {
				st.Picks += int64(k)
				st.SamePicks += c.common(before, now)
			}
			before = now
		}
		p.picks[m.Layer] = append(p.picks[m.Layer][:0], before...)
	}
}

// lookAhead foretells the next layer's experts by that layer's own router.
func (c *Core) lookAhead(m *stages.ScoresReady, out *stages.Outbox) error {
	if m.Ahead == nil {
		return nil
	}
	rows, k, e := len(m.Batch.Rows), c.cfg.TopK, c.cfg.Experts
	if len(m.Ahead) != rows*e || m.Layer+1 == c.cfg.Layers {
		return fmt.Errorf("router: %d scores ahead for %v, want %d and a next layer", len(m.Ahead), &m.Step, rows*e)
	}
	f := &foretold{layer: m.Layer + 1, picks: make([]int32, rows*k)}
	next := m.Step
	next.Layer++
	hint := out.Spent().PrefetchExperts(next)
	for r := range rows {
		picks := f.picks[r*k : (r+1)*k]
		c.rule.choose(m.Layer+1, m.Ahead[r*e:(r+1)*e], picks, nil)
		hint.Experts = c.unite(hint.Experts, picks)
	}
	c.ahead[m.ID] = f
	c.foretell(hint, c.cfg.NextGate, out)
	return nil
}

func (c *Core) collectStats(m *stages.CollectStats, out *stages.Outbox) error {
	if m.Stats == nil {
		return errors.New("router: figures are asked for, but there is no place for them")
	}
	m.Stats.Layers = make([]stages.LayerStats, len(c.layers))
	for i, l := range c.layers {
		l.Uses = append([]int64(nil), l.Uses...)
		m.Stats.Layers[i] = l
	}
	out.Send(stages.ExpertIO, m)
	return nil
}
