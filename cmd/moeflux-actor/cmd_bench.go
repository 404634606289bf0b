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
	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/internal/process"
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
	Forget       bool          `help:"Empty the expert slots and drop all predictions before every run, so that each begins with misses. The experts must have slots (not --expert-io mmap or loaded)."`
	Sweep        bool          `help:"Instead of measuring one setting, race combinations of settings, those of --grid or a few usual ones, against the defaults."`
	Grid         []string      `sep:"none" placeholder:"NAME=V,V" help:"With --sweep: the values of one setting; may be given several times. Settings: ring-depth, read-workers, prefetch, chunk-rows, expert-memory. Others stay as their flags say. Default: ring-depth=1,2 and read-workers=4,8 and prefetch=off,both."`
	Soak         time.Duration `placeholder:"DURATION" help:"Instead of runs, decode for this long, like 20m, and watch speed, memory, allocations and goroutines by the minute."`
	Mixed        bool          `help:"Instead of runs, let one text decode while another reads a prompt, for several values of --prompt-share or for the one given, and compare both with each alone."`
	JSON         bool          `name:"json" help:"Print one JSON object: the setting, the memory's bandwidth, and for every case prefill and decode with median, minimum, maximum and every run. With --soak: every minute and the verdict."`

	flags.Engine `group:"Engine:"`
}

// Run measures a model's speed.
func (c *benchCmd) Run(ctx context.Context, inv *process.Invocation) error {
	if c.PromptTokens == nil {
		c.PromptTokens = []int{benchPrompt}
		if c.Mixed {
			c.PromptTokens = []int{mixedPrompt}
		}
	}
	if err := c.checkCounts(); err != nil {
		return err
	}
	if err := c.Check(); err != nil {
		return err
	}
	if c.Tuned == "" { // what is measured is what the command line says
		c.Tuned = moeflux.TunedOff
	}
	bar := process.NewProgress(inv)
	defer bar.Clear()
	h := benchHost(inv, bar)
	err := c.measure(ctx, inv, h, bar)
	var long *bench.TooLongError
	switch {
	case errors.As(err, &long):
		return process.Usagef("--prompt-tokens %d and --gen-tokens %d are too many: a sequence has %d positions", long.PromptTokens, long.GenTokens, long.Context)
	case errors.Is(err, stages.ErrExpertsMapped):
		return process.Usagef("--forget needs expert slots, but these experts are mapped or loaded; " +
			"add --expert-io direct or buffered")
	}
	return err
}

// measure measures in the way that the flags say, and prints.
func (c *benchCmd) measure(ctx context.Context, inv *process.Invocation, h *bench.Host, bar *process.Progress) error {
	switch {
	case c.Sweep:
		return c.sweep(ctx, inv, h, bar)
	case c.Mixed:
		return c.mixed(ctx, inv, h, bar)
	case c.Soak > 0:
		return c.soak(ctx, inv, h, bar)
	}
	plan, err := c.Plan(ctx, inv, slog.New(slog.DiscardHandler)) // openSession will say it
	if err != nil {
		return err
	}
	memory, err := h.BandwidthFirst(ctx, &plan)
	if err != nil {
		return err
	}
	m, err := openBench(ctx, inv, &c.Engine)
	if err != nil {
		return err
	}
	r, err := bench.Runs(ctx, h, m, c.options(), memory)
	if err == nil {
		bar.Clear()
		err = c.print(inv, r, r.Text, r.Interrupted)
	}
	return errors.Join(err, m.Close())
}

// mixed measures every share and prints the curve.
func (c *benchCmd) mixed(ctx context.Context, inv *process.Invocation, h *bench.Host, bar *process.Progress) error {
	shares := mixedShares
	if c.PromptShare > 0 {
		shares = []float64{c.PromptShare}
	}
	r, err := bench.Mix(ctx, h, c.options(), shares, func(ctx context.Context, share float64) (*bench.Model, error) {
		set := c.Engine
		set.PromptShare = share
		return openModelToMeasure(ctx, inv, &set)
	})
	if err != nil {
		return err
	}
	bar.Clear()
	return c.print(inv, r, r.Text, r.Interrupted)
}

