package synth

import (
	"fmt"
	"math"
	"slices"

	"github.com/moeflux/moeflux-actor/model"
)

const (
	// routerStep is the unit of a router's weights on the wire. maxSteps bounds a weight.
	routerStep = 1.0 / 32
	maxSteps   = 31
	// biasStep and maxBias are the same for the correction bias.
	biasStep, maxBias = 1.0 / 1024, 32
	// closeCall is the difference of sigmoids below which two engines may disagree.
	closeCall = 1e-5
)

// router holds the weights of one layer's router, in steps.
type router struct {
	layer int     // in the model
	token []int8  // [tokenBits][experts]
	topic []int8  // [topicBits][experts]
	base  []int16 // [experts]: all common channels together
	tie   []int16 // [experts]: all different, below ties
	bias  []int8  // [experts]: the correction bias in units of biasStep; nil if the model has none
	ties  int     // a step is this many ties: a power of two, at least the experts
}

// makeRouters draws the routers of all layers with experts.
func (m *Model) makeRouters() {
	c, l := m.cfg, m.tuned()
	ties := 1
	for ties < c.NumExperts {
		ties *= 2
	}
	for _, layer := range c.MoELayers() {
		s := m.key("router").sub(layer).stream()
		r := router{layer: layer, ties: ties}
		for _, rank := range s.perm(c.NumExperts) {
			r.base = append(r.base, int16(max(-maxSteps*commonN, min(maxSteps*commonN, math.Round(popularity(rank, c.NumExperts, l.zipf)/routerStep)))))
		}
		for _, t := range s.perm(c.NumExperts) {
			r.tie = append(r.tie, int16(t))
		}
		r.token = draw(s, c.NumExperts*tokenBits, l.token/math.Sqrt(tokenBits))
		r.topic = draw(s, c.NumExperts*topicBits, l.topic/math.Sqrt(topicBits))
		for i := 0; c.CorrectionBias && i < c.NumExperts; i++ {
			r.bias = append(r.bias, int8(s.intn(2*maxBias+1)-maxBias))
		}
		m.routers = append(m.routers, r)
	}
}

// popularity is the part of a logit that is the same for all tokens: -zipf·ln(rank+1), less its
// mean.
func popularity(rank, experts int, zipf float64) float64 {
	mean := 0.0
	for i := range experts {
		mean += math.Log(float64(i+1)) / float64(experts)
	}
	return -zipf * (math.Log(float64(rank+1)) - mean)
}

// draw returns n normally distributed weights in steps.
func draw(s *stream, n int, deviation float64) []int8 {
	out := make([]int8, n)
	for i := range out {
		out[i] = int8(max(-maxSteps, min(maxSteps, math.Round(deviation*s.norm()/routerStep))))
	}
	return out
}

// addSigned adds ±w to sums, row by row. A bit of code gives the sign of a row: 1 is plus.
func addSigned(sums []int32, w []int8, code uint64) {
	for ; len(w) > 0; w, code = w[len(sums):], code>>1 {
		row := w[:len(sums)]
		if code&1 == 1 {
			for e, x := range row {
				sums[e] += int32(x)
			}
		} else {
			for e, x := range row {
				sums[e] -= int32(x)
			}
		}
	}
}

// scores returns every expert's logit in ties; r.ties of them are a step.
func (r *router) scores(tokenCode, topicCode uint64) []int32 {
	sums := make([]int32, len(r.base))
	for e, b := range r.base {
		sums[e] = int32(b)
	}
	addSigned(sums, r.token, tokenCode)
	addSigned(sums, r.topic, topicCode)
	for e, t := range r.tie {
		sums[e] = sums[e]*int32(r.ties) + int32(t)
	}
	return sums
}

// LayerRouting is what one layer picks for a token.
type LayerRouting struct {
	Layer   int     // in the model
	Experts []int32 // [NumExpertsPerTok], best first by the numbers that decide the choice
	// Close says that the choice depends on a difference too small for engines to agree on. With
	// softmax scores it is always false.
	Close bool
}

// Routing returns what each layer with experts picks for a token, whatever came before it. It
// panics if the token is outside the vocabulary.
func (m *Model) Routing(token int32) []LayerRouting {
	if token < 0 || int(token) >= m.cfg.VocabSize {
		panic(fmt.Sprintf("synth: token %d is outside the vocabulary of %d", token, m.cfg.VocabSize))
	}
	tokenCode, topicCode := m.tokenCode(token), m.topicCode(m.topic(token))
	out := make([]LayerRouting, len(m.routers))
	for i := range m.routers {
		r := &m.routers[i]
		choice := make([]float64, m.cfg.NumExperts)
		for e, s := range r.scores(tokenCode, topicCode) {
			choice[e] = float64(s)
		}
		least := 0.0
		if m.cfg.Scoring == model.SigmoidScores {
			m.squash(r, choice)
			least = closeCall
		}
		groupGap := math.Inf(1)
		if m.cfg.NGroup > 1 {
			groupGap = keepGroups(choice, m.cfg.NGroup, m.cfg.TopKGroup)
		}
		picks, gap := largest(choice, m.cfg.NumExpertsPerTok)
		out[i] = LayerRouting{Layer: r.layer, Experts: picks, Close: min(gap, groupGap) < least}
	}
	return out
}

// squash turns sums of weights into sigmoids with the correction bias added.
func (m *Model) squash(r *router, choice []float64) {
	unit := m.factor * wireValue * routerStep / float64(r.ties)
	for e, s := range choice {
		choice[e] = 1 / (1 + math.Exp(-s*unit))
		if r.bias != nil {
			choice[e] += float64(r.bias[e]) * biasStep
		}
	}
}

// keepGroups sets the experts outside the best groups to -Inf. The value of a group is the sum of
// its two best experts. It returns by how much the last group kept exceeds the best one left out.
func keepGroups(choice []float64, groups, keep int) float64 {
	size := len(choice) / groups
	worth := make([]float64, groups)
	for g := range worth {
		of := choice[g*size : (g+1)*size]
		best, _ := largest(of, min(2, size))
		for _, e := range best {
			worth[g] += of[e]
		}
	}
	kept, gap := largest(worth, keep)
	for e := range choice {
		if !slices.Contains(kept, int32(e/size)) {
			choice[e] = math.Inf(-1)
		}
	}
	return gap
}

// largest returns the indexes of the k largest numbers, largest first, the lower index first among
// equals. It also returns by how much the last exceeds the largest of the others, +Inf if there are
// none.
func largest(x []float64, k int) (picks []int32, gap float64) {
	for i, v := range x {
		at := len(picks)
		for at > 0 && x[picks[at-1]] < v {
			at--
		}
		if at > k {
			continue
		}
		picks = slices.Insert(picks, at, int32(i))
		if len(picks) > k+1 {
			picks = picks[:k+1]
		}
	}
	if len(picks) <= k {
		return picks, math.Inf(1)
	}
	return picks[:k], x[picks[k-1]] - x[picks[k]]
}

// tuned returns the law for the model's number of experts. Among more experts fewer are shared by
// chance, and a correction bias and groups disturb the choice, so topics weigh more. All published
// shapes then behave alike: under Mild, consecutive tokens share 32 to 36 % of their experts.
func (m *Model) tuned() law {
	l := laws[m.o.Route]
	more := 0.14 * math.Log2(float64(m.cfg.NumExperts)/float64(16*m.cfg.NumExpertsPerTok))
	if m.cfg.CorrectionBias {
		more += 0.1
	}
	l.topic *= max(0.5, 1+more)
	return l
}
