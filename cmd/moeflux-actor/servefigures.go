package main

import (
	"context"

	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/server"
	"github.com/moeflux/moeflux-actor/tracing/export"
)

// figures has a server count what it does, and trace it where the model's engine is traced. done
// sends the last figures to the collector that the environment names.
func (c *serveCmd) figures(ctx context.Context, inv *process.Invocation, spans *export.Exporter, o *server.Options) (done func(), err error) {
	counts, err := export.NewMetrics(export.MetricsConfig{Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	o.Meters, o.Figures = counts.Provider(), counts
	if spans != nil {
		o.Tracer = spans.Provider()
		if err := spans.Report(o.Meters); err != nil {
			return nil, err
		}
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flags.ExportPatience)
		defer cancel()
		if err := counts.Shutdown(ctx); err != nil {
			inv.Say("the last figures were not sent: %s", flags.OneLine(err))
		}
	}, nil
}
