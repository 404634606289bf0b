package testmodel

import (
	"errors"
	"fmt"

	"github.com/moeflux/moeflux-actor/model"
)

// Spec describes a checkpoint. Fields that the family does not use must be zero.
type Spec struct {
	Arch         model.Arch
	Hidden       int
	Layers       int
	Vocab        int
	MaxPositions int
	Eps          float64 // rms_norm_eps
	Tied         bool    // the head is the embedding

	// Softmax attention, full and latent.
	Heads     int
	RopeTheta float64
	// nil: plain frequencies. AttentionFactor and Truncate are written if they are not the
	// default
	YaRN *model.YaRN

	// Full attention: families without latent attention.
	KVHeads   int
	HeadDim   int
	RotaryDim int  // HeadDim in families that rotate heads whole
	QKNorm    bool // must be true where it is no option
	Bias      bool // of queries, keys and values, where they are an option
	// Alpha stretches rotary frequencies, where that is an option; 0: it does not.
	Alpha float64
	// Sliding, ascending, are the layers with a window, in families that have such.
	Sliding []int
	Window  int // their positions
	// Where those layers have heads and a rotary base of their own, and values are narrower than
	// keys, and scaled.
	WindowHeads, WindowKVHeads, ValueDim int
	WindowTheta, ValueScale              float64
	Llama3                               *model.Llama3 // of layers without a window, where that is an option

	// Latent attention.
	QLora  int // 0: one q_proj
	KVLora int
	QKNope int
	QKRope int
	VHead  int
	// The indexer: heads, their width, QKRope or more, and how many positions it chooses. Layers
	// SharedIndex, ascending and not the first, share the choice of a layer below, where that is an
	// option.
	IndexHeads, IndexDim, IndexTopK int
	SharedIndex                     []int
	// With full attention an indexer has KVHeads heads of width RotaryDim or more, and chooses
	// IndexTopK blocks of IndexBlock positions, the last IndexLocal in any case. Layers NoIndex,
	// ascending and not all, attend to all positions.
	IndexBlock, IndexLocal int
	NoIndex                []int
	// QueryGrowth is an option of some families. With YaRN, Every is its original context.
	QueryGrowth *model.QueryGrowth

	// Linear attention.
	// layers FullEvery-1, 2·FullEvery-1, … are full attention, the others linear; 2 or more
	FullEvery        int
	LinearKeyHeads   int
	LinearValueHeads int
	LinearKeyDim     int // of a head
	LinearValueDim   int // of a head
	ConvKernel       int

	// DenseLayers have no experts but one SwiGLU of width DenseWidth; ascending. The family says
	// whether they are the first layers, any, or none.
	DenseLayers []int
	DenseWidth  int

	// Mixture of experts.
	Experts     int
	TopK        int
	ExpertWidth int
	// SharedWidth is the width of the shared expert. One without a gate is a multiple of
	// ExpertWidth wide, or 0 for none.
	SharedWidth int
	NormTopK    bool // must be true where it is no option
	// Limit bounds gates and ups, in families that do so.
	Limit float64
	MXFP4 bool // how experts are stored, where that is an option

	// Router with groups, and with scaled weights.
	Groups, TopKGroups int
	RoutedScale        float64
}

