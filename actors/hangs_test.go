package actors_test

import (
	"path/filepath"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/io/readpool"
)

// hang is a thing that may hang.
type hang struct {
	name string
	// open changes what an engine is opened with
	open func(t *testing.T, h *hungEngine, cfg *actors.Config)
	// occupy is a call in the middle of which it hangs; nil if none does
	occupy func(*hungEngine) error
	left   func(*actors.LeftBehindError) bool // what Close leaves behind; nil for nothing
	closes bool                               // the call is Close
}

func evalBusy(h *hungEngine) error {
	_, err := h.busy.Eval(h.ctx, checkText)
	return err
}

var hangs = []hang{
	{"disk", func(t *testing.T, h *hungEngine, cfg *actors.Config) {
		cfg.ExpertIO, cfg.ExpertMemory = actors.ExpertIOBuffered, 1<<18
		*cfg = actors.WithReads(*cfg, func(src readpool.Source) readpool.Source { return stuckSource{src, h.g} })
	}, evalBusy, func(l *actors.LeftBehindError) bool { return l.Reads > 0 && !l.Device && !l.Spans }, false},
	{"device", func(t *testing.T, h *hungEngine, cfg *actors.Config) {
		cfg.Device = stuckDevice{h.dev, h.g}
	}, evalBusy, func(l *actors.LeftBehindError) bool { return l.Device && l.Reads == 0 && !l.Spans }, false},
	{"device of streamed experts", func(t *testing.T, h *hungEngine, cfg *actors.Config) {
		cfg.ExpertIO, cfg.ExpertMemory = actors.ExpertIOBuffered, 1<<18
		cfg.Device = stuckDevice{h.dev, h.g}
	}, evalBusy, func(l *actors.LeftBehindError) bool { return l.Device && l.Reads == 0 && !l.Spans }, false},
	{"device with memory of its own", func(t *testing.T, h *hungEngine, cfg *actors.Config) {
		cfg.ExpertIO, cfg.ExpertMemory = actors.ExpertIOBuffered, 1<<18
		cfg.Device = stuckDiscrete{&discrete{Device: h.dev, free: 1 << 30}, h.g}
	}, evalBusy, func(l *actors.LeftBehindError) bool { return l.Device && l.Reads == 0 && !l.Spans }, false},
	{"exporter", func(t *testing.T, h *hungEngine, cfg *actors.Config) {
		cfg.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(stuckProcessor{g: h.g}))
	}, func(h *hungEngine) error {
		defer h.g.pass() // the call itself does not hang
		return evalBusy(h)
	}, func(l *actors.LeftBehindError) bool { return l.Spans && l.Reads == 0 && !l.Device }, false},
	{"writer", func(_ *testing.T, h *hungEngine, _ *actors.Config) { h.writing = h.g }, func(h *hungEngine) error {
		_, err := h.busy.Save(h.ctx, h.writer(), actors.SaveOptions{})
		return err
	}, nil, false},
	{"reader", func(_ *testing.T, h *hungEngine, _ *actors.Config) { h.reading = h.g }, func(h *hungEngine) error {
		return h.busy.Load(h.ctx, h.reader(), int64(len(h.file)), actors.LoadOptions{})
	}, nil, false},
	{"profile", func(t *testing.T, _ *hungEngine, cfg *actors.Config) {
		cfg.ExpertIO, cfg.ExpertMemory, cfg.Profile = actors.ExpertIOBuffered, 1<<18, filepath.Join(t.TempDir(), "uses")
	}, func(h *hungEngine) error { return h.e.Close(h.ctx) }, func(l *actors.LeftBehindError) bool { return l.Files && !l.Device && l.Reads == 0 }, true},
}
