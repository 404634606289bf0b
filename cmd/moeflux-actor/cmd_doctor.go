package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/forecast"
)

type doctorCmd struct {
	Dir  string `arg:"" optional:"" name:"DIR" help:"The packed model directory. Default: that of --model, or the demo model."`
	JSON bool   `name:"json" help:"Print one JSON object: machine, memory, disk, plan, forecast and why."`

	engineFlags `group:"Engine:"`
}

// Run measures, plans and predicts.
func (c *doctorCmd) Run(ctx context.Context, inv *invocation) error {
	if err := c.takeDir(c.Dir); err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	if c.Profile == "" { // as in run
		c.Profile = profileAuto
	}
	r, err := c.examine(ctx, inv)
	if err != nil {
		return err
	}
	return inv.print(c.JSON, r, r.Text)
}

// examine does everything but printing.
func (c *doctorCmd) examine(ctx context.Context, inv *invocation) (_ *forecast.Report, err error) {
	s := forecast.Subject{Threads: c.Threads, Variants: host.Variants(), Note: inv.say}
	if s.Machine, err = machineOf(inv); err != nil {
		return nil, err
	}
	if s.Kernels, err = inv.env.device.Variant(); err != nil {
		return nil, err
	}
	if s.Config, err = c.settings(ctx, inv, c.logger(inv.stderr)); err != nil {
		return nil, err
	}
	r, err := forecast.Examine(ctx, s)
	if err := errors.Join(err, s.Config.Device.Close()); err != nil {
		return nil, err
	}
	r.Plan.Error, r.Plan.Advice = oneLineOf(r.Plan.Error), forUsers(r.Plan.Advice)
	for i, why := range r.Why {
		r.Why[i] = forUsers(why)
	}
	return r, nil
}

func machineOf(inv *invocation) (m forecast.Machine, err error) {
	if m.Memory, err = inv.env.memory(); err == nil {
		m.Free, err = inv.env.freeMemory()
	}
	if err != nil {
		return m, fmt.Errorf("the machine's memory is unknown: %w", err)
	}
	m.MemoryLimit = inv.env.memoryLimit()
	return m, nil
}
