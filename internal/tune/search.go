package tune

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/moeflux/moeflux-actor/internal/bench"
	"github.com/moeflux/moeflux-actor/internal/figures"
	"github.com/moeflux/moeflux-actor/internal/signedrank"
	"github.com/moeflux/moeflux-actor/internal/tuned"
)

const (
	mostRounds = 3 // in which all candidates run
	// fewestPairs is the least that can be significant, and leastPairs the least to begin with.
	fewestPairs = 5
	leastPairs  = bench.SweepPairs
	mostPairs   = signedrank.MaxPairs
	// spareShare of the time is left for runs that take longer than those before.
	spareShare = 0.1
)

var (
	// errTime is the cause of a context that ends because the time that tune may take is over.
	errTime = errors.New("the time is over")
	// errTokens reports a candidate that made other tokens than the defaults.
	errTokens = errors.New("other tokens")
)

// Outcome is what one run of a text came to.
type Outcome struct {
	Seconds float64
	Tokens  []int32
}

// Runner opens the model with settings and runs the text of a round, which is the same for all
// settings.
type Runner func(ctx context.Context, s tuned.Settings, round int) (*Outcome, error)

// search measures candidates.
type search struct {
	run      Runner
	now      func() time.Time
	began    time.Time // of everything
	until    time.Time
	cost     time.Duration // of one run, as far as it is known
	progress func(done, total int64)
	r        *Findings

	runs  int64
	total int64
	took  time.Duration // of all runs
}

// all measures the candidates of the result and judges the best. An error of the context's end is
// returned; the result says what there is until then.
func (s *search) all(ctx context.Context) error {
	err := s.measure(ctx)
	if err != nil && context.Cause(ctx) == errTime {
		s.r.Needed = s.needs()
	}
	return err
}

func (s *search) measure(ctx context.Context) error {
	can := s.affords()
	switch {
	case len(s.r.Candidates) == 0:
		return nil
	case can < 2*leastPairs:
		s.r.Needed = s.needs()
		return nil
	}
	best := s.r.Candidates[0]
	if n := min(len(s.r.Candidates), can-2*leastPairs-1); n > 1 {
		if err := s.race(ctx, s.r.Candidates[:n], min(max(1, (can-4*leastPairs)/(1+n)), mostRounds)); err != nil {
			return err
		}
		if best = s.r.rank(); best == nil {
			return nil
		}
	}
	return s.pairs(ctx, best)
}

// needs returns the seconds from the beginning in which the fewest pairs would have run, too.
func (s *search) needs() float64 {
	return (s.now().Sub(s.began) + 2*leastPairs*s.cost).Seconds() / (1 - spareShare)
}

// affords returns how many runs there is time for.
func (s *search) affords() int {
	return int((1 - spareShare) * float64(s.until.Sub(s.now())) / float64(s.cost))
}

// race runs candidates and the defaults once a round, each round in another order.
func (s *search) race(ctx context.Context, candidates []*Candidate, rounds int) error {
	everyone := append([]*Candidate{s.r.Defaults}, candidates...)
	s.total = int64(rounds*len(everyone) + 2*leastPairs)
	for round := range rounds {
		said := make([][]int32, len(everyone))
		for i := range everyone {
			k := (i + round) % len(everyone)
			o, err := s.once(ctx, everyone[k].Settings, round)
			if err != nil {
				return err
			}
			everyone[k].Seconds, said[k] = append(everyone[k].Seconds, o.Seconds), o.Tokens
		}
		for k, c := range everyone {
			c.OtherTokens = c.OtherTokens || !slices.Equal(said[k], said[0])
		}
	}
	s.r.Rounds = rounds
	return nil
}

// once runs one text and learns what that costs.
func (s *search) once(ctx context.Context, set tuned.Settings, round int) (*Outcome, error) {
	s.progress(s.runs, max(s.total, s.runs+1))
	began := s.now()
	o, err := s.run(ctx, set, round)
	if err != nil {
		return nil, err
	}
	s.runs, s.took = s.runs+1, s.took+s.now().Sub(began)
	s.cost = max(s.took/time.Duration(s.runs), 1)
	return o, nil
}

// pairs compares a candidate with the defaults. Their number is chosen before the first, so that
// how they come out has no part in it; where time runs out earlier, that is no matter of who was
// faster, either.
func (s *search) pairs(ctx context.Context, c *Candidate) error {
	n := min(max(s.affords()/2, fewestPairs), mostPairs)
	s.total = s.runs + 2*int64(n)
	var first *Outcome // of a pair
	v, err := bench.Pairs(n, func(pair int, candidate bool) (float64, error) {
		var set tuned.Settings
		if candidate {
			set = c.Settings
		}
		o, err := s.once(ctx, set, mostRounds+pair)
		if err != nil {
			return 0, err
		}
		switch {
		case first == nil:
			first = o
		case !slices.Equal(o.Tokens, first.Tokens):
			return 0, errTokens
		default:
			first = nil
		}
		return o.Seconds, nil
	})
	s.r.Tested = c
	switch {
	case errors.Is(err, errTokens):
		c.OtherTokens = true
		return nil
	case err != nil && (context.Cause(ctx) != errTime || len(v.Pairs) < fewestPairs):
		return err
	}
	s.r.Verdict = v
	return nil
}

// rank returns the candidate with the least median time. nil if none was ever faster than the
// defaults, or made the same tokens.
func (r *Findings) rank() (best *Candidate) {
	least := 0.0
	for _, c := range r.Candidates {
		if len(c.Seconds) == 0 || c.OtherTokens {
			continue
		}
		faster := false
		for i, s := range c.Seconds {
			faster = faster || s < r.Defaults.Seconds[i]
		}
		if m := figures.SpreadOf(c.Seconds).Median; faster && (best == nil || m < least) {
			best, least = c, m
		}
	}
	return best
}
