package router

import "github.com/moeflux/moeflux-actor/model/route"

import "slices"

// predictor predicts what a row of a layer will pick.
type predictor interface {
	// predict appends the experts that the row may pick, each once, with their chances.
	predict(dst []guess, s sight) []guess
	// learn learns which of one row's guesses were right; picked is [experts].
	learn(layer int, guesses []guess, picked []bool)
}

// sight is what is known of a row before its layer is routed.
type sight struct {
	layer int
	// [experts] of the layer's router, applied to the router input of a layer before
	scores []float32
	// [TopK], what the row before picked in this layer, heaviest first; nil if unknown
	past []int32
}

// guess is an expert that a row may pick.
type guess struct {
	expert int32
	kind   int16 // of evidence, an index into the predictor's experience
	// among the scores, 0 for the best; for an expert that is not ranked, the number of ranks
	rank   int16
	chance float32
}

// lastToken predicts the experts that the row before picked in the same layer. The evidence is the
// rank of the pick by weight.
type lastToken struct{ experience }

// nextGate predicts the experts with the best scores of the layer's router, applied to the router
// input of an earlier layer. The evidence is the rank. It ranks twice as many experts as a row
// picks: of those just after the picks, one in four is picked.
type nextGate struct {
	experience
	rule *chooser
	top  []int32
}

// both is nextGate with more evidence: whether the row before picked the expert, which makes much
// of a difference at every rank. It also predicts the other experts of that row.
type both struct{ nextGate }

var (
	_ predictor = (*lastToken)(nil)
	_ predictor = (*nextGate)(nil)
	_ predictor = (*both)(nil)
)

// What both knows of the row before. The kind of evidence is three times the rank, plus this.
const (
	pastUnknown = iota
	notPicked
	picked
	pastKinds
)

func newLastToken(layers, k int) *lastToken {
	prior := make([]float32, k)
	for i := range prior {
		prior[i] = lastPrior[i*len(lastPrior)/k]
	}
	return &lastToken{newExperience(layers, prior)}
}

// ranked returns how many experts nextGate ranks.
func ranked(k, experts int) int { return min(2*k, experts) }

// newNextGate returns the predictor for scores from ahead layers before, 1 or 2.
func newNextGate(layers, experts, k, ahead int, rule *chooser) *nextGate {
	p := &nextGate{rule: rule, top: make([]int32, ranked(k, experts))}
	var prior []float32
	for rank := range p.top {
		prior = append(prior, gatePriors[ahead-1][pastUnknown][rank*priorRanks/(2*k)])
	}
	p.experience = newExperience(layers, prior)
	return p
}

// newBoth is newNextGate with the row before.
func newBoth(layers, experts, k, ahead int, rule *chooser) *both {
	p := &both{nextGate{rule: rule, top: make([]int32, ranked(k, experts))}}
	var prior []float32
	for rank := range p.top {
		for past := range pastKinds {
			prior = append(prior, gatePriors[ahead-1][past][rank*priorRanks/(2*k)])
		}
	}
	for range pastKinds { // for an expert of the row before that is not ranked
		prior = append(prior, unrankedPriors[ahead-1])
	}
	p.experience = newExperience(layers, prior)
	return p
}

func (p *lastToken) predict(dst []guess, s sight) []guess {
	for rank, e := range s.past {
		dst = append(dst, p.guess(s.layer, e, rank, rank))
	}
	return dst
}

func (p *nextGate) predict(dst []guess, s sight) []guess {
	route.TopK(p.rule.rank(s.layer, s.scores), p.top)
	for rank, e := range p.top {
		dst = append(dst, p.guess(s.layer, e, rank, rank))
	}
	return dst
}

func (p *both) predict(dst []guess, s sight) []guess {
	route.TopK(p.rule.rank(s.layer, s.scores), p.top)
	for rank, e := range p.top {
		past := notPicked
		switch {
		case s.past == nil:
			past = pastUnknown
		case slices.Contains(s.past, e):
			past = picked
		}
		dst = append(dst, p.guess(s.layer, e, pastKinds*rank+past, rank))
	}
	for _, e := range s.past {
		if n := len(p.top); !slices.Contains(p.top, e) {
			dst = append(dst, p.guess(s.layer, e, pastKinds*n+picked, n))
		}
	}
	return dst
}
