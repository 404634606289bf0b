package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/diskbw"
)

const (
	benchPrompt = 128
	benchGen    = 128 // tokens decoded after a prompt
	benchRepeat = 5
	benchWarmup = 100
	soakGen     = 256 // likewise in a soak
	benchMost   = 1 << 20
)

type benchCmd struct {
	PromptTokens []int         `placeholder:"P" help:"Tokens of a prompt. Several lengths are measured side by side. Default: 128; with --mixed 3500."`
	GenTokens    int           `placeholder:"G" help:"Tokens to decode after each prompt, greedily. Default: 128; with --sweep 32; with --mixed 64 (alone); with --soak 256 or what the context leaves."`
	Repeat       *int          `placeholder:"R" help:"Runs, each with other prompts. Default: 5; with --cold 1; with --sweep 3 rounds; with --mixed 3."`
	Sequences    []int         `default:"1" placeholder:"N" help:"Texts at once, each with a prompt of its own; speeds are of all together. Several numbers are measured side by side. Default: 1."`
	Warmup       *int          `placeholder:"W" help:"Tokens that each text decodes before the measurement. Default: 100; with --sweep 32; or what the context leaves."`
	Cold         bool          `help:"Measure one run from empty expert slots, without a warm-up, and compute what the best possible cache would have read. Files that the system has cached stay cached: drop them yourself."`
	Forget       bool          `help:"Empty the expert slots and drop all predictions before every run, so that each begins with misses. The experts must have slots (not --expert-io mmap)."`
	Sweep        bool          `help:"Instead of measuring one setting, race combinations of settings, those of --grid or a few usual ones, against the defaults."`
	Grid         []string      `sep:"none" placeholder:"NAME=V,V" help:"With --sweep: the values of one setting; may be given several times. Settings: ring-depth, read-workers, prefetch, chunk-rows, expert-memory. Others stay as their flags say. Default: ring-depth=1,2 and read-workers=4,8 and prefetch=off,both."`
	Soak         time.Duration `placeholder:"DURATION" help:"Instead of runs, decode for this long, like 20m, and watch speed, memory, allocations and goroutines by the minute."`
	Mixed        bool          `help:"Instead of runs, let one text decode while another reads a prompt, for several values of --prompt-share or for the one given, and compare both with each alone."`
	JSON         bool          `name:"json" help:"Print one JSON object: the setting, the memory's bandwidth, and for every case prefill and decode with median, minimum, maximum and every run. With --soak: every minute and the verdict."`

	engineFlags `group:"Engine:"`
}

// Help is shown by --help.
func (benchCmd) Help() string {
	return `Example:

    moeflux-actor bench --model DIR --prompt-tokens 128,512 --gen-tokens 128 --repeat 5 --json
    moeflux-actor bench --model DIR --sequences 1,2,4,8,16
    moeflux-actor bench --model DIR --cold --prompt-tokens 8 --gen-tokens 64 --json
    moeflux-actor bench --model DIR --sweep --grid read-workers=2,4,8 --grid expert-memory=2GiB,4GiB
    moeflux-actor bench --model DIR --mixed --prompt-share 0.65
    moeflux-actor bench --model DIR --soak 20m --sequences 4

bench warms up and then measures R runs of a warm engine: the caches stay as they are from run to run, unless --forget empties the expert slots. It
measures the memory's bandwidth with the device's threads before each run and after the last, or, if expert slots will take all free memory, before it opens the model.
Several lengths of prompts are measured with the first number of texts, several numbers of texts with the first length; each run goes through all of
these cases. Prompts are random ids, the same in every bench. With a model of synth they are pieces of its chain, so that its own law chooses the
experts. Decoding does not stop at an end of text. Ctrl-C ends the measurement and prints what there is.

If experts are read from disk, bench measures the disk after the runs, with records of this model and as the engine reads them. The page cache loses what
it holds of the model's experts.

A sweep plans every combination first. Combinations that come to the same plan are raced once, and the defaults are always among them. It opens the
model anew for each run and shifts the order each round, so that disturbances hit all alike. The combination with the least median time for a prompt and its text
then runs in pairs with the defaults, each first in turn. Only if the Wilcoxon signed-rank test of these pairs finds it faster (one-sided, 5 %)
does the sweep recommend it; otherwise it says to keep the defaults.

With --mixed a text decodes while another reads a prompt, for several values of --prompt-share or for the one given. For each it opens the model anew,
measures the prompt alone, the text alone and both together. The table has the milliseconds from token to token: the median alone, and beside the prompt the
median, the 99th percentile and the most; steps is that percentile in medians alone. Speed is the prompt's beside the text, of its speed alone.

A soak lets the texts decode until the time is over. A text of P tokens that has decoded G more is emptied and begins with the next prompt; G is
256 by default, or what the context leaves. The first texts are shorter, each by another amount, so that later ones do not
start together. Tokens of prompts do not count in the speed, their time does. Every minute (of a soak below ten minutes, every tenth of it) is a line: speed, resident
memory, memory without mapped files, live Go heap, allocations for each decoded token, goroutines. The verdict compares the first quarter of the lines with the last.

The figures:

` + figuresText()
}

