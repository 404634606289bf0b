package refmodel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/testmodel"
	"github.com/moeflux/moeflux-actor/model"
)

// The vectors in this file were computed by another program from the same definitions, in float64,
// and printed with seven digits or fewer.

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s: got %.9g, want %.9g to %.1g", what, got, want, tolerance)
	}
}

func nearAll(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	for i := range want {
		if len(got) != len(want) || !(math.Abs(got[i]-want[i]) <= tolerance) {
			t.Errorf("%s: got %.9g, want %.9g to %.1g", what, got, want, tolerance)
			return
		}
	}
}

func TestDeltaRule(t *testing.T) {
	const aLog, dtBias, digits = 0.2, 0.05, 6e-8
	state := [][]float64{{0, 0}, {0, 0}}
	for i, c := range []struct {
		q, k, v    []float64
		alpha, b   float64
		g, beta    float64
		delta, out []float64
	}{
		{q: []float64{1, 2}, k: []float64{1, 0}, v: []float64{1, -1}, alpha: 0.1, b: 0, g: 0.3899842, beta: 0.5,
			delta: []float64{0.5, -0.5}, out: []float64{0.1581138, -0.1581138}},
		{q: []float64{0.5, -1}, k: []float64{0.6, 0.8}, v: []float64{0.5, 2}, alpha: -0.3, b: 1, g: 0.4948731, beta: 0.7310586,
			delta: []float64{0.2569950, 1.5706514}, out: []float64{-0.0030227, -0.5749294}},
		{q: []float64{2, 0.25}, k: []float64{-1, 1}, v: []float64{-0.25, 0.75}, alpha: 0.7, b: -0.5, g: 0.2494299, beta: 0.3775407,
			delta: []float64{-0.0813314, 0.2457618}, out: []float64{0.1100959, 0.0424227}},
	} {
		g, beta := deltaGates(aLog, dtBias, c.alpha, c.b)
		near(t, "g", g, c.g, digits)
		near(t, "beta", beta, c.beta, digits)
		out, delta := deltaRule(state, l2Norm(c.q, 1/math.Sqrt2), l2Norm(c.k, 1), c.v, g, beta)
		nearAll(t, "delta", delta, c.delta, digits)
		nearAll(t, "out", out, c.out, digits)
		if t.Failed() {
			t.Fatalf("at step %d", i)
		}
	}
	nearAll(t, "state row 0", state[0], []float64{0.1576893, -0.0062282}, digits)
	nearAll(t, "state row 1", state[1], []float64{-0.0004375, 0.4871936}, digits)
}

func TestGatedNorm(t *testing.T) {
	got := gatedNorm([]float64{1, -2, 0.5, 3}, []float64{1, 0.5, 2, 1.5}, []float64{0.2, -1, 3, 0}, 1e-6)
	nearAll(t, "gated norm", got, []float64{0.0582618, 0.1424886, 1.5140581, 0}, 6e-8)
}

// l2Norm adds its epsilon to the sum. Added to the mean, these lengths would be 0.99504 and
// 0.70711.
func TestL2NormEpsilon(t *testing.T) {
	for _, c := range []struct{ value, want float64 }{{0.01, 0.99996}, {0.001, 0.99612}} {
		got := l2Norm(slices.Repeat([]float64{c.value}, 128), 1)
		near(t, "length", math.Sqrt(dot(got, got)), c.want, 6e-6)
	}
}

func TestPlainFrequencies(t *testing.T) {
	f := newRotary(64, 1e7, nil, false).freq
	for i, want := range map[int]float64{0: 1, 1: 0.60429639, 16: 3.16227766e-4, 31: 1.65481710e-7} {
		near(t, "frequency", f[i], want, 1e-8*want)
	}
	if len(f) != 32 {
		t.Errorf("got %d frequencies, want 32", len(f))
	}
}

