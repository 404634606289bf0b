package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/moeflux/moeflux-actor/internal/durable"
	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/internal/tracesvg"
	"github.com/moeflux/moeflux-actor/internal/tracetext"
	"github.com/moeflux/moeflux-actor/tracing/analyse"
	"github.com/moeflux/moeflux-actor/tracing/export"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// traceCmd groups the commands that read records.
type traceCmd struct {
	Show   traceShowCmd   `cmd:"" help:"Show what layers, stages, sequences and the slowest tokens took, and a waterfall."`
	Why    traceWhyCmd    `cmd:"" help:"Say where the time of tokens went, and what to change."`
	Diff   traceDiffCmd   `cmd:"" help:"Say what changed from one run to another, by cause, stage and layer, and whether it is beyond the spread."`
	Whatif traceWhatifCmd `cmd:"" help:"Predict what other settings would have made of a run."`
	Export traceExportCmd `cmd:"" help:"Write a timeline for ui.perfetto.dev and chrome://tracing, or a picture of it."`
}

// traceFlags is what show and why have in common.
type traceFlags struct {
	File string `arg:"" optional:"" name:"FILE" help:"A file of records."`
	recordsFlags
	Token int  `placeholder:"N" help:"Only this token, by its number in the table of trace show. Default: all."`
	JSON  bool `name:"json" help:"Print one JSON object, with times in nanoseconds."`
}

func (f *traceFlags) read(ctx context.Context) (*record.Recording, error) {
	if f.Token < 0 {
		return nil, noToken(f.Token)
	}
	return f.recordsFlags.read(ctx, f.File)
}

type traceShowCmd struct {
	traceFlags
	SVG string `name:"svg" placeholder:"OUT" help:"Draw the waterfall and its critical path into this file, as SVG."`
}

// Run prints the tables of a file.
func (c *traceShowCmd) Run(ctx context.Context, inv *process.Invocation) error {
	rec, err := c.read(ctx)
	if err != nil {
		return err
	}
	s, err := analyse.ShowAll(rec, c.Token)
	if err != nil {
		return fmt.Errorf("%s: %w", c.source(c.File), err)
	}
	if c.SVG != "" {
		if err := process.CheckOutput(c.SVG); err != nil {
			return err
		}
		if s.Waterfall == nil {
			return fmt.Errorf("%s: there is no token to draw", c.source(c.File))
		}
		return writePicture(c.SVG, tracesvg.Waterfall(s.Waterfall))
	}
	return inv.Print(c.JSON, s, func() string { return tracetext.Show(s, styleOf(inv)) })
}

type traceWhyCmd struct{ traceFlags }

// Run explains the tokens of a file.
func (c *traceWhyCmd) Run(ctx context.Context, inv *process.Invocation) error {
	rec, err := c.read(ctx)
	if err != nil {
		return err
	}
	w, err := analyse.WhyTokens(rec, c.Token)
	if err != nil {
		return fmt.Errorf("%s: %w", c.source(c.File), err)
	}
	return inv.Print(c.JSON, w, func() string { return tracetext.Why(w, styleOf(inv)) })
}

type traceDiffCmd struct {
	A string `arg:"" name:"A" help:"A file of records."`
	B string `arg:"" optional:"" name:"B" help:"Another one, of the same work."`
	recordsFlags
	JSON bool `name:"json" help:"Print one JSON object, with times in nanoseconds."`
}

// Run compares two files.
func (c *traceDiffCmd) Run(ctx context.Context, inv *process.Invocation) error {
	a, err := readRecords(c.A)
	if err != nil {
		return err
	}
	b, err := c.read(ctx, c.B)
	if err != nil {
		return err
	}
	d, err := analyse.Compare(a, b)
	if err != nil {
		return fmt.Errorf("%s and %s cannot be compared: %w", c.A, c.source(c.B), err)
	}
	return inv.Print(c.JSON, d, func() string { return tracetext.Diff(d, styleOf(inv)) })
}

