package sample

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"
)

var (
	nan    = float32(math.NaN())
	posInf = float32(math.Inf(1))
	negInf = float32(math.Inf(-1))
)

func TestGreedy(t *testing.T) {
	for _, c := range []struct {
		name    string
		opts    Options
		logits  []float32
		history []int32
		sampled []int32
		want    int32
	}{
		{"largest", Options{}, []float32{1, 3, 2}, nil, nil, 1},
		{"tie takes the lowest id", Options{}, []float32{1, 3, 3, 3}, nil, nil, 1},
		{"all equal", Options{}, []float32{-2, -2}, nil, nil, 0},
		{"one token", Options{}, []float32{-5}, nil, nil, 0},
		{"ruled-out tokens", Options{}, []float32{negInf, -7, negInf}, nil, nil, 1},
		{"negative zero ties with zero", Options{}, []float32{float32(math.Copysign(0, -1)), 0}, nil, nil, 0},
		{"cuts are idle", Options{TopK: 1, TopP: 0.1, MinP: 1}, []float32{1, 3, 2}, nil, nil, 1},
		{"history without penalty", Options{}, []float32{1, 3, 2}, []int32{1, 1}, nil, 1},
		{"penalty of 1", Options{RepeatPenalty: 1}, []float32{1, 3, 2}, []int32{1, 1}, nil, 1},
		{"penalty divides positive logits", Options{RepeatPenalty: 2}, []float32{1, 3, 2}, []int32{1}, nil, 2},
		{"penalty multiplies negative logits", Options{RepeatPenalty: 2}, []float32{-4, -3, -5}, []int32{1}, nil, 0},
		{"penalty counts a token once", Options{RepeatPenalty: 2}, []float32{1, 5, 2}, []int32{1, 1, 1}, nil, 1},
		{"penalty below 1 favours", Options{RepeatPenalty: 0.5}, []float32{1, 3, 2}, []int32{2}, nil, 2},
		{"window leaves old tokens out", Options{RepeatPenalty: 10, RepeatWindow: 1}, []float32{1, 3, 2}, []int32{1, 0}, nil, 1},
		{"window longer than the history", Options{RepeatPenalty: 10, RepeatWindow: 9}, []float32{1, 3, 2}, []int32{1, 0}, nil, 2},
		{"penalised tie takes the lowest id", Options{RepeatPenalty: 2}, []float32{2, 4, 1}, []int32{1}, nil, 0},
		{"penalty leaves ruled-out tokens out", Options{RepeatPenalty: 2}, []float32{negInf, -7}, []int32{0, 1}, nil, 1},
		{"repeat penalty sees what was sampled", Options{RepeatPenalty: 2}, []float32{1, 3, 2}, []int32{0}, []int32{1}, 2},
		{"a window over prompt and sampled", Options{RepeatPenalty: 10, RepeatWindow: 2}, []float32{1, 3, 2}, []int32{2, 1}, []int32{0}, 2},
		{"a window within sampled", Options{RepeatPenalty: 10, RepeatWindow: 1}, []float32{1, 3, 2}, []int32{2, 1}, []int32{1, 0}, 1},
		{"presence counts once", Options{PresencePenalty: 1.5}, []float32{1, 3, 2}, nil, []int32{1, 1}, 2},
		{"presence is not enough", Options{PresencePenalty: 0.5}, []float32{1, 3, 2}, nil, []int32{1, 1, 1}, 1},
		{"presence below 0 favours", Options{PresencePenalty: -1.5}, []float32{1, 3, 2}, nil, []int32{2}, 2},
		{"frequency counts every time", Options{FrequencyPenalty: 0.5}, []float32{1, 3, 2}, nil, []int32{1, 1, 1}, 2},
		{"frequency is not enough", Options{FrequencyPenalty: 0.5}, []float32{1, 3, 2}, nil, []int32{1}, 1},
		{"frequency below 0 favours", Options{FrequencyPenalty: -0.7}, []float32{1, 3, 2}, nil, []int32{2, 2}, 2},
		{"the prompt does not count", Options{PresencePenalty: 2, FrequencyPenalty: 2}, []float32{1, 3, 2}, []int32{1, 1}, nil, 1},
		{"bias up", Options{LogitBias: map[int32]float64{0: 2.5}}, []float32{1, 3, 2}, nil, nil, 0},
		{"bias down", Options{LogitBias: map[int32]float64{1: -1.5}}, []float32{1, 3, 2}, nil, nil, 2},
		{"biased tie takes the lowest id", Options{LogitBias: map[int32]float64{0: 2}}, []float32{1, 3, 2}, nil, nil, 0},
		{"bias excludes", Options{LogitBias: map[int32]float64{1: -100, 2: -100}}, []float32{-500, 3, 2}, nil, nil, 0},
		{"a bias near -100 does not exclude", Options{LogitBias: map[int32]float64{1: -99}}, []float32{-500, 3, -200}, nil, nil, 1},
		{"bias cannot bring back what is ruled out", Options{LogitBias: map[int32]float64{0: 100}}, []float32{negInf, -7}, nil, nil, 1},
		{"repeat, then frequency, then bias", Options{RepeatPenalty: 2, FrequencyPenalty: 1, LogitBias: map[int32]float64{1: 1}}, []float32{3.9, 8, 0}, nil, []int32{1}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := slices.Clone(c.logits)
			got, err := New(c.opts).Next(c.logits, c.history, c.sampled)
			if err != nil || got != c.want {
				t.Errorf("Next(%v, %v) with %+v = %d, %v, want %d", c.logits, c.history, c.opts, got, err, c.want)
			}
			if fmt.Sprint(before) != fmt.Sprint(c.logits) {
				t.Errorf("Next changed the logits: %v, were %v", c.logits, before)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	var logitErr *LogitError
	isLogit := func(err error) bool { return errors.As(err, &logitErr) }
	for _, c := range []struct {
		name    string
		opts    Options
		logits  []float32
		history []int32
		sampled []int32
		want    func(error) bool
		text    string
	}{
		{"NaN first", Options{}, []float32{nan, 1}, nil, nil, isLogit, "token 0 is NaN"},
		{"NaN last", Options{Temperature: 1}, []float32{1, nan}, nil, nil, isLogit, "token 1 is NaN"},
		{"NaN below the largest", Options{}, []float32{9, 1, nan, 2}, nil, nil, isLogit, "token 2 is NaN"},
		{"positive infinity", Options{}, []float32{1, posInf}, nil, nil, isLogit, "token 1 is +Inf"},
		{"no logits", Options{}, nil, nil, nil, func(err error) bool { return errors.Is(err, ErrNoFiniteLogit) }, "no finite logit"},
		{"all ruled out", Options{Temperature: 1}, []float32{negInf, negInf}, nil, nil, func(err error) bool { return errors.Is(err, ErrNoFiniteLogit) }, "no finite logit"},
		{"history beyond the vocabulary", Options{RepeatPenalty: 2}, []float32{1, 2}, []int32{0, 2}, nil, nil, "history token 2 at index 1"},
		{"negative history", Options{RepeatPenalty: 2, RepeatWindow: 1}, []float32{1, 2}, []int32{0, -1}, nil, nil, "history token -1 at index 1"},
		{"bad options", Options{TopP: 2}, []float32{1, 2}, nil, nil, nil, "TopP is 2"},
		{"NaN under a penalty", Options{PresencePenalty: 1}, []float32{1, nan}, nil, []int32{1}, isLogit, "token 1 is NaN"},
		{"infinity under a bias", Options{LogitBias: map[int32]float64{0: -100}}, []float32{posInf, 1}, nil, nil, isLogit, "token 0 is +Inf"},
		{"NaN beside a bias", Options{LogitBias: map[int32]float64{0: -100}}, []float32{1, nan}, nil, nil, isLogit, "token 1 is NaN"},
		{"all excluded", Options{LogitBias: map[int32]float64{0: -100, 1: -100}}, []float32{1, 2}, nil, nil, func(err error) bool { return errors.Is(err, ErrAllExcluded) }, "excludes every token"},
		{"all excluded or ruled out", Options{Temperature: 1, LogitBias: map[int32]float64{0: -100}}, []float32{1, negInf}, nil, nil, func(err error) bool { return errors.Is(err, ErrAllExcluded) }, "excludes every token"},
		{"all ruled out beside a bias", Options{LogitBias: map[int32]float64{0: -100}}, []float32{negInf, negInf}, nil, nil, func(err error) bool { return errors.Is(err, ErrNoFiniteLogit) }, "no finite logit"},
		{"sampled beyond the vocabulary", Options{FrequencyPenalty: 1}, []float32{1, 2}, nil, []int32{0, 2}, nil, "sampled token 2 at index 1 is outside the vocabulary of 2"},
		{"history goes on in sampled", Options{RepeatPenalty: 2}, []float32{1, 2}, []int32{0, 1}, []int32{-1}, nil, "history token -1 at index 2"},
		{"bias beyond the vocabulary", Options{LogitBias: map[int32]float64{2: 1}}, []float32{1, 2}, nil, nil, nil, "logit bias of token 2, which is outside the vocabulary of 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := New(c.opts).Next(c.logits, c.history, c.sampled)
			if err == nil || !strings.Contains(err.Error(), c.text) || c.want != nil && !c.want(err) {
				t.Errorf("Next(%v, %v) = %d, error %v, want one with %q", c.logits, c.history, got, err, c.text)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	if err := (Options{}).Validate(); err != nil {
		t.Errorf("the zero value: %v, want no error", err)
	}
	inf := math.Inf(1)
	err := Options{Temperature: -1, TopK: -1, TopP: 1.5, MinP: -0.1, RepeatPenalty: -1, RepeatWindow: -1, PresencePenalty: 3, FrequencyPenalty: -3, LogitBias: map[int32]float64{7: 101}}.Validate()
	for _, want := range []string{"Temperature is -1", "TopK is -1", "TopP is 1.5", "MinP is -0.1", "RepeatPenalty is -1", "RepeatWindow is -1", "PresencePenalty is 3", "FrequencyPenalty is -3", "LogitBias is 101 for token 7"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
	for _, o := range []Options{{PresencePenalty: math.NaN()}, {FrequencyPenalty: math.NaN()}, {PresencePenalty: 2.1}, {FrequencyPenalty: -2.1}, {LogitBias: map[int32]float64{-1: 1}}, {LogitBias: map[int32]float64{1: math.NaN()}}, {Temperature: math.NaN()}, {Temperature: inf}, {TopP: math.NaN()}, {MinP: math.NaN()}, {MinP: inf}, {RepeatPenalty: math.NaN()}, {RepeatPenalty: inf}, {RepeatPenalty: 0.001}} {
		if o.Validate() == nil {
			t.Errorf("%+v validates, want an error", o)
		}
	}
}

// reference is the definition: the probability of every token, from a full sort, in float64.
func reference(logits []float32, prompt, sampled []int32, o Options) []float64 {
	l := make([]float64, len(logits))
	for i, x := range logits {
		l[i] = float64(x)
	}
	history := slices.Concat(prompt, sampled)
	if o.RepeatWindow > 0 && o.RepeatWindow < len(history) {
		history = history[len(history)-o.RepeatWindow:]
	}
	if o.RepeatPenalty != 0 {
		for i := range l {
			if !slices.Contains(history, int32(i)) {
				continue
			}
			if l[i] > 0 {
				l[i] /= o.RepeatPenalty
			} else {
				l[i] *= o.RepeatPenalty
			}
		}
	}
	for i := range l {
		count := 0.0
		for _, t := range sampled {
			if int(t) == i {
				count++
			}
		}
		l[i] -= count * o.FrequencyPenalty
		if count > 0 {
			l[i] -= o.PresencePenalty
		}
		if bias, ok := o.LogitBias[int32(i)]; ok && bias == -100 {
			l[i] = math.Inf(-1)
		} else {
			l[i] += bias
		}
	}
	order := make([]int, len(l))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return l[order[a]] > l[order[b]] })
	top := l[order[0]]
	p := make([]float64, len(l))
	keep := func(n int) {
		for _, i := range order[n:] {
			p[i] = 0
		}
		sum := 0.0
		for _, x := range p {
			sum += x
		}
		for i := range p {
			p[i] /= sum
		}
	}
	for i := range p {
		p[i] = math.Exp((l[i] - top) / o.Temperature)
	}
	keep(len(p))
	if o.TopK > 0 && o.TopK < len(p) {
		keep(o.TopK)
	}
	if o.TopP > 0 && o.TopP < 1 {
		sum, n := 0.0, 0
		for n < len(order) && (n == 0 || sum < o.TopP) {
			sum += p[order[n]]
			n++
		}
		keep(n)
	}
	for i := range p {
		if p[i] < o.MinP*p[order[0]] {
			p[i] = 0
		}
	}
	keep(len(p))
	return p
}

// distribution returns the probabilities that s draws from.
func distribution(t *testing.T, s *Sampler, logits []float32, prompt, sampled []int32) []float64 {
	t.Helper()
	v, err := s.adjust.view(logits, prompt, sampled, &s.opts)
	if err != nil {
		t.Fatalf("view: %v", err)
	}
	best, err := v.best()
	if err != nil {
		t.Fatalf("best: %v", err)
	}
	c := cut(v.collect(nil, best.logit, &s.opts), best.logit, &s.opts)
	p, sum := make([]float64, len(logits)), total(c)
	for _, x := range c {
		p[x.token] += x.weight / sum
	}
	return p
}

// The kept tokens and their probabilities agree with the definition over random logits and options.
// Both sum in float64 in different orders: 1e-12 is some thousand roundings.
func TestAgainstDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	choose := func(x ...float64) float64 { return x[rng.IntN(len(x))] }
	for trial := range 2000 {
		n := 1 + rng.IntN(300)
		logits, prompt, sampled := make([]float32, n), make([]int32, rng.IntN(40)), make([]int32, rng.IntN(40))
		for i := range logits {
			logits[i] = float32(rng.NormFloat64() * choose(0.1, 2, 10))
			if trial%3 == 0 {
				logits[i] = float32(math.Round(float64(logits[i]))) // many ties
			}
		}
		for _, text := range [][]int32{prompt, sampled} {
			for i := range text {
				text[i] = int32(rng.IntN(n))
			}
		}
		bias := map[int32]float64{}
		for range rng.IntN(4) {
			if len(bias) < n-1 {
				bias[int32(rng.IntN(n))] = choose(-100, -7, 0.5, 20)
			}
		}
		o := Options{
			Temperature: choose(0.1, 0.7, 1, 5), TopK: int(choose(0, 1, 2, 40, 1000)), TopP: choose(0, 0.1, 0.5, 0.9, 0.999, 1),
			MinP: choose(0, 0.01, 0.3, 1), RepeatPenalty: choose(0, 1, 1.1, 3), RepeatWindow: int(choose(0, 1, 10, 100)),
			PresencePenalty: choose(0, 0, 0.7, -1), FrequencyPenalty: choose(0, 0, 0.3, -0.2), LogitBias: bias,
		}
		got, want := distribution(t, New(o), logits, prompt, sampled), reference(logits, prompt, sampled, o)
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-12 {
				t.Fatalf("trial %d, %+v: probability of token %d is %v, want %v\nlogits %v\nprompt %v\nsampled %v", trial, o, i, got[i], want[i], logits, prompt, sampled)
			}
		}
	}
}

// Draws follow the distribution: a chi-square test at a fixed seed. The bound is the 99.9th
// percentile; the seed is fixed, so the test does not flicker.
func TestDrawsFollowTheDistribution(t *testing.T) {
	logits := []float32{0.5, 2, -1, 1.5, 0, 2, -3, 1}
	for _, c := range []struct {
		name  string
		opts  Options
		bound float64
	}{
		// 7 degrees of freedom
		{"temperature alone", Options{Temperature: 1.3, Seed: 7}, 24.3},
		// 3
		{"top-k", Options{Temperature: 1, TopK: 4, Seed: 8}, 16.3},
		// 3
		{"top-p", Options{Temperature: 1, TopP: 0.8, Seed: 9}, 16.3},
		// 4
		{"min-p", Options{Temperature: 2, MinP: 0.5, Seed: 10}, 18.5},
		// 7
		{"repeat penalty", Options{Temperature: 1, RepeatPenalty: 2, Seed: 1}, 24.3},
		// 7
		{"presence and frequency", Options{Temperature: 1, PresencePenalty: 0.8, FrequencyPenalty: 0.5, Seed: 2}, 24.3},
		// 6
		{"bias", Options{Temperature: 1, LogitBias: map[int32]float64{1: -100, 6: 4, 0: -1}, Seed: 3}, 22.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			const draws = 40000
			prompt, sampled := []int32{1, 2}, []int32{5, 1, 5}
			want := reference(logits, prompt, sampled, c.opts)
			s, counts := New(c.opts), make([]int, len(logits))
			for range draws {
				id, err := s.Next(logits, prompt, sampled)
				if err != nil {
					t.Fatal(err)
				}
				counts[id]++
			}
			chi := 0.0
			for i, p := range want {
				if p == 0 {
					if counts[i] != 0 {
						t.Errorf("token %d was drawn %d times, want never", i, counts[i])
					}
					continue
				}
				d := float64(counts[i]) - draws*p
				chi += d * d / (draws * p)
			}
			if chi > c.bound {
				t.Errorf("chi square %.1f, want at most %.1f; counts %v, probabilities %v", chi, c.bound, counts, want)
			}
		})
	}
}

func TestSeed(t *testing.T) {
	logits := make([]float32, 50)
	text := func(seed uint64) []int32 {
		s, ids := New(Options{Temperature: 1, Seed: seed}), []int32(nil)
		for range 40 {
			id, err := s.Next(logits, nil, ids)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		return ids
	}
	if a, b := text(3), text(3); !slices.Equal(a, b) {
		t.Errorf("one seed, two texts: %v and %v", a, b)
	}
	if a, b := text(3), text(4); slices.Equal(a, b) {
		t.Errorf("seeds 3 and 4 give the same text %v", a)
	}
}

// A tiny temperature neither overflows nor divides zero by zero.
func TestExtremeTemperatures(t *testing.T) {
	logits := []float32{-math.MaxFloat32, 3, math.MaxFloat32, negInf}
	for _, temp := range []float64{math.SmallestNonzeroFloat64, 1e-30, 1} {
		if got, err := New(Options{Temperature: temp}).Next(logits, nil, nil); err != nil || got != 2 {
			t.Errorf("temperature %v: token %d, %v, want 2", temp, got, err)
		}
	}
	s, seen := New(Options{Temperature: math.MaxFloat64, Seed: 1}), map[int32]bool{}
	for range 200 {
		got, err := s.Next(logits, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		seen[got] = true
	}
	if !seen[0] || !seen[1] || !seen[2] || seen[3] {
		t.Errorf("a huge temperature drew %v, want 0, 1 and 2 but never 3", seen)
	}
}

func TestNextDoesNotAllocate(t *testing.T) {
	logits := make([]float32, 5000)
	for i := range logits {
		logits[i] = float32(i % 17)
	}
	history := []int32{1, 2, 3}
	for _, o := range []Options{{}, {Temperature: 1}, {Temperature: 1, TopK: 40, TopP: 0.9, MinP: 0.01, RepeatPenalty: 1.1, PresencePenalty: 1, FrequencyPenalty: 0.1, LogitBias: map[int32]float64{7: 2, 9: -100}}} {
		s := New(o)
		if n := testing.AllocsPerRun(10, func() {
			if _, err := s.Next(logits, history, history); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%+v: %v allocations a token, want 0", o, n)
		}
	}
}
