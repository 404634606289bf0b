package tune

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/internal/bench"
	"github.com/moeflux/moeflux-actor/internal/tuned"
)

// machine is a scripted one: settings take a share of the defaults' time, with noise, and its clock
// is that of the search.
type machine struct {
	now    time.Time
	shares map[tuned.Settings]float64 // of those that are not as quick as the defaults
	noise  func(*rand.Rand, time.Duration) float64
	random *rand.Rand
	opens  time.Duration
	began  time.Time
	end    context.CancelCauseFunc
	until  time.Time
	runs   int
	liar   func(s tuned.Settings, round int) bool // makes other tokens
	before func(run int)                          // nil: nothing
}

// Three candidates, of which nobody knows more.
var (
	depth   = tuned.Settings{RingDepth: 3}
	workers = tuned.Settings{ReadWorkers: 8}
	both    = tuned.Settings{RingDepth: 3, ReadWorkers: 8}
)

func newMachine(seed uint64, seconds float64) (*machine, context.Context) {
	ctx, end := context.WithCancelCause(context.Background())
	start := time.Unix(1000, 0)
	return &machine{
		now: start, began: start, until: start.Add(time.Duration(seconds * float64(time.Second))), end: end, opens: time.Second,
		random: rand.New(rand.NewPCG(seed, 7)), shares: map[tuned.Settings]float64{}, liar: func(tuned.Settings, int) bool { return false },
		noise: func(r *rand.Rand, _ time.Duration) float64 { return 1 + 0.03*r.NormFloat64() },
	}, ctx
}

// pass lets time pass, and the context end with it.
func (m *machine) pass(d time.Duration) {
	if m.now = m.now.Add(d); !m.now.Before(m.until) {
		m.end(errTime)
	}
}

func (m *machine) run(ctx context.Context, s tuned.Settings, round int) (*Outcome, error) {
	m.runs++
	if m.before != nil {
		m.before(m.runs)
	}
	seconds := m.noise(m.random, m.now.Sub(m.began))
	if share, ok := m.shares[s]; ok {
		seconds *= share
	}
	m.pass(m.opens + time.Duration(seconds*float64(time.Second)))
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	o := &Outcome{Seconds: seconds, Tokens: []int32{int32(round), 2, 3}}
	if m.liar(s, round) {
		o.Tokens[2]++
	}
	return o, nil
}

// search searches among some candidates.
func (m *machine) search(ctx context.Context, candidates ...tuned.Settings) (*Findings, error) {
	f := noFindings()
	for _, s := range candidates {
		f.Candidates = append(f.Candidates, &Candidate{Settings: s})
	}
	s := search{run: m.run, now: func() time.Time { return m.now }, began: m.began, until: m.until, cost: 2 * time.Second, progress: func(done, total int64) {
		if done >= total {
			panic(fmt.Sprintf("%d of %d runs", done, total))
		}
	}, r: &f}
	return &f, s.all(ctx)
}

// noises are how a machine's times waver.
var noises = map[string]func(*rand.Rand, time.Duration) float64{
	"even": func(r *rand.Rand, _ time.Duration) float64 { return 1 + 0.03*r.NormFloat64() },
	"bursts": func(r *rand.Rand, _ time.Duration) float64 {
		return 1 + 0.02*r.NormFloat64() + float64(r.IntN(10)/9)*r.Float64()
	},
	"drifting": func(r *rand.Rand, t time.Duration) float64 { return 1 + 0.03*r.NormFloat64() + t.Seconds()/100 },
}

// accepted returns how many of 1,000 searches with budgets of 45 to 150 s chose something else than
// the defaults.
func accepted(t *testing.T, noise func(*rand.Rand, time.Duration) float64, share float64) (n, right int) {
	t.Helper()
	for seed := range uint64(1000) {
		m, ctx := newMachine(seed, 45+float64(seed%8)*15)
		m.noise = noise
		m.shares[workers] = share
		f, err := m.search(ctx, depth, workers, both)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Chosen(); got != (tuned.Settings{}) {
			n++
			if got == workers {
				right++
			}
		}
	}
	return n, right
}

