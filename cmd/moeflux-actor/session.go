package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/device"
	"github.com/moeflux/moeflux-actor/internal/tuned"
	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/weights"
	"github.com/moeflux/moeflux-actor/tracing/export"
)

// session is an opened model: its directory, device, engine and trace exporter.
type session struct {
	dir      string
	device   gpu.Device
	model    *moeflux.Model
	engine   *actors.Engine   // the model's
	exporter *export.Exporter // nil if nothing is traced
	usr1     chan os.Signal   // nil if it has no effect of ours
	say      func(format string, args ...any)

	memoryLimit int64 // of the cgroup; 0 for none
}

// openSession opens the model that the flags name, or the demo model, for token ids. The flags have
// passed check.
func openSession(ctx context.Context, inv *invocation, f *engineFlags) (*session, error) {
	return openModel(ctx, inv, f, moeflux.Options{TokensOnly: true})
}

// withTokens runs f with the model open for token ids.
func (e *engineFlags) withTokens(ctx context.Context, inv *invocation, f func(*session) error) error {
	return e.with(ctx, inv, moeflux.Options{TokensOnly: true}, f)
}

// withModel runs f with the model open, and its tokenizer.
func (e *engineFlags) withModel(ctx context.Context, inv *invocation, f func(*session) error) error {
	return e.with(ctx, inv, moeflux.Options{Now: inv.env.now}, f)
}

func (e *engineFlags) with(ctx context.Context, inv *invocation, o moeflux.Options, f func(*session) error) error {
	s, err := openModel(ctx, inv, e, o)
	if err != nil {
		return err
	}
	return errors.Join(f(s), s.close())
}

func openModel(ctx context.Context, inv *invocation, f *engineFlags, o moeflux.Options) (*session, error) {
	cfg, err := f.settings(ctx, inv, f.logger(inv.stderr))
	if err != nil {
		return nil, err
	}
	s := &session{say: inv.say, dir: cfg.Model, device: cfg.Device, memoryLimit: inv.env.memoryLimit()}
	if cfg.Tracer = o.Config.Tracer; cfg.Tracer == nil {
		if s.exporter, err = openExporter(inv, f, cfg.Logger); err != nil {
			return nil, errors.Join(err, s.close())
		}
		if s.exporter != nil {
			cfg.Tracer = s.exporter.Provider()
		}
	}
	o.Config, o.Tuned = cfg, moeflux.TunedOff // settings has taken them
	s.model, err = moeflux.Open(ctx, s.dir, o)
	if inv.partial && errors.As(err, new(*expertfile.MissingError)) {
		o.Config.Partial = true
		s.model, err = moeflux.Open(ctx, s.dir, o)
	}
	if err != nil {
		if errors.As(err, new(*moeflux.UnfinishedError)) {
			s.device = nil // is still in use
		}
		if errors.As(err, new(*moeflux.NoTokenizerError)) {
			err = noTokenizer(s.dir)
		}
		return nil, errors.Join(err, s.close())
	}
	s.engine = s.model.Engine()
	if f.FlightDir != "" {
		s.usr1 = make(chan os.Signal, 1)
		signal.Notify(s.usr1, syscall.SIGUSR1)
		go s.dumpRecords()
	}
	info := s.engine.Info()
	sayTopK(inv, &info, s.engine.Model().NumExpertsPerTok)
	return s, nil
}

// openExporter returns what takes spans where --trace says; nil if nothing is traced.
func openExporter(inv *invocation, f *engineFlags, log *slog.Logger) (*export.Exporter, error) {
	if f.Trace == export.Off {
		return nil, nil
	}
	x := export.Config{Mode: f.Trace, Stdout: inv.stdout.lines(), Stderr: inv.stderr, SampleRatio: f.TraceSample, Logger: log}
	if x.Mode == export.Stdout { // the end of the command says what is wrong with it
		x.Logger = nil
	}
	return export.New(x)
}

// closeExporter waits for spans that are on their way, and says how many are lost.
func closeExporter(x *export.Exporter, say func(format string, args ...any)) error {
	if x == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), exportPatience)
	defer cancel()
	err := x.Shutdown(ctx)
	if errors.Is(err, errReaderGone) || errors.As(err, new(*stdoutError)) {
		return err // spans were a part of the result
	}
	if lost := x.Stats().Lost(); lost != "" {
		say("%s", forUsers(lost))
	}
	return nil
}

// dumpRecords has the engine's records written at each SIGUSR1.
func (s *session) dumpRecords() {
	for range s.usr1 {
		if path, err := s.engine.DumpRecords(context.Background(), "SIGUSR1"); err != nil {
			s.say("the records were not written: %s", oneLine(err))
		} else {
			s.say("the records are in %s", path)
		}
	}
}

