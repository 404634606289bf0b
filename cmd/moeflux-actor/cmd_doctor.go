package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/bench"
	"github.com/moeflux/moeflux-actor/internal/diskbw"
	"github.com/moeflux/moeflux-actor/internal/forecast"
	"github.com/moeflux/moeflux-actor/model"
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

// doctorResult is what doctor prints.
type doctorResult struct {
	Model    string              `json:"model"`
	Arch     model.Arch          `json:"architecture"`
	Machine  machine             `json:"machine"`
	Memory   *forecast.Memory    `json:"memory"`              // null if there was too little to measure it
	Disk     []forecast.DiskRate `json:"disk"`                // records of the experts, by mode and depth
	DiskNote string              `json:"disk_note,omitempty"` // what could not be measured
	Plan     doctorPlan          `json:"plan"`
	// of one text that decodes; null if something that it needs is unknown
	Forecast *forecast.Forecast `json:"forecast"`
	Why      []string           `json:"why"`
}

// machine is the memory that there is, in bytes.
type machine struct {
	// what this process may use: the machine's memory, or the cgroup's limit
	Memory      int64 `json:"memory"`
	Free        int64 `json:"free"`         // of Memory; cached file pages count as free
	MemoryLimit int64 `json:"memory_limit"` // of the cgroup; 0 for none
}

// doctorPlan is what the engine would run with, or why it would not run.
type doctorPlan struct {
	hereSettings
	Advice       string  `json:"advice"`  // flags to run with, which the plan assumes; "" for none
	Variant      string  `json:"variant"` // of the host device's kernels
	Threads      int     `json:"threads"`
	ExpertMemory int64   `json:"expert_memory"` // of all slots; 0 if experts are mapped
	Profile      string  `json:"profile"`       // of the use of experts; "" for none
	SlotShare    float64 `json:"slot_share"`    // of all experts
	Resident     int64   `json:"resident"`      // weights that stay in memory
	Streamed     int64   `json:"streamed"`      // all experts
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
	dir, err := modelDir(ctx, inv, c.Model, c.CacheDir)
	if err != nil {
		return err
	}
	r, err := c.examine(ctx, inv, dir)
	if err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(inv.stdout, r)
	}
	_, err = io.WriteString(inv.stdout, r.text())
	return err
}

// examine does everything but printing.
func (c *doctorCmd) examine(ctx context.Context, inv *invocation, dir string) (_ *doctorResult, err error) {
	described, err := c.readModel(dir)
	if err != nil {
		return nil, err
	}
	r := &doctorResult{Model: dir, Arch: described.Arch, Disk: []forecast.DiskRate{}, Why: []string{}}
	if r.Machine, err = examineMachine(inv); err != nil {
		return nil, err
	}
	dev, err := c.openDevice(inv, c.logger(inv.stderr))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	info, err := c.plan(inv, dir, dev, r)
	if err != nil {
		return nil, err
	}
	if r.Memory, err = benchHost(inv, nil).Bandwidth(r.Plan.Threads); err != nil {
		return nil, err
	}
	if r.Memory != nil {
		if err := r.Memory.MeasureBefore(ctx); err != nil {
			return nil, err
		}
	}
	of := actors.Config{Model: dir, ExpertsDir: c.ExpertsDir, Profile: r.Plan.Profile}
	if err := r.examineDisk(ctx, of); err != nil {
		return nil, err
	}
	if c.adviseReadWorkers(r, info) {
		if info, err = c.plan(inv, dir, dev, r); err != nil {
			return nil, err
		}
	}
	if r.Plan.Error == "" {
		if err := r.forecast(of, info, described); err != nil {
			return nil, err
		}
	}
	r.explain(c, info)
	return r, nil
}

