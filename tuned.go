package moeflux

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/internal/tuned"
)

// The values of Options.Tuned.
const (
	TunedAuto = "auto"
	TunedOff  = "off"
)

// resolve returns the engine's Config for a model, with a device, and with the settings that were
// kept for it. mine says whether to close the device with the model.
func (o *Options) resolve(dir string) (cfg Config, mine bool, err error) {
	opening := tuned.Opening{Config: o.Config, Threads: o.Threads, Device: o.device}
	opening.Config.Model = dir
	switch o.Tuned {
	case "", TunedAuto:
		// Without a folder nothing is kept.
		opening.Cache, _ = o.cacheDir()
	case TunedOff:
	default:
		return cfg, false, fmt.Errorf("moeflux: Options.Tuned is %q, but must be %s or %s", o.Tuned, TunedAuto, TunedOff)
	}
	if cfg, err = opening.Resolve(); err != nil {
		return cfg, false, &DeviceError{Err: err}
	}
	return cfg, o.Config.Device == nil, nil
}