// Where nothing is faster, something is chosen more seldom than the level of the test says.
func TestFalseAcceptance(t *testing.T) {
	for name, noise := range noises {
		n, _ := accepted(t, noise, 1)
		t.Logf("%s noise: %.1f %% of 1,000 searches chose something that is not faster", name, float64(n)/10)
		if n >= 50 {
			t.Errorf("%s noise: %d of 1,000, want fewer than 5 %% (%s)", name, n, bench.SweepTest)
		}
	}
}

// What is faster is found, the surer the more it is.
func TestPower(t *testing.T) {
	for _, c := range []struct {
		noise string
		share float64
		least int // of 1,000 searches that find it
	}{{"even", 0.9, 950}, {"even", 0.95, 700}, {"drifting", 0.9, 900}, {"bursts", 0.8, 700}} {
		n, right := accepted(t, noises[c.noise], c.share)
		t.Logf("%s noise, %.0f %% less time: found by %.1f %% of 1,000 searches", c.noise, 100*(1-c.share), float64(right)/10)
		if right < c.least || n-right > 50 {
			t.Errorf("%s noise, %.0f %% less time: %d of 1,000 found it, want %d; %d chose something else", c.noise, 100*(1-c.share), right, c.least, n-right)
		}
	}
}

// The number of pairs is what the time suffices for, and the time is kept.
func TestBudget(t *testing.T) {
	for _, c := range []struct {
		seconds       float64
		rounds, pairs int
		needed        bool
	}{
		{10, 0, 0, true}, {26, 0, 0, true}, {28, 0, 6, false}, {40, 1, 8, false}, {80, 3, 15, false}, {200, 3, 20, false},
	} {
		m, ctx := newMachine(1, c.seconds)
		m.shares[workers], m.shares[depth] = 0.8, 0.7
		f, err := m.search(ctx, depth, workers)
		if err != nil {
			t.Fatal(err)
		}
		pairs := 0
		if f.Verdict != nil {
			pairs = len(f.Verdict.Pairs)
		}
		if f.Rounds != c.rounds || pairs != c.pairs || (f.Needed > 0) != c.needed || m.now.After(m.until) {
			t.Errorf("%g s: %d rounds, %d pairs, %g s needed, %v left; want %+v", c.seconds, f.Rounds, pairs, f.Needed, m.until.Sub(m.now), c)
		}
		if c.needed && (f.Needed < 26 || f.Needed > 31) {
			t.Errorf("%g s: %g are needed, want 12 runs of 2 s and some to spare", c.seconds, f.Needed)
		}
	}
	// Where runs come to take longer than was known, the time ends the search amid the pairs: those
	// that ran are judged if they are enough.
	for _, c := range []struct{ from, pairs int }{{4, 0}, {20, 10}} {
		m, ctx := newMachine(1, 60)
		m.shares[workers] = 0.7
		m.before = func(run int) {
			if run == c.from {
				m.opens = 10 * time.Second
			}
		}
		f, err := m.search(ctx, workers)
		switch {
		case c.pairs == 0 && (err != errTime || f.Verdict != nil || f.Needed < 60):
			t.Errorf("slower from run %d: %v, %+v, %g s needed; want that time is over", c.from, err, f.Verdict, f.Needed)
		case c.pairs > 0 && (err != nil || f.Verdict == nil || len(f.Verdict.Pairs) != c.pairs || f.Needed > 0 || f.Chosen() != workers):
			t.Errorf("slower from run %d: %v, %+v; want %d pairs", c.from, err, f.Verdict, c.pairs)
		}
	}
}

