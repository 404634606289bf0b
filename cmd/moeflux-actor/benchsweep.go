package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/signedrank"
)

const (
	sweepRepeat = 3
	sweepTokens = 32  // of a text, and of its warm-up
	sweepMost   = 256 // settings
	// of the best setting and the defaults; 5 are the fewest that can be significant
	sweepPairs = 6
	sweepLevel = 0.05
	sweepTest  = "Wilcoxon signed-rank, one-sided, 5 %"
)

// sweepAxis is the values of one setting.
type sweepAxis struct {
	name   string // of the flag, without dashes
	values []string
}

// defaultGrid is raced without --grid.
var defaultGrid = []sweepAxis{
	{"ring-depth", []string{"1", "2"}}, {"read-workers", []string{"4", "8"}}, {"prefetch", []string{"off", "both"}},
}

// sweepResult is what bench --sweep prints.
type sweepResult struct {
	Model        string `json:"model"`
	Prompts      string `json:"prompts"`
	PromptTokens int    `json:"prompt_tokens"`
	GenTokens    int    `json:"gen_tokens"`
	Sequences    int    `json:"sequences"`
	WarmupTokens int    `json:"warmup_tokens"`
	Repeat       int    `json:"repeat"`
	MemoryLimit  int64  `json:"memory_limit"` // of the cgroup, in bytes; 0 for none
	Interrupted  bool   `json:"interrupted"`
	// that ran at least once, the least median time first
	Settings []*sweepSetting `json:"settings"`
	// null if nothing could beat the defaults, or if it was interrupted
	Verdict *sweepVerdict `json:"verdict"`
	Best    string        `json:"best_command"` // what to run with; "" if nothing ran
}

// sweepSetting is one plan.
type sweepSetting struct {
	Flags    map[string]string `json:"flags"`    // by name, without dashes
	Defaults bool              `json:"defaults"` // what the engine does without these flags
	// flags of combinations that come to the same plan, and were not raced
	Same    []map[string]string `json:"same"`
	Slots   int                 `json:"slots"`
	Seconds spread              `json:"seconds"` // of a prompt and its text
	Prefill benchSummary        `json:"prefill"`
	Decode  benchSummary        `json:"decode"`
	Runs    []benchRun          `json:"runs"`

	args   []string // name=value, in the order of the axes
	set    engineFlags
	mapped bool
}

// sweepVerdict compares the setting of the least median time with the defaults.
type sweepVerdict struct {
	Test  string      `json:"test"`
	Pairs []sweepPair `json:"pairs"`
	// median of the pairs' time saved, as a share of the defaults' time
	Gain        float64 `json:"gain"`
	P           float64 `json:"p"`
	Significant bool    `json:"significant"`
}

// sweepPair is the seconds that a prompt and its text took, one run after the other.
type sweepPair struct {
	Candidate float64 `json:"candidate_seconds"`
	Defaults  float64 `json:"defaults_seconds"`
}

