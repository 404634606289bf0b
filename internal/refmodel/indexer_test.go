package refmodel

import (
	"fmt"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/model"
)

// checkBlocks compares the blocks that indexers choose, as checkChosen does positions.
func checkBlocks(t *testing.T, s *State, r *fixtures.Numbers, p, prefix string, first, n int) {
	name, c := p+"."+prefix+"index_blocks", s.m.cfg
	if c.IndexBlock == 0 {
		if r.Has(name) {
			t.Fatalf("%s, but the model has no indexer of blocks", name)
		}
		return
	}
	want, k, compared := tokens(t, r, name), c.IndexTopK, 0
	for layer, l := range c.Layers {
		if l.Indexer != model.OwnIndexer {
			continue
		}
		for h := range c.IndexNHeads {
			for i := range n {
				var got []int32
				for _, b := range padded(s.layers[layer].blocks[first+i][h], k) {
					got = append(got, int32(b))
				}
				at := ((l.IndexerIndex*c.IndexNHeads+h)*n + i) * k
				if !slices.Equal(got, want[at:at+k]) {
					t.Fatalf("%s: layer %d head %d at position %d chooses %v, want %v", p, layer, h, first+i, got, want[at:at+k])
				}
				compared += k
			}
		}
	}
	if len(want) != compared {
		t.Fatalf("%s has %d blocks, and %d were compared", name, len(want), compared)
	}
}

// Blocks of two of five keys, by hand.
func TestBlockScores(t *testing.T) {
	got := blockScores([]float64{1, -2}, [][]float64{{1, 1}, {0, -1}, {3, 1}, {2, 2}, {-1, 1}}, 2)
	if want := []float64{2, 1, -3}; !slices.Equal(got, want) {
		t.Errorf("scores %v, want %v", got, want)
	}
	if got := positionsOf([]int{0, 2}, 2, 5); !slices.Equal(got, []int{0, 1, 4}) {
		t.Errorf("positions %v", got)
	}
}

// checkChosen compares the positions that indexers choose at n positions from position first on
// with the reference's, which lists those of a prompt and, with the prefix decode_, those after it.
func checkChosen(t *testing.T, s *State, r *fixtures.Numbers, p, prefix string, first, n int, w worst) {
	name := p + "." + prefix + "index_topk"
	if s.m.cfg.IndexTopK == 0 || s.m.cfg.IndexBlock > 0 {
		if r.Has(name) {
			t.Fatalf("%s, but the model has no indexer", name)
		}
		return
	}
	want, k := tokens(t, r, name), s.m.cfg.IndexTopK
	for layer, l := range s.m.cfg.Layers {
		if l.Indexer != model.OwnIndexer {
			continue
		}
		for i := range n {
			var got []int32
			for _, j := range padded(s.layers[layer].choices[first+i], k) {
				got = append(got, int32(j))
			}
			if at := (l.IndexerIndex*n + i) * k; !slices.Equal(got, want[at:at+k]) {
				t.Fatalf("%s: layer %d at position %d chooses %v, want %v", p, layer, first+i, got, want[at:at+k])
			}
		}
		if name := fmt.Sprintf("%s.layer%d.index_scores", p, layer); first == 0 && r.Has(name) {
			scores := numbers(t, r, name)
			for i := range n {
				w.rows("inter", [][]float64{s.layers[layer].scores[i]}, [][]float32{scores[i][:i+1]})
			}
		}
	}
	if len(want) != s.m.cfg.Indexers()*n*k {
		t.Fatalf("%s has %d positions, want those of %d indexers", name, len(want), s.m.cfg.Indexers())
	}
}

// Two heads of four channels and four keys, by hand.
func TestIndexScores(t *testing.T) {
	queries := [][]float64{{1, 0, .5, -1}, {0, 2, -1, .5}}
	keys := [][]float64{{1, 1, 0, 0}, {0, -1, 1, 0}, {2, 0, 1, 1}, {-1, .5, 0, 2}}
	scores := indexScores(queries, keys, []float64{0.8, -0.4})
	for i, want := range []float64{0, 0.1414214, 0.4242641, -0.2828427} {
		near(t, fmt.Sprintf("score %d", i), scores[i], want, 1e-7)
	}
	if got := largest(scores, 2); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("chosen %v", got)
	}
	if got := largest([]float64{0, 1, 0, -1, 0}, 3); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("of equal scores %v are chosen, want the lower positions", got)
	}
}
