package tuned

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
)

// Opening is an engine that is about to be opened.
type Opening struct {
	// Cache is the folder of the user's cache in which settings are kept; "" means that none are
	// taken.
	Cache string
	// Config names the model. Its Device is the caller's, or nil: then Device opens one.
	Config actors.Config
	// Threads are those that the caller asks for; 0: as many as suit.
	Threads int
	// Device opens the device with some threads; 0 means the default.
	Device func(threads int) (gpu.Device, error)
}

// Resolve returns the Config with a device, which the caller closes if Device opened it, and with
// the settings that were kept, where they fit and the caller leaves them open. Settings that do not
// fit cost a line in the log.
func (o *Opening) Resolve() (actors.Config, error) {
	cfg, why, err := o.resolve()
	if why != "" && cfg.Logger != nil {
		cfg.Logger.Warn("the settings that tune kept for this model are not used", slog.String("why", why))
	}
	return cfg, err
}

// resolve is Resolve; why says why settings that were kept are not taken.
func (o *Opening) resolve() (cfg actors.Config, why string, err error) {
	cfg = o.Config
	if cfg.Device == nil {
		if cfg.Device, err = o.Device(o.Threads); err != nil {
			return cfg, "", err
		}
	}
	k, err := o.load()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return cfg, "", nil
	case err != nil:
		return cfg, err.Error(), nil
	}
	return o.take(cfg, k)
}

// load reads what is kept for the model. A model that cannot be read has nothing: opening it says
// what is wrong.
func (o *Opening) load() (*Kept, error) {
	if o.Cache == "" {
		return nil, fs.ErrNotExist
	}
	path, err := Path(o.Cache, &o.Config)
	if err != nil {
		return nil, fs.ErrNotExist
	}
	return Load(path)
}

// take puts the settings into a Config with an open device, if they fit.
func (o *Opening) take(cfg actors.Config, k *Kept) (_ actors.Config, why string, err error) {
	info, err := actors.Plan(cfg)
	if err != nil { // so will Open
		return cfg, "", nil
	}
	set := k.Settings.LeftOpen(&cfg, o.Threads)
	switch why := k.misfit(cfg.Device, &info); {
	case why != "":
		return cfg, why, nil
	case set == Settings{}:
		return cfg, "", nil
	}
	with := cfg
	set.fill(&with)
	if err := with.Validate(); err != nil {
		return cfg, fmt.Sprintf("they are damaged: %v", err), nil
	}
	if set.Threads == 0 || set.Threads == info.Threads {
		return with, "", nil
	}
	if o.Config.Device != nil {
		return cfg, fmt.Sprintf("they are for --threads %d, and the device was opened with %d", set.Threads, info.Threads), nil
	}
	if err := cfg.Device.Close(); err != nil {
		return cfg, "", err
	}
	with.Device, err = o.Device(set.Threads)
	return with, "", err
}

// slotsFar is how many times as many slots make another engine.
const slotsFar = 4.0 / 3

// memoryFar likewise of the machine's memory, which differs a little from start to start.
const memoryFar = 17.0 / 16

// misfit says why settings were kept for something else; "" if they were not. info is the plan
// without them.
func (k *Kept) misfit(d gpu.Device, info *actors.Info) string {
	here, now := thisMachine(), conditionsOf(d, info)
	if far(k.Machine.MemoryBytes, here.MemoryBytes, memoryFar) {
		return fmt.Sprintf("they are for a machine with %d MiB of memory, this one has %d; run tune again", k.Machine.MemoryBytes>>20, here.MemoryBytes>>20)
	}
	if far(int64(k.Engine.Slots), int64(now.Slots), slotsFar) {
		return fmt.Sprintf("they are for %d expert slots, now there are %d; run tune again with this --expert-memory", k.Engine.Slots, now.Slots)
	}
	for _, c := range []struct {
		what      string
		was, isIt any
	}{
		{"the program", k.Program, actors.Program()}, {"the system", k.Machine.OS, here.OS}, {"the processor", k.Machine.Processor, here.Processor},
		{"the number of cores", k.Machine.Cores, here.Cores}, {"the device", k.Engine.Device, now.Device}, {"the activations", k.Engine.Activations, now.Activations},
		{"the format of keys and values", k.Engine.KV, now.KV}, {"the number of experts a token", k.Engine.TopK, now.TopK},
		{"the way to read experts", k.Engine.ExpertIO, now.ExpertIO}, {"whether the device chooses experts", k.Engine.Resident, now.Resident},
	} {
		if c.was != c.isIt {
			return fmt.Sprintf("%s was %v when they were chosen, and is %v now; run tune again", c.what, c.was, c.isIt)
		}
	}
	return ""
}

// far reports whether one number is more than some times the other.
func far(a, b int64, times float64) bool {
	return float64(a) > times*float64(b) || float64(b) > times*float64(a)
}
