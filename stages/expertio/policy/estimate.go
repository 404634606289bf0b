package policy

import "math"

const (
	// maxWeight is the weight at which a layer's scores are scaled down, so that their squares stay
	// far below the largest float64.
	maxWeight = 0x1p256
	// lossPasses is how many passes through the model it takes until an error of an estimate counts
	// 1/e.
	lossPasses = 64
)

// estimate holds a score for each expert, for one half-life. The score divided by the weight of the
// layer is the chance that the next row picks the expert. As time passes only the weights grow, so
// the experts of a layer keep their order until they are used.
type estimate struct {
	experts int
	life    float64 // half-life in rows
	// [layers·experts]: Σ share of the rows that used the expert, times the weight gained at that
	// visit
	score  []float64
	layers []layerWeights // [layers]
	// Σ (chance - share of rows)² over experts and visits; later visits count more
	loss float64
	keep float64 // the factor by which a visit reduces earlier losses
}

type layerWeights struct {
	weight  float64 // the score of an expert that every row has used; doubles every half-life
	was     float64 // the weight before the last visit
	gain    float64 // what a use by all rows of the last visit adds
	squares float64 // Σ score²
}

func newEstimate(layers, experts int, life float64) estimate {
	e := estimate{
		experts: experts, life: life, score: make([]float64, layers*experts), layers: make([]layerWeights, layers),
		keep: 1 - 1/float64(lossPasses*layers),
	}
	for i := range e.layers {
		e.layers[i] = layerWeights{weight: 1, was: 1}
	}
	return e
}

// visit ages the uses of a layer. When it scales scores, small ones may become equal, but their
// order does not change, so heaps stay heaps.
func (e *estimate) visit(at int, rows float64) {
	l := &e.layers[at]
	e.loss = e.loss*e.keep + l.squares/(l.weight*l.weight)
	grow := math.Exp2(rows / e.life)
	l.was = l.weight
	l.weight *= grow
	if l.weight > maxWeight {
		by := 1 / l.weight
		for k := at * e.experts; k < (at+1)*e.experts; k++ {
			e.score[k] *= by
		}
		l.squares *= by * by
		l.was *= by
		l.weight = 1
	}
	l.gain = l.weight * (1 - 1/grow)
}

// use counts a use by the given share of the rows of the layer's last visit.
func (e *estimate) use(at, key int, share float64) {
	l := &e.layers[at]
	before := e.score[key]
	if l.was > 0 {
		e.loss -= 2 * share * before / l.was
	}
	e.loss += share * share
	e.set(at, key, before+l.gain*share)
}

// set changes a score.
func (e *estimate) set(at, key int, score float64) {
	l := &e.layers[at]
	l.squares = max(0, l.squares+score*score-e.score[key]*e.score[key])
	e.score[key] = score
}