// Validate reports everything that is impossible in a checkpoint of the family.
func (s Spec) Validate() error {
	var errs []error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("testmodel: "+format, args...))
		}
	}
	want(of(s.Arch).has != 0, "unknown family %q", s.Arch)
	positive := func(name string, n int, has bool) {
		want(n > 0 == has && n >= 0, "%s is %d in %s", name, n, s.Arch)
	}
	full, hybrid := !s.has(latent), s.has(linear)
	for _, f := range []struct {
		name string
		n    int
		has  bool
	}{
		{"Hidden", s.Hidden, true}, {"Layers", s.Layers, true}, {"Vocab", s.Vocab, true}, {"MaxPositions", s.MaxPositions, true},
		{"Heads", s.Heads, true}, {"KVHeads", s.KVHeads, full}, {"HeadDim", s.HeadDim, full}, {"RotaryDim", s.RotaryDim, full},
		{"Window", s.Window, len(s.Sliding) > 0}, {"ValueDim", s.ValueDim, s.has(narrow)},
		{"WindowHeads", s.WindowHeads, s.has(narrow) || s.has(stepped)}, {"WindowKVHeads", s.WindowKVHeads, s.has(narrow) || s.has(stepped)},
		{"KVLora", s.KVLora, !full}, {"QKNope", s.QKNope, !full}, {"QKRope", s.QKRope, !full}, {"VHead", s.VHead, !full},
		{"FullEvery", s.FullEvery, hybrid}, {"LinearKeyHeads", s.LinearKeyHeads, hybrid},
		{"LinearValueHeads", s.LinearValueHeads, hybrid}, {"LinearKeyDim", s.LinearKeyDim, hybrid},
		{"LinearValueDim", s.LinearValueDim, hybrid}, {"ConvKernel", s.ConvKernel, hybrid},
		{"Experts", s.Experts, true}, {"TopK", s.TopK, true}, {"ExpertWidth", s.ExpertWidth, true},
		{"SharedWidth", s.SharedWidth, hybrid || s.has(shared) && s.SharedWidth != 0},
		{"DenseWidth", s.DenseWidth, len(s.DenseLayers) > 0},
		{"Groups", s.Groups, s.has(groups)}, {"TopKGroups", s.TopKGroups, s.has(groups)},
	} {
		positive(f.name, f.n, f.has)
	}
	if len(errs) > 0 {
		return errors.Join(errs...) // the checks below divide by these
	}
	want(s.Eps > 0 && s.RopeTheta > 1, "Eps %v, RopeTheta %v", s.Eps, s.RopeTheta)
	want(s.QLora >= 0 && (s.QLora == 0 || !full), "QLora is %d in %s", s.QLora, s.Arch)
	if full {
		want(s.Heads%s.KVHeads == 0, "Heads %d, KVHeads %d", s.Heads, s.KVHeads)
		want(s.RotaryDim%2 == 0 && s.RotaryDim <= s.HeadDim, "RotaryDim %d of HeadDim %d", s.RotaryDim, s.HeadDim)
		want(s.has(blocks) == (s.IndexBlock > 0), "IndexBlock %d in %s", s.IndexBlock, s.Arch)
		want(!s.has(blocks) || s.IndexHeads == s.KVHeads && s.IndexDim >= s.RotaryDim && s.IndexLocal > 0 && s.IndexLocal <= s.IndexTopK && len(s.NoIndex) < s.Layers,
			"indexers of %d heads of %d for %d of %d, blocks %d of which %d are local, none in %d layers", s.IndexHeads, s.IndexDim, s.KVHeads, s.RotaryDim,
			s.IndexTopK, s.IndexLocal, len(s.NoIndex))
		want(!s.has(wholeRope) || s.RotaryDim == s.HeadDim, "RotaryDim %d, want HeadDim %d", s.RotaryDim, s.HeadDim)
		want(s.Sliding == nil || s.has(sliding) && s.Sliding[len(s.Sliding)-1] < s.Layers, "Sliding %v of %d layers in %s", s.Sliding, s.Layers, s.Arch)
		want(s.Llama3 == nil || s.has(stepped), "Llama3 in %s", s.Arch)
		want(!s.has(stepped) || s.SharedWidth > 0 && s.YaRN == nil && s.WindowTheta > 1 && s.WindowHeads%s.WindowKVHeads == 0, "%+v", s)
		want(!s.has(narrow) || s.ValueDim <= s.HeadDim && s.WindowHeads%s.WindowKVHeads == 0 && s.WindowTheta > 1 && s.ValueScale > 0,
			"ValueDim %d of %d, WindowHeads %d of %d, WindowTheta %v, ValueScale %v", s.ValueDim, s.HeadDim, s.WindowHeads, s.WindowKVHeads, s.WindowTheta, s.ValueScale)
	} else {
		want(s.QKRope%2 == 0, "QKRope %d is odd", s.QKRope)
		want(!s.has(indexed) || s.IndexDim >= s.QKRope && s.QLora > 0, "IndexDim %d, QKRope %d, QLora %d", s.IndexDim, s.QKRope, s.QLora)
		want(s.SharedIndex == nil || s.has(sharedIndex) && s.SharedIndex[0] > 0, "SharedIndex %v in %s", s.SharedIndex, s.Arch)
		want(s.QueryGrowth == nil || s.has(growing), "QueryGrowth in %s", s.Arch)
		want(s.QueryGrowth == nil || s.YaRN == nil || s.QueryGrowth.Every == s.YaRN.OriginalMaxPositionEmbeddings, "QueryGrowth %+v", s.QueryGrowth)
	}
	want(s.QKNorm == (full && !s.has(noNorm)) || s.has(freeNorm), "QKNorm is %v in %s", s.QKNorm, s.Arch)
	want(!s.Bias || s.has(freeNorm) || s.has(rotated), "Bias in %s", s.Arch)
	want(s.Alpha == 0 || s.has(rotated) && s.Alpha > 0, "Alpha %v in %s", s.Alpha, s.Arch)
	want(s.YaRN == nil || !s.has(rotated), "YaRN in %s", s.Arch)
	want(s.NormTopK || !s.has(mustNormTopK), "NormTopK is false in %s", s.Arch)
	if hybrid {
		want(s.LinearValueHeads%s.LinearKeyHeads == 0, "LinearValueHeads %d, LinearKeyHeads %d", s.LinearValueHeads, s.LinearKeyHeads)
		want(s.ConvKernel >= 2, "ConvKernel %d", s.ConvKernel)
		// A reader tells norms of 1+w by the shape of a convolution, so there must be one.
		want(s.FullEvery >= 2, "FullEvery %d leaves no layer of linear attention", s.FullEvery)
	}
	errs = append(errs, s.validateExperts()...)
	return errors.Join(errs...)
}

