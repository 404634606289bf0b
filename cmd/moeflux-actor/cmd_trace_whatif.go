package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/internal/tracetext"
	"github.com/moeflux/moeflux-actor/tracing/whatif"
)

type traceWhatifCmd struct {
	File string `arg:"" optional:"" name:"FILE" help:"A file of records of a whole run."`
	recordsFlags
	RingDepth    int        `placeholder:"N" help:"Another --ring-depth."`
	ExpertMemory flags.Size `placeholder:"SIZE" help:"Another --expert-memory."`
	Prefetch     string     `oneof:"off,last-token,next-gate,both" placeholder:"NAME" help:"Another --prefetch: off, last-token, next-gate or both."`
	ReadWorkers  int        `placeholder:"N" help:"Another --read-workers."`
	ChunkRows    int        `placeholder:"N" help:"Another --chunk-rows."`
	Disk         rate       `placeholder:"RATE" help:"A disk that reads so much a second, like 5GB/s."`
	Policy       string     `oneof:"lru" placeholder:"NAME" help:"Another rule for which expert leaves: lru, the least recently used one."`
	JSON         bool       `name:"json" help:"Print one JSON object: the prediction, what was measured, both replays, and the error of the method."`
}

// Run prints what changed settings would have made of a recorded run.
func (c *traceWhatifCmd) Run(ctx context.Context, inv *process.Invocation) error {
	rec, err := c.read(ctx, c.File)
	if err != nil {
		return err
	}
	memory, err := c.ExpertMemory.Resolve(func() (int64, error) { return rec.Meta.Machine.MemoryBytes, nil })
	if err != nil {
		return err
	}
	s := whatif.Settings{
		RingDepth: c.RingDepth, ExpertMemory: memory, Prefetch: c.Prefetch, ReadWorkers: c.ReadWorkers, ChunkRows: c.ChunkRows, DiskRate: float64(c.Disk), Policy: c.Policy,
	}
	if err := s.Validate(rec); err != nil {
		return process.Usage(err)
	}
	p, err := whatif.Predict(rec, s)
	if err != nil {
		return fmt.Errorf("%s: %w", c.source(c.File), err)
	}
	return inv.Print(c.JSON, p, func() string { return tracetext.WhatIf(p, styleOf(inv)) })
}

// rate is bytes a second as given on the command line.
type rate float64

// UnmarshalText reads "5GB/s".
func (r *rate) UnmarshalText(text []byte) error {
	var s flags.Size
	number, ok := strings.CutSuffix(string(text), "/s")
	if err := s.UnmarshalText([]byte(number)); !ok || err != nil || s.Bytes <= 0 {
		return fmt.Errorf("%q is not a rate like 5GB/s", text)
	}
	*r = rate(s.Bytes)
	return nil
}
