package actors

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/moeflux/moeflux-actor/actors/expertmem"
	"github.com/moeflux/moeflux-actor/actors/runtime"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/sysmem"
	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/modelfiles"
)

// Open opens a model with an actor system of its own. ctx bounds the opening only: when it ends,
// Open returns within 100 ms. If a disk or a device holds the opening up, the error is an
// *UnfinishedError then, and what was opened is closed as soon as that is possible; until then the
// device must stay open, see CloseDevice.
func Open(ctx context.Context, cfg Config) (*Engine, error) {
	return openWithin(ctx, func() (*Engine, error) {
		log := cfg.Logger
		if log == nil {
			log = slog.New(slog.DiscardHandler)
		}
		system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet(log) }))
		e, err := open(ctx, system, cfg)
		if err != nil {
			system.Shutdown()
			return nil, err
		}
		e.ownSystem = system
		return e, nil
	})
}

// Spawn opens a model in the host service's actor system. ctx bounds the opening only, as that of
// Open. A system that was shut down gives a *StoppedError.
func Spawn(ctx context.Context, system *actor.ActorSystem, cfg Config) (*Engine, error) {
	if system.IsStopped() {
		return nil, &StoppedError{}
	}
	return openWithin(ctx, func() (*Engine, error) { return open(ctx, system, cfg) })
}

// openWithin opens an engine, and closes one that is opened too late.
func openWithin(ctx context.Context, open func() (*Engine, error)) (*Engine, error) {
	if ctx.Err() != nil {
		return nil, runtime.EndOf(ctx)
	}
	return within(ctx, nil, open, func(o outcome[*Engine]) {
		if o.value != nil {
			_ = o.value.Close(context.Background()) // nobody is there to be told
		}
	})
}

// quiet keeps the actor system's chatter about its own life out of the log.
func quiet(log *slog.Logger) *slog.Logger {
	return slog.New(levelHandler{log.Handler()})
}

type levelHandler struct{ slog.Handler }

func (h levelHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.Handler.Enabled(ctx, l)
}

func open(ctx context.Context, system *actor.ActorSystem, cfg Config) (e *Engine, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Partial {
		cfg.ExpertIO, cfg.Profile = ExpertIOBuffered, ""
	}
	e = &Engine{rt: runtime.New(system, cfg.Logger), end: newEnding(), log: cfg.Logger, identity: identityOf(cfg)}
	defer func() {
		if err != nil {
			e.release()
			e = nil
		}
	}()
	if cfg.Verify && cfg.ExpertsDir == "" {
		if err := convert.Verify(ctx, cfg.Model); err != nil {
			return e, err
		}
	}
	if err := e.openModel(cfg); err != nil {
		return e, err
	}
	if cfg.Verify && cfg.ExpertsDir != "" {
		if err := convert.VerifyWith(ctx, cfg.Model, e.experts.Dir()); err != nil {
			return e, err
		}
	}
	if err := e.settle(cfg); err != nil {
		return e, err
	}
	if err := ctx.Err(); err != nil {
		return e, fmt.Errorf("actors: opening %s: %w", cfg.Model, err)
	}
	if err := e.prepareHosts(cfg); err != nil {
		return e, err
	}
	cores, err := e.build(ctx, cfg)
	if err != nil {
		return e, err
	}
	if err := e.openParking(ctx, cfg); err != nil {
		return e, err
	}
	if err := e.openTexts(ctx, cfg); err != nil {
		return e, fmt.Errorf("the folder for texts (Config.StateDir): %w", err)
	}
	if err := e.startRecorder(cfg); err != nil {
		return e, err
	}
	e.spawn(cfg, cores)
	if e.hosts != nil {
		e.hosts.Dial()
		wait, cancel := context.WithTimeout(ctx, hostsWait)
		silent := e.hosts.Await(wait)
		cancel()
		if len(silent) > 0 {
			cfg.Logger.Warn("expert hosts have not answered yet; they are used once they have", "hosts", strings.Join(silent, ","))
		}
	}
	e.memory.Govern(e.reserves(), cfg.memoryEvery)
	return e, nil
}