// validateExperts checks the feed-forward parts.
func (s Spec) validateExperts() []error {
	var errs []error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("testmodel: "+format, args...))
		}
	}
	want(s.TopK <= s.Experts, "TopK %d of Experts %d", s.TopK, s.Experts)
	want(s.Limit > 0 == (s.has(inTurns) || s.has(bounded) || s.has(stepped)) && s.Limit >= 0, "Limit %v in %s", s.Limit, s.Arch)
	want(!s.MXFP4 || s.has(inTurns) && s.Hidden%32 == 0 && s.ExpertWidth%32 == 0, "MXFP4 of Hidden %d, ExpertWidth %d in %s", s.Hidden, s.ExpertWidth, s.Arch)
	want(len(s.DenseLayers) < s.Layers, "%d DenseLayers of %d", len(s.DenseLayers), s.Layers)
	for i, l := range s.DenseLayers {
		switch {
		case s.has(firstDense):
			want(l == i, "DenseLayers %v, want the first layers", s.DenseLayers)
		case s.has(anyDense):
			want(l >= 0 && l < s.Layers && (i == 0 || l > s.DenseLayers[i-1]), "DenseLayers %v of %d layers", s.DenseLayers, s.Layers)
		default:
			want(false, "DenseLayers %v in %s", s.DenseLayers, s.Arch)
		}
	}
	want(s.RoutedScale > 0 == s.has(scaled) && s.RoutedScale >= 0, "RoutedScale %v in %s", s.RoutedScale, s.Arch)
	want(!s.has(shared) || s.SharedWidth%s.ExpertWidth == 0, "SharedWidth %d, ExpertWidth %d", s.SharedWidth, s.ExpertWidth)
	if !s.has(groups) {
		return errs
	}
	size := s.Experts / s.Groups
	want(s.Experts%s.Groups == 0 && (s.Groups == 1 || size >= 2), "Experts %d in %d Groups", s.Experts, s.Groups)
	want(s.TopKGroups <= s.Groups && s.TopK <= size*s.TopKGroups, "TopKGroups %d of %d, of %d experts each, for TopK %d",
		s.TopKGroups, s.Groups, size, s.TopK)
	return errs
}
