package bench

import (
	"context"
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/actors"
)

const (
	sweepTokens = 32  // of a text
	sweepMost   = 256 // combinations

	// SweepPairs is how often the best setting and the defaults are compared; 5 are the fewest that
	// can be significant.
	SweepPairs = 6
)

// Axis is the values of one setting that a sweep races.
type Axis struct {
	Name   string // of the flag, without dashes
	Values []string
}

// Flags are settings by name.
type Flags map[string]string

// Opener opens the model with settings beside those of everything that is measured.
type Opener interface {
	Plan(context.Context, Flags) (actors.Info, error) // what Open would come to
	Open(context.Context, Flags) (*Model, error)
}

// Sweep races combinations of settings and compares the best with the defaults. Those that come to
// the same plan are raced once. The model is opened anew for each run, and the order shifts each
// round, so that disturbances hit all alike. Options have one length of prompts and one number of
// sequences; Repeat is the number of rounds.
func Sweep(ctx context.Context, h *Host, o Options, combinations []*SweepSetting, opener Opener) (*SweepResult, error) {
	r := &SweepResult{PromptTokens: o.PromptTokens[0], Sequences: o.Sequences[0], Repeat: o.Repeat}
	k := &sweep{host: h, o: o, r: r, opener: opener}
	if err := k.distinct(ctx, combinations); err != nil {
		return nil, err
	}
	if err := k.race(ctx); err != nil {
		if !stopped(ctx, err) || !slices.ContainsFunc(k.settings, func(s *SweepSetting) bool { return s.Runs != nil }) {
			return nil, err
		}
		r.Interrupted = true
	}
	if len(k.settings) > 1 {
		r.Rank(k.settings)
	}
	return r, nil
}

// sweep is one under way.
type sweep struct {
	host   *Host
	o      Options
	r      *SweepResult
	opener Opener

	settings []*SweepSetting // the defaults first
	done     int             // runs
}

// Effect is what of a plan can make a difference in speed. Two plans with the same one need not be
// compared.
type Effect struct {
	io                     actors.ExpertIO
	resident               bool
	prefetch               actors.Prefetch
	layersAhead, ringDepth int
	readWorkers, chunkRows int
	slots, threads         int
}

// EffectOf returns the effect of a plan on prompts of this many tokens, of all sequences together.
// Slots count only where the memory for them is what is compared: otherwise free memory decides,
// and wavers from plan to plan.
func EffectOf(i *actors.Info, prompts int, memorySwept bool) Effect {
	e := Effect{
		io: i.ExpertIO, resident: i.Resident, prefetch: i.Prefetch, layersAhead: i.PrefetchLayers,
		ringDepth: i.RingDepth, readWorkers: i.ReadWorkers, chunkRows: min(i.ChunkRows, prompts), threads: i.Threads,
	}
	if !i.ExpertIO.Streams() {
		e.readWorkers = 0 // nothing is read
	} else if memorySwept {
		e.slots = i.Slots
	}
	return e
}

// distinct plans the combinations and keeps one of each effect.
func (k *sweep) distinct(ctx context.Context, all []*SweepSetting) error {
	var effects []Effect
	_, memorySwept := all[0].Flags["expert-memory"]
	defaults := &SweepSetting{Flags: Flags{}, Defaults: true}
	for _, s := range slices.Concat([]*SweepSetting{defaults}, all) {
		i, err := k.opener.Plan(ctx, s.Flags)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name(), err)
		}
		s.Slots, s.Mapped, s.Same = i.Slots, !i.ExpertIO.Streams(), []Flags{}
		e := EffectOf(&i, k.r.PromptTokens*k.r.Sequences, memorySwept)
		if at := slices.Index(effects, e); at >= 0 {
			k.settings[at].Same = append(k.settings[at].Same, s.Flags)
			continue
		}
		k.settings, effects = append(k.settings, s), append(effects, e)
	}
	return nil
}

// race runs every setting once a round, each round in another order, and then the best of them in
// pairs with the defaults. Where there is no choice, nothing runs.
func (k *sweep) race(ctx context.Context) error {
	if len(k.settings) == 1 {
		k.r.Settings = k.settings
		return nil
	}
	for round := range k.o.Repeat {
		for i := range k.settings {
			s := k.settings[(i+round)%len(k.settings)]
			one, err := k.run(ctx, s, round)
			if err != nil {
				return err
			}
			s.Runs = append(s.Runs, *one)
		}
	}
	k.r.Rank(k.settings)
	if k.r.Settings[0].Defaults {
		return nil
	}
	return k.pairs(ctx, k.r.Settings[0], k.settings[0])
}

// pairs runs a setting and the defaults in pairs, and judges them.
func (k *sweep) pairs(ctx context.Context, candidate, defaults *SweepSetting) error {
	v, err := Pairs(SweepPairs, func(n int, isCandidate bool) (float64, error) {
		s := defaults
		if isCandidate {
			s = candidate
		}
		one, err := k.run(ctx, s, k.o.Repeat+n)
		if err != nil {
			return 0, err
		}
		return one.seconds(), nil
	})
	if err == nil {
		k.r.Verdict = v
	}
	return err
}

// run measures one run of a setting.
func (k *sweep) run(ctx context.Context, s *SweepSetting, round int) (*Run, error) {
	k.host.progress("sweeping", int64(k.done), int64(k.o.Repeat*len(k.settings)+2*SweepPairs))
	k.done++
	one, err := k.once(ctx, s, round)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name(), err)
	}
	return one, nil
}

// once measures one run of a setting, and notes what it ran with.
func (k *sweep) once(ctx context.Context, s *SweepSetting, round int) (*Run, error) {
	trials := Trials{Host: k.host, Options: k.o, Opener: k.opener}
	t, err := trials.Run(ctx, s.Flags, round)
	if err != nil {
		return nil, err
	}
	k.r.Prompts, k.r.GenTokens, k.r.WarmupTokens, s.Slots = t.Prompts, t.GenTokens, t.WarmupTokens, t.Slots
	return &t.Run, nil
}
