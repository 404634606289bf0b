package forecast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/diskbw"
	"github.com/moeflux/moeflux-actor/internal/figures"
)

// Examine measures memory and disk and plans with what it found. That the engine would not run is a
// result; a Config that no machine can serve is an error.
func Examine(ctx context.Context, s Subject) (*Report, error) {
	contents, err := actors.Describe(s.Config)
	if err != nil {
		return nil, err
	}
	r := &Report{Model: s.Config.Model, Arch: contents.Model.Arch, Machine: s.Machine, Disk: []DiskRate{}, Why: []string{}}
	r.Plan.Variant, r.Plan.Profile = s.Kernels, s.Config.Profile
	if p, ok := s.Config.Device.(gpu.Processor); ok {
		r.Plan.Threads = p.Threads()
	}
	info := r.plan(s.Config)
	if r.Memory = NewMemory(r.Plan.Threads, s.Machine.Free, s.Note); r.Memory != nil {
		if err := r.Memory.MeasureBefore(ctx); err != nil {
			return nil, err
		}
	}
	if err := r.measureDisk(ctx, s.Config); err != nil {
		return nil, err
	}
	if r.readWorkers(&s.Config, info) {
		info = r.plan(s.Config)
	}
	if r.Plan.Error == "" {
		if err := r.forecast(s.Config, info, &contents); err != nil {
			return nil, err
		}
		if err := r.hosts(ctx, s.Config, info, &contents); err != nil {
			return nil, err
		}
	}
	r.explain(&s, info)
	return r, nil
}

// plan asks the engine what it would run with.
func (r *Report) plan(cfg actors.Config) *actors.Info {
	i, err := actors.Plan(cfg)
	if err != nil {
		r.Plan.Error = err.Error()
		return &i
	}
	r.Plan.Settings = figures.SettingsOf(&i)
	r.Plan.ExpertMemory, r.Plan.Resident, r.Plan.Streamed = i.SlotMemory(), i.WeightBytes, i.ExpertBytes
	r.Plan.SlotShare = 1
	if i.ExpertIO.Streams() && i.ExpertBytes > 0 {
		r.Plan.SlotShare = min(1, float64(i.SlotMemory())/float64(i.ExpertBytes))
	}
	if i.NearSlots > 0 {
		r.Plan.ExpertMemory = i.NearMemory()
		r.Plan.SlotShare = float64(i.NearSlots) * float64(i.SlotBytes) / float64(i.ExpertBytes)
	}
	return &i
}

// measureDisk measures every mode that the file system has.
func (r *Report) measureDisk(ctx context.Context, of actors.Config) error {
	rates, err := MeasureDisk(ctx, of, nil, nil)
	if no, ok := errors.AsType[*diskbw.UnsupportedError](err); ok {
		r.DiskNote = no.Error()
		return nil
	}
	if err != nil {
		return err
	}
	r.Disk = rates
	for _, mode := range []diskbw.Mode{diskbw.Direct, diskbw.Buffered} {
		if Best(rates, mode) == nil {
			r.DiskNote = fmt.Sprintf("%s reads cannot be measured on this file system", mode)
		}
	}
	return nil
}

// readWorkers looks whether the disk is clearly faster with another number of reads at once than
// with the default. An engine comes to fewer by itself. For more it sets the read workers and the
// advice, and reports that it did.
func (r *Report) readWorkers(cfg *actors.Config, i *actors.Info) bool {
	if r.Plan.Error != "" || cfg.ReadWorkers != 0 || !i.ExpertIO.Streams() {
		return false
	}
	top, used := Faster(r.Disk, ModeOf(i.ExpertIO), i.ReadWorkers)
	if top == nil {
		return false
	}
	what := fmt.Sprintf("Config.ReadWorkers %d", top.Depth)
	more := top.Depth > i.ReadWorkers
	if more {
		cfg.ReadWorkers, r.Plan.Advice = top.Depth, what
	} else {
		what = "fewer reads at once, to which the engine comes by itself"
		r.reading = top
	}
	r.why("%s: the disk reads %.2f GB/s with %d at once (%.2f to %.2f), %.2f GB/s with the default %d (%.2f to %.2f)", what,
		top.Median/1e9, top.Depth, top.Min/1e9, top.Max/1e9, used.Median/1e9, used.Depth, used.Min/1e9, used.Max/1e9)
	return more
}