type traceExportCmd struct {
	File string `arg:"" optional:"" name:"FILE" help:"A file of records."`
	recordsFlags
	Perfetto string `placeholder:"OUT" help:"Where the timeline goes: a JSON file of the Trace Event Format, which both viewers open; compressed if the name ends in .gz."`
	SVG      string `name:"svg" placeholder:"OUT" help:"Where a picture of one token's time goes."`
	Token    int    `placeholder:"N" help:"Only the time of this token, by its number in the table of trace show. Default: all, and in a picture the slowest that was decoded. Not with --otlp."`
	OTLP     bool   `name:"otlp" help:"Send spans, a trace for each sequence, to the collector that OTEL_EXPORTER_OTLP_ENDPOINT and its like name, or to one on this machine."`
}

// Run writes the timeline of a file.
func (c *traceExportCmd) Run(ctx context.Context, inv *process.Invocation) error {
	switch {
	case c.Token < 0:
		return noToken(c.Token)
	case c.Perfetto == "" && c.SVG == "" && !c.OTLP:
		return process.Usagef("name what to write: --perfetto OUT, --svg OUT or --otlp")
	case c.OTLP && c.Token != 0:
		return process.Usagef("--otlp sends all spans; leave out --token")
	case c.OTLP:
		if err := export.Check(export.OTLP); err != nil {
			return process.Usage(err)
		}
	}
	for _, path := range []string{c.Perfetto, c.SVG} {
		if path == "" {
			continue
		}
		if err := process.CheckOutput(path); err != nil {
			return err
		}
	}
	rec, err := c.read(ctx, c.File)
	if err != nil {
		return err
	}
	if c.SVG != "" {
		tracks, err := analyse.TracksOf(rec, c.Token)
		if err != nil {
			return fmt.Errorf("%s: %w", c.source(c.File), err)
		}
		if err := writePicture(c.SVG, tracesvg.Tracks(tracks)); err != nil {
			return err
		}
	}
	if c.OTLP {
		if err := sendSpans(ctx, inv, rec, c.source(c.File)); err != nil {
			return err
		}
	}
	if c.Perfetto == "" {
		return nil
	}
	write, err := analyse.Timeline(rec, c.Token)
	if err != nil {
		return fmt.Errorf("%s: %w", c.source(c.File), err)
	}
	out := write
	if strings.HasSuffix(c.Perfetto, ".gz") {
		out = func(w io.Writer) error {
			z := gzip.NewWriter(w)
			return errors.Join(write(z), z.Close())
		}
	}
	if err := durable.Replace(c.Perfetto, durable.Shared, out); err != nil {
		return fmt.Errorf("%s cannot be written: %w", c.Perfetto, err)
	}
	inv.Say("open %s in ui.perfetto.dev or chrome://tracing", c.Perfetto)
	return nil
}

// noToken reports a number that no token has.
func noToken(n int) error { return process.Usagef("--token %d: tokens are numbered from 1", n) }

// writePicture writes a picture to a file.
func writePicture(path, svg string) error {
	if err := durable.WriteFile(path, durable.Shared, []byte(svg)); err != nil {
		return fmt.Errorf("%s cannot be written: %w", path, err)
	}
	return nil
}

// readRecords reads a file of records.
func readRecords(path string) (*record.Recording, error) {
	f, _, err := process.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rec, err := record.ReadRecording(f)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", path, err)
	}
	return rec, nil
}

// styleOf is how text for people looks on stdout.
func styleOf(inv *process.Invocation) tracetext.Style {
	s := tracetext.Style{Colour: inv.StdoutTerminal && !inv.Env.Dumb && !inv.Env.NoColour}
	if f, ok := inv.Stdout.W.(*os.File); ok && inv.StdoutTerminal {
		s.Width, _, _ = term.GetSize(int(f.Fd()))
	}
	return s
}
