package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	sweepRepeat = 3
	sweepTokens = 32  // of a text, and of its warm-up
	sweepMost   = 256 // settings
)

// sweepAxis is the values of one setting.
type sweepAxis struct {
	name   string // of the flag, without dashes
	values []string
}

// defaultGrid is what is tried if nothing is named.
var defaultGrid = []sweepAxis{
	{"ring-depth", []string{"1", "2"}}, {"read-workers", []string{"4", "8"}}, {"prefetch", []string{"off", "both"}},
}

// sweepResult is what bench --sweep prints.
type sweepResult struct {
	Model        string          `json:"model"`
	Prompts      string          `json:"prompts"`
	PromptTokens int             `json:"prompt_tokens"`
	GenTokens    int             `json:"gen_tokens"`
	Sequences    int             `json:"sequences"`
	WarmupTokens int             `json:"warmup_tokens"`
	Repeat       int             `json:"repeat"`
	MemoryLimit  int64           `json:"memory_limit"` // of the cgroup, in bytes; 0 for none
	Interrupted  bool            `json:"interrupted"`
	Settings     []*sweepSetting `json:"settings"`     // that ran at least once, the best first
	Best         string          `json:"best_command"` // "" if nothing ran
}

// sweepSetting is one combination.
type sweepSetting struct {
	Flags   map[string]string `json:"flags"` // by name, without dashes
	Slots   int               `json:"slots"`
	Seconds spread            `json:"seconds"` // of a prompt and its text
	Prefill benchSummary      `json:"prefill"`
	Decode  benchSummary      `json:"decode"`
	Runs    []benchRun        `json:"runs"`

	args []string // name=value, in the order of the axes
	set  engineFlags
}

// parseGrid reads the values of --grid; none is the default.
func parseGrid(grid []string) ([]sweepAxis, error) {
	if len(grid) == 0 {
		return defaultGrid, nil
	}
	var axes []sweepAxis
	for _, g := range grid {
		name, list, ok := strings.Cut(g, "=")
		values := strings.Split(list, ",")
		if !ok || slices.Contains(values, "") {
			return nil, usagef("--grid %q, want NAME=VALUE,VALUE", g)
		}
		if slices.ContainsFunc(axes, func(a sweepAxis) bool { return a.name == name }) {
			return nil, usagef("--grid names %s twice", name)
		}
		for i, v := range values {
			if slices.Contains(values[:i], v) {
				return nil, usagef("--grid %s names %s twice", name, v)
			}
		}
		axes = append(axes, sweepAxis{name, values})
	}
	return axes, nil
}

// setFlag sets one engine flag to a value as the command line would.
func (f *engineFlags) setFlag(name, value string) (err error) {
	number := func(to *int) {
		if *to, err = strconv.Atoi(value); err != nil || *to < 1 {
			err = errors.New("must be a whole number, 1 or more")
		}
	}
	switch name {
	case "ring-depth":
		number(&f.RingDepth)
	case "read-workers":
		number(&f.ReadWorkers)
	case "chunk-rows":
		number(&f.ChunkRows)
	case "prefetch":
		f.Prefetch = value
		return f.check()
	case "expert-memory":
		err = f.ExpertMemory.UnmarshalText([]byte(value))
	default:
		return usagef("--grid %s is not a setting that is swept; available: ring-depth, read-workers, prefetch, chunk-rows, expert-memory", name)
	}
	if err != nil {
		return usagef("--grid %s=%s: %v", name, value, err)
	}
	return nil
}

// settings returns all combinations of the axes' values.
func (c *benchCmd) settings(axes []sweepAxis) ([]*sweepSetting, error) {
	all := []*sweepSetting{{set: c.engineFlags, Flags: map[string]string{}}}
	for _, axis := range axes {
		var more []*sweepSetting
		for _, s := range all {
			for _, v := range axis.values {
				n := &sweepSetting{set: s.set, Flags: map[string]string{axis.name: v}, args: append(slices.Clone(s.args), axis.name+"="+v)}
				for name, value := range s.Flags {
					n.Flags[name] = value
				}
				if err := n.set.setFlag(axis.name, v); err != nil {
					return nil, err
				}
				more = append(more, n)
			}
		}
		if all = more; len(all) > sweepMost {
			return nil, usagef("--grid makes more than %d combinations", sweepMost)
		}
	}
	return all, nil
}