// sayTopK says that results will differ from the model's own.
func sayTopK(inv *invocation, i *actors.Info, own int) {
	if i.TopK != own {
		inv.say("%d experts per token in place of the model's %d: results differ from the model's own", i.TopK, own)
	}
}

// settings returns the engine's Config as the flags, which have passed check, and the surroundings
// say. The caller closes its device. What has to be chosen goes to the log.
func (f *engineFlags) settings(ctx context.Context, inv *invocation, log *slog.Logger) (cfg actors.Config, err error) {
	if cfg, err = f.config(inv); err != nil {
		return cfg, err
	}
	cfg.Logger = log
	if cfg.Model, err = modelDir(ctx, inv, f.Model, f.CacheDir); err != nil {
		return cfg, err
	}
	if cfg, err = f.tuned(inv, cfg); err != nil {
		return cfg, err
	}
	if cfg.Profile, err = f.profilePath(inv, cfg.Model); err != nil {
		err = weights.Explain(cfg.Model, err)
	} else {
		err = usage(cfg.Validate())
	}
	if err != nil {
		err = errors.Join(err, cfg.Device.Close())
	}
	return cfg, err
}

// tuned opens the device and takes the settings that were kept for the model, unless the flags say
// otherwise.
func (f *engineFlags) tuned(inv *invocation, cfg actors.Config) (actors.Config, error) {
	o := tuned.Opening{Config: cfg, Threads: f.Threads, Device: func(threads int) (gpu.Device, error) { return f.openDevice(inv, threads, cfg.Logger) }}
	if f.Tuned != moeflux.TunedOff {
		o.Cache, _, _ = findCache(inv, f.CacheDir) // without a folder nothing is kept
	}
	return o.Resolve()
}

// openDevice makes the device that the flags name, with some threads.
func (f *engineFlags) openDevice(inv *invocation, threads int, log *slog.Logger) (gpu.Device, error) {
	c := inv.env.device
	c.Name, c.Threads, c.Activations, c.OS, c.Logger = f.Device, threads, f.Activations, inv.env.os, log
	c.CacheDir = func() (string, error) { // compiled kernels are kept beside the demo model
		dir, _, err := findCache(inv, f.CacheDir)
		return dir, err
	}
	d, err := device.Open(c)
	if err == nil && inv.env.wrapDevice != nil {
		d = inv.env.wrapDevice(d)
	}
	return d, err
}

// plan returns what openSession would come to, and takes no memory for it.
func (f *engineFlags) plan(ctx context.Context, inv *invocation, log *slog.Logger) (_ actors.Info, err error) {
	cfg, err := f.settings(ctx, inv, log)
	if err != nil {
		return actors.Info{}, err
	}
	defer func() { err = errors.Join(err, cfg.Device.Close()) }()
	return moeflux.Plan(cfg.Model, moeflux.Options{Config: cfg, Tuned: moeflux.TunedOff})
}

// span begins a trace, under which the engine puts its own spans, if anything is traced. The caller
// must call end.
func (s *session) span(ctx context.Context, name string) (_ context.Context, end func()) {
	if s.exporter == nil {
		return ctx, func() {}
	}
	ctx, span := s.exporter.Provider().Tracer(program).Start(ctx, name)
	return ctx, func() { span.End() }
}

// closePatience is how long the end of the program waits for reads and device work under way.
const closePatience = 2 * time.Second

// exportPatience is how long it waits for spans that are on their way.
const exportPatience = 5 * time.Second

// close ends what is open, in the order that the parts need. What a disk or a device does not
// answer is not waited for: the program has something to say, and ends.
func (s *session) close() error {
	var errs []error
	if s.usr1 != nil {
		signal.Stop(s.usr1)
		close(s.usr1)
	}
	if s.model != nil {
		ctx, cancel := context.WithTimeout(context.Background(), closePatience)
		defer cancel()
		err := s.model.Close(ctx)
		if left, ok := errors.AsType[*actors.LeftBehindError](err); ok && !left.Spans {
			return &stuckError{left} // the device is still in use
		}
		errs = append(errs, err)
	}
	if s.device != nil {
		errs = append(errs, s.device.Close())
	}
	errs = append(errs, closeExporter(s.exporter, s.say))
	return errors.Join(errs...)
}

// stuckError tells that the engine cannot be freed because something hangs.
type stuckError struct{ left *actors.LeftBehindError }

func (e *stuckError) Error() string {
	switch {
	case e.left.Reads > 0:
		return "the disk does not answer reads that are under way; they are left to the system"
	case e.left.Files:
		return "the disk does not take the last files; they are left to the system"
	case e.left.Device:
		return "the device does not end what it has begun; it is left to the system"
	}
	return e.left.Error()
}
func (e *stuckError) Unwrap() error { return e.left }
