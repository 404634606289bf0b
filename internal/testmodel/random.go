package testmodel

import (
	"math/rand/v2"

	"github.com/moeflux/moeflux-actor/model"
)

// RandomSpec draws a legal Spec of a family: small, of odd and even sizes, with every option on and
// off. About half of the widths divide into the groups of quantised matrices.
func RandomSpec(r *rand.Rand, arch model.Arch) Spec {
	s := Spec{
		Arch:         arch,
		Hidden:       pick(r, 16, 32, 48, 64, 64, 96, 128, 128),
		Layers:       1 + r.IntN(5),
		Vocab:        pick(r, 40, 97, 128, 320),
		MaxPositions: 4096,
		Eps:          pick(r, 1e-6, 1e-6, 1e-5),
		Tied:         r.IntN(4) == 0,
		RopeTheta:    pick(r, 1e4, 5e4, 1e6, 1e7),
		NormTopK:     of(arch).has&mustNormTopK != 0 || r.IntN(4) > 0,
	}
	if s.has(latent) {
		s.drawLatent(r)
	} else {
		s.drawFull(r)
	}
	if s.has(linear) {
		s.drawLinear(r)
	}
	s.drawExperts(r)
	s.drawDense(r)
	if (s.has(latent) && r.IntN(3) > 0 || r.IntN(4) == 0) && !s.has(stepped) && !s.has(rotated) {
		s.YaRN = randomYaRN(r)
	}
	if s.has(growing) {
		s.drawGrowth(r)
	}
	return s
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func (s *Spec) drawFull(r *rand.Rand) {
	s.KVHeads = 1 + r.IntN(3)
	s.Heads = s.KVHeads * (1 + r.IntN(4))
	s.HeadDim = pick(r, 8, 16, 32, 64)
	s.RotaryDim = s.HeadDim / pick(r, 1, 2, 4)
	if s.has(wholeRope) {
		s.RotaryDim = s.HeadDim
	}
	if s.has(sliding) {
		s.drawSliding(r)
	}
	s.QKNorm = !s.has(noNorm)
	if s.has(freeNorm) {
		s.QKNorm, s.Bias = r.IntN(2) == 0, r.IntN(3) > 0
	}
	if s.has(rotated) {
		s.Bias, s.Alpha = r.IntN(3) > 0, pick(r, 0.0, 2, 50, 1000)
	}
	if s.has(blocks) {
		s.drawBlocks(r)
	}
}

// drawBlocks draws budgets that the tests' texts exceed, most of the time.
func (s *Spec) drawBlocks(r *rand.Rand) {
	s.IndexHeads, s.IndexDim = s.KVHeads, s.RotaryDim+pick(r, 0, 8, 16)
	s.IndexBlock, s.IndexTopK = pick(r, 1, 2, 3, 4, 5, 16), pick(r, 1, 2, 3, 4)
	s.IndexLocal = 1 + r.IntN(s.IndexTopK)
	for i := range s.Layers - 1 {
		if r.IntN(3) == 0 {
			s.NoIndex = append(s.NoIndex, i)
		}
	}
}

// drawSliding draws windows that the tests' texts exceed, most of the time.
func (s *Spec) drawSliding(r *rand.Rand) {
	for i := range s.Layers {
		if r.IntN(2) == 0 {
			s.Sliding = append(s.Sliding, i)
		}
	}
	if len(s.Sliding) > 0 {
		s.Window = pick(r, 1, 2, 5, 12, 16, 40)
	}
	if s.has(stepped) {
		s.drawStepped(r)
	}
	if s.has(narrow) {
		s.WindowKVHeads = 1 + r.IntN(3)
		s.WindowHeads = s.WindowKVHeads * (1 + r.IntN(4))
		s.ValueDim = s.HeadDim - pick(r, 0, 2, 4)
		s.WindowTheta, s.ValueScale = pick(r, 1e4, 5e5), pick(r, 1, 0.707, 2)
	}
}

func (s *Spec) drawLatent(r *rand.Rand) {
	s.Heads = 1 + r.IntN(6)
	s.KVLora = pick(r, 16, 32, 64, 128)
	s.QLora = pick(r, 0, 24, 64)
	if s.has(indexed) {
		s.QLora = pick(r, 24, 64)
	}
	s.QKNope = pick(r, 8, 16, 32, 64)
	s.QKRope = pick(r, 4, 8, 16, 32)
	s.VHead = pick(r, 8, 16, 24, 64)
	if s.has(indexed) {
		s.drawIndexer(r)
	}
}

// drawIndexer draws budgets that the tests' texts exceed, most of the time.
func (s *Spec) drawIndexer(r *rand.Rand) {
	s.IndexHeads = 1 + r.IntN(8)
	s.IndexDim = s.QKRope + pick(r, 0, 8, 16)
	s.IndexTopK = pick(r, 1, 3, 8, 8, 13, 64)
	for i := 1; s.has(sharedIndex) && i < s.Layers; i++ {
		if r.IntN(2) == 0 {
			s.SharedIndex = append(s.SharedIndex, i)
		}
	}
}

// drawGrowth draws steps that the tests' texts reach, most of the time.
func (s *Spec) drawGrowth(r *rand.Rand) {
	if r.IntN(4) == 0 {
		return
	}
	s.QueryGrowth = &model.QueryGrowth{Beta: pick(r, 0.1, 0.5), Every: pick(r, 1, 4, 16)}
	if s.YaRN != nil {
		s.YaRN.OriginalMaxPositionEmbeddings = s.QueryGrowth.Every
	}
}

// drawStepped draws a stretch that the tests' texts feel.
func (s *Spec) drawStepped(r *rand.Rand) {
	s.WindowKVHeads = 1 + r.IntN(3)
	s.WindowHeads = s.WindowKVHeads * (1 + r.IntN(4))
	s.WindowTheta = pick(r, 1e4, 5e5)
	if r.IntN(3) > 0 {
		s.Llama3 = &model.Llama3{Factor: pick(r, 2.0, 8), OriginalMaxPositionEmbeddings: pick(r, 16, 64, 1024), LowFreqFactor: 1, HighFreqFactor: pick(r, 4.0, 32)}
	}
}

func (s *Spec) drawLinear(r *rand.Rand) {
	s.FullEvery = 2 + r.IntN(4)
	s.LinearKeyHeads = 1 + r.IntN(3)
	s.LinearValueHeads = s.LinearKeyHeads * (1 + r.IntN(4))
	s.LinearKeyDim = pick(r, 8, 16, 32)
	s.LinearValueDim = pick(r, 8, 16, 24, 32)
	s.ConvKernel = pick(r, 2, 3, 4, 4, 4)
}

func (s *Spec) drawExperts(r *rand.Rand) {
	s.Experts = pick(r, 2, 3, 4, 6, 8, 12, 16, 24)
	s.TopK = 1 + r.IntN(min(s.Experts, 6))
	s.ExpertWidth = pick(r, 8, 16, 40, 64, 64, 128)
	if s.has(linear) {
		s.SharedWidth = pick(r, 8, 24, 64, 128)
	}
	if s.has(shared) {
		s.SharedWidth = r.IntN(3) * s.ExpertWidth
	}
	if s.has(scaled) {
		s.RoutedScale = pick(r, 1, 1.5, 2.5)
	}
	if s.has(groups) {
		s.drawGroups(r)
	}
	if s.has(stepped) {
		s.SharedWidth = (1 + r.IntN(2)) * s.ExpertWidth
	}
	if s.has(bounded) || s.has(stepped) {
		s.Limit = pick(r, 0.7, 1.5, 7)
	}
	if s.has(inTurns) {
		s.Limit = pick(r, 0.7, 1.5, 7)
		s.MXFP4 = s.Hidden%32 == 0 && s.ExpertWidth%32 == 0 && r.IntN(2) == 0
	}
}

func (s *Spec) drawGroups(r *rand.Rand) {
	var sizes []int
	for g := 1; g <= s.Experts/2; g++ {
		if s.Experts%g == 0 {
			sizes = append(sizes, g)
		}
	}
	s.Groups = pick(r, sizes...)
	least := (s.TopK*s.Groups + s.Experts - 1) / s.Experts // groups that hold TopK experts
	s.TopKGroups = least + r.IntN(s.Groups-least+1)
}

func (s *Spec) drawDense(r *rand.Rand) {
	switch {
	case s.has(firstDense):
		for i := range r.IntN(s.Layers) {
			s.DenseLayers = append(s.DenseLayers, i)
		}
	case s.has(anyDense):
		for i := range s.Layers {
			if r.IntN(5) == 0 && len(s.DenseLayers)+1 < s.Layers {
				s.DenseLayers = append(s.DenseLayers, i)
			}
		}
	}
	if len(s.DenseLayers) > 0 {
		s.DenseWidth = pick(r, 16, 40, 64, 192)
	}
}

// randomYaRN draws borders of the ramp inside, at, and beyond the ends of the few pairs.
func randomYaRN(r *rand.Rand) *model.YaRN {
	y := &model.YaRN{
		Factor:                        pick(r, 2.0, 4, 40),
		OriginalMaxPositionEmbeddings: pick(r, 16, 64, 512, 4096),
		BetaFast:                      pick(r, 32.0, 32, 8, 1),
		BetaSlow:                      1,
		Truncate:                      r.IntN(4) > 0,
	}
	scales := pick(r, [2]float64{1, 1}, [2]float64{0.707, 0.707}, [2]float64{1, 0.8}, [2]float64{0, 0}, [2]float64{1, 0})
	y.MScale, y.MScaleAllDim = scales[0], scales[1]
	return y
}
