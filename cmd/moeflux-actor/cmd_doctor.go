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

// Help is shown by --help.
func (doctorCmd) Help() string {
	return `Example:

    moeflux-actor doctor DIR
    moeflux-actor doctor DIR --expert-memory 4GiB --json

doctor measures how fast the device's threads read memory, and how fast the disk delivers records of this model's experts: 1, 2, 4 and 8 at once, past the
page cache (direct) and through it (buffered), from random places of the model's own files. The page cache loses what it holds of these files, so that
the disk is measured and not memory; other engines will have to read them again.

Then it prints what the engine would run with here, given the flags, and why. If the disk is clearly faster with another number of reads at once
(by 10 % or more, in every round), doctor plans with that number and names the flag. Last comes the forecast: how fast one text should decode, at worst and
at best. bench measures how fast it is. help figures says what each figure means.`
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
	return inv.print(c.JSON, r, func() string { return doctorText(r) })
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