func TestYaRN(t *testing.T) {
	for _, c := range []struct {
		name      string
		theta     float64
		yarn      model.YaRN
		low, high float64
		freq      map[int]float64
		mult      float64
	}{
		{"DeepSeek-V3", 1e4, model.YaRN{Factor: 40, OriginalMaxPositionEmbeddings: 4096, BetaFast: 32, BetaSlow: 1, MScale: 1, MScaleAllDim: 1, Truncate: true},
			10, 23, map[int]float64{0: 1, 10: 0.0562341, 11: 0.0390069, 16: 0.0055, 22: 1.77828e-4, 23: 3.3338e-5, 31: 3.3338e-6}, 1},
		{"Kimi K2", 5e4, model.YaRN{Factor: 32, OriginalMaxPositionEmbeddings: 4096, BetaFast: 1, BetaSlow: 1, MScale: 1, MScaleAllDim: 1, Truncate: true},
			19, 20, map[int]float64{0: 1, 10: 0.0340073, 11: 0.024251, 16: 4.47214e-3, 22: 1.83784e-5, 23: 1.31059e-5, 31: 8.76441e-7}, 1},
		{"no truncation, no mscale", 1.5e5, model.YaRN{Factor: 32, OriginalMaxPositionEmbeddings: 4096, BetaFast: 32, BetaSlow: 1},
			8.09278, 17.3980, map[int]float64{0: 1, 10: 0.019335, 11: 0.011592, 16: 4.56484e-4, 22: 8.6355e-6, 23: 5.95024e-6, 31: 3.02351e-7}, 1.3465736},
	} {
		t.Run(c.name, func(t *testing.T) {
			low, high := yarnBorders(64, c.theta, &c.yarn)
			near(t, "low", low, c.low, 5e-6*c.low)
			near(t, "high", high, c.high, 5e-6*c.high)
			r := newRotary(64, c.theta, &c.yarn, true)
			for i, want := range c.freq {
				near(t, "frequency", r.freq[i], want, 2e-5*want)
			}
			near(t, "multiplier", r.mult, c.mult, 5e-8)
		})
	}
	// The borders before rounding.
	y := model.YaRN{OriginalMaxPositionEmbeddings: 4096, BetaFast: 32, BetaSlow: 1}
	low, high := yarnBorders(64, 1e4, &y)
	near(t, "raw low", low, 10.4722, 5e-5)
	near(t, "raw high", high, 22.5134, 5e-5)
}

func TestSoftmaxScale(t *testing.T) {
	c := model.Config{QKNopeHeadDim: 128, QKRopeHeadDim: 64}
	near(t, "without YaRN", softmaxScale(&c), 1/math.Sqrt(192), 1e-15)
	for _, y := range []struct{ factor, allDim, want float64 }{{40, 1, 0.13523378}, {32, 1, 0.1308608}, {40, 0, 1 / math.Sqrt(192)}} {
		c.YaRN = &model.YaRN{Factor: y.factor, MScale: 1, MScaleAllDim: y.allDim}
		near(t, "softmax scale", softmaxScale(&c), y.want, 6e-8)
	}
}

// The engine takes its frequencies, multiplier and softmax scale from the configuration, which
// computes them independently.
func TestRopeAgreesWithModel(t *testing.T) {
	stretched := 0
	for _, arch := range testmodel.Archs() {
		for seed := range uint64(8) {
			dir := t.TempDir()
			spec := testmodel.RandomSpec(rand.New(rand.NewPCG(seed, 2)), arch)
			spec.Layers, spec.DenseLayers, spec.DenseWidth, spec.Experts, spec.Groups, spec.TopKGroups = 1, nil, 0, spec.TopK, min(spec.Groups, 1), min(spec.TopKGroups, 1)
			spec.Sliding, spec.Window, spec.NoIndex = nil, 0, nil
			if err := testmodel.Write(dir, spec, 0); err != nil {
				t.Fatal(err)
			}
			raw, err := os.ReadFile(filepath.Join(dir, "config.json"))
			if err != nil {
				t.Fatal(err)
			}
			c, err := model.ParseConfig(raw, nil)
			if err != nil {
				t.Fatal(err)
			}
			r := newRotary(c.RotaryDim, c.RopeTheta, c.YaRN, c.RopeInterleaved)
			for i := range r.freq {
				if c.Llama3 != nil {
					r.freq[i] = llama3Frequency(r.freq[i], c.Llama3)
				}
			}
			what := fmt.Sprintf("%s %+v %+v", arch, c.YaRN, c.Llama3)
			got := c.RopeFrequencies()
			if len(got) != len(r.freq) {
				t.Fatalf("%s: got %d frequencies, want %d", what, len(got), len(r.freq))
			}
			for i, want := range r.freq {
				near(t, fmt.Sprintf("%s: frequency %d", what, i), got[i], want, 1e-13*want)
			}
			near(t, what+": multiplier", c.RopeMultiplier(), r.mult, 1e-14)
			if c.KVLoraRank > 0 {
				near(t, what+": softmax scale", c.AttentionScale(), softmaxScale(c), 1e-14)
			}
			if c.YaRN != nil {
				stretched++
			}
		}
	}
	if stretched < 12 {
		t.Errorf("only %d configurations with YaRN", stretched)
	}
}