// adviseReadWorkers sets --read-workers and the advice if the disk is clearly faster with another
// number of reads at once than with the default, and reports whether it did.
func (c *doctorCmd) adviseReadWorkers(r *doctorResult, i *actors.Info) bool {
	if r.Plan.Error != "" || c.ReadWorkers != 0 || i.ExpertIO == actors.ExpertIOMmap {
		return false
	}
	top, used := forecast.Faster(r.Disk, forecast.ModeOf(i.ExpertIO), i.ReadWorkers)
	if top == nil {
		return false
	}
	c.ReadWorkers = top.Depth
	r.Plan.Advice = fmt.Sprintf("--read-workers %d", top.Depth)
	r.Why = append(r.Why, fmt.Sprintf("%s: the disk reads %.2f GB/s with %d at once (%.2f to %.2f), %.2f GB/s with the default %d (%.2f to %.2f)", r.Plan.Advice,
		top.Median/1e9, top.Depth, top.Min/1e9, top.Max/1e9, used.Median/1e9, used.Depth, used.Min/1e9, used.Max/1e9))
	return true
}

func examineMachine(inv *invocation) (m machine, err error) {
	if m.Memory, err = inv.env.memory(); err == nil {
		m.Free, err = inv.env.freeMemory()
	}
	if err != nil {
		return m, fmt.Errorf("the machine's memory is unknown: %w", err)
	}
	m.MemoryLimit = inv.env.memoryLimit()
	return m, nil
}

// plan asks the engine what it would run with. That it would not run is a result; bad flags are an
// error.
func (c *doctorCmd) plan(inv *invocation, dir string, dev gpu.Device, r *doctorResult) (*actors.Info, error) {
	cfg, err := c.config(inv)
	if err != nil {
		return nil, err
	}
	if r.Plan.Profile, err = c.profilePath(inv, dir); err != nil {
		return nil, err
	}
	cfg.Model, cfg.Device, cfg.Profile = dir, dev, r.Plan.Profile
	if err := cfg.Validate(); err != nil {
		return nil, &usageError{err.Error()}
	}
	if r.Plan.Variant, err = inv.env.kernels(); err != nil {
		return nil, err
	}
	r.Plan.Threads = threadsOf(dev)
	i, err := actors.Plan(cfg)
	if err != nil {
		r.Plan.Error = strings.ReplaceAll(err.Error(), "\n", "; ")
		return &i, nil
	}
	r.Plan.hereSettings = hereOf(&i, c.activationsOf(dev))
	r.Plan.ExpertMemory, r.Plan.Resident, r.Plan.Streamed = bench.SlotBytes(&i), i.WeightBytes, i.ExpertBytes
	r.Plan.SlotShare = 1
	if i.ExpertIO != actors.ExpertIOMmap && i.ExpertBytes > 0 {
		r.Plan.SlotShare = min(1, float64(bench.SlotBytes(&i))/float64(i.ExpertBytes))
	}
	return &i, nil
}

// examineDisk measures every mode that the file system has.
func (r *doctorResult) examineDisk(ctx context.Context, of actors.Config) error {
	rates, err := forecast.MeasureDisk(ctx, of, nil, nil)
	var no *diskbw.UnsupportedError
	switch {
	case errors.As(err, &no):
		r.DiskNote = no.Error()
		return nil
	case err != nil:
		return err
	}
	r.Disk = rates
	for _, mode := range []diskbw.Mode{diskbw.Direct, diskbw.Buffered} {
		if forecast.Best(rates, mode) == nil {
			r.DiskNote = fmt.Sprintf("%s reads cannot be measured on this file system", mode)
		}
	}
	return nil
}

// forecast sets the forecast.
func (r *doctorResult) forecast(of actors.Config, i *actors.Info, described *inspectResult) error {
	kept, err := forecast.Expect(i, forecast.Text{Config: of, Free: r.Machine.Memory - i.WeightBytes})
	if err != nil || r.Memory == nil {
		return err
	}
	disk := 0.0
	if rate := forecast.RateAt(r.Disk, forecast.ModeOf(i.ExpertIO), i.ReadWorkers); rate != nil {
		disk = rate.Median
	}
	b := described.touched(i.TopK)
	r.Forecast = forecast.Of(forecast.Needs{Touched: b.TouchedToken, Experts: b.TouchedExp}, kept, r.Memory.Median, disk)
	return nil
}