// What makes other tokens is not chosen, whenever that shows.
func TestOtherTokens(t *testing.T) {
	for name, liar := range map[string]func(tuned.Settings, int) bool{
		"at once":                   func(s tuned.Settings, _ int) bool { return s == workers },
		"in the third pair":         func(s tuned.Settings, round int) bool { return s == workers && round == mostRounds+2 },
		"the defaults, in a pair":   func(s tuned.Settings, round int) bool { return s == tuned.Settings{} && round == mostRounds+1 },
		"in the second round alone": func(s tuned.Settings, round int) bool { return s == workers && round == 1 },
	} {
		m, ctx := newMachine(1, 150)
		m.shares[workers], m.liar = 0.5, liar
		f, err := m.search(ctx, workers, depth)
		if err != nil || f.Chosen() == workers || !f.Candidates[0].OtherTokens || f.Candidates[1].OtherTokens {
			t.Errorf("%s: chosen %q, %v, %+v", name, f.Chosen(), err, f.Candidates[0])
		}
		r := Result{Findings: *f}
		if text := r.Text(); r.Final() || !strings.Contains(text, "--read-workers 8 made other tokens than the defaults") || !strings.Contains(text, "Nothing is saved") {
			t.Errorf("%s: final %v, %s", name, r.Final(), text)
		}
	}
}

// An end from outside at any run leaves what there was until then, and nothing is chosen.
func TestInterrupted(t *testing.T) {
	for run := 1; run <= 20; run++ {
		m, ctx := newMachine(1, 60)
		m.shares[workers] = 0.5
		m.before = func(k int) {
			if k == run {
				m.end(context.Canceled)
			}
		}
		f, err := m.search(ctx, depth, workers)
		if !errors.Is(err, context.Canceled) || f.Verdict != nil || f.Chosen() != (tuned.Settings{}) || m.runs != run {
			t.Fatalf("at run %d: %v after %d runs, %+v", run, err, m.runs, f.Verdict)
		}
		r := Result{Findings: *f, Interrupted: true}
		want := "interrupted before anything was measured"
		if len(f.Candidates[1].Seconds) > 0 {
			want = "--read-workers 8 is the best so far"
		}
		if text := r.Text(); r.Final() || r.Err() != nil || !strings.Contains(text, want) && len(f.Candidates[0].Seconds) == 0 || !strings.Contains(text, "Nothing is saved; what was kept before stays.") {
			t.Errorf("at run %d: %s", run, text)
		}
	}
}

// What fails for another reason is an error.
func TestFails(t *testing.T) {
	m, ctx := newMachine(1, 60)
	broken := errors.New("broken on purpose")
	s := search{run: func(context.Context, tuned.Settings, int) (*Outcome, error) { return nil, broken }, now: func() time.Time { return m.now }, until: m.until, cost: 1,
		progress: func(int64, int64) {}, r: new(noFindings())}
	s.r.Candidates = []*Candidate{{Settings: depth}}
	if err := s.all(ctx); err != broken {
		t.Errorf("got %v", err)
	}
}

// Nothing to try, and nothing that was ever faster, leave the defaults.
func TestNothing(t *testing.T) {
	m, ctx := newMachine(1, 100)
	f, err := m.search(ctx)
	if err != nil || m.runs != 0 || f.Tested != nil {
		t.Errorf("nothing to try: %d runs, %+v, %v", m.runs, f, err)
	}
	m, ctx = newMachine(1, 100)
	m.shares[workers], m.shares[depth] = 1.5, 1.6
	if f, err = m.search(ctx, workers, depth); err != nil || f.Tested != nil || f.Verdict != nil || f.Rounds != 3 || slices.Contains(f.Candidates[0].Seconds, 0) {
		t.Errorf("nothing is faster: %+v, %v", f, err)
	}
	r := Result{Findings: *f}
	if text := r.Text(); !r.Final() || !strings.Contains(text, "no candidate was faster than the defaults in any run: the defaults stay.") {
		t.Errorf("%s", text)
	}
}