// Both pairings turn the same angle; the score of two turned vectors depends on the distance alone.
func TestTurn(t *testing.T) {
	x := []float64{1, 2, 3, 4, 5, 6}
	half := rotary{freq: []float64{0.5, 0.25}, mult: 1}
	c1, s1, c2, s2 := math.Cos(1.5), math.Sin(1.5), math.Cos(0.75), math.Sin(0.75)
	nearAll(t, "half-split", half.turn(x, 3), []float64{1*c1 - 3*s1, 2*c2 - 4*s2, 1*s1 + 3*c1, 2*s2 + 4*c2, 5, 6}, 1e-14)
	pairs := rotary{freq: half.freq, mult: 1, interleaved: true}
	nearAll(t, "interleaved", pairs.turn(x, 3), []float64{1*c1 - 2*s1, 1*s1 + 2*c1, 3*c2 - 4*s2, 3*s2 + 4*c2, 5, 6}, 1e-14)
	y := []float64{-2, 1, 0.5, 3, -1, 2}
	for _, r := range []rotary{half, pairs} {
		near(t, "score at equal distance", dot(r.turn(x, 107), r.turn(y, 102)), dot(r.turn(x, 5), r.turn(y, 0)), 1e-12)
	}
}

// The vector distinguishes biased choice, unbiased weights and the limit of groups: without bias,
// experts 7, 2 and 4 would be chosen and group 1 would survive.
func TestSigmoidRouting(t *testing.T) {
	logits := []float64{0.5, -1, 2.2, -0.4, 1.7, 0.3, -2.5, 3.1, 1.1, -0.2, 0.9, -1.6}
	bias := []float64{0.2, 0.05, -0.15, 0.6, -0.1, 0, 0.3, -0.4, 0.1, -0.3, 0.25, 0}
	c := model.Config{Scoring: model.SigmoidScores, NumExpertsPerTok: 3, NGroup: 3, TopKGroup: 2, NormTopKProb: true, RoutedScalingFactor: 2.5}
	r := chooseExperts(&c, logits, bias)
	if !slices.Equal(r.Picks, []int{3, 10, 8}) {
		t.Errorf("got picks %v, want [3 10 8]", r.Picks)
	}
	nearAll(t, "weights", r.Weights, []float64{0.538668, 0.954283, 1.007049}, 6e-7)
	// Group sums are 1.823772, 1.319977 and 1.811210, which is clearer than expert 8 before expert
	// 0.
	near(t, "gap", r.Gap, sigmoid(1.1)+0.1-(sigmoid(0.5)+0.2), 1e-15)

	c.NormTopKProb = false
	r = chooseExperts(&c, logits, bias)
	nearAll(t, "weights, not normalised", r.Weights, []float64{2.5 * sigmoid(-0.4), 2.5 * sigmoid(0.9), 2.5 * sigmoid(1.1)}, 1e-14)

	c = model.Config{Scoring: model.SigmoidScores, NumExpertsPerTok: 3, NGroup: 1, TopKGroup: 1, NormTopKProb: true, RoutedScalingFactor: 1}
	if r = chooseExperts(&c, logits, make([]float64, 12)); !slices.Equal(r.Picks, []int{7, 2, 4}) {
		t.Errorf("one group, no bias: got picks %v, want [7 2 4]", r.Picks)
	}
}

