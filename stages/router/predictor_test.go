package router

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
)

// TestExperience lets evidence of known worth be right and wrong at random: the chance becomes that
// worth, in that layer alone, and follows when the worth changes.
func TestExperience(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	x := newExperience(2, []float32{0.9, 0.1})
	marks := make([]bool, 4)
	for _, worth := range []float64{0.7, 0.05, 0.95} {
		for range 4000 {
			marks[2] = r.Float64() < worth
			x.learn(1, []guess{x.guess(1, 2, 1, 0)}, marks)
		}
		// 256 to 512 guesses are remembered: three standard deviations of 256 are 0.094 at most.
		if got := x.guess(1, 2, 1, 0).chance; math.Abs(float64(got)-worth) > 0.1 {
			t.Errorf("evidence that is right %v of the time gives a chance of %v", worth, got)
		}
	}
	if a, b := x.guess(1, 0, 0, 0).chance, x.guess(0, 0, 1, 0).chance; a != 0.9 || b != 0.1 {
		t.Errorf("chances of what was never tried are %v and %v, want the first opinions 0.9 and 0.1", a, b)
	}
}

// TestGuesses holds the three predictors against what their comments say, for random scores and
// pasts.
func TestGuesses(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for range 500 {
		experts := 1 + r.IntN(40)
		k := 1 + r.IntN(min(experts, 10))
		var rule chooser
		scores := make([]float32, experts)
		for e := range scores {
			scores[e] = r.Float32()
		}
		order := make([]int32, experts)
		for i, e := range r.Perm(experts) {
			order[i] = int32(e)
		}
		past := order[:k]
		if r.IntN(4) == 0 {
			past = nil
		}
		s := sight{layer: 1, scores: scores, past: past}
		best := slices.Clone(order)
		slices.SortStableFunc(best, func(a, b int32) int {
			switch {
			case scores[a] > scores[b]:
				return -1
			case scores[a] < scores[b]:
				return 1
			}
			return int(a - b)
		})
		best = best[:min(2*k, experts)]
		if got := expertsOf(newLastToken(2, k).predict(nil, s)); !slices.Equal(got, past) {
			t.Fatalf("last token: %v, want %v", got, past)
		}
		if got := expertsOf(newNextGate(2, experts, k, 1, &rule).predict(nil, s)); !slices.Equal(got, best) {
			t.Fatalf("next gate: %v, want %v", got, best)
		}
		want := slices.Clone(best)
		for _, e := range past {
			if !slices.Contains(best, e) {
				want = append(want, e)
			}
		}
		guesses := newBoth(2, experts, k, 2, &rule).predict(nil, s)
		if got := expertsOf(guesses); !slices.Equal(got, want) {
			t.Fatalf("both: %v, want %v", got, want)
		}
		for _, g := range guesses {
			if !(g.chance > 0 && g.chance < 1) {
				t.Fatalf("expert %d has a chance of %v", g.expert, g.chance)
			}
		}
		// Of two neighbours in rank the one that the row before picked is likelier than without
		// that.
		if g := guesses[0]; past != nil {
			was := slices.Contains(past, g.expert)
			p := newBoth(2, experts, k, 2, &rule)
			if other := p.guess(1, g.expert, map[bool]int{true: notPicked, false: picked}[was], 0); was != (g.chance > other.chance) {
				t.Fatalf("picked before: %v, chance %v; else %v", was, g.chance, other.chance)
			}
		}
	}
}

func expertsOf(guesses []guess) (out []int32) {
	for _, g := range guesses {
		out = append(out, g.expert)
	}
	return out
}

// TestUnion adds the guesses of rows and wants 1 - Π(1 - chance), the likeliest first, cut where it
// was asked to be.
func TestUnion(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	u := newUnion(20)
	for range 500 {
		miss := make(map[int32]float64)
		for range 1 + r.IntN(4) {
			var row []guess
			for _, e := range r.Perm(20)[:r.IntN(8)] {
				g := guess{expert: int32(e), chance: r.Float32()}
				if g.chance >= leastChance {
					if _, ok := miss[g.expert]; !ok {
						miss[g.expert] = 1
					}
					miss[g.expert] *= 1 - float64(g.chance)
				}
				row = append(row, g)
			}
			u.add(row)
		}
		most := r.IntN(20)
		hint := new(stages.PrefetchExperts)
		u.fill(hint, most)
		if len(hint.Experts) != min(most, len(miss)) || len(hint.Chances) != len(hint.Experts) {
			t.Fatalf("%d experts and %d chances of %d, at most %d are wanted", len(hint.Experts), len(hint.Chances), len(miss), most)
		}
		for i, e := range hint.Experts {
			if want := 1 - miss[e]; math.Abs(float64(hint.Chances[i])-want) > 1e-6 {
				t.Fatalf("expert %d has a chance of %v, want %v", e, hint.Chances[i], want)
			}
			if i > 0 && hint.Chances[i] > hint.Chances[i-1] {
				t.Fatalf("chances %v are not the likeliest first", hint.Chances)
			}
			delete(miss, e)
		}
		for e, m := range miss {
			if n := len(hint.Chances); n > 0 && 1-m > float64(hint.Chances[n-1])+1e-6 {
				t.Fatalf("expert %d with a chance of %v was left out, %v stayed", e, 1-m, hint.Chances[n-1])
			}
		}
	}
}
