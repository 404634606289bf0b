package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/bench"
	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/internal/process"
)

// sweep races all plans and prints what to run with.
func (c *benchCmd) sweep(ctx context.Context, inv *process.Invocation, h *bench.Host, bar *process.Progress) error {
	combinations, err := bench.Grid(c.Grid)
	if err != nil {
		return process.Usagef("--grid %v", err)
	}
	o := &flagOpener{set: &c.Engine, inv: inv}
	for _, s := range combinations {
		for name := range s.Flags {
			if !slices.Contains(raced, name) {
				return process.Usagef("--grid %s: no such setting; available: %s", name, strings.Join(raced, ", "))
			}
		}
		if _, err := o.flags(s.Flags); err != nil {
			return err
		}
	}
	limit := inv.Env.MemoryLimit()
	r, err := bench.Sweep(ctx, h, c.options(), combinations, o)
	if err != nil {
		return err
	}
	bar.Clear()
	r.MemoryLimit = limit
	if r.Model, err = flags.ModelDir(context.WithoutCancel(ctx), inv, c.Model, c.CacheDir); err != nil {
		return err
	}
	r.Best = c.bestCommand(r)
	return c.print(inv, r, r.Text, r.Interrupted)
}

// bestCommand is what to run with after a sweep.
func (c *benchCmd) bestCommand(r *bench.SweepResult) string {
	words, swept := []string{process.Program, "run", "--model", flags.Quoted(r.Model)}, map[string]string{"model": ""}
	var chosen []string
	for _, a := range r.Chosen() {
		name, value, _ := strings.Cut(a, "=")
		swept[name], chosen = value, append(chosen, "--"+name, flags.Quoted(value))
	}
	return strings.Join(slices.Concat(words, c.Given(swept), chosen), " ")
}

// raced are the flags that a sweep may race.
var raced = []string{"ring-depth", "read-workers", "prefetch", "chunk-rows", "expert-memory"}

// flagOpener opens the model with the flags of a command and others in their place.
type flagOpener struct {
	set *flags.Engine
	inv *process.Invocation
}

// flags returns the command's flags with others in their place.
func (o *flagOpener) flags(of bench.Flags) (*flags.Engine, error) {
	set := *o.set
	for name, value := range of {
		if err := set.Set(name, value); errors.As(err, new(*process.UsageError)) {
			return nil, err
		} else if err != nil {
			return nil, process.Usagef("--grid %s=%s: %v", name, value, err)
		}
	}
	return &set, nil
}

// Plan is that of bench.Opener.
func (o *flagOpener) Plan(ctx context.Context, of bench.Flags) (actors.Info, error) {
	f, err := o.flags(of)
	if err != nil {
		return actors.Info{}, err
	}
	return f.Plan(ctx, o.inv, slog.New(slog.DiscardHandler))
}

// Open is that of bench.Opener.
func (o *flagOpener) Open(ctx context.Context, of bench.Flags) (*bench.Model, error) {
	f, err := o.flags(of)
	if err != nil {
		return nil, err
	}
	return openBench(ctx, o.inv, f)
}
