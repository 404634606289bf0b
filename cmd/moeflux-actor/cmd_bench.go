package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/bench"
	"github.com/moeflux/moeflux-actor/stages"
)

const (
	benchPrompt = 128
	benchRepeat = 5
	benchWarmup = 100
	benchMost   = 1 << 20
	mixedRepeat = 3    // pairs of a text and a prompt for each share
	mixedPrompt = 3500 // tokens
	sweepRepeat = 3
	sweepWarmup = 32
	soakLeast   = time.Second
)

// mixedShares are the shares that bench --mixed compares; 0 is the default.
var mixedShares = []float64{0, 0.5, 0.67, 0.75, 0.9, 1}

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
	if c.Tuned == "" { // what is measured is what the command line says
		c.Tuned = moeflux.TunedOff
	}
	bar := newProgress(inv)
	defer bar.clear()
	h := benchHost(inv, bar)
	err := c.measure(ctx, inv, h, bar)
	var long *bench.TooLongError
	switch {
	case errors.As(err, &long):
		return usagef("--prompt-tokens %d and --gen-tokens %d are too many: a sequence has %d positions", long.PromptTokens, long.GenTokens, long.Context)
	case errors.Is(err, stages.ErrExpertsMapped):
		return usagef("--forget needs expert slots, but these experts are mapped; add --expert-io direct or buffered")
	}
	return err
}

// measure measures in the way that the flags say, and prints.
func (c *benchCmd) measure(ctx context.Context, inv *invocation, h *bench.Host, bar *progress) error {
	switch {
	case c.Sweep:
		return c.sweep(ctx, inv, h, bar)
	case c.Mixed:
		return c.mixed(ctx, inv, h, bar)
	case c.Soak > 0:
		return c.soak(ctx, inv, h, bar)
	}
	plan, err := c.plan(ctx, inv, slog.New(slog.DiscardHandler)) // openSession will say it
	if err != nil {
		return err
	}
	memory, err := h.BandwidthFirst(ctx, &plan)
	if err != nil {
		return err
	}
	m, err := openBench(ctx, inv, &c.engineFlags)
	if err != nil {
		return err
	}
	r, err := bench.Runs(ctx, h, m, c.options(), memory)
	if err == nil {
		bar.clear()
		err = c.print(inv, r, r.Text, r.Interrupted)
	}
	return errors.Join(err, m.Close())
}

// mixed measures every share and prints the curve.
func (c *benchCmd) mixed(ctx context.Context, inv *invocation, h *bench.Host, bar *progress) error {
	shares := mixedShares
	if c.PromptShare > 0 {
		shares = []float64{c.PromptShare}
	}
	r, err := bench.Mix(ctx, h, c.options(), shares, func(ctx context.Context, share float64) (*bench.Model, error) {
		set := c.engineFlags
		set.PromptShare = share
		return openModelToMeasure(ctx, inv, &set)
	})
	if err != nil {
		return err
	}
	bar.clear()
	return c.print(inv, r, r.Text, r.Interrupted)
}

// soak prints the figures of every minute and the verdict.
func (c *benchCmd) soak(ctx context.Context, inv *invocation, h *bench.Host, bar *progress) error {
	m, err := openBench(ctx, inv, &c.engineFlags)
	if err != nil {
		return err
	}
	r, err := bench.Soak(ctx, h, m, c.options(), c.Soak, &soakWatch{inv, bar, c.JSON})
	if err == nil {
		bar.clear()
		err = c.print(inv, r, r.Text, r.Interrupted)
	}
	return errors.Join(err, m.Close())
}

// options says which texts the flags mean.
func (c *benchCmd) options() bench.Options {
	return bench.Options{
		PromptTokens: c.PromptTokens, GenTokens: c.GenTokens, Sequences: c.Sequences, Warmup: c.warmup(), Repeat: c.repeat(), Cold: c.Cold, Forget: c.Forget,
	}
}

// benchHost is this process for measurements, which show how far they are with a bar.
func benchHost(inv *invocation, bar *progress) *bench.Host {
	return &bench.Host{
		Now: inv.env.now, Memory: inv.env.memory, FreeMemory: inv.env.freeMemory, Note: inv.say,
		Progress: func(what string, done, total int64) {
			if what != "soak" || inv.stderrTerminal { // a soak has lines of its own
				bar.update(what, done, total, formatCount)
			}
		},
	}
}

// nobodyWaits sets --max-waiting, unless it is given.
func (f *engineFlags) nobodyWaits() {
	if f.MaxWaiting == 0 {
		f.MaxWaiting = bench.MaxWaiting
	}
}

// openBench opens the model that the flags name, for texts none of which waits for another.
func openBench(ctx context.Context, inv *invocation, f *engineFlags) (*bench.Model, error) {
	f.nobodyWaits()
	return openModelToMeasure(ctx, inv, f)
}

func openModelToMeasure(ctx context.Context, inv *invocation, f *engineFlags) (*bench.Model, error) {
	s, err := openSession(ctx, inv, f)
	if err != nil {
		return nil, err
	}
	return s.toMeasure(f), nil
}

// toMeasure returns the model for measurements.
func (s *session) toMeasure(f *engineFlags) *bench.Model {
	return &bench.Model{
		Config: actors.Config{Model: s.dir, ExpertsDir: f.ExpertsDir}, Engine: s.engine, MemoryLimit: s.memoryLimit, Span: s.span, Close: s.close,
	}
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
		return sweepWarmup
	}
	return benchWarmup
}

// print prints a result, and says whether it was interrupted.
func (c *benchCmd) print(inv *invocation, r any, text func() string, interrupted bool) error {
	err := inv.print(c.JSON, r, text)
	if err == nil && interrupted {
		return errInterrupted
	}
	return err
}

// soakWatch prints a soak's lines as they come: to stdout, or to stderr if stdout is for JSON.
type soakWatch struct {
	inv  *invocation
	bar  *progress
	json bool
}

// Begin prints the setting and the column heads.
func (w *soakWatch) Begin(r *bench.SoakResult) error {
	if w.json {
		return w.line(bench.SoakHeads)
	}
	return w.line(r.Head() + "\n" + bench.SoakHeads)
}

// Window prints a window.
func (w *soakWatch) Window(end time.Duration, f *bench.SoakWindow) error {
	return w.line(f.Text(end))
}

func (w *soakWatch) line(text string) error {
	w.bar.clear()
	if w.json {
		w.inv.say("%s", text)
		return nil
	}
	_, err := w.inv.stdout.Write([]byte(text + "\n"))
	return err
}
