package actors

import (
	"errors"
	"log/slog"

	"github.com/moeflux/moeflux-actor/gpu"
)

// Plan returns the settings that Open would use at this moment. It makes no slots, actors or queue:
// it reads the model's small files and maps the large ones briefly. It returns the errors that Open
// would return up to that point.
func Plan(cfg Config) (info Info, err error) {
	if err := cfg.Validate(); err != nil {
		return Info{}, err
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	e := new(Engine)
	defer func() { err = errors.Join(err, e.release()) }()
	if err := e.openModel(cfg); err != nil {
		return Info{}, err
	}
	if err := e.settle(cfg); err != nil {
		return Info{}, err
	}
	if e.info.VerifyReads, err = e.memory.HasSums(e.info.ExpertIO); err != nil {
		return Info{}, err
	}
	return e.info, nil
}

// preempts reports whether a device runs urgent work amid other work.
func preempts(dev gpu.Device) bool {
	_, ok := dev.(gpu.Preemptive)
	return ok
}
