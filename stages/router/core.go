package router

import (
	"errors"
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
)

// Config sizes the stage.
type Config struct {
	Layers, Experts int
	First           int // the first layer with a router; all layers after it have one
	TopK            int
	Rule            Rule
	LastToken       bool // predict from the row before
	NextGate        bool // predict from the next layers' routers
	// Ahead is how many layers ahead experts are predicted, 1 or 2; 0 means 1.
	Ahead int
	// AheadRows is the largest number of rows in a step that are predicted one by one. Of more
	// rows, some row picks almost any expert of a layer, and the layer is predicted as a whole.
	AheadRows     int
	PrefetchSlots int // the most experts in one hint
	// Far means that the device routes by itself and has not all experts in its own memory:
	// expert-IO is told what steps use.
	Far bool
}

// Core is the stage.
type Core struct {
	cfg  Config
	past map[stages.SeqID]*past
	rule chooser // turns scores ahead into picks

	last  *lastToken
	gates [2]predictor  // by the router input one and two layers before
	open  []*prediction // for layers that are not routed yet
	spare []*prediction

	layers   []stages.LayerStats // the fields that are the router's
	rows     []int64             // [layers], rows that were routed
	union    union
	guesses  []guess
	mark     []bool  // [experts]; all false between calls
	counts   []int32 // [experts]; all 0 between calls
	counting counting
}

// past is what a sequence's last row picked.
type past struct {
	picks [][]int32     // [layers]; nil before the first row
	step  stages.StepID // the last step that was routed, and its layer
	layer int
}

var _ stages.Core = (*Core)(nil)

// New returns the stage, without any predictions yet.
func New(cfg Config) *Core {
	cfg.Ahead = max(1, cfg.Ahead)
	c := &Core{
		cfg: cfg, rule: chooser{Rule: cfg.Rule}, past: make(map[stages.SeqID]*past), layers: make([]stages.LayerStats, cfg.Layers),
		rows: make([]int64, cfg.Layers), union: newUnion(cfg.Experts), mark: make([]bool, cfg.Experts), counts: make([]int32, cfg.Experts),
		last: newLastToken(cfg.Layers, cfg.TopK), counting: counting{layer: cfg.Layers},
	}
	for i := range c.layers {
		c.layers[i].Uses = make([]int64, cfg.Experts)
	}
	for i := range c.gates {
		if cfg.LastToken {
			c.gates[i] = newBoth(cfg.Layers, cfg.Experts, cfg.TopK, i+1, &c.rule)
		} else {
			c.gates[i] = newNextGate(cfg.Layers, cfg.Experts, cfg.TopK, i+1, &c.rule)
		}
	}
	return c
}

// Step handles one message.
func (c *Core) Step(in stages.Message, out *stages.Outbox) error {
	if _, more := in.(*stages.CountPicks); more {
		c.countPicks(out)
		return nil
	}
	c.finish(out)
	switch m := in.(type) {
	case *stages.BeginLayer:
		return c.beginLayer(m, out)
	case *stages.PicksReady:
		return c.picksReady(m, out)
	case *stages.ScoresAhead:
		return c.scoresAhead(m, out)
	case *stages.StepRouted:
		return c.stepRouted(m, out)
	case *stages.ForgetSequence:
		delete(c.past, m.Seq)
	case *stages.DescribePredictions:
		c.describe(m, out)
	case *stages.ForgetExperts:
		clear(c.past)
		out.Send(stages.ExpertIO, m)
	case *stages.DrainStep:
		c.settle(m.ID, -1, nil)
		out.Send(stages.ExpertIO, m)
	case *stages.CollectStats:
		return c.collectStats(m, out)
	default:
		return fmt.Errorf("router: unexpected message %T", in)
	}
	return nil
}

// check reports a message about a layer that does not exist.
func (c *Core) check(s *stages.Step) error {
	if s.Batch == nil || s.Layer < 0 || s.Layer >= c.cfg.Layers {
		return fmt.Errorf("router: message for %v of a model with %d layers", s, c.cfg.Layers)
	}
	return nil
}

func (c *Core) picksReady(m *stages.PicksReady, out *stages.Outbox) error {
	if err := c.check(m.Head()); err != nil {
		return err
	}
	rows, k := len(m.Batch.Rows), c.cfg.TopK
	if len(m.Picks) != rows*k || len(m.Weights) != rows*k {
		return fmt.Errorf("router: %d picks and %d weights for %v, want %d", len(m.Picks), len(m.Weights), &m.Step, rows*k)
	}
	plan := out.Spent().RoutePlan(rows*k, k)
	if err := c.pick(m, plan); err != nil {
		return err
	}
	if n := len(plan.Losses); n > 0 && n == len(m.Batch.Segments) {
		out.Send(stages.Sequencer, &stages.StepFailed{Step: m.Step, Stage: stages.Router, Err: plan.Losses[0].Err.Err})
		return nil
	}
	c.cut(plan)
	c.notePicks(m.Head(), m.Layer, m.Picks, out)
	c.remember(m, plan)
	out.Send(stages.ExpertIO, out.Spent().LayerRouted(m.Step, plan))
	if m.Layer == c.cfg.Layers-1 {
		c.again(m, out)
	}
	return nil
}