// parseGrid reads the values of --grid; an empty grid is the default one.
func parseGrid(grid []string) ([]sweepAxis, error) {
	if len(grid) == 0 {
		return defaultGrid, nil
	}
	var axes []sweepAxis
	for _, g := range grid {
		name, list, ok := strings.Cut(g, "=")
		values := strings.Split(list, ",")
		if !ok || slices.Contains(values, "") {
			return nil, usagef("--grid %q must be NAME=VALUE,VALUE", g)
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

// setFlag sets an engine flag as the command line would.
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
		return usagef("--grid %s: no such setting; available: ring-depth, read-workers, prefetch, chunk-rows, expert-memory", name)
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

// sweep races all plans, compares the best with the defaults, and prints the result.
func (c *benchCmd) sweep(ctx context.Context, inv *invocation) error {
	axes, err := parseGrid(c.Grid)
	if err != nil {
		return err
	}
	settings, err := c.settings(axes)
	if err != nil {
		return err
	}
	r := &sweepResult{Model: c.Model, PromptTokens: c.PromptTokens[0], Sequences: c.Sequences[0], Repeat: c.repeat(), MemoryLimit: inv.env.memoryLimit()}
	if settings, err = c.distinct(ctx, inv, settings); err != nil {
		return err
	}
	if err := c.race(ctx, inv, r, settings); err != nil {
		if !stopped(ctx, err) || !slices.ContainsFunc(settings, func(s *sweepSetting) bool { return s.Runs != nil }) {
			return err
		}
		r.Interrupted = true
	}
	r.recommend(settings)
	if err := c.print(inv, r, r.text); err != nil {
		return err
	}
	if r.Interrupted {
		return errInterrupted
	}
	return nil
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

// distinct plans the combinations and returns one of each effect: the defaults first.
func (c *benchCmd) distinct(ctx context.Context, inv *invocation, all []*sweepSetting) ([]*sweepSetting, error) {
	var (
		out     []*sweepSetting
		effects []effect
	)
	_, memorySwept := all[0].Flags["expert-memory"]
	defaults := &sweepSetting{set: c.engineFlags, Flags: map[string]string{}, Defaults: true}
	for _, s := range slices.Concat([]*sweepSetting{defaults}, all) {
		p, err := planSession(ctx, inv, &s.set)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name(), err)
		}
		s.Slots, s.mapped, s.Same = p.info.Slots, p.info.ExpertIO == actors.ExpertIOMmap, []map[string]string{}
		e := effectOf(&p.info, c.PromptTokens[0]*c.Sequences[0], memorySwept)
		if k := slices.Index(effects, e); k >= 0 {
			out[k].Same = append(out[k].Same, s.Flags)
			continue
		}
		out, effects = append(out, s), append(effects, e)
	}
	return out, nil
}

// name is the flags of a setting.
func (s *sweepSetting) name() string {
	if s.Defaults {
		return "the defaults"
	}
	return strings.Join(s.args, " ")
}

// race runs every setting once a round, each round in another order, and then the best of them in
// pairs with the defaults, which are the first of settings.
func (c *benchCmd) race(ctx context.Context, inv *invocation, r *sweepResult, settings []*sweepSetting) error {
	if len(settings) == 1 {
		return c.sweepOnce(ctx, inv, r, settings[0])
	}
	bar := newProgress(inv)
	defer bar.clear()
	done, total := 0, c.repeat()*len(settings)+2*sweepPairs
	run := func(s *sweepSetting, round int) (*benchRun, error) {
		bar.update("sweeping", int64(done), int64(total), formatCount)
		done++
		run, err := c.sweepRun(ctx, inv, r, s, round)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name(), err)
		}
		return run, nil
	}
	for round := range c.repeat() {
		for i := range settings {
			s := settings[(i+round)%len(settings)]
			one, err := run(s, round)
			if err != nil {
				return err
			}
			s.Runs = append(s.Runs, *one)
		}
	}
	r.rank(settings)
	candidate, defaults := r.Settings[0], settings[0]
	if candidate == defaults {
		return nil
	}
	v := &sweepVerdict{Test: sweepTest}
	for k := range sweepPairs {
		var seconds [2]float64
		for turn := range 2 {
			which := (k + turn) % 2
			one, err := run([]*sweepSetting{candidate, defaults}[which], c.repeat()+k)
			if err != nil {
				return err
			}
			seconds[which] = one.seconds()
		}
		v.Pairs = append(v.Pairs, sweepPair{seconds[0], seconds[1]})
	}
	r.Verdict = v
	return v.judge()
}

// judge tests whether the candidate is faster.
func (v *sweepVerdict) judge() (err error) {
	var differences, gains []float64
	for _, p := range v.Pairs {
		differences = append(differences, p.Candidate-p.Defaults)
		gains = append(gains, (p.Defaults-p.Candidate)/max(p.Defaults, 1e-9))
	}
	v.Gain = spreadOf(gains).Median
	v.P, err = signedrank.Less(differences)
	v.Significant = err == nil && v.P <= sweepLevel
	return err
}

