package actors

import (
	"errors"
	"log/slog"
)

// Plan tells what Open would settle for, at this moment, without memory for slots, actors or a
// queue. It reads the model's small files and maps the large ones for a moment. Errors are those of
// Open, as far as it comes.
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
	return e.info, nil
}
