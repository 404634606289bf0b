package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/tracing"
	"github.com/moeflux/moeflux-actor/tracing/export"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// sendSpans makes the spans of records and sends them to the collector that the environment names.
// from is where the records come from.
func sendSpans(ctx context.Context, inv *process.Invocation, rec *record.Recording, from string) (err error) {
	x, err := export.New(export.Config{Mode: export.OTLP})
	if err != nil {
		return err
	}
	defer func() { // nothing waits any more, or nobody waits for it
		end, cancel := context.WithTimeout(ctx, flags.ExportPatience)
		defer cancel()
		if shut := x.Shutdown(end); err == nil {
			err = shut
		}
	}()
	_, err = tracing.Replay(x.Provider(), rec, func() error { // not faster than they leave
		if x.Stats().Waiting == 0 {
			return ctx.Err()
		}
		if err := x.Flush(ctx); err != nil {
			return errors.Join(err, ctx.Err())
		}
		return nil
	})
	s := x.Stats()
	switch {
	case err != nil:
		return fmt.Errorf("%d of the spans of %s were sent: %w", s.Written, from, err)
	case s.Lost() != "":
		return fmt.Errorf("%s: %s", from, s.Lost())
	}
	inv.Say("%d spans were sent", s.Written)
	return nil
}
