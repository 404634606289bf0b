package bench

import (
	"context"
	"errors"
)

// Trials measures texts on engines that are opened anew for each. Options have one length of
// prompts and one number of sequences; with Forget, expert slots are emptied after the warm-up.
type Trials struct {
	Host    *Host
	Options Options
	Opener  Opener
}

// Trial is what one of them came to.
type Trial struct {
	Run
	Prompts      string // their kind, as in Setting
	Slots        int
	WarmupTokens int
	GenTokens    int
	// Tokens are those that followed, of one text after the other: the first after its prompt, then
	// those after each that was decoded.
	Tokens []int32
}

// Seconds is the time of prompts and texts, without opening and warm-up.
func (t *Trial) Seconds() float64 { return t.Run.seconds() }

// Run opens the model with flags, warms up, and measures the texts of a round. Each round has texts
// of its own, which are the same for all flags.
func (t *Trials) Run(ctx context.Context, flags Flags, round int) (_ *Trial, err error) {
	m, err := t.Opener.Open(ctx, flags)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	info, o := m.Engine.Info(), t.Options
	warmPrompt, warm, err := o.fit(&info, sweepTokens)
	if err != nil {
		return nil, err
	}
	setting, err := settingOf(m)
	if err != nil {
		return nil, err
	}
	sequences, prompt := o.Sequences[0], o.PromptTokens[0]
	prompts, err := newPrompts(m, prompt+o.GenTokens)
	if err != nil {
		return nil, err
	}
	b, err := newRunner(ctx, t.Host, m, &setting, sequences)
	if err != nil {
		return nil, err
	}
	defer b.close()
	if err := b.warmUp(ctx, prompts.of(0, sequences, warmPrompt), warm); err != nil {
		return nil, err
	}
	if o.Forget {
		if err := m.Engine.ForgetExperts(ctx); err != nil {
			return nil, err
		}
	}
	b.keep(o.GenTokens)
	run, err := b.run(ctx, prompts.of(sequences*(1+round), sequences, prompt), o.GenTokens)
	if err != nil {
		return nil, err
	}
	return &Trial{Run: *run, Prompts: prompts.kind, Slots: setting.Slots, WarmupTokens: warm, GenTokens: o.GenTokens, Tokens: b.tokens()}, nil
}
