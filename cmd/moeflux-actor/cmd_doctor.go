package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/internal/forecast"
	"github.com/moeflux/moeflux-actor/internal/process"
)

type doctorCmd struct {
	Dir  string `arg:"" optional:"" name:"DIR" help:"The packed model directory. Default: that of --model, or the demo model."`
	JSON bool   `name:"json" help:"Print one JSON object: machine, memory, disk, plan, forecast and why."`

	flags.Engine `group:"Engine:"`
}

// Run measures, plans and predicts.
func (c *doctorCmd) Run(ctx context.Context, inv *process.Invocation) error {
	if err := c.TakeDir(c.Dir); err != nil {
		return err
	}
	if err := c.Check(); err != nil {
		return err
	}
	if c.Profile == "" { // as in run
		c.Profile = flags.ProfileAuto
	}
	r, err := c.examine(ctx, inv)
	if err != nil {
		return err
	}
	return inv.Print(c.JSON, r, r.Text)
}

// examine does everything but printing.
func (c *doctorCmd) examine(ctx context.Context, inv *process.Invocation) (_ *forecast.Report, err error) {
	s := forecast.Subject{Threads: c.Threads, Variants: host.Variants(), Note: inv.Say}
	if s.Machine, err = machineOf(inv); err != nil {
		return nil, err
	}
	if s.Kernels, err = inv.Env.Device.Variant(); err != nil {
		return nil, err
	}
	if s.Config, err = c.Configure(ctx, inv, c.Logger(inv.Stderr)); err != nil {
		return nil, err
	}
	r, err := forecast.Examine(ctx, s)
	if err := errors.Join(err, s.Config.Device.Close()); err != nil {
		return nil, err
	}
	r.Plan.Error, r.Plan.Advice = flags.OneLineOf(r.Plan.Error), flags.ForUsers(r.Plan.Advice)
	for i, why := range r.Why {
		r.Why[i] = flags.ForUsers(why)
	}
	return r, nil
}

func machineOf(inv *process.Invocation) (m forecast.Machine, err error) {
	if m.Memory, err = inv.Env.Memory(); err == nil {
		m.Free, err = inv.Env.FreeMemory()
	}
	if err != nil {
		return m, fmt.Errorf("the machine's memory is unknown: %w", err)
	}
	m.MemoryLimit = inv.Env.MemoryLimit()
	return m, nil
}
