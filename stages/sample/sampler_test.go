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
		want    int32
	}{
		{"largest", Options{}, []float32{1, 3, 2}, nil, 1},
		{"tie takes the lowest id", Options{}, []float32{1, 3, 3, 3}, nil, 1},
		{"all equal", Options{}, []float32{-2, -2}, nil, 0},
		{"one token", Options{}, []float32{-5}, nil, 0},
		{"ruled-out tokens", Options{}, []float32{negInf, -7, negInf}, nil, 1},
		{"negative zero ties with zero", Options{}, []float32{float32(math.Copysign(0, -1)), 0}, nil, 0},
		{"cuts are idle", Options{TopK: 1, TopP: 0.1, MinP: 1}, []float32{1, 3, 2}, nil, 1},
		{"history without penalty", Options{}, []float32{1, 3, 2}, []int32{1, 1}, 1},
		{"penalty of 1", Options{RepeatPenalty: 1}, []float32{1, 3, 2}, []int32{1, 1}, 1},
		{"penalty divides positive logits", Options{RepeatPenalty: 2}, []float32{1, 3, 2}, []int32{1}, 2},
		{"penalty multiplies negative logits", Options{RepeatPenalty: 2}, []float32{-4, -3, -5}, []int32{1}, 0},
		{"penalty counts a token once", Options{RepeatPenalty: 2}, []float32{1, 5, 2}, []int32{1, 1, 1}, 1},
		{"penalty below 1 favours", Options{RepeatPenalty: 0.5}, []float32{1, 3, 2}, []int32{2}, 2},
		{"window leaves old tokens out", Options{RepeatPenalty: 10, RepeatWindow: 1}, []float32{1, 3, 2}, []int32{1, 0}, 1},
		{"window longer than the history", Options{RepeatPenalty: 10, RepeatWindow: 9}, []float32{1, 3, 2}, []int32{1, 0}, 2},
		{"penalised tie takes the lowest id", Options{RepeatPenalty: 2}, []float32{2, 4, 1}, []int32{1}, 0},
		{"penalty leaves ruled-out tokens out", Options{RepeatPenalty: 2}, []float32{negInf, -7}, []int32{0, 1}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := slices.Clone(c.logits)
			got, err := New(c.opts).Next(c.logits, c.history)
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
		want    func(error) bool
		text    string
	}{
		{"NaN first", Options{}, []float32{nan, 1}, nil, isLogit, "token 0 is NaN"},
		{"NaN last", Options{Temperature: 1}, []float32{1, nan}, nil, isLogit, "token 1 is NaN"},
		{"NaN below the largest", Options{}, []float32{9, 1, nan, 2}, nil, isLogit, "token 2 is NaN"},
		{"positive infinity", Options{}, []float32{1, posInf}, nil, isLogit, "token 1 is +Inf"},
		{"no logits", Options{}, nil, nil, func(err error) bool { return errors.Is(err, ErrNoFiniteLogit) }, "no finite logit"},
		{"all ruled out", Options{Temperature: 1}, []float32{negInf, negInf}, nil, func(err error) bool { return errors.Is(err, ErrNoFiniteLogit) }, "no finite logit"},
		{"history beyond the vocabulary", Options{RepeatPenalty: 2}, []float32{1, 2}, []int32{0, 2}, nil, "history token 2 at index 1"},
		{"negative history", Options{RepeatPenalty: 2, RepeatWindow: 1}, []float32{1, 2}, []int32{0, -1}, nil, "history token -1 at index 1"},
		{"bad options", Options{TopP: 2}, []float32{1, 2}, nil, nil, "top-p 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := New(c.opts).Next(c.logits, c.history)
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
	err := Options{Temperature: -1, TopK: -1, TopP: 1.5, MinP: -0.1, RepeatPenalty: -1, RepeatWindow: -1}.Validate()
	for _, want := range []string{"temperature -1", "top-k -1", "top-p 1.5", "min-p -0.1", "repeat penalty -1", "repeat window -1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
	for _, o := range []Options{{Temperature: math.NaN()}, {Temperature: inf}, {TopP: math.NaN()}, {MinP: math.NaN()}, {MinP: inf}, {RepeatPenalty: math.NaN()}, {RepeatPenalty: inf}, {RepeatPenalty: 0.001}} {
		if o.Validate() == nil {
			t.Errorf("%+v validates, want an error", o)
		}
	}
}

// reference is the definition: the probability of every token, from a full sort, in float64.
func reference(logits []float32, history []int32, o Options) []float64 {
	l := make([]float64, len(logits))
	for i, x := range logits {
		l[i] = float64(x)
	}
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
func distribution(t *testing.T, s *Sampler, logits []float32, history []int32) []float64 {
	t.Helper()
	if _, err := s.Next(logits, history); err != nil {
		t.Fatalf("Next: %v", err)
	}
	src := s.logits
	if !s.opts.penalises() {
		src = nil
		for _, x := range logits {
			src = append(src, float64(x))
		}
	}
	c := cut(collect(nil, src), slices.Max(src), s.opts)
	p, sum := make([]float64, len(logits)), total(c)
	for _, x := range c {
		p[x.token] += x.weight / sum
	}
	return p
}

// The kept tokens and their probabilities agree with the definition over random logits and options. Both sum
// in float64 in different orders: 1e-12 is some thousand roundings.
func TestAgainstDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	choose := func(x ...float64) float64 { return x[rng.IntN(len(x))] }
	for trial := range 2000 {
		n := 1 + rng.IntN(300)
		logits, history := make([]float32, n), make([]int32, rng.IntN(40))
		for i := range logits {
			logits[i] = float32(rng.NormFloat64() * choose(0.1, 2, 10))
			if trial%3 == 0 {
				logits[i] = float32(math.Round(float64(logits[i]))) // many ties
			}
		}
		for i := range history {
			history[i] = int32(rng.IntN(n))
		}
		o := Options{
			Temperature: choose(0.1, 0.7, 1, 5), TopK: int(choose(0, 1, 2, 40, 1000)), TopP: choose(0, 0.1, 0.5, 0.9, 0.999, 1),
			MinP: choose(0, 0.01, 0.3, 1), RepeatPenalty: choose(0, 1, 1.1, 3), RepeatWindow: int(choose(0, 1, 10, 100)),
		}
		got, want := distribution(t, New(o), logits, history), reference(logits, history, o)
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-12 {
				t.Fatalf("trial %d, %+v: probability of token %d is %v, want %v\nlogits %v\nhistory %v", trial, o, i, got[i], want[i], logits, history)
			}
		}
	}
}

// Draws follow the distribution: a chi-square test at a fixed seed. The bound is the 99.9th percentile; the seed is
// fixed, so the test does not flicker.
func TestDrawsFollowTheDistribution(t *testing.T) {
	logits := []float32{0.5, 2, -1, 1.5, 0, 2, -3, 1}
	for _, c := range []struct {
		name  string
		opts  Options
		bound float64
	}{
		{"temperature alone", Options{Temperature: 1.3, Seed: 7}, 24.3},       // 7 degrees of freedom
		{"top-k", Options{Temperature: 1, TopK: 4, Seed: 8}, 16.3},            // 3
		{"top-p", Options{Temperature: 1, TopP: 0.8, Seed: 9}, 16.3},          // 3
		{"min-p", Options{Temperature: 2, MinP: 0.5, Seed: 10}, 18.5},         // 4
		{"penalty", Options{Temperature: 1, RepeatPenalty: 2, Seed: 1}, 24.3}, // 7
	} {
		t.Run(c.name, func(t *testing.T) {
			const draws = 40000
			history := []int32{1, 2}
			want := reference(logits, history, c.opts)
			s, counts := New(c.opts), make([]int, len(logits))
			for range draws {
				id, err := s.Next(logits, history)
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
			id, err := s.Next(logits, ids)
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
		if got, err := New(Options{Temperature: temp}).Next(logits, nil); err != nil || got != 2 {
			t.Errorf("temperature %v: token %d, %v, want 2", temp, got, err)
		}
	}
	s, seen := New(Options{Temperature: math.MaxFloat64, Seed: 1}), map[int32]bool{}
	for range 200 {
		got, err := s.Next(logits, nil)
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
	for _, o := range []Options{{}, {Temperature: 1}, {Temperature: 1, TopK: 40, TopP: 0.9, MinP: 0.01, RepeatPenalty: 1.1}} {
		s := New(o)
		if n := testing.AllocsPerRun(10, func() {
			if _, err := s.Next(logits, history); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%+v: %v allocations a token, want 0", o, n)
		}
	}
}

func FuzzNext(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8}, 0.8, 3, 0.9, 0.05, 1.1, uint64(1))
	f.Add([]byte{0, 0, 0xc0, 0x7f, 0, 0, 0x80, 0xff}, 1.0, 0, 0.0, 0.0, 0.0, uint64(2)) // NaN, -Inf
	f.Add([]byte{}, 0.0, 0, 0.0, 0.0, 0.0, uint64(0))
	f.Fuzz(func(t *testing.T, raw []byte, temp float64, topK int, topP, minP, penalty float64, seed uint64) {
		var logits []float32
		for ; len(raw) >= 4; raw = raw[4:] {
			logits = append(logits, math.Float32frombits(uint32(raw[0])|uint32(raw[1])<<8|uint32(raw[2])<<16|uint32(raw[3])<<24))
		}
		history := []int32{0}
		got, err := New(Options{Temperature: temp, TopK: topK, TopP: topP, MinP: minP, RepeatPenalty: penalty, Seed: seed}).Next(logits, history)
		if err != nil {
			return
		}
		if got < 0 || int(got) >= len(logits) || math.IsInf(float64(logits[got]), 0) || logits[got] != logits[got] {
			t.Errorf("token %d of logits %v", got, logits)
		}
	})
}

func BenchmarkNext(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	logits := make([]float32, 151936)
	for i := range logits {
		logits[i] = float32(rng.NormFloat64() * 3)
	}
	for _, c := range []struct {
		name string
		opts Options
	}{
		{"mode=greedy", Options{}},
		{"mode=temperature", Options{Temperature: 0.8}},
		{"mode=topk40", Options{Temperature: 0.8, TopK: 40}},
		{"mode=topp95", Options{Temperature: 0.8, TopP: 0.95}},
		{"mode=all", Options{Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05, RepeatPenalty: 1.1}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, history := New(c.opts), []int32{1, 2, 3}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Next(logits, history); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
