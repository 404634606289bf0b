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
	"github.com/moeflux/moeflux-actor/internal/tune"
	"github.com/moeflux/moeflux-actor/internal/tuned"
)

type tuneCmd struct {
	Dir     string `arg:"" optional:"" name:"MODEL" help:"The packed model directory. Default: that of --model, or the demo model."`
	Seconds int    `default:"120" placeholder:"S" help:"How long the whole may take. More makes smaller differences certain. Default: 120."`
	JSON    bool   `name:"json" help:"Print one JSON object: the candidates, the pairs, the verdict, and what was kept."`

	engineFlags `group:"Engine:"`
}

// Run looks for settings, keeps those that are faster for certain, and prints what to run with.
func (c *tuneCmd) Run(ctx context.Context, inv *invocation) error {
	if err := c.takeDir(c.Dir); err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	switch {
	case c.Seconds < 1:
		return usagef("--seconds %d: must be 1 or more", c.Seconds)
	case c.Record != "":
		return usagef("--record does nothing with tune, which runs the model many times; use run or bench")
	case c.Tuned == moeflux.TunedAuto:
		return usagef("--tuned auto does nothing with tune, which compares with the defaults")
	}
	c.Tuned = moeflux.TunedOff
	var err error
	if c.Model, err = modelDir(ctx, inv, c.Model, c.CacheDir); err != nil {
		return err
	}
	path, err := c.keptPath(inv)
	if err != nil {
		return err
	}
	bar := newProgress(inv)
	defer bar.clear()
	t := tune.Tuner{
		Host: benchHost(inv, bar), Opener: &flagOpener{set: &c.engineFlags, inv: inv}, Time: time.Duration(c.Seconds) * time.Second, Temp: inv.env.tempDir,
		Given: tuned.Settings{RingDepth: c.RingDepth, Prefetch: c.Prefetch, PrefetchLayers: c.PrefetchLayers, ReadWorkers: c.ReadWorkers, Threads: c.Threads},
	}
	if k, err := tuned.Load(path); err == nil {
		t.Earlier = k.Settings
	}
	r, err := t.Run(ctx)
	if err != nil {
		return err
	}
	bar.clear()
	r.Model = c.Model
	r.Command = strings.TrimSpace(strings.Join(append([]string{program, "run", "--model", quoted(c.Model)}, c.given(map[string]string{"model": "", "tuned": ""})...), " ") + " " + r.Chosen().String())
	keeping := c.keep(inv, r, path)
	if c.JSON || r.Err() == nil {
		if err := inv.print(c.JSON, r, r.Text); err != nil {
			return err
		}
	}
	if r.Interrupted {
		return errInterrupted
	}
	return errors.Join(r.Err(), keeping)
}

// keptPath returns the file of the model's tuned settings. That its folder can be made is known
// before the work begins.
func (c *tuneCmd) keptPath(inv *invocation) (string, error) {
	cache, _, err := findCache(inv, c.CacheDir)
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
func (c *tuneCmd) keep(inv *invocation, r *tune.Result, path string) error {
	cfg, err := c.settings(context.Background(), inv, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return errors.Join(r.Keep(path, &cfg, inv.env.now()), cfg.Device.Close())
}
