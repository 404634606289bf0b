package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/durable"
	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/internal/tune"
	"github.com/moeflux/moeflux-actor/internal/tuned"
)

type tuneCmd struct {
	Dir     string `arg:"" optional:"" name:"MODEL" help:"The packed model directory. Default: that of --model, or the demo model."`
	Seconds int    `default:"120" placeholder:"S" help:"How long the whole may take. More makes smaller differences certain. Default: 120."`
	JSON    bool   `name:"json" help:"Print one JSON object: the candidates, the pairs, the verdict, and what was kept."`

	flags.Engine `group:"Engine:"`
}

// Run looks for settings, keeps those that are faster for certain, and prints what to run with.
func (c *tuneCmd) Run(ctx context.Context, inv *process.Invocation) error {
	if err := c.TakeDir(c.Dir); err != nil {
		return err
	}
	if err := c.Check(); err != nil {
		return err
	}
	switch {
	case c.Seconds < 1:
		return process.Usagef("--seconds %d: must be 1 or more", c.Seconds)
	case c.Record != "":
		return process.Usagef("--record does nothing with tune, which runs the model many times; use run or bench")
	case c.Tuned == moeflux.TunedAuto:
		return process.Usagef("--tuned auto does nothing with tune, which compares with the defaults")
	}
	c.Tuned = moeflux.TunedOff
	var err error
	if c.Model, err = flags.ModelDir(ctx, inv, c.Model, c.CacheDir); err != nil {
		return err
	}
	path, err := c.keptPath(inv)
	if err != nil {
		return err
	}
	bar := process.NewProgress(inv)
	defer bar.Clear()
	t := tune.Tuner{
		Host: benchHost(inv, bar), Opener: &flagOpener{set: &c.Engine, inv: inv}, Time: time.Duration(c.Seconds) * time.Second, Temp: inv.Env.TempDir,
		Given: tuned.Settings{RingDepth: c.RingDepth, Prefetch: c.Prefetch, PrefetchLayers: c.PrefetchLayers, ReadWorkers: c.ReadWorkers, Threads: c.Threads},
	}
	if k, err := tuned.Load(path); err == nil {
		t.Earlier = k.Settings
	}
	r, err := t.Run(ctx)
	if err != nil {
		return err
	}
	bar.Clear()
	r.Model = c.Model
	r.Command = strings.TrimSpace(strings.Join(append([]string{process.Program, "run", "--model", flags.Quoted(c.Model)}, c.Given(map[string]string{"model": "", "tuned": ""})...), " ") + " " + r.Chosen().String())
	keeping := c.keep(inv, r, path)
	if c.JSON || r.Err() == nil {
		if err := inv.Print(c.JSON, r, r.Text); err != nil {
			return err
		}
	}
	if r.Interrupted {
		return process.ErrInterrupted
	}
	return errors.Join(r.Err(), keeping)
}

// keptPath returns the file of the model's tuned settings. That its folder can be made is known
// before the work begins.
func (c *tuneCmd) keptPath(inv *process.Invocation) (string, error) {
	cache, _, err := flags.FindCache(inv, c.CacheDir)
	if err != nil {
		return "", err
	}
	path, err := tuned.Path(cache, &actors.Config{Model: c.Model, ExpertsDir: c.ExpertsDir})
	if err != nil {
		return "", err
	}
	if err := durable.MkdirAll(filepath.Dir(path), durable.Shared); err != nil {
		return "", fmt.Errorf("settings cannot be kept in %s, name another folder with --cache-dir: %w", filepath.Dir(path), err)
	}
	return path, nil
}

// keep makes the file of tuned settings what the result says.
func (c *tuneCmd) keep(inv *process.Invocation, r *tune.Result, path string) error {
	cfg, err := c.Configure(context.Background(), inv, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return errors.Join(r.Keep(path, &cfg, inv.Env.Now()), cfg.Device.Close())
}
