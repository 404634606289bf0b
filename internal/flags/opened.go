package flags

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
	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/tracing/export"
)

// Opened is an opened model: its directory, device, engine and trace exporter. Close ends it.
type Opened struct {
	Dir      string
	device   gpu.Device
	Model    *moeflux.Model
	Engine   *actors.Engine   // the model's
	Exporter *export.Exporter // nil if nothing is traced
	usr1     chan os.Signal   // nil if it has no effect of ours
	dumped   chan struct{}    // closed after the last usr1
	Say      func(format string, args ...any)

	MemoryLimit int64 // of the cgroup; 0 for none
}

// OpenForTokens opens the model that the flags name, or the demo model, for token ids. The flags
// have passed Check.
func (f *Engine) OpenForTokens(ctx context.Context, inv *process.Invocation) (*Opened, error) {
	return f.Open(ctx, inv, moeflux.Options{TokensOnly: true})
}

// WithTokens runs do with the model open for token ids.
func (f *Engine) WithTokens(ctx context.Context, inv *process.Invocation, do func(*Opened) error) error {
	return f.with(ctx, inv, moeflux.Options{TokensOnly: true}, do)
}

// WithModel runs do with the model open, and its tokenizer.
func (f *Engine) WithModel(ctx context.Context, inv *process.Invocation, do func(*Opened) error) error {
	return f.with(ctx, inv, moeflux.Options{Now: inv.Env.Now}, do)
}

func (f *Engine) with(ctx context.Context, inv *process.Invocation, o moeflux.Options, do func(*Opened) error) error {
	s, err := f.Open(ctx, inv, o)
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.Close())
}

// Open opens the model that the flags name, or the demo model, with what o says besides them: a
// tracer of its own stands in for that of --trace. The flags have passed Check. The caller closes
// what is opened.
func (f *Engine) Open(ctx context.Context, inv *process.Invocation, o moeflux.Options) (*Opened, error) {
	cfg, err := f.Configure(ctx, inv, f.Logger(inv.Stderr))
	if err != nil {
		return nil, err
	}
	s := &Opened{Say: inv.Say, Dir: cfg.Model, device: cfg.Device, MemoryLimit: inv.Env.MemoryLimit()}
	if cfg.Tracer = o.Config.Tracer; cfg.Tracer == nil {
		if s.Exporter, err = f.OpenExporter(inv, cfg.Logger); err != nil {
			return nil, errors.Join(err, s.Close())
		}
		if s.Exporter != nil {
			cfg.Tracer = s.Exporter.Provider()
		}
	}
	o.Config, o.Tuned = cfg, moeflux.TunedOff // Configure has taken them
	s.Model, err = moeflux.Open(ctx, s.Dir, o)
	if inv.Partial && errors.As(err, new(*expertfile.MissingError)) {
		o.Config.Partial = true
		s.Model, err = moeflux.Open(ctx, s.Dir, o)
	}
	if err != nil {
		errs := []error{err, actors.CloseDevice(s.device, err)}
		s.device = nil
		if errors.As(err, new(*moeflux.NoTokenizerError)) {
			errs[0] = noTokenizer(s.Dir)
		}
		return nil, errors.Join(append(errs, s.Close())...)
	}
	s.Engine = s.Model.Engine()
	if f.FlightDir != "" {
		s.usr1, s.dumped = make(chan os.Signal, 1), make(chan struct{})
		signal.Notify(s.usr1, syscall.SIGUSR1)
		go s.dumpRecords()
	}
	info := s.Engine.Info()
	SayTopK(inv, &info, s.Engine.Model().NumExpertsPerTok)
	return s, nil
}

// OpenExporter returns what takes spans where --trace says; nil if nothing is traced.
func (f *Engine) OpenExporter(inv *process.Invocation, log *slog.Logger) (*export.Exporter, error) {
	if f.Trace == export.Off {
		return nil, nil
	}
	x := export.Config{Mode: f.Trace, Stdout: inv.Stdout.Lines(), Stderr: inv.Stderr, SampleRatio: f.TraceSample, Logger: log}
	if x.Mode == export.Stdout { // the end of the command says what is wrong with it
		x.Logger = nil
	}
	return export.New(x)
}

// CloseExporter waits for spans that are on their way, and says how many are lost.
func CloseExporter(x *export.Exporter, say func(format string, args ...any)) error {
	if x == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), ExportPatience)
	defer cancel()
	err := x.Shutdown(ctx)
	if errors.Is(err, process.ErrReaderGone) || errors.As(err, new(*process.StdoutError)) {
		return err // spans were a part of the result
	}
	if lost := x.Stats().Lost(); lost != "" {
		say("%s", ForUsers(lost))
	}
	return nil
}

// dumpRecords has the engine's records written at each SIGUSR1.
func (s *Opened) dumpRecords() {
	defer close(s.dumped)
	for range s.usr1 {
		if path, err := s.Engine.DumpRecords(context.Background(), "SIGUSR1"); err != nil {
			s.Say("the records were not written: %s", OneLine(err))
		} else {
			s.Say("the records are in %s", path)
		}
	}
}

// SayTopK says that results will differ from the model's own.
func SayTopK(inv *process.Invocation, i *actors.Info, own int) {
	if i.TopK != own {
		inv.Say("%d experts per token in place of the model's %d: results differ from the model's own", i.TopK, own)
	}
}

// Span begins a trace, under which the engine puts its own spans, if anything is traced. The caller
// must call end.
func (s *Opened) Span(ctx context.Context, name string) (_ context.Context, end func()) {
	if s.Exporter == nil {
		return ctx, func() {}
	}
	ctx, span := s.Exporter.Provider().Tracer(process.Program).Start(ctx, name)
	return ctx, func() { span.End() }
}

// ClosePatience is how long the end of the program waits for reads and device work under way.
const ClosePatience = 2 * time.Second

// ExportPatience is how long it waits for spans that are on their way.
const ExportPatience = 5 * time.Second

// Close ends what is open, in the order that the parts need. What a disk or a device does not
// answer is not waited for: the program has something to say, and ends.
func (s *Opened) Close() error {
	var errs []error
	ctx, cancel := context.WithTimeout(context.Background(), ClosePatience)
	defer cancel()
	if s.usr1 != nil {
		signal.Stop(s.usr1)
		close(s.usr1)
		select {
		case <-s.dumped: // and where the file is has been said
		case <-ctx.Done():
		}
	}
	var closed error
	if s.Model != nil {
		closed = s.Model.Close(ctx)
		errs = append(errs, modelClosed(closed))
	}
	if s.device != nil {
		errs = append(errs, actors.CloseDevice(s.device, closed))
	}
	if err := errors.Join(errs...); errors.As(err, new(*stuckError)) {
		return err
	}
	return errors.Join(append(errs, CloseExporter(s.Exporter, s.Say))...)
}

// modelClosed returns what of the error of closing the model is worth a word at the end of the
// program.
func modelClosed(err error) error {
	left, ok := errors.AsType[*actors.LeftBehindError](err)
	if !ok || left.Spans {
		return err
	}
	if left.Freeing() { // the system does that when the program ends
		return nil
	}
	return &stuckError{left}
}

// stuckError tells that the engine cannot be freed because something hangs.
type stuckError struct{ left *actors.LeftBehindError }

func (e *stuckError) Error() string {
	switch {
	case e.left.Reads > 0:
		return "the disk does not answer reads that are under way; they are left to the system"
	case e.left.Files:
		return "the disk does not take the last files; they are left to the system"
	}
	return "the device does not end what it has begun; it is left to the system"
}
func (e *stuckError) Unwrap() error { return e.left }
