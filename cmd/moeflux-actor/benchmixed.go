package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

const (
	mixedRepeat = 3    // pairs of a text and a prompt for each share
	mixedPrompt = 3500 // tokens, if --prompt-tokens says nothing else
	mixedTokens = 64   // decoded alone, before each pair
)

// mixedShares are the shares that bench --mixed compares; 0 is the default.
var mixedShares = []float64{0, 0.5, 0.67, 0.75, 0.9, 1}

// mixedResult is what bench --mixed prints.
type mixedResult struct {
	benchSetting
	PromptTokens int  `json:"prompt_tokens"`
	Repeat       int  `json:"repeat"`
	Interrupted  bool `json:"interrupted"`

	Points []*mixedPoint `json:"points"`
}

// mixedPoint is a text that decodes beside one that reads prompts, with one share for prompts.
// Times are of all runs together.
type mixedPoint struct {
	Share float64    `json:"prompt_share"`
	Runs  []mixedRun `json:"runs"`

	GapAlone    float64 `json:"gap_alone_ms"` // from token to token without a prompt, the median
	Gap         float64 `json:"gap_ms"`       // beside a prompt, the median
	Gap99       float64 `json:"gap_99_ms"`    // likewise, the 99th percentile
	GapMost     float64 `json:"gap_most_ms"`
	Steps99     float64 `json:"gap_99_steps"` // Gap99 of GapAlone
	PromptAlone spread  `json:"prompt_alone_per_second"`
	Prompt      spread  `json:"prompt_per_second"` // beside the text
	PromptShare float64 `json:"prompt_speed"`      // the median of the runs' Prompt of PromptAlone
}

// mixedRun is the text alone, the prompt alone, and both.
type mixedRun struct {
	AloneMS     []float64 `json:"gaps_alone_ms"`
	GapsMS      []float64 `json:"gaps_ms"`
	PromptAlone float64   `json:"prompt_alone_per_second"`
	Prompt      float64   `json:"prompt_per_second"`
}

// mixed measures every share and prints the curve.
func (c *benchCmd) mixed(ctx context.Context, inv *invocation) error {
	shares := mixedShares
	if c.PromptShare > 0 {
		shares = []float64{c.PromptShare}
	}
	r := &mixedResult{PromptTokens: c.PromptTokens[0], Repeat: c.repeat()}
	bar := newProgress(inv)
	err := func() error {
		defer bar.clear()
		for i, share := range shares {
			p := &mixedPoint{}
			r.Points = append(r.Points, p)
			if err := c.mixedShare(ctx, inv, r, p, share, func(run int) {
				bar.update("measuring", int64(i*c.repeat()+run), int64(len(shares)*c.repeat()), formatCount)
			}); err != nil {
				return err
			}
		}
		return nil
	}()
	r.Points = slices.DeleteFunc(r.Points, func(p *mixedPoint) bool { return len(p.Runs) == 0 })
	if err != nil && (!stopped(ctx, err) || len(r.Points) == 0) {
		return err
	}
	r.Interrupted = err != nil
	for _, p := range r.Points {
		p.summarise()
	}
	if err := c.print(inv, r, r.text); err != nil {
		return err
	}
	if r.Interrupted {
		return errInterrupted
	}
	return nil
}

// mixedShare opens the model with a share, warms up, and measures the runs.
func (c *benchCmd) mixedShare(ctx context.Context, inv *invocation, r *mixedResult, p *mixedPoint, share float64, progress func(run int)) (err error) {
	set := c.engineFlags
	set.PromptShare = share
	s, err := openSession(ctx, inv, &set)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if c.GenTokens == 0 {
		c.GenTokens = mixedTokens
	}
	info := s.engine.Info()
	if r.PromptTokens+c.GenTokens > info.Context {
		return usagef("--prompt-tokens %d and --gen-tokens %d are too many: a sequence has %d positions", r.PromptTokens, c.GenTokens, info.Context)
	}
	p.Share = info.PromptShare
	if r.benchSetting, err = settingOf(s, &set); err != nil {
		return err
	}
	prompts, err := newBenchPrompts(s, r.PromptTokens+c.GenTokens)
	if err != nil {
		return err
	}
	r.Prompts, r.WarmupTokens = prompts.kind, min(c.warmup(), info.Context-c.GenTokens)
	b, err := newBenchRunner(ctx, inv, s, &r.benchSetting, 2)
	if err != nil {
		return err
	}
	defer b.close()
	b.bar = nil // the shares have one together
	if err := b.warmUp(ctx, prompts.of(0, 2, min(info.ChunkRows, r.PromptTokens)), r.WarmupTokens); err != nil {
		return err
	}
	for run := range c.repeat() {
		progress(run)
		m, err := c.mixedRun(ctx, b, prompts, 2+2*run, r.PromptTokens)
		if err != nil {
			return err
		}
		p.Runs = append(p.Runs, *m)
	}
	return nil
}

