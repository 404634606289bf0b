package router

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
)

// leastChance is the least chance worth a message. An expert with less is not read, and hardly
// protected.
const leastChance = 1.0 / 16

// union combines the chances of one layer's experts over all rows of a step, as if the rows were
// independent.
type union struct {
	miss []float32 // [experts], the chance that no row picks it; 1 for experts not in list
	list []likely
}

// likely is an expert that some row may pick.
type likely struct {
	expert int32
	chance float32
}

func newUnion(experts int) union {
	u := union{miss: make([]float32, experts)}
	for e := range u.miss {
		u.miss[e] = 1
	}
	return u
}

// add adds the guesses of one row.
func (u *union) add(guesses []guess) {
	for _, g := range guesses {
		u.one(g.expert, g.chance)
	}
}

func (u *union) one(expert int32, chance float32) {
	if chance < leastChance {
		return
	}
	if u.miss[expert] == 1 {
		u.list = append(u.list, likely{expert: expert})
	}
	u.miss[expert] *= 1 - min(1, chance)
}

// fill puts the likeliest experts into a hint, at most most of them, and empties the union.
func (u *union) fill(hint *stages.PrefetchExperts, most int) {
	for i, l := range u.list {
		u.list[i].chance = 1 - u.miss[l.expert]
		u.miss[l.expert] = 1
	}
	slices.SortFunc(u.list, func(a, b likely) int {
		if c := cmp.Compare(b.chance, a.chance); c != 0 {
			return c
		}
		return cmp.Compare(a.expert, b.expert)
	})
	for _, l := range u.list[:min(most, len(u.list))] {
		hint.Experts = append(hint.Experts, l.expert)
		hint.Chances = append(hint.Chances, l.chance)
	}
	u.list = u.list[:0]
}

// send sends the union as a hint for a layer, unless it is empty.
func (c *Core) send(s stages.Step, layer, ahead int, out *stages.Outbox) {
	s.Layer = layer
	hint := out.Spent().PrefetchExperts(s, ahead)
	c.union.fill(hint, c.cfg.PrefetchSlots)
	if len(hint.Experts) == 0 {
		out.Spent().Handled(hint)
		return
	}
	out.Send(stages.ExpertIO, hint)
}

// beginLayer predicts what can be predicted without scores: the layer Config.Ahead layers on and,
// when a step begins, all layers up to there. A prompt beside a text that decodes is predicted one
// layer ahead: nearly all experts of a layer are in its hint, they take the place of what the text
// will use, and what they predict may not leave.
func (c *Core) beginLayer(m *stages.BeginLayer, out *stages.Outbox) error {
	if err := c.check(m.Head()); err != nil {
		return err
	}
	if !c.cfg.LastToken && !c.cfg.NextGate {
		return nil
	}
	many := len(m.Batch.Rows) > c.cfg.AheadRows
	ahead := c.cfg.Ahead
	if many && m.Batch.Beside {
		ahead = 1
	}
	from := m.Layer + ahead
	if m.Layer == 0 {
		from = 0
	}
	for layer := max(from, c.cfg.First); layer <= m.Layer+ahead && layer < c.cfg.Layers; layer++ {
		switch {
		case many:
			c.popular(layer, len(m.Batch.Rows))
		case c.cfg.LastToken && (!c.cfg.NextGate || layer < c.cfg.First+c.cfg.Ahead):
			c.asBefore(m.Head(), layer)
		}
		c.send(m.Step, layer, layer-m.Layer, out)
	}
	return nil
}

// asBefore predicts a layer from the row before of each sequence, unless the layer is routed
// already in this step.
func (c *Core) asBefore(s *stages.Step, layer int) {
	for _, g := range s.Batch.Segments {
		p := c.past[g.Seq]
		if p == nil || p.step > s.ID || p.step == s.ID && p.layer >= layer {
			continue
		}
		c.guesses = c.last.predict(c.guesses[:0], sight{layer: layer, past: p.picks[layer]})
		c.union.add(c.guesses)
	}
}

// popular predicts a layer for so many rows that most of its experts will be picked by one or
// another. It goes by how often each expert has been picked.
func (c *Core) popular(layer, rows int) {
	const weight = 16 // rows that the prior, by which all experts are alike, counts as
	st := &c.layers[layer]
	alike := float64(weight*c.cfg.TopK) / float64(c.cfg.Experts)
	for e, n := range st.Uses {
		p := min(1, (float64(n)+alike)/float64(c.rows[layer]+weight))
		c.union.one(int32(e), float32(1-math.Pow(1-p, float64(rows))))
	}
}