// forecast sets the forecast.
func (r *Report) forecast(of actors.Config, i *actors.Info, contents *actors.Contents) error {
	kept, err := Expect(i, Text{Config: of, Free: r.Machine.Memory - i.WeightBytes})
	if err != nil || r.Memory == nil {
		return err
	}
	disk := 0.0
	if rate := cmp.Or(r.reading, RateAt(r.Disk, ModeOf(i.ExpertIO), i.ReadWorkers)); rate != nil {
		disk = rate.Median
	}
	experts := contents.TouchedExperts(i.TopK)
	r.Forecast = Of(Needs{Touched: contents.TouchedWeights + experts, Experts: experts}, kept, r.Memory.Median, disk)
	return nil
}

// hosts looks at the expert hosts, if there are any.
func (r *Report) hosts(ctx context.Context, of actors.Config, i *actors.Info, contents *actors.Contents) (err error) {
	if r.Hosts, err = SurveyHosts(ctx, of, i); err != nil || r.Hosts == nil {
		return err
	}
	return r.Hosts.Expect(Base{Info: i, Contents: contents, Text: Text{Config: of, Free: r.Machine.Memory - i.WeightBytes}, Alone: r.Forecast})
}

func (r *Report) why(format string, args ...any) { r.Why = append(r.Why, fmt.Sprintf(format, args...)) }

// explain gives the reasons for the plan.
func (r *Report) explain(s *Subject, i *actors.Info) {
	r.why("kernels %s; this program has %s for this processor", s.Kernels, strings.Join(s.Variants, ", "))
	if s.Threads == 0 {
		r.why("%s: the cores that this process may use", figures.Counted(r.Plan.Threads, "thread"))
	}
	if r.Machine.MemoryLimit > 0 {
		r.why("a cgroup allows %s of memory and counts cached file pages", figures.Bytes(r.Machine.MemoryLimit))
	}
	if r.Plan.Error != "" {
		return
	}
	r.explainExperts(&s.Config, i)
	if f := r.Forecast; f != nil && f.Bound == BoundDisk {
		r.why("tokens wait for the disk: more Config.ExpertMemory would make them faster")
	}
}

// explainExperts gives the reasons for the way that experts come into memory.
func (r *Report) explainExperts(cfg *actors.Config, i *actors.Info) {
	all, slots := figures.Bytes(i.ExpertBytes), figures.Bytes(i.SlotMemory())
	switch {
	case i.NearSlots > 0:
		r.why("expert I/O loaded: all experts, %s, are read into the host's memory; the device "+
			"has copies of those that are used most, and reads the others there", all)
	case cfg.ExpertIO != "" && cfg.ExpertIO != actors.ExpertIOAuto:
		r.why("expert I/O %s, as Config.ExpertIO says", i.ExpertIO)
	case !i.ExpertIO.Streams():
		r.why("expert I/O %s: all experts, %s, fit into the memory for them", i.ExpertIO, all)
	case i.SlotMemory() >= i.ExpertBytes:
		r.why("expert I/O %s: all experts, %s, fit into the memory for them; they are read as tokens need them, the rest in the background", i.ExpertIO, all)
		r.why("Config.ExpertIO loaded reads them all before the first token, and then decodes faster")
	default:
		r.why("expert I/O %s: all experts take %s, the memory for them is %s", i.ExpertIO, all, slots)
		if i.HostSlots > 0 && int64(i.HostSlots)*int64(i.SlotBytes) >= i.ExpertBytes {
			r.why("Config.ExpertIO loaded reads all into the host's memory before the first " +
				"token; the device reads there what it does not hold, and decodes faster")
		}
	}
	if i.ExpertIO.Streams() && cfg.ExpertMemory == 0 {
		r.why("%s for %d expert slots, out of %s of free memory%s; Config.ExpertMemory sets it", slots, i.Slots, figures.Bytes(r.Machine.Free), r.Plan.Parked(", beside "))
	}
}
