package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// The modes. Those that write JSON write one object for each span, on a line of its own.
const (
	Off    = "off"    // no spans; the default
	Stdout = "stdout" // JSON to Config.Stdout
	Stderr = "stderr" // JSON to Config.Stderr
	File   = "file"   // JSON to a file: "file=PATH"
	OTLP   = "otlp"   // to a collector that the environment names, or to that of "otlp=URL"
)

// Modes lists what Config.Mode may be, for messages.
const Modes = "off, stdout, stderr, file=FILE, otlp, otlp=URL"

// ModeError reports a Config.Mode that does not exist.
type ModeError struct{ Mode string }

func (e *ModeError) Error() string {
	return fmt.Sprintf("export: traces cannot go to %q; available: %s", e.Mode, Modes)
}

// Check reports a mode that does not exist, and one for OTLP whose address or environment is wrong.
func Check(mode string) error {
	kind, to, named := strings.Cut(mode, "=")
	switch {
	case kind == OTLP && (!named || to != ""):
		_, err := findCollector(to)
		return err
	case kind == File && to != "":
		return nil
	case !named && (kind == "" || kind == Off || kind == Stdout || kind == Stderr):
		return nil
	}
	return &ModeError{mode}
}

// open makes what spans go to.
func (c *Config) open() (sdk.SpanExporter, error) {
	kind, to, _ := strings.Cut(c.Mode, "=")
	switch kind {
	case Stdout:
		return newJSON(c.Stdout)
	case Stderr:
		return newJSON(c.Stderr)
	case File:
		return newFile(to)
	}
	collector, err := findCollector(to)
	if err != nil {
		return nil, err
	}
	return collector.open()
}

func newJSON(w io.Writer) (sdk.SpanExporter, error) {
	out, err := stdouttrace.New(stdouttrace.WithWriter(w))
	if err != nil {
		return nil, fmt.Errorf("export: making the JSON exporter: %w", err)
	}
	return out, nil
}

// file closes its file when the last span is written.
type file struct {
	sdk.SpanExporter
	f *os.File
}

func newFile(path string) (sdk.SpanExporter, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("export: the file for spans: %w", err)
	}
	out, err := newJSON(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &file{out, f}, nil
}

func (f *file) Shutdown(ctx context.Context) error {
	return errors.Join(f.SpanExporter.Shutdown(ctx), f.f.Close())
}