func TestSoftmaxRouting(t *testing.T) {
	logits := []float64{math.Log(4), math.Log(1), math.Log(3), math.Log(2)} // 0.4, 0.1, 0.3, 0.2
	c := model.Config{NumExpertsPerTok: 2, NGroup: 1, TopKGroup: 1, RoutedScalingFactor: 1}
	r := chooseExperts(&c, logits, nil)
	nearAll(t, "weights", r.Weights, []float64{0.4, 0.3}, 1e-15)
	near(t, "gap", r.Gap, math.Log(1.5), 1e-15)
	c.NormTopKProb = true
	r = chooseExperts(&c, logits, nil)
	nearAll(t, "normalised weights", r.Weights, []float64{4.0 / 7, 3.0 / 7}, 1e-15)
	c.NumExpertsPerTok = 4
	if r = chooseExperts(&c, logits, nil); !slices.Equal(r.Picks, []int{0, 2, 3, 1}) || !math.IsInf(r.Gap, 1) {
		t.Errorf("all experts: got %v, want picks [0 2 3 1] and no gap", r)
	}
	c.NumExpertsPerTok = 2
	if r = chooseExperts(&c, []float64{1, 2, 2, 2}, nil); !slices.Equal(r.Picks, []int{1, 2}) || r.Gap != 0 {
		t.Errorf("ties: got %v, want picks [1 2] with a gap of 0", r)
	}
}

// Attention over one position returns its value; over two, the softmax of the scores weighs them.
func TestAttend(t *testing.T) {
	q := []float64{1, 2}
	nearAll(t, "one position", attend(q, [][]float64{{5, -5}}, [][]float64{{3, 4}}, 0.5), []float64{3, 4}, 0)
	a := sigmoid(0.5 * 3) // scores 0.5·(1+2) and 0
	nearAll(t, "two positions", attend(q, [][]float64{{1, 1}, {0, 0}}, [][]float64{{1, 0}, {0, 1}}, 0.5), []float64{a, 1 - a}, 1e-15)
}

func TestSoftplusAndSoftmaxAtTheEnds(t *testing.T) {
	for x, want := range map[float64]float64{0: math.Ln2, 1000: 1000, -1000: 0, 2: math.Log(1 + math.Exp(2))} {
		near(t, "softplus", softplus(x), want, 1e-15*max(1, want))
	}
	nearAll(t, "softmax", softmax([]float64{1000, 1000 + math.Ln2, -1000}), []float64{1.0 / 3, 2.0 / 3, 0}, 1e-12)
}

func TestNLLAndArgmax(t *testing.T) {
	logits := []float64{700 + math.Log(1), 700 + math.Log(3)}
	near(t, "NLL", NLL(logits, 0), math.Log(4), 1e-12)
	token, margin := Argmax(logits)
	if token != 1 {
		t.Errorf("Argmax: got %d, want 1", token)
	}
	near(t, "margin", margin, math.Log(3), 1e-12)
	trace := Trace{Tokens: []int32{1, 0, 1}, Logits: [][]float64{logits, logits, nil}}
	near(t, "loss", trace.Loss(), (math.Log(4)+math.Log(4.0/3))/2, 1e-12)
}

// A sink takes its share of the softmax and has no value.
func TestSink(t *testing.T) {
	keys := [][]float64{{1}, {-0.5}, {2}}
	nearAll(t, "weights", attention([]float64{1}, keys, 1, 1.5), []float64{0.1788866, 0.0399150, 0.4862642}, 6e-8)
}

func TestClamped(t *testing.T) {
	for _, c := range [][3]float64{{1, 2, 2.5373873}, {-3, 0.5, -0.0271070}, {9, 1, 13.9999063}, {2, -8, -11.6139517}, {8, 10, 55.9996250}, {0.5, -1, 0}} {
		near(t, fmt.Sprintf("gate %v, up %v", c[0], c[1]), clamped(model.Clamp{Limit: 7, Alpha: 1.702}, c[0], c[1]), c[2], 6e-8)
	}
}

// The weights are the softmax over the chosen alone.
func TestRoutingOfChosen(t *testing.T) {
	c := &model.Config{NumExperts: 5, NumExpertsPerTok: 3, NGroup: 1, RoutedScalingFactor: 1, NormTopKProb: true}
	r := chooseExperts(c, []float64{0.3, 2.0, -1.0, 1.2, 1.9}, nil)
	if !slices.Equal(r.Picks, []int{1, 4, 3}) {
		t.Errorf("picks %v", r.Picks)
	}
	nearAll(t, "weights", r.Weights, []float64{0.4247788, 0.3843558, 0.1908654}, 6e-8)
}
