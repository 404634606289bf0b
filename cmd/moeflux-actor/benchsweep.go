package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/bench"
)

// defaultGrid is raced without --grid.
var defaultGrid = []bench.Axis{
	{Name: "ring-depth", Values: []string{"1", "2"}}, {Name: "read-workers", Values: []string{"4", "8"}}, {Name: "prefetch", Values: []string{"off", "both"}},
}

// parseGrid reads the values of --grid; an empty grid is the default one.
func parseGrid(grid []string) ([]bench.Axis, error) {
	if len(grid) == 0 {
		return defaultGrid, nil
	}
	var axes []bench.Axis
	for _, g := range grid {
		name, list, ok := strings.Cut(g, "=")
		values := strings.Split(list, ",")
		if !ok || slices.Contains(values, "") {
			return nil, usagef("--grid %q must be NAME=VALUE,VALUE", g)
		}
		if slices.ContainsFunc(axes, func(a bench.Axis) bool { return a.Name == name }) {
			return nil, usagef("--grid names %s twice", name)
		}
		for i, v := range values {
			if slices.Contains(values[:i], v) {
				return nil, usagef("--grid %s names %s twice", name, v)
			}
		}
		axes = append(axes, bench.Axis{Name: name, Values: values})
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

// sweep races all plans and prints what to run with.
func (c *benchCmd) sweep(ctx context.Context, inv *invocation, h *bench.Host, bar *progress) error {
	axes, err := parseGrid(c.Grid)
	if err != nil {
		return err
	}
	combinations, err := bench.Combinations(axes)
	if many, ok := errors.AsType[*bench.TooManyError](err); ok {
		return usagef("--grid makes more than %d combinations", many.Most)
	}
	o := &sweepOpener{c: c, inv: inv}
	for _, s := range combinations {
		if _, err := o.flags(s.Flags); err != nil {
			return err
		}
	}
	limit := inv.env.memoryLimit()
	r, err := bench.Sweep(ctx, h, c.options(), combinations, o)
	if err != nil {
		return err
	}
	bar.clear()
	r.MemoryLimit = limit
	if r.Model, err = modelDir(context.WithoutCancel(ctx), inv, c.Model, c.CacheDir); err != nil {
		return err
	}
	r.Best = c.bestCommand(r)
	return c.print(inv, r, func() string { return sweepText(r) }, r.Interrupted)
}

// bestCommand is what to run with after a sweep.
func (c *benchCmd) bestCommand(r *bench.SweepResult) string {
	swept := map[string]string{}
	for _, a := range r.Chosen() {
		name, value, _ := strings.Cut(a, "=")
		swept[name] = value
	}
	best := fmt.Sprintf("%s run --model %s", program, quoted(r.Model))
	for _, a := range slices.Concat(c.beside(swept), r.Chosen()) {
		name, value, _ := strings.Cut(a, "=")
		best += fmt.Sprintf(" --%s %s", name, quoted(value))
	}
	return best
}

// sweepOpener opens the model with the flags of a combination.
type sweepOpener struct {
	c   *benchCmd
	inv *invocation
}

// flags returns the command's flags with those of a combination.
func (o *sweepOpener) flags(of bench.Flags) (*engineFlags, error) {
	set := o.c.engineFlags
	for name, value := range of {
		if err := set.setFlag(name, value); err != nil {
			return nil, err
		}
	}
	return &set, nil
}

// Plan is that of bench.Opener.
func (o *sweepOpener) Plan(ctx context.Context, of bench.Flags) (actors.Info, error) {
	f, err := o.flags(of)
	if err != nil {
		return actors.Info{}, err
	}
	p, err := planSession(ctx, o.inv, f)
	return p.info, err
}

// Open is that of bench.Opener.
func (o *sweepOpener) Open(ctx context.Context, of bench.Flags) (*bench.Model, error) {
	f, err := o.flags(of)
	if err != nil {
		return nil, err
	}
	return openBench(ctx, o.inv, f)
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