// pick fills in the plan's picks and weights. A row with a score that is not a finite number is
// lost, and its sequence with it. The row gets the first experts with weights of 0.
func (c *Core) pick(m *stages.PicksReady, plan *stages.RoutePlan) error {
	k := c.cfg.TopK
	copy(plan.Picks, m.Picks)
	copy(plan.Weights, m.Weights)
	plan.Inputs, m.Inputs = m.Inputs, plan.Inputs
	for i, e := range m.Picks {
		switch {
		case int(e) >= c.cfg.Experts:
			return fmt.Errorf("router: pick %d of %v is expert %d of %d", i, &m.Step, e, c.cfg.Experts)
		case e < 0:
			plan.Losses = lose(plan.Losses, m, i/k, &stages.ScoreError{Row: i / k, Expert: int(-1 - e)})
			plan.Picks[i], plan.Weights[i] = int32(i%k), 0
		}
	}
	return nil
}

// lose adds the sequence of a row to the losses, unless it is there already. Only the first error
// of a sequence is reported.
func lose(losses []stages.Loss, m *stages.PicksReady, row int, err error) []stages.Loss {
	seq := m.Batch.Segments[m.Batch.SegmentOf(row)].Seq
	for _, l := range losses {
		if l.Seq == seq {
			return losses
		}
	}
	return append(losses, stages.Loss{Seq: seq, Err: &stages.StepError{Stage: stages.Router, Layer: m.Layer, Err: err}})
}

// remember counts the picks, learns from them, and keeps each sequence's last picks for its next
// row.
func (c *Core) remember(m *stages.PicksReady, plan *stages.RoutePlan) {
	k, st := c.cfg.TopK, &c.layers[m.Layer]
	c.rows[m.Layer] += int64(len(m.Batch.Rows))
	for _, e := range plan.Picks {
		st.Uses[e]++
	}
	c.settle(m.ID, m.Layer, func(f *prediction) { c.learnAhead(f, plan) })
	for _, g := range m.Batch.Segments {
		p := c.pastOf(g.Seq)
		before := p.picks[m.Layer]
		for r := g.Row; r < g.Row+g.Rows; r++ {
			now := plan.Picks[r*k : (r+1)*k]
			if before != nil {
				st.Picks += int64(k)
				st.SamePicks += c.learnPast(m.Layer, before, now)
			}
			before = now
		}
		p.picks[m.Layer] = append(p.picks[m.Layer][:0], before...)
		p.step, p.layer = m.ID, m.Layer
	}
}

// pastOf returns the past of a sequence, which is empty at first.
func (c *Core) pastOf(seq stages.SeqID) *past {
	p := c.past[seq]
	if p == nil {
		p = &past{picks: make([][]int32, c.cfg.Layers)}
		c.past[seq] = p
	}
	return p
}

// learnPast learns from one row and returns how many of its experts the row before picked too.
func (c *Core) learnPast(layer int, before, now []int32) (same int64) {
	c.guesses = c.last.predict(c.guesses[:0], sight{layer: layer, past: before})
	c.marked(now, func() {
		c.last.learn(layer, c.guesses, c.mark)
		for _, e := range before {
			if c.mark[e] {
				same++
			}
		}
	})
	return same
}

// learnAhead learns, row by row, from what was predicted for a layer.
func (c *Core) learnAhead(f *prediction, plan *stages.RoutePlan) {
	k, st := c.cfg.TopK, &c.layers[f.layer]
	tried, right := &st.AheadPicks, &st.AheadHits
	if f.ahead == 2 {
		tried, right = &st.TwoAheadPicks, &st.TwoAheadHits
	}
	from := 0
	for r, end := range f.ends {
		guesses := f.guesses[from:end]
		from = end
		c.marked(plan.Picks[r*k:(r+1)*k], func() {
			c.gates[f.ahead-1].learn(f.layer, guesses, c.mark)
			for _, g := range guesses {
				if int(g.rank) < k && c.mark[g.expert] {
					*right++
				}
			}
		})
		*tried += int64(k)
	}
}

// marked calls f with the experts marked.
func (c *Core) marked(experts []int32, f func()) {
	for _, e := range experts {
		c.mark[e] = true
	}
	f()
	for _, e := range experts {
		c.mark[e] = false
	}
}

func (c *Core) collectStats(m *stages.CollectStats, out *stages.Outbox) error {
	if m.Stats == nil {
		return errors.New("router: CollectStats has no Stats")
	}
	m.Stats.Layers = make([]stages.LayerStats, len(c.layers))
	for i, l := range c.layers {
		l.Uses = append([]int64(nil), l.Uses...)
		m.Stats.Layers[i] = l
	}
	out.Send(stages.ExpertIO, m)
	return nil
}