// sweep measures every combination and prints them, the best first.
func (c *benchCmd) sweep(ctx context.Context, inv *invocation) error {
	axes, err := parseGrid(c.Grid)
	if err != nil {
		return err
	}
	settings, err := c.settings(axes)
	if err != nil {
		return err
	}
	r := &sweepResult{PromptTokens: c.PromptTokens[0], Sequences: c.Sequences[0], Repeat: c.repeat(), MemoryLimit: inv.env.memoryLimit()}
	if err := c.sweepRounds(ctx, inv, r, settings); err != nil {
		if !stopped(ctx, err) || settings[0].Runs == nil {
			return err
		}
		r.Interrupted = true
	}
	r.rank(settings)
	if err := c.print(inv, r, r.text); err != nil {
		return err
	}
	if r.Interrupted {
		return errInterrupted
	}
	return nil
}

// sweepRounds runs every setting once a round. Each round begins with another setting.
func (c *benchCmd) sweepRounds(ctx context.Context, inv *invocation, r *sweepResult, settings []*sweepSetting) error {
	bar := newProgress(inv)
	defer bar.clear()
	total := c.repeat() * len(settings)
	for round := range c.repeat() {
		for i := range settings {
			s := settings[(i+round)%len(settings)]
			bar.update("sweeping", int64(round*len(settings)+i), int64(total), formatCount)
			if err := c.sweepRun(ctx, inv, r, s, round); err != nil {
				return fmt.Errorf("%s: %w", strings.Join(s.args, " "), err)
			}
		}
	}
	return nil
}

// sweepRun opens the model with a setting, warms up, and adds one run.
func (c *benchCmd) sweepRun(ctx context.Context, inv *invocation, r *sweepResult, set *sweepSetting, round int) (err error) {
	s, err := openSession(ctx, inv, &set.set)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	warmPrompt, warm, err := c.fits(s)
	if err != nil {
		return err
	}
	setting, err := settingOf(s, &set.set)
	if err != nil {
		return err
	}
	prompts, err := newBenchPrompts(s, r.PromptTokens+c.GenTokens)
	if err != nil {
		return err
	}
	r.Model, r.Prompts, r.GenTokens, r.WarmupTokens, set.Slots = s.dir, prompts.kind, c.GenTokens, warm, setting.Slots
	b, err := newBenchRunner(ctx, inv, s, &setting, r.Sequences)
	if err != nil {
		return err
	}
	defer b.close()
	b.bar = nil // the sweep has its own
	if err := b.warmUp(ctx, prompts.of(0, r.Sequences, warmPrompt), warm); err != nil {
		return err
	}
	run, err := b.run(ctx, prompts.of(r.Sequences*(1+round), r.Sequences, r.PromptTokens), c.GenTokens)
	if err == nil {
		set.Runs = append(set.Runs, *run)
	}
	return err
}

// rank sums up the settings that ran and puts the best first.
func (r *sweepResult) rank(settings []*sweepSetting) {
	for _, s := range settings {
		if len(s.Runs) == 0 {
			continue
		}
		var seconds []float64
		for _, run := range s.Runs {
			seconds = append(seconds, run.Prefill.Seconds+run.Decode.Seconds)
		}
		s.Seconds = spreadOf(seconds)
		s.Prefill = summary(s.Runs, nil, func(run benchRun) benchPart { return run.Prefill })
		s.Decode = summary(s.Runs, nil, func(run benchRun) benchPart { return run.Decode })
		r.Settings = append(r.Settings, s)
	}
	slices.SortStableFunc(r.Settings, func(a, b *sweepSetting) int {
		switch {
		case a.Seconds.Median < b.Seconds.Median:
			return -1
		case a.Seconds.Median > b.Seconds.Median:
			return 1
		}
		return 0
	})
	if len(r.Settings) > 0 {
		best := r.Settings[0]
		r.Best = fmt.Sprintf("%s run --model %s", program, quoted(r.Model))
		for _, a := range slices.Concat(best.set.beside(best.Flags), best.args) {
			name, value, _ := strings.Cut(a, "=")
			r.Best += fmt.Sprintf(" --%s %s", name, quoted(value))
		}
	}
}

