package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
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
	say      func(format string, args ...any)

	memoryLimit int64 // of the cgroup; 0 for none
}

// openSession opens the model that the flags name, or the demo model, for token ids. The flags have
// passed check.
func openSession(ctx context.Context, inv *invocation, f *engineFlags) (*session, error) {
	return openModel(ctx, inv, f, moeflux.Options{TokensOnly: true})
}

// openText is openSession for texts.
func openText(ctx context.Context, inv *invocation, f *engineFlags) (*session, error) {
	return openModel(ctx, inv, f, moeflux.Options{Now: inv.env.now})
}

func openModel(ctx context.Context, inv *invocation, f *engineFlags, o moeflux.Options) (*session, error) {
	cfg, err := f.config(inv)
	if err != nil {
		return nil, err
	}
	s := &session{say: inv.say, memoryLimit: inv.env.memoryLimit()}
	if s.dir, err = modelDir(ctx, inv, f.Model, f.CacheDir); err != nil {
		return nil, err
	}
	if s.device, err = f.openDevice(inv, cfg.Logger); err != nil {
		return nil, err
	}
	if wrap := inv.env.wrapDevice; wrap != nil {
		s.device = wrap(s.device)
	}
	cfg.Model, cfg.Device = s.dir, s.device
	if cfg.Profile, err = f.profilePath(inv, s.dir); err != nil {
		return nil, errors.Join(weights.Explain(s.dir, err), s.close())
	}
	if err := cfg.Validate(); err != nil {
		return nil, errors.Join(&usageError{err.Error()}, s.close())
	}
	if f.Trace != export.Off {
		if s.exporter, err = export.New(export.Config{Mode: f.Trace, Writer: inv.stdout.lines(), SampleRatio: f.TraceSample}); err != nil {
			return nil, errors.Join(err, s.close())
		}
		cfg.Tracer = s.exporter.Provider()
	}
	o.Config = cfg
	if s.model, err = moeflux.Open(ctx, s.dir, o); err != nil {
		if errors.As(err, new(*moeflux.UnfinishedError)) {
			s.device = nil // is still in use
		}
		if errors.As(err, new(*moeflux.NoTokenizerError)) {
			err = noTokenizer(s.dir)
		}
		return nil, errors.Join(err, s.close())
	}
	s.engine = s.model.Engine()
	if k := s.engine.Info().TopK; k != s.engine.Model().NumExpertsPerTok {
		inv.say("%d experts per token in place of the model's %d: results differ from the model's own", k, s.engine.Model().NumExpertsPerTok)
	}
	return s, nil
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

// close ends what is open, in the order that the parts need. It waits for reads, the device and
// spans, but not for ever.
func (s *session) close() error {
	var errs []error
	if s.model != nil {
		err := s.closeEngine()
		if errs = append(errs, err); errors.As(err, new(*stuckError)) {
			return err // the device is still in use
		}
	}
	if s.device != nil {
		errs = append(errs, s.device.Close())
	}
	if s.exporter != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		errs = append(errs, s.exporter.Shutdown(ctx))
		if n := s.exporter.Stats().Dropped; n > 0 {
			s.say("%d spans were dropped, the queue was full; trace fewer evaluations with --trace-sample", n)
		}
	}
	return errors.Join(errs...)
}

// closePatience is how long the end of the program waits for reads and device work under way.
const closePatience = 2 * time.Second

// closeEngine closes the engine. What a disk or a device does not answer is not waited for: the
// program has something to say, and ends.
func (s *session) closeEngine() error {
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	err := s.model.Close(ctx)
	if left, ok := errors.AsType[*actors.LeftBehindError](err); ok && !left.Spans {
		return &stuckError{left}
	}
	return err
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

// sessionPlan is what openSession would come to.
type sessionPlan struct {
	info    actors.Info
	threads int
}

// planSession tells what openSession would open, and takes no memory for it.
func planSession(ctx context.Context, inv *invocation, f *engineFlags) (p sessionPlan, err error) {
	cfg, err := f.config(inv)
	if err != nil {
		return p, err
	}
	if cfg.Model, err = modelDir(ctx, inv, f.Model, f.CacheDir); err != nil {
		return p, err
	}
	// openSession will say it
	if cfg.Device, err = f.openDevice(inv, slog.New(slog.DiscardHandler)); err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, cfg.Device.Close()) }()
	if err := cfg.Validate(); err != nil {
		return p, &usageError{err.Error()}
	}
	p.threads, cfg.Logger = threadsOf(cfg.Device), nil // likewise
	p.info, err = moeflux.Plan(cfg.Model, moeflux.Options{Config: cfg})
	return p, err
}
