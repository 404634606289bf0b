package bench

import (
	"context"
	"errors"
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

// effect is what of a plan can make a difference in speed.
type effect struct {
	io                     actors.ExpertIO
	resident               bool
	prefetch               actors.Prefetch
	layersAhead, ringDepth int
	readWorkers, chunkRows int
	slots                  int
}

// effectOf returns the effect of a plan on prompts of this many tokens, of all sequences together.
func effectOf(i *actors.Info, prompts int, memorySwept bool) effect {
	e := effect{
		io: i.ExpertIO, resident: i.Resident, prefetch: i.Prefetch, layersAhead: i.PrefetchLayers,
		ringDepth: i.RingDepth, readWorkers: i.ReadWorkers, chunkRows: min(i.ChunkRows, prompts),
	}
	if i.ExpertIO == actors.ExpertIOMmap {
		e.readWorkers = 0 // nothing is read
	} else if memorySwept { // otherwise free memory alone decides, and wavers from plan to plan
		e.slots = i.Slots
	}
	return e
}

// distinct plans the combinations and keeps one of each effect.
func (k *sweep) distinct(ctx context.Context, all []*SweepSetting) error {
	var effects []effect
	_, memorySwept := all[0].Flags["expert-memory"]
	defaults := &SweepSetting{Flags: Flags{}, Defaults: true}
	for _, s := range slices.Concat([]*SweepSetting{defaults}, all) {
		i, err := k.opener.Plan(ctx, s.Flags)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name(), err)
		}
		s.Slots, s.Mapped, s.Same = i.Slots, i.ExpertIO == actors.ExpertIOMmap, []Flags{}
		e := effectOf(&i, k.r.PromptTokens*k.r.Sequences, memorySwept)
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

// pairs runs a setting and the defaults in pairs, each first in turn, and judges them.
func (k *sweep) pairs(ctx context.Context, candidate, defaults *SweepSetting) error {
	v := &SweepVerdict{Test: SweepTest}
	for n := range SweepPairs {
		var seconds [2]float64
		for turn := range 2 {
			which := (n + turn) % 2
			one, err := k.run(ctx, []*SweepSetting{candidate, defaults}[which], k.o.Repeat+n)
			if err != nil {
				return err
			}
			seconds[which] = one.seconds()
		}
		v.Pairs = append(v.Pairs, SweepPair{seconds[0], seconds[1]})
	}
	k.r.Verdict = v
	return v.Judge()
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

// once opens the model with a setting, warms up, and measures one run.
func (k *sweep) once(ctx context.Context, s *SweepSetting, round int) (run *Run, err error) {
	m, err := k.opener.Open(ctx, s.Flags)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	info := m.Engine.Info()
	warmPrompt, warm, err := k.o.fit(&info, sweepTokens)
	if err != nil {
		return nil, err
	}
	setting, err := settingOf(m)
	if err != nil {
		return nil, err
	}
	prompts, err := newPrompts(m, k.r.PromptTokens+k.o.GenTokens)
	if err != nil {
		return nil, err
	}
	k.r.Prompts, k.r.GenTokens, k.r.WarmupTokens, s.Slots = prompts.kind, k.o.GenTokens, warm, setting.Slots
	b, err := newRunner(ctx, k.host, m, &setting, k.r.Sequences)
	if err != nil {
		return nil, err
	}
	defer b.close()
	if err := b.warmUp(ctx, prompts.of(0, k.r.Sequences, warmPrompt), warm); err != nil {
		return nil, err
	}
	return b.run(ctx, prompts.of(k.r.Sequences*(1+round), k.r.Sequences, k.r.PromptTokens), k.o.GenTokens)
}