// beside returns the engine's flags that were given and are none of swept, as name=value.
func (f *engineFlags) beside(swept map[string]string) (args []string) {
	add := func(name, value string, given bool) {
		if _, there := swept[name]; given && !there {
			args = append(args, name+"="+value)
		}
	}
	number := func(name string, n int) { add(name, strconv.Itoa(n), n != 0) }
	number("threads", f.Threads)
	add("activations", f.Activations, f.Activations != "int8")
	number("ring-depth", f.RingDepth)
	add("prefetch", f.Prefetch, f.Prefetch != "")
	number("prefetch-layers", f.PrefetchLayers)
	add("expert-io", f.ExpertIO, f.ExpertIO != "")
	add("resident", f.Resident, f.Resident != "")
	memory := strconv.FormatInt(f.ExpertMemory.bytes, 10)
	if f.ExpertMemory.percent > 0 {
		memory = strconv.FormatFloat(f.ExpertMemory.percent, 'f', -1, 64) + "%"
	}
	add("expert-memory", memory, f.ExpertMemory != size{})
	add("profile", f.Profile, f.Profile != "")
	number("read-workers", f.ReadWorkers)
	number("chunk-rows", f.ChunkRows)
	number("ctx", f.Ctx)
	add("kv", f.KV, f.KV != "")
	number("experts-per-token", f.ExpertsPerToken)
	return args
}

// quoted writes a word as a shell reads it.
func quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./=%+,:@", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// text is the result for people.
func (r *sweepResult) text() string {
	var b strings.Builder
	figureLine(&b, "model", "%s", r.Model)
	figureLine(&b, "measured", "%d texts, %s prompts of %d tokens, %d tokens decoded after each; warm, %d tokens decoded before; %d rounds",
		r.Sequences, r.Prompts, r.PromptTokens, r.GenTokens, r.WarmupTokens, r.Repeat)
	if r.MemoryLimit > 0 {
		figureLine(&b, "limit", "%s of memory for this process's cgroup, cached file pages included", formatBytes(r.MemoryLimit))
	}
	if r.Interrupted {
		figureLine(&b, "interrupted", "not all runs were made")
	}
	if len(r.Settings) == 0 {
		return b.String()
	}
	b.WriteByte('\n')
	var names []string
	for _, a := range r.Settings[0].args {
		name, _, _ := strings.Cut(a, "=")
		names = append(names, name)
		fmt.Fprintf(&b, "%-15s", name)
	}
	fmt.Fprintf(&b, "%6s%9s%11s%10s%10s%9s%8s%12s%10s\n", "runs", "prompt/s", "decode/s", "min", "max", "seconds", "hits", "read", "waited")
	for _, s := range r.Settings {
		for _, name := range names {
			fmt.Fprintf(&b, "%-15s", s.Flags[name])
		}
		d := s.Decode
		fmt.Fprintf(&b, "%6d%9.2f%11.2f%10.2f%10.2f%9.2f%7.1f%%%12s%9.0f%%\n", len(s.Runs), s.Prefill.TokensPerSecond.Median, d.TokensPerSecond.Median,
			d.TokensPerSecond.Min, d.TokensPerSecond.Max, s.Seconds.Median, 100*d.ExpertHitRate, formatBytes(d.BytesRead),
			100*d.DiskWait/max(d.DiskWait+d.Compute, 1e-9))
	}
	fmt.Fprintf(&b, "\nbest: %s\n", r.Best)
	return b.String()
}
