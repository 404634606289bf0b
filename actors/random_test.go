package actors_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/refmodel"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/internal/testmodel"
	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/model"
)

// TestRandomModels writes checkpoints of random configurations of every family, packs them, bf16
// and 4-bit, and wants what a float64 forward pass written from the formulas gives.
func TestRandomModels(t *testing.T) {
	dev := device(t, 2)
	n := testenv.Rounds(1, 2, 60)
	for _, arch := range testmodel.Archs() {
		t.Run(string(arch), func(t *testing.T) {
			loosest := 0.0
			for seed := range uint64(n) {
				tolerance, err := checkRandomModel(t, dev, arch, seed)
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
				loosest = max(loosest, tolerance)
			}
			t.Logf("%d configurations agree, logits within %.1e or better", n, loosest)
		})
	}
}

func checkRandomModel(t *testing.T, dev gpu.Device, arch model.Arch, seed uint64) (float64, error) {
	r := rand.New(rand.NewPCG(seed, 11))
	spec := testmodel.RandomSpec(r, arch)
	src, dst := t.TempDir(), filepath.Join(t.TempDir(), "packed")
	if err := testmodel.Write(src, spec, seed); err != nil {
		return 0, err
	}
	bits := 4 * int(seed%2)
	if err := convert.Convert(context.Background(), src, dst, convert.Options{Bits: bits}); err != nil {
		return 0, fmt.Errorf("%+v: %w", spec, err)
	}
	ref, err := refmodel.Open(dst)
	if err != nil {
		return 0, err
	}
	tokens, want, tolerance, err := clearTokens(r, ref, spec.Vocab, seed)
	if err != nil {
		return 0, err
	}
	e := open(t, actors.Config{Model: dst, Device: dev, ChunkRows: 1 + r.IntN(40), ExpertIO: actors.ExpertIOBuffered})
	got, err := sequence(t, e).EvalChunk(context.Background(), actors.Chunk{Tokens: tokens, Logits: actors.AllLogits, Hidden: true, Routing: true})
	if err != nil {
		return 0, err
	}
	k, vocab := e.Info().TopK, spec.Vocab
	res := refmodel.Result{Picks: make([][][]int, len(want.Picks))}
	for p := range tokens {
		res.Logits = append(res.Logits, got.Logits[p*vocab:(p+1)*vocab])
		for i := range res.Picks {
			var picks []int
			for _, e := range got.Picks[(i*len(tokens)+p)*k:][:k] {
				picks = append(picks, int(e))
			}
			res.Picks[i] = append(res.Picks[i], picks)
		}
	}
	if err := want.Compare(res, tolerance); err != nil {
		return 0, fmt.Errorf("%d bits, %d tokens, smallest gap %.1e, %+v: %w", bits, len(tokens), want.MinGap(), spec, err)
	}
	return tolerance, nil
}

// clearTokens draws tokens whose routing does not hang on a rounding error, and returns how far
// logits may be off: a multiple of what rounding errors of float32's size do to them.
func clearTokens(r *rand.Rand, ref *refmodel.Model, vocab int, seed uint64) ([]int32, *refmodel.Trace, float64, error) {
	for range 20 {
		tokens := make([]int32, 1+r.IntN(40))
		for i := range tokens {
			tokens[i] = int32(r.IntN(vocab))
		}
		want := ref.Forward(tokens)
		tolerance := 0.0
		for n := range uint64(3) {
			logits, _ := want.MaxDiff(ref.ForwardNoisy(tokens, 4.0/(1<<23), seed+n))
			tolerance = max(tolerance, 4*logits)
		}
		if tolerance < 1e-2 {
			return tokens, want, max(tolerance, 1e-5), nil
		}
	}
	return nil, nil, 0, errors.New("no tokens with a clear routing")
}
