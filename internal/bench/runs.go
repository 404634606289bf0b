package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/diskbw"
	"github.com/moeflux/moeflux-actor/internal/forecast"
)

const genTokens = 128 // decoded after a prompt, if nobody says how many

// Runs measures an opened model. Memory is what BandwidthFirst measured; nil means that it is
// measured around the runs, if experts are mapped.
func Runs(ctx context.Context, h *Host, m *Model, o Options, memory *forecast.Memory) (*Result, error) {
	r := &Result{Repeat: o.Repeat, Memory: memory}
	k := &runs{host: h, m: m, o: o, r: r, info: m.Engine.Info()}
	if err := k.measure(ctx); err != nil {
		if !stopped(ctx, err) || len(r.Cases) == 0 || len(r.Cases[0].Runs) == 0 {
			return nil, err
		}
		r.Interrupted = true
	}
	r.summarise()
	return r, nil
}

// runs is a measurement under way.
type runs struct {
	host    *Host
	m       *Model
	o       Options
	r       *Result
	info    actors.Info
	prompts *prompts
	runner  *runner
}

// measure fills in the result, but for what follows from the runs.
func (k *runs) measure(ctx context.Context) error {
	warmPrompt, warm, err := k.o.fit(&k.info, genTokens)
	if err != nil {
		return err
	}
	if err := k.prepare(warm); err != nil {
		return err
	}
	most := slices.Max(k.o.Sequences)
	if k.runner, err = newRunner(ctx, k.host, k.m, &k.r.Setting, most); err != nil {
		return err
	}
	defer k.runner.close()
	for _, c := range k.r.Cases {
		k.runner.total += int64(k.o.Repeat * (c.PromptTokens + k.o.GenTokens))
	}
	switch {
	case k.o.Cold:
		k.r.State, k.r.WarmupTokens, k.runner.trace = StateCold, 0, new(routingTrace)
	case k.o.Forget:
		k.r.State = StateForgot
	}
	if !k.o.Cold { // all sequences that any case uses are warmed at once
		k.runner.total += int64(warmPrompt + warm)
		if err := k.runner.warmUp(ctx, k.prompts.of(0, most, warmPrompt), warm); err != nil {
			return err
		}
	}
	if err := k.all(ctx, most); err != nil {
		return err
	}
	return k.compare(ctx)
}

// prepare fills in what is measured.
func (k *runs) prepare(warm int) (err error) {
	if k.r.Setting, err = settingOf(k.m); err != nil {
		return err
	}
	k.r.GenTokens, k.r.Cases, k.r.WarmupTokens = k.o.GenTokens, k.cases(), warm
	if k.prompts, err = newPrompts(k.m, slices.Max(k.o.PromptTokens)+k.o.GenTokens); err != nil {
		return err
	}
	k.r.Prompts = k.prompts.kind
	if k.info.ExpertIO == actors.ExpertIOMmap {
		k.r.Memory, err = k.host.Bandwidth(k.r.Threads)
	}
	return err
}

// cases returns every length with the first number of sequences, and every other number with the
// first length.
func (k *runs) cases() []*Case {
	var all []*Case
	add := func(prompt, sequences int) {
		state := k.info.StateBytes + k.info.KVBytesPerPos*int64(2*prompt+k.o.GenTokens+1)/2
		all = append(all, &Case{PromptTokens: prompt, Sequences: sequences, StatePerToken: state, Runs: []Run{}})
	}
	for _, p := range k.o.PromptTokens {
		add(p, k.o.Sequences[0])
	}
	for _, n := range k.o.Sequences[1:] {
		add(k.o.PromptTokens[0], n)
	}
	return all
}

// all measures all cases, each as often as asked for. next is the number of the first prompt.
func (k *runs) all(ctx context.Context, next int) error {
	// every prompt is new, so that no case finds the experts of another
	for i := range k.o.Repeat {
		if err := k.bandwidth(ctx); err != nil {
			return err
		}
		for _, c := range k.r.Cases {
			if k.o.Forget {
				if err := k.m.Engine.ForgetExperts(ctx); err != nil {
					return err
				}
			}
			run, err := k.runner.run(ctx, k.prompts.of(next, c.Sequences, c.PromptTokens), k.o.GenTokens)
			if err != nil {
				return fmt.Errorf("run %d: %w", i+1, err)
			}
			c.Runs = append(c.Runs, *run)
			next += c.Sequences
		}
	}
	return k.bandwidth(ctx)
}

// bandwidth adds a measurement between runs, if that is when memory is measured.
func (k *runs) bandwidth(ctx context.Context) error {
	if k.r.Memory == nil || k.r.Memory.First {
		return nil
	}
	return k.r.Memory.Measure(ctx)
}

// compare measures the disk if experts are read from it, and sets what could have been.
func (k *runs) compare(ctx context.Context) (err error) {
	i, r := &k.info, k.r
	if i.ExpertIO.Streams() {
		r.Disk, err = forecast.MeasureDisk(ctx, k.m.Config, []diskbw.Mode{forecast.ModeOf(i.ExpertIO)}, []int{i.ReadWorkers})
		if err != nil && !errors.As(err, new(*diskbw.UnsupportedError)) {
			return err
		}
	}
	if t := k.runner.trace; t != nil && i.SlotMemory() > 0 && i.SlotMemory() < i.ExpertBytes {
		compute, disk := 0.0, 0.0
		if r.Memory != nil && len(r.Disk) > 0 {
			compute, disk = float64(r.TouchedToken)/max(1, r.Memory.Median), r.Disk[0].Median
		}
		if r.Optimum, err = t.optimum(i, compute, disk); err != nil {
			return err
		}
	}
	if k.m.Config.Hosts+k.m.Config.HostsJoin != "" && i.ExpertIO.Streams() {
		return nil // doctor's forecast has the hosts and the network
	}
	total, err := k.host.Memory()
	if err != nil {
		return fmt.Errorf("the machine's memory is unknown: %w", err)
	}
	of := k.m.Config
	of.Profile = "" // the runs before count
	kept, err := forecast.Expect(i, forecast.Text{
		Config: of, Free: total - i.WeightBytes, From: k.prompts.stride, Prompt: k.o.PromptTokens[0], Gen: k.o.GenTokens, Chunk: i.ChunkRows, Cold: k.o.Cold || k.o.Forget,
	})
	if err != nil || r.Memory == nil {
		return err
	}
	disk := 0.0
	if len(r.Disk) > 0 {
		disk = r.Disk[0].Median
	}
	r.Forecast = forecast.Of(forecast.Needs{Touched: r.TouchedToken, Experts: r.TouchedExp}, kept, r.Memory.Median, disk)
	return nil
}