// mixedRun measures the text alone, the prompt alone, and the text beside the prompt.
func (c *benchCmd) mixedRun(ctx context.Context, b *benchRunner, prompts *benchPrompts, first, tokens int) (*mixedRun, error) {
	m := new(mixedRun)
	text, reader := b.texts[0], b.texts[1]
	read := func(ctx context.Context, k int) (float64, error) {
		if err := reader.Reset(ctx); err != nil {
			return 0, err
		}
		begin := b.inv.env.now()
		err := reader.read(ctx, prompts.prompt(k, tokens))
		_, rate := speed(tokens, begin, b.inv.env.now())
		return rate, err
	}
	var err error
	if m.PromptAlone, err = read(ctx, first); err != nil {
		return nil, err
	}
	if err := text.Reset(ctx); err != nil {
		return nil, err
	}
	if err := text.read(ctx, prompts.prompt(first+1, 16)); err != nil {
		return nil, err
	}
	if m.AloneMS, err = b.gaps(ctx, text, func(n int) bool { return n < c.GenTokens }); err != nil {
		return nil, err
	}
	var over atomic.Bool
	err = together(ctx, 2, func(ctx context.Context, i int) (err error) {
		if i == 0 {
			defer over.Store(true)
			m.Prompt, err = read(ctx, first+1)
			return err
		}
		m.GapsMS, err = b.gaps(ctx, text, func(n int) bool { return !over.Load() })
		return err
	})
	return m, err
}

// gaps decodes with a text as long as more says, and returns the milliseconds from token to token.
// A text that has come to its context's end is shortened, which is no token's time.
func (b *benchRunner) gaps(ctx context.Context, t *benchText, more func(n int) bool) (ms []float64, err error) {
	last := b.inv.env.now()
	for more(len(ms)) {
		if t.Len() == b.s.engine.Info().Context {
			if err := t.Reset(ctx); err != nil {
				return nil, err
			}
			last = b.inv.env.now()
		}
		if err := t.read(ctx, t.next); err != nil {
			return nil, err
		}
		now := b.inv.env.now()
		ms = append(ms, float64(now.Sub(last))/float64(time.Millisecond))
		last = now
	}
	return ms, nil
}

// percentile returns the value that a share of all is at most; 0 of none.
func percentile(all []float64, share float64) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}

func (p *mixedPoint) summarise() {
	var alone, gaps, promptAlone, prompt, share []float64
	for _, r := range p.Runs {
		alone, gaps = append(alone, r.AloneMS...), append(gaps, r.GapsMS...)
		promptAlone, prompt = append(promptAlone, r.PromptAlone), append(prompt, r.Prompt)
		share = append(share, r.Prompt/max(r.PromptAlone, 1e-9))
	}
	p.GapAlone, p.Gap, p.Gap99, p.GapMost = percentile(alone, 0.5), percentile(gaps, 0.5), percentile(gaps, 0.99), percentile(gaps, 1)
	p.Steps99 = p.Gap99 / max(p.GapAlone, 1e-9)
	p.PromptAlone, p.Prompt, p.PromptShare = spreadOf(promptAlone), spreadOf(prompt), spreadOf(share).Median
}

// text formats the result.
func (r *mixedResult) text() string {
	var b strings.Builder
	r.head(&b)
	figureLine(&b, "mixed", "one text decodes while another reads a prompt of %d %s tokens; %s for each share; %s",
		r.PromptTokens, r.Prompts, counted(int64(r.Repeat), "run"), r.State)
	if r.Interrupted {
		figureLine(&b, "interrupted", "some runs are missing")
	}
	b.WriteByte('\n')
	columns := []column{{"share", 6}, {"gap alone", 11}, {"gap", 11}, {"99 %", 11}, {"most", 11}, {"steps", 7}, {"prompt/s", 10}, {"alone/s", 10}, {"speed", 7}}
	var heads []string
	for _, c := range columns {
		heads = append(heads, c.name)
	}
	tableRow(&b, columns, heads)
	for _, p := range r.Points {
		tableRow(&b, columns, []string{
			fmt.Sprintf("%.2f", p.Share), milliseconds(p.GapAlone), milliseconds(p.Gap), milliseconds(p.Gap99), milliseconds(p.GapMost), fmt.Sprintf("%.1f", p.Steps99),
			fmt.Sprintf("%.1f", p.Prompt.Median), fmt.Sprintf("%.1f", p.PromptAlone.Median), fmt.Sprintf("%.0f%%", 100*p.PromptShare),
		})
	}
	return b.String()
}

func milliseconds(ms float64) string { return fmt.Sprintf("%.2f ms", ms) }