// Run measures a model's speed.
func (c *benchCmd) Run(ctx context.Context, inv *invocation) error {
	if c.PromptTokens == nil {
		c.PromptTokens = []int{benchPrompt}
		if c.Mixed {
			c.PromptTokens = []int{mixedPrompt}
		}
	}
	if err := c.checkCounts(); err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	if c.Sweep {
		return c.sweep(ctx, inv)
	}
	if c.Mixed {
		return c.mixed(ctx, inv)
	}
	measure := c.soak
	if c.Soak == 0 {
		memory, err := c.memoryFirst(ctx, inv)
		if err != nil {
			return err
		}
		measure = func(ctx context.Context, inv *invocation, s *session) error { return c.bench(ctx, inv, s, memory) }
	}
	c.nobodyWaits()
	s, err := openSession(ctx, inv, &c.engineFlags)
	if err != nil {
		return err
	}
	return errors.Join(measure(ctx, inv, s), s.close())
}

// memoryFirst measures memory before the model is opened, if expert slots will take all that is
// free; else it returns nil.
func (c *benchCmd) memoryFirst(ctx context.Context, inv *invocation) (*benchMemory, error) {
	p, err := planSession(ctx, inv, &c.engineFlags)
	if err != nil || p.info.ExpertIO == actors.ExpertIOMmap {
		return nil, err
	}
	m, err := newBenchMemory(inv, p.threads)
	if err != nil || m == nil {
		return nil, err
	}
	m.First = true
	for range memoryFirstPasses {
		if err := m.measure(ctx); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// checkCounts reports numbers that are wrong for every model.
func (c *benchCmd) checkCounts() error {
	for _, f := range []struct {
		name   string
		values []int
		least  int
	}{
		{"--prompt-tokens", c.PromptTokens, 1}, {"--gen-tokens", []int{c.GenTokens}, 0}, {"--repeat", []int{c.repeat()}, 1},
		{"--sequences", c.Sequences, 1}, {"--warmup", []int{c.warmup()}, 0},
	} {
		for i, v := range f.values {
			if v < f.least || v > benchMost {
				return usagef("%s %d must be from %d to %d", f.name, v, f.least, benchMost)
			}
			if slices.Contains(f.values[:i], v) {
				return usagef("%s names %d twice", f.name, v)
			}
		}
		if len(f.values) == 0 {
			return usagef("%s is empty; give a number, or several with commas", f.name)
		}
	}
	one := len(c.PromptTokens) == 1 && len(c.Sequences) == 1
	switch {
	case c.Mixed && (c.Cold || c.Sweep || c.Soak > 0 || c.Forget):
		return usagef("--mixed cannot be combined with --cold, --sweep, --soak or --forget")
	case c.Cold && (c.Sweep || c.Soak > 0) || c.Sweep && c.Soak > 0:
		return usagef("--cold, --sweep and --soak exclude each other")
	case c.Forget && (c.Cold || c.Sweep || c.Soak > 0):
		return usagef("--forget cannot be combined with --cold, --sweep or --soak")
	case len(c.Grid) > 0 && !c.Sweep:
		return usagef("--grid does nothing without --sweep")
	case c.Cold && (!one || c.Sequences[0] != 1 || c.repeat() != 1):
		return usagef("--cold is one run of one text, since a second run would find what the first one read; start bench again, or use --forget")
	case c.Sweep && !one:
		return usagef("--sweep takes one length of prompts and one number of sequences")
	case c.Mixed && (len(c.PromptTokens) != 1 || len(c.Sequences) != 1 || c.Sequences[0] != 1):
		return usagef("--mixed takes one length of prompts; it has one text and one prompt")
	case c.Soak < 0:
		return usagef("--soak %v must be a time like 20m", c.Soak)
	case c.Soak > 0 && c.Soak < soakLeast:
		return usagef("--soak %v must be %v or more", c.Soak, soakLeast)
	case c.Soak > 0 && !one:
		return usagef("--soak takes one length of prompts and one number of sequences")
	}
	return nil
}

// repeat returns what --repeat means.
func (c *benchCmd) repeat() int {
	switch {
	case c.Repeat != nil:
		return *c.Repeat
	case c.Cold:
		return 1
	case c.Mixed:
		return mixedRepeat
	case c.Sweep:
		return sweepRepeat
	}
	return benchRepeat
}

// warmup returns what --warmup means.
func (c *benchCmd) warmup() int {
	switch {
	case c.Warmup != nil:
		return *c.Warmup
	case c.Sweep:
		return sweepTokens
	}
	return benchWarmup
}

// fits sets the default of --gen-tokens, reports texts that are longer than a sequence may be, and
// returns how many tokens the warm-up evaluates and decodes.
func (c *benchCmd) fits(s *session) (prompt, decoded int, err error) {
	info, longest := s.engine.Info(), slices.Max(c.PromptTokens)
	if c.GenTokens == 0 {
		switch c.GenTokens = benchGen; {
		case c.Soak > 0:
			c.GenTokens = max(1, min(soakGen, info.Context-longest))
		case c.Sweep:
			c.GenTokens = sweepTokens
		}
	}
	if longest+c.GenTokens > info.Context {
		return 0, 0, usagef("--prompt-tokens %d and --gen-tokens %d are too many: a sequence has %d positions", longest, c.GenTokens, info.Context)
	}
	prompt = min(slices.Min(c.PromptTokens), info.ChunkRows)
	return prompt, min(c.warmup(), info.Context-prompt), nil
}

// bench measures an opened model and prints the figures.
func (c *benchCmd) bench(ctx context.Context, inv *invocation, s *session, memory *benchMemory) error {
	r := &benchResult{Repeat: c.repeat(), Memory: memory}
	if err := c.measure(ctx, inv, s, r); err != nil {
		if !stopped(ctx, err) || len(r.Cases) == 0 || len(r.Cases[0].Runs) == 0 {
			return err
		}
		r.Interrupted = true
	}
	r.summarise()
	if err := c.print(inv, r, r.text); err != nil {
		return err
	}
	if r.Interrupted {
		return errInterrupted
	}
	return nil
}

// stopped reports whether err says that the user stopped the program.
func stopped(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, context.Canceled)
}

// print writes a result in the form that the flags ask for.
func (c *benchCmd) print(inv *invocation, r any, text func() string) error {
	if c.JSON {
		return writeJSON(inv.stdout, r)
	}
	_, err := io.WriteString(inv.stdout, text())
	return err
}

// cases returns every length with the first number of sequences, and every other number with the
// first length.
func (c *benchCmd) cases(s *session) []*benchCase {
	var all []*benchCase
	add := func(prompt, sequences int) {
		info := s.engine.Info()
		state := info.StateBytes + info.KVBytesPerPos*int64(2*prompt+c.GenTokens+1)/2
		all = append(all, &benchCase{PromptTokens: prompt, Sequences: sequences, StatePerToken: state, Runs: []benchRun{}})
	}
	for _, p := range c.PromptTokens {
		add(p, c.Sequences[0])
	}
	for _, n := range c.Sequences[1:] {
		add(c.PromptTokens[0], n)
	}
	return all
}

// measure warms up and fills in the setting and the runs.
func (c *benchCmd) measure(ctx context.Context, inv *invocation, s *session, r *benchResult) error {
	warmPrompt, warm, err := c.fits(s)
	if err != nil {
		return err
	}
	r.GenTokens, r.Cases = c.GenTokens, c.cases(s)
	if r.benchSetting, err = settingOf(s, &c.engineFlags); err != nil {
		return err
	}
	prompts, err := newBenchPrompts(s, slices.Max(c.PromptTokens)+c.GenTokens)
	if err != nil {
		return err
	}
	r.Prompts, r.WarmupTokens = prompts.kind, warm
	if s.engine.Info().ExpertIO == actors.ExpertIOMmap {
		if r.Memory, err = newBenchMemory(inv, r.Threads); err != nil {
			return err
		}
	}
	most := slices.Max(c.Sequences)
	b, err := newBenchRunner(ctx, inv, s, &r.benchSetting, most)
	if err != nil {
		return err
	}
	defer b.close()
	if c.Cold {
		r.State, r.WarmupTokens, b.trace = stateCold, 0, new(routingTrace)
	} else {
		b.total = int64(warmPrompt + warm)
	}
	if c.Forget {
		r.State = stateForgot
	}
	for _, k := range r.Cases {
		b.total += int64(c.repeat() * (k.PromptTokens + c.GenTokens))
	}
	if !c.Cold { // all sequences that any case uses are warmed at once
		if err := b.warmUp(ctx, prompts.of(0, most, warmPrompt), warm); err != nil {
			return err
		}
	}
	if err := c.runs(ctx, b, prompts, r, most); err != nil {
		return err
	}
	b.bar.clear()
	return c.forecast(ctx, inv, s, prompts, b.trace, r)
}

// runs measures all cases. next is the number of the first prompt.
func (c *benchCmd) runs(ctx context.Context, b *benchRunner, prompts *benchPrompts, r *benchResult, next int) error {
	// every prompt is new, so that no case finds the experts of another
	for i := range c.repeat() {
		if err := r.measureMemory(ctx); err != nil {
			return err
		}
		for _, k := range r.Cases {
			if c.Forget {
				if err := b.forget(ctx); err != nil {
					return err
				}
			}
			run, err := b.run(ctx, prompts.of(next, k.Sequences, k.PromptTokens), c.GenTokens)
			if err != nil {
				return fmt.Errorf("run %d: %w", i+1, err)
			}
			k.Runs = append(k.Runs, *run)
			next += k.Sequences
		}
	}
	return r.measureMemory(ctx)
}

// forecast measures the disk if experts are read from it, and sets what one text's speed should
// have been.
func (c *benchCmd) forecast(ctx context.Context, inv *invocation, s *session, prompts *benchPrompts, t *routingTrace, r *benchResult) (err error) {
	info := s.engine.Info()
	if info.ExpertIO != actors.ExpertIOMmap {
		var unknown *diskbw.UnsupportedError
		r.Disk, err = measureDisk(ctx, &c.engineFlags, s.dir, info.ExpertIO, info.ReadWorkers)
		if err != nil && !errors.As(err, &unknown) {
			return err
		}
	}
	if t != nil && slotBytes(&info) > 0 && slotBytes(&info) < info.ExpertBytes {
		if r.Optimum, err = t.optimum(&info); err != nil {
			return err
		}
	}
	total, err := inv.env.memory()
	if err != nil {
		return fmt.Errorf("the machine's memory is unknown: %w", err)
	}
	kept, err := expectKept(s.dir, &info, total-info.WeightBytes, tokensAhead{
		from: prompts.stride, prompt: c.PromptTokens[0], gen: c.GenTokens, chunk: info.ChunkRows, cold: c.Cold || c.Forget,
	})
	if err != nil || r.Memory == nil {
		return err
	}
	disk := 0.0
	if len(r.Disk) > 0 {
		disk = r.Disk[0].Median
	}
	r.Forecast = newForecast(r.TouchedToken, r.TouchedExp, kept, r.Memory.Median, disk)
	return nil
}
