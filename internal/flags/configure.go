package flags

import (
	"context"
	"errors"
	"log/slog"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/device"
	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/internal/tuned"
	"github.com/moeflux/moeflux-actor/io/modelfiles"
)

// Configure returns the engine's Config as the flags, which have passed Check, and the surroundings
// say. The caller closes its device. What has to be chosen goes to the log.
func (f *Engine) Configure(ctx context.Context, inv *process.Invocation, log *slog.Logger) (cfg actors.Config, err error) {
	if cfg, err = f.config(inv); err != nil {
		return cfg, err
	}
	cfg.Logger = log
	if cfg.Model, err = ModelDir(ctx, inv, f.Model, f.CacheDir); err != nil {
		return cfg, err
	}
	if cfg, err = f.tuned(inv, cfg); err != nil {
		return cfg, err
	}
	if cfg.Profile, err = f.ProfilePath(inv, cfg.Model); err != nil {
		err = modelfiles.Explain(cfg.Model, err)
	} else {
		err = process.Usage(cfg.Validate())
	}
	if err != nil {
		err = errors.Join(err, cfg.Device.Close())
	}
	return cfg, err
}

// tuned opens the device and takes the settings that were kept for the model, unless the flags say
// otherwise.
func (f *Engine) tuned(inv *process.Invocation, cfg actors.Config) (actors.Config, error) {
	o := tuned.Opening{Config: cfg, Threads: f.Threads, Device: func(threads int) (gpu.Device, error) { return f.openDevice(inv, threads, cfg.Logger) }}
	if f.Tuned != moeflux.TunedOff {
		o.Cache, _, _ = FindCache(inv, f.CacheDir) // without a folder nothing is kept
	}
	return o.Resolve()
}

// openDevice makes the device that the flags name, with some threads.
func (f *Engine) openDevice(inv *process.Invocation, threads int, log *slog.Logger) (gpu.Device, error) {
	c := inv.Env.Device
	c.Name, c.Threads, c.Pin, c.Activations = f.Device, threads, f.PinThreads, f.Activations
	c.OS, c.Logger = inv.Env.OS, log
	c.CacheDir = func() (string, error) { // compiled kernels are kept beside the demo model
		dir, _, err := FindCache(inv, f.CacheDir)
		return dir, err
	}
	d, err := device.Open(c)
	if err == nil && inv.Env.WrapDevice != nil {
		d = inv.Env.WrapDevice(d)
	}
	return d, err
}

// Plan returns what opening the model would come to, and takes no memory for it.
func (f *Engine) Plan(ctx context.Context, inv *process.Invocation, log *slog.Logger) (_ actors.Info, err error) {
	cfg, err := f.Configure(ctx, inv, log)
	if err != nil {
		return actors.Info{}, err
	}
	defer func() { err = errors.Join(err, cfg.Device.Close()) }()
	return moeflux.Plan(cfg.Model, moeflux.Options{Config: cfg, Tuned: moeflux.TunedOff})
}