// again predicts the first layers of the next row of each sequence in the step: what this row
// picked there.
func (c *Core) again(m *stages.PicksReady, out *stages.Outbox) {
	if !c.cfg.LastToken {
		return
	}
	for layer := c.cfg.First; layer < min(c.cfg.First+c.cfg.Ahead, c.cfg.Layers); layer++ {
		for _, g := range m.Batch.Segments {
			c.guesses = c.last.predict(c.guesses[:0], sight{layer: layer, past: c.past[g.Seq].picks[layer]})
			c.union.add(c.guesses)
		}
		c.send(m.Step, layer, c.cfg.Layers-m.Layer+layer, out)
	}
}

// describe answers with the predictions for a sequence's next row.
func (c *Core) describe(m *stages.DescribePredictions, out *stages.Outbox) {
	a := new(stages.PredictionsDescribed)
	if m.Layer < c.cfg.First || m.Layer >= c.cfg.Layers {
		a.Err = &stages.LayerError{Layer: m.Layer, First: c.cfg.First, Layers: c.cfg.Layers}
	} else if p := c.past[m.Seq]; p != nil {
		c.guesses = c.last.predict(c.guesses[:0], sight{layer: m.Layer, past: p.picks[m.Layer]})
		for _, g := range c.guesses {
			a.Predictions = append(a.Predictions, stages.Prediction{Expert: g.expert, Chance: g.chance})
		}
	}
	out.Answer(m.Caller, a)
}

// prediction is what scores ahead predicted for one layer of a step, kept until that layer is
// routed.
type prediction struct {
	step    stages.StepID
	layer   int
	ahead   int // layers, 1 or 2
	guesses []guess
	ends    []int // [rows] in guesses
}

// scoresAhead predicts the next layers by their own routers' scores.
func (c *Core) scoresAhead(m *stages.ScoresAhead, out *stages.Outbox) error {
	if err := c.check(m.Head()); err != nil {
		return err
	}
	n := max(1, len(m.Batch.Rows)*c.cfg.Experts)
	layers := len(m.Scores) / n
	if len(m.Scores)%n != 0 || layers > len(c.gates) || m.Layer+layers >= c.cfg.Layers {
		return fmt.Errorf("router: %d scores ahead for %v, want %d for each of at most %d layers after it", len(m.Scores), &m.Step, n, len(c.gates))
	}
	for i := range layers {
		f := c.newPrediction()
		f.step, f.layer, f.ahead = m.ID, m.Layer+1+i, 1+i
		wanted := c.cfg.NextGate && i < c.cfg.Ahead && len(m.Batch.Rows) <= c.cfg.AheadRows
		c.predict(f, m.Batch, m.Scores[i*n:(i+1)*n], wanted, out)
		c.open = append(c.open, f)
		if wanted {
			c.send(m.Step, f.layer, f.ahead, out)
		}
	}
	return nil
}

// predict guesses row by row and, if wanted, adds the guesses to the union.
func (c *Core) predict(f *prediction, b *stages.Batch, scores []float32, wanted bool, out *stages.Outbox) {
	e := c.cfg.Experts
	for _, g := range b.Segments {
		for r := g.Row; r < g.Row+g.Rows; r++ {
			s := sight{layer: f.layer, scores: scores[r*e : (r+1)*e]}
			if p := c.past[g.Seq]; p != nil && r == g.Row {
				s.past = p.picks[f.layer]
			}
			from := len(f.guesses)
			f.guesses = c.gates[f.ahead-1].predict(f.guesses, s)
			f.ends = append(f.ends, len(f.guesses))
			if wanted {
				c.union.add(f.guesses[from:])
			}
			if noted(b, &g, r) {
				c.noteRanks(f, r, f.guesses[from:], out)
			}
		}
	}
}

func (c *Core) newPrediction() *prediction {
	n := len(c.spare) - 1
	if n < 0 {
		return new(prediction)
	}
	f := c.spare[n]
	c.spare = c.spare[:n]
	f.guesses, f.ends = f.guesses[:0], f.ends[:0]
	return f
}

// settle removes what was predicted for a layer of a step, or for all its layers if layer is
// negative. It calls f with each prediction first.
func (c *Core) settle(id stages.StepID, layer int, f func(*prediction)) {
	rest := c.open[:0]
	for _, o := range c.open {
		if o.step != id || layer >= 0 && o.layer != layer {
			rest = append(rest, o)
			continue
		}
		if f != nil {
			f(o)
		}
		c.spare = append(c.spare, o)
	}
	clear(c.open[len(rest):])
	c.open = rest
}
