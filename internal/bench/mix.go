package bench

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/figures"
)

const (
	mixTokens = 64 // decoded alone, before each pair
	mixBegin  = 16 // tokens of the prompt of the text that decodes
)

// MixResult is what Mix measured.
type MixResult struct {
	Setting
	PromptTokens int  `json:"prompt_tokens"`
	Repeat       int  `json:"repeat"`
	Interrupted  bool `json:"interrupted"`

	Points []*MixPoint `json:"points"`
}

// MixPoint is a text that decodes beside one that reads prompts, with one share for prompts. Times
// are of all runs together.
type MixPoint struct {
	Share float64  `json:"prompt_share"`
	Runs  []MixRun `json:"runs"`

	GapAlone    float64        `json:"gap_alone_ms"`    // from token to token without a prompt, the median
	GapAlone99  float64        `json:"gap_alone_99_ms"` // likewise, the 99th percentile
	Gap         float64        `json:"gap_ms"`          // beside a prompt, the median
	Gap99       float64        `json:"gap_99_ms"`       // beside a prompt, the 99th percentile
	GapMost     float64        `json:"gap_most_ms"`
	Steps99     float64        `json:"gap_99_steps"` // Gap99 of GapAlone
	PromptAlone figures.Spread `json:"prompt_alone_per_second"`
	Prompt      figures.Spread `json:"prompt_per_second"` // beside the text
	PromptShare float64        `json:"prompt_speed"`      // the median of the runs' Prompt of PromptAlone
}

// MixRun is the text alone, the prompt alone, and both.
type MixRun struct {
	AloneMS     []float64 `json:"gaps_alone_ms"`
	GapsMS      []float64 `json:"gaps_ms"`
	PromptAlone float64   `json:"prompt_alone_per_second"`
	Prompt      float64   `json:"prompt_per_second"`
	// what the text that decodes was given, and what that cost, alone and beside the prompt
	CostAlone actors.Account `json:"cost_alone"`
	Cost      actors.Account `json:"cost"`
}

// Mix opens the model with each share for prompts, 0 for the engine's own, and measures a text and
// a prompt alone and together. Options have one length of prompts.
func Mix(ctx context.Context, h *Host, o Options, shares []float64, open func(ctx context.Context, share float64) (*Model, error)) (*MixResult, error) {
	k := &mix{host: h, o: o, r: &MixResult{PromptTokens: o.PromptTokens[0], Repeat: o.Repeat}}
	err := k.all(ctx, shares, open)
	r := k.r
	r.Points = slices.DeleteFunc(r.Points, func(p *MixPoint) bool { return len(p.Runs) == 0 })
	if err != nil && (!stopped(ctx, err) || len(r.Points) == 0) {
		return nil, err
	}
	r.Interrupted = err != nil
	for _, p := range r.Points {
		p.Summarise()
	}
	return r, nil
}

// mix is a measurement under way.
type mix struct {
	host *Host
	o    Options
	r    *MixResult

	// of the present share
	runner  *runner
	prompts *prompts
}

func (k *mix) all(ctx context.Context, shares []float64, open func(ctx context.Context, share float64) (*Model, error)) error {
	for i, share := range shares {
		m, err := open(ctx, share)
		if err != nil {
			return err
		}
		p := new(MixPoint)
		k.r.Points = append(k.r.Points, p)
		err = k.share(ctx, m, p, func(run int) {
			k.host.progress("measuring", int64(i*k.o.Repeat+run), int64(len(shares)*k.o.Repeat))
		})
		if err := errors.Join(err, m.Close()); err != nil {
			return err
		}
	}
	return nil
}

// share warms up and measures the runs of one share.
func (k *mix) share(ctx context.Context, m *Model, p *MixPoint, progress func(run int)) (err error) {
	info := m.Engine.Info()
	warmPrompt, _, err := k.o.fit(&info, mixTokens)
	if err != nil {
		return err
	}
	p.Share = info.PromptShare
	if k.r.Setting, err = settingOf(m); err != nil {
		return err
	}
	if k.prompts, err = newPrompts(m, k.r.PromptTokens+k.o.GenTokens); err != nil {
		return err
	}
	k.r.Prompts, k.r.WarmupTokens = k.prompts.kind, min(k.o.Warmup, info.Context-k.o.GenTokens)
	if k.runner, err = newRunner(ctx, k.host, m, &k.r.Setting, 2); err != nil {
		return err
	}
	defer k.runner.close()
	if err := k.runner.warmUp(ctx, k.prompts.of(0, 2, warmPrompt), k.r.WarmupTokens); err != nil {
		return err
	}
	for run := range k.o.Repeat {
		progress(run)
		r, err := k.run(ctx, 2+2*run)
		if err != nil {
			return err
		}
		p.Runs = append(p.Runs, *r)
	}
	return nil
}