// soak prints the figures of every minute and the verdict.
func (c *benchCmd) soak(ctx context.Context, inv *process.Invocation, h *bench.Host, bar *process.Progress) error {
	m, err := openBench(ctx, inv, &c.Engine)
	if err != nil {
		return err
	}
	r, err := bench.Soak(ctx, h, m, c.options(), c.Soak, &soakWatch{inv, bar, c.JSON})
	if err == nil {
		bar.Clear()
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
func benchHost(inv *process.Invocation, bar *process.Progress) *bench.Host {
	return &bench.Host{
		Now: inv.Env.Now, Memory: inv.Env.Memory, FreeMemory: inv.Env.FreeMemory, Note: inv.Say,
		Progress: func(what string, done, total int64) {
			if what != "soak" || inv.StderrTerminal { // a soak has lines of its own
				bar.Update(what, done, total, process.FormatCount)
			}
		},
	}
}

// nobodyWaits sets --max-waiting, unless it is given.
func nobodyWaits(f *flags.Engine) {
	if f.MaxWaiting == 0 {
		f.MaxWaiting = bench.MaxWaiting
	}
}

// openBench opens the model that the flags name, for texts none of which waits for another.
func openBench(ctx context.Context, inv *process.Invocation, f *flags.Engine) (*bench.Model, error) {
	nobodyWaits(f)
	return openModelToMeasure(ctx, inv, f)
}

func openModelToMeasure(ctx context.Context, inv *process.Invocation, f *flags.Engine) (*bench.Model, error) {
	s, err := f.OpenForTokens(ctx, inv)
	if err != nil {
		return nil, err
	}
	return toMeasure(s, f), nil
}

// toMeasure returns the model for measurements.
func toMeasure(s *flags.Opened, f *flags.Engine) *bench.Model {
	return &bench.Model{
		Config: actors.Config{Model: s.Dir, ExpertsDir: f.ExpertsDir, Hosts: f.Hosts, HostsJoin: f.HostsJoin}, Engine: s.Engine, MemoryLimit: s.MemoryLimit, Span: s.Span, Close: s.Close,
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
				return process.Usagef("%s %d must be from %d to %d", f.name, v, f.least, benchMost)
			}
			if slices.Contains(f.values[:i], v) {
				return process.Usagef("%s names %d twice", f.name, v)
			}
		}
		if len(f.values) == 0 {
			return process.Usagef("%s is empty; give a number, or several with commas", f.name)
		}
	}
	one := len(c.PromptTokens) == 1 && len(c.Sequences) == 1
	switch {
	case c.Mixed && (c.Cold || c.Sweep || c.Soak > 0 || c.Forget):
		return process.Usagef("--mixed cannot be combined with --cold, --sweep, --soak or --forget")
	case c.Cold && (c.Sweep || c.Soak > 0) || c.Sweep && c.Soak > 0:
		return process.Usagef("--cold, --sweep and --soak exclude each other")
	case c.Forget && (c.Cold || c.Sweep || c.Soak > 0):
		return process.Usagef("--forget cannot be combined with --cold, --sweep or --soak")
	case len(c.Grid) > 0 && !c.Sweep:
		return process.Usagef("--grid does nothing without --sweep")
	case c.Cold && (!one || c.Sequences[0] != 1 || c.repeat() != 1):
		return process.Usagef("--cold is one run of one text, since a second run would find what the first one read; start bench again, or use --forget")
	case c.Sweep && !one:
		return process.Usagef("--sweep takes one length of prompts and one number of sequences")
	case c.Mixed && (len(c.PromptTokens) != 1 || len(c.Sequences) != 1 || c.Sequences[0] != 1):
		return process.Usagef("--mixed takes one length of prompts; it has one text and one prompt")
	case c.Soak < 0:
		return process.Usagef("--soak %v must be a time like 20m", c.Soak)
	case c.Soak > 0 && c.Soak < soakLeast:
		return process.Usagef("--soak %v must be %v or more", c.Soak, soakLeast)
	case c.Soak > 0 && !one:
		return process.Usagef("--soak takes one length of prompts and one number of sequences")
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
func (c *benchCmd) print(inv *process.Invocation, r any, text func() string, interrupted bool) error {
	err := inv.Print(c.JSON, r, text)
	if err == nil && interrupted {
		return process.ErrInterrupted
	}
	return err
}

// soakWatch prints a soak's lines as they come: to stdout, or to stderr if stdout is for JSON.
type soakWatch struct {
	inv  *process.Invocation
	bar  *process.Progress
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
	w.bar.Clear()
	if w.json {
		w.inv.Say("%s", text)
		return nil
	}
	_, err := w.inv.Stdout.Write([]byte(text + "\n"))
	return err
}