// sweepOnce fills in what the result says of a sweep without a choice.
func (c *benchCmd) sweepOnce(ctx context.Context, inv *invocation, r *sweepResult, s *sweepSetting) error {
	dir, err := modelDir(ctx, inv, s.set.Model, s.set.CacheDir)
	r.Model, r.Settings = dir, []*sweepSetting{s}
	return err
}

// sweepRun opens the model with a setting, warms up, and measures one run.
func (c *benchCmd) sweepRun(ctx context.Context, inv *invocation, r *sweepResult, set *sweepSetting, round int) (run *benchRun, err error) {
	set.set.nobodyWaits()
	s, err := openSession(ctx, inv, &set.set)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	warmPrompt, warm, err := c.fits(s)
	if err != nil {
		return nil, err
	}
	setting, err := settingOf(s, &set.set)
	if err != nil {
		return nil, err
	}
	prompts, err := newBenchPrompts(s, r.PromptTokens+c.GenTokens)
	if err != nil {
		return nil, err
	}
	r.Model, r.Prompts, r.GenTokens, r.WarmupTokens, set.Slots = s.dir, prompts.kind, c.GenTokens, warm, setting.Slots
	b, err := newBenchRunner(ctx, inv, s, &setting, r.Sequences)
	if err != nil {
		return nil, err
	}
	defer b.close()
	b.bar = nil // the sweep has its own
	if err := b.warmUp(ctx, prompts.of(0, r.Sequences, warmPrompt), warm); err != nil {
		return nil, err
	}
	return b.run(ctx, prompts.of(r.Sequences*(1+round), r.Sequences, r.PromptTokens), c.GenTokens)
}

// seconds is the time of a prompt and its text.
func (b *benchRun) seconds() float64 { return b.Prefill.Seconds + b.Decode.Seconds }

// rank sums up the settings that ran and puts the least median time first.
func (r *sweepResult) rank(settings []*sweepSetting) {
	r.Settings = nil
	for _, s := range settings {
		if len(s.Runs) == 0 {
			continue
		}
		var seconds []float64
		for _, run := range s.Runs {
			seconds = append(seconds, run.seconds())
		}
		s.Seconds = spreadOf(seconds)
		s.Prefill = summary(s.Runs, nil, func(run benchRun) benchPart { return run.Prefill })
		s.Decode = summary(s.Runs, nil, func(run benchRun) benchPart { return run.Decode })
		r.Settings = append(r.Settings, s)
	}
	slices.SortStableFunc(r.Settings, func(a, b *sweepSetting) int { return cmp.Compare(a.Seconds.Median, b.Seconds.Median) })
}

// recommend ranks what ran and sets the command to run with: the best setting if it is faster than
// the defaults, else the defaults, which are the first of settings.
func (r *sweepResult) recommend(settings []*sweepSetting) {
	if len(settings) > 1 {
		r.rank(settings)
	}
	chosen := settings[0]
	if r.Verdict != nil && r.Verdict.Significant {
		chosen = r.Settings[0]
	}
	r.Best = fmt.Sprintf("%s run --model %s", program, quoted(r.Model))
	for _, a := range slices.Concat(chosen.set.beside(chosen.Flags), chosen.args) {
		name, value, _ := strings.Cut(a, "=")
		r.Best += fmt.Sprintf(" --%s %s", name, quoted(value))
	}
}

// beside returns the engine's flags that were given and are not swept, as name=value.
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
	add("prompt-share", strconv.FormatFloat(f.PromptShare, 'f', -1, 64), f.PromptShare != 0)
	number("ctx", f.Ctx)
	add("kv", f.KV, f.KV != "")
	number("experts-per-token", f.ExpertsPerToken)
	return args
}

// quoted quotes a word for a shell.
func quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./=%+,:@", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