// run measures the prompt alone, the text alone, and the text beside the prompt.
func (k *mix) run(ctx context.Context, first int) (*MixRun, error) {
	r := new(MixRun)
	text := k.runner.texts[0]
	var err error
	if r.PromptAlone, err = k.readPrompt(ctx, first); err != nil {
		return nil, err
	}
	if err := text.Reset(ctx); err != nil {
		return nil, err
	}
	if err := text.read(ctx, k.prompts.prompt(first+1, mixBegin)); err != nil {
		return nil, err
	}
	begin, err := text.Describe(ctx)
	if err != nil {
		return nil, err
	}
	if r.AloneMS, err = k.gaps(ctx, text, func(n int) bool { return n < k.o.GenTokens }); err != nil {
		return nil, err
	}
	alone, err := text.Describe(ctx)
	if err != nil {
		return nil, err
	}
	r.CostAlone = alone.Account.Since(begin.Account)
	var over atomic.Bool
	err = together(ctx, 2, func(ctx context.Context, i int) (err error) {
		if i == 0 {
			defer over.Store(true)
			r.Prompt, err = k.readPrompt(ctx, first+1)
			return err
		}
		r.GapsMS, err = k.gaps(ctx, text, func(int) bool { return !over.Load() })
		return err
	})
	if err != nil {
		return r, err
	}
	beside, err := text.Describe(ctx)
	r.Cost = beside.Account.Since(alone.Account)
	return r, err
}

// readPrompt reads prompt n with the second sequence and returns the tokens a second.
func (k *mix) readPrompt(ctx context.Context, n int) (float64, error) {
	reader := k.runner.texts[1]
	if err := reader.Reset(ctx); err != nil {
		return 0, err
	}
	begin := k.host.Now()
	err := reader.read(ctx, k.prompts.prompt(n, k.r.PromptTokens))
	_, rate := figures.Speed(k.r.PromptTokens, begin, k.host.Now())
	return rate, err
}

// gaps decodes with a text as long as more says, and returns the milliseconds from token to token.
// A text that has come to its context's end is shortened, which is no token's time.
func (k *mix) gaps(ctx context.Context, t *text, more func(n int) bool) (ms []float64, err error) {
	last := k.host.Now()
	for more(len(ms)) {
		if t.Len() == k.runner.m.Engine.Info().Context {
			if err := t.Reset(ctx); err != nil {
				return nil, err
			}
			last = k.host.Now()
		}
		if err := t.read(ctx, t.next); err != nil {
			return nil, err
		}
		now := k.host.Now()
		ms = append(ms, float64(now.Sub(last))/float64(time.Millisecond))
		last = now
	}
	return ms, nil
}

// Summarise derives figures from the runs, of which there must be one.
func (p *MixPoint) Summarise() {
	var alone, gaps, promptAlone, prompt, share []float64
	for _, r := range p.Runs {
		alone, gaps = append(alone, r.AloneMS...), append(gaps, r.GapsMS...)
		promptAlone, prompt = append(promptAlone, r.PromptAlone), append(prompt, r.Prompt)
		share = append(share, r.Prompt/max(r.PromptAlone, 1e-9))
	}
	p.GapAlone, p.Gap = figures.Percentile(alone, 0.5), figures.Percentile(gaps, 0.5)
	p.GapAlone99 = figures.Percentile(alone, 0.99)
	p.Gap99, p.GapMost = figures.Percentile(gaps, 0.99), figures.Percentile(gaps, 1)
	p.Steps99 = p.Gap99 / max(p.GapAlone, 1e-9)
	p.PromptAlone, p.Prompt, p.PromptShare = figures.SpreadOf(promptAlone), figures.SpreadOf(prompt), figures.SpreadOf(share).Median
}
