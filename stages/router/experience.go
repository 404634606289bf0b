package router

const (
	// priorWeight is the number of guesses that the prior of a kind of evidence counts as.
	priorWeight = 8
	// memory is the number of guesses of a kind after which all earlier ones count half.
	memory = 512
	// priorRanks is the number of ranks in the tables below, each an eighth of twice the picks.
	priorRanks = 8
)

// Priors: the shares of guesses that were right for the demo model on 8,192 tokens of held-out
// source, over all layers (docs/experiments.md). A few tokens correct them for any other model.
var (
	// lastPrior is for the picks of the row before, from heavy to light.
	lastPrior = [4]float32{0.48, 0.44, 0.36, 0.30}
	// gatePriors is for the ranks of scores from one and from two layers before, by what is known
	// of the row before.
	gatePriors = [2][pastKinds][priorRanks]float32{
		{
			pastUnknown: {0.96, 0.89, 0.75, 0.53, 0.29, 0.17, 0.10, 0.07},
			notPicked:   {0.93, 0.84, 0.68, 0.46, 0.24, 0.13, 0.08, 0.05},
			picked:      {0.98, 0.95, 0.86, 0.70, 0.47, 0.33, 0.25, 0.21},
		},
		{
			pastUnknown: {0.88, 0.77, 0.60, 0.44, 0.30, 0.20, 0.14, 0.11},
			notPicked:   {0.81, 0.68, 0.51, 0.34, 0.22, 0.14, 0.10, 0.07},
			picked:      {0.97, 0.91, 0.82, 0.70, 0.54, 0.43, 0.37, 0.32},
		},
	}
	// unrankedPriors is for picks of the row before that are not among the ranks.
	unrankedPriors = [2]float32{0.06, 0.14}
)

// experience counts, layer by layer, how often guesses with each kind of evidence were right. That
// share is the chance of the next such guess.
type experience struct {
	prior []float32 // [kinds]
	cells []cell    // [layers, kinds]
}

// cell is one layer's experience with one kind of evidence.
type cell struct{ right, tried float32 }

func newExperience(layers int, prior []float32) experience {
	return experience{prior: prior, cells: make([]cell, layers*len(prior))}
}

func (x *experience) guess(layer int, expert int32, kind, rank int) guess {
	c := &x.cells[layer*len(x.prior)+kind]
	chance := (c.right + priorWeight*x.prior[kind]) / (c.tried + priorWeight)
	return guess{expert: expert, kind: int16(kind), rank: int16(rank), chance: chance}
}

func (x *experience) learn(layer int, guesses []guess, picked []bool) {
	for _, g := range guesses {
		c := &x.cells[layer*len(x.prior)+int(g.kind)]
		if c.tried >= memory {
			c.tried /= 2
			c.right /= 2
		}
		c.tried++
		if picked[g.expert] {
			c.right++
		}
	}
}