// hostsWait is how long Open waits for expert hosts that have not answered, so that the first text
// asks them, too.
const hostsWait = time.Second

// openModel reads the configuration and opens the packed files.
func (e *Engine) openModel(cfg Config) (err error) {
	f, err := modelfiles.Open(cfg.where())
	if err != nil {
		return err
	}
	e.model, e.weights, e.experts = f.Config, f.Weights, f.Experts
	if cfg.ExpertIO == ExpertIOMmap && e.experts.Spread() {
		return fmt.Errorf("actors: Config.ExpertIO is mmap, but the experts of %s lie in pieces, which cannot be mapped; leave it to auto", cfg.Model)
	}
	return nil
}

// where names the files of the model that a Config names.
func (c *Config) where() modelfiles.Where {
	return modelfiles.Where{Path: c.Model, ExpertsDir: c.ExpertsDir, Partial: c.Partial}
}

// OpenExperts opens the expert files of the model that a Config names, without an engine.
func OpenExperts(cfg Config) (*expertfile.File, error) { return modelfiles.Experts(cfg.where()) }

// settle chooses settings that suit the opened files and the available memory.
func (e *Engine) settle(cfg Config) error {
	var err error
	if e.memory, err = expertmem.New(expertmem.Config{
		Device: cfg.Device, File: e.experts, Layers: len(e.model.Layers), Host: e.rt, Log: cfg.Logger, ReadTimeout: cfg.ReadTimeout,
		Verify: cfg.VerifyReads, WrapReads: cfg.wrapReads,
	}, cfg.memory); err != nil {
		return err
	}
	mem, err := e.memory.Measure()
	if err != nil {
		return err
	}
	mem.Available += e.taken()
	f := files{
		weightBytes: int64(len(e.weights.Mapping())), expertBytes: e.experts.Layout().Bytes, moeLayers: len(e.experts.Layers()), direct: e.experts.UseDirect,
	}
	if d, ok := cfg.Device.(gpu.Discrete); ok {
		f.host = max(1, mem.Available)
		if mem, err = deviceMemory(d); err != nil {
			return err
		}
	}
	device := unifiedMemory(cfg.Device, mem)
	f.beside = mem.Available - device.Available
	if e.info, err = settle(cfg, e.model, f, device); err != nil {
		return err
	}
	return e.place(cfg)
}

// taken returns the bytes of weights that are no part of what is available any more, because they
// were made in memory. Those that are mapped are: the system can take them back.
func (e *Engine) taken() int64 {
	if !e.weights.Made() {
		return 0
	}
	return int64(len(e.weights.Mapping()))
}

// reserves returns the memory that the governor leaves to others than slots.
func (e *Engine) reserves() expertmem.Reserves {
	r := expertmem.Reserves{Weights: int64(e.dispatch.MappedBytes()), Machine: e.info.Reserve, Host: e.info.HostReserve}
	if e.weights.Made() {
		r.Weights = 0
	}
	return r
}

// deviceMemory returns the memory that an engine on a device with memory of its own may use there.
func deviceMemory(dev gpu.Discrete) (sysmem.Info, error) {
	free, total, err := dev.Memory()
	if err != nil {
		return sysmem.Info{}, fmt.Errorf("actors: the memory of %s: %w", dev.Name(), err)
	}
	return sysmem.Info{Total: total, Available: free}, nil
}

// unifiedMemory returns the part of mem that an engine may use on a device that shares memory with
// the host but has a limited working set.
func unifiedMemory(dev gpu.Device, mem sysmem.Info) sysmem.Info {
	if d, ok := dev.(gpu.Unified); ok && d.WorkingSet() > 0 {
		mem.Available = min(mem.Available, d.WorkingSet())
	}
	return mem
}
