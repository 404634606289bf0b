package policy

import "math"

const (
	// maxWeight is where a layer's scores are scaled down. Their squares stay far below the largest
	// float64.
	maxWeight = 0x1p256
	// lossPasses is the passes through the model after which an error of an estimate counts 1/e.
	lossPasses = 64
)

// estimate is what one half-life makes of the uses: a score for each expert, which over the weight
// of its layer is the chance that the next row picks it. Only weights grow as time goes by, so
// experts of a layer keep their order until they are used.
type estimate struct {
	experts int
	life    float64 // half-life in rows
	// [layers·experts]: Σ of the shares of rows that used it, each times the weight gained then
	score  []float64
	layers []layerWeights // [layers]
	// Σ (chance - share of rows)² over experts and visits, later visits counting more
	loss float64
	keep float64 // what a visit leaves of the loss before it
}

type layerWeights struct {
	weight  float64 // of a use by all rows ever; doubles every half-life
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

// visit ages the uses of a layer. Where it scales scores, small ones may become equal, but none
// overtakes another, so heaps stay heaps.
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

// use counts a use by a share of the rows of the layer's last visit.
func (e *estimate) use(at, key int, share float64) {
	l := &e.layers[at]
	before := e.score[key]
	if l.was > 0 {
		e.loss -= 2 * share * before / l.was
	}
	e.loss += share * share
	e.set(at, key, before+l.gain*share)
}

// set makes a score another one.
func (e *estimate) set(at, key int, score float64) {
	l := &e.layers[at]
	l.squares = max(0, l.squares+score*score-e.score[key]*e.score[key])
	e.score[key] = score
}
