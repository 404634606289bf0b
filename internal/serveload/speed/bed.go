package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/bench"
	"github.com/moeflux/moeflux-actor/server"
	"github.com/moeflux/moeflux-actor/tracing/export"
)

// bed is what is measured: a model, and a server of it.
type bed struct {
	o      *options
	model  *moeflux.Model
	trials bench.Trials            // with the model's own engine
	prompt func(k, n int) []int32  // the first n tokens of prompt k
	client *http.Client            // as many connections as texts
	url    string                  // of the server
	stop   context.CancelCauseFunc // ends the server
	ended  chan error              // that the server has ended
}

// open opens the model, and starts the server as serve does.
func open(ctx context.Context, o *options) (_ *bed, err error) {
	dir := o.model
	if dir == "" {
		if dir, err = moeflux.DemoDir(ctx, ""); err != nil {
			return nil, err
		}
	}
	m := moeflux.Options{Threads: o.threads, Tuned: "off"}
	m.Config.ExpertMemory = o.experts
	m.Config.Context = max(o.prompt+o.tokens, o.known+firstTokens)
	if m.Config.ExpertMemory > 0 {
		m.Config.ExpertIO = actors.ExpertIOBuffered
	}
	b := &bed{o: o, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: o.texts, DisableCompression: true}}}
	if b.model, err = moeflux.Open(ctx, dir, m); err != nil {
		return nil, err
	}
	m.Config.Model = dir
	engine := &bench.Model{
		Config: m.Config, Engine: b.model.Engine(), Close: func() error { return nil },
		Span: func(ctx context.Context, _ string) (context.Context, func()) { return ctx, func() {} },
	}
	b.trials = bench.Trials{Host: &bench.Host{Now: time.Now}, Options: bench.Options{PromptTokens: []int{o.prompt}, GenTokens: o.tokens, Sequences: []int{o.texts}, Warmup: 1}, Opener: opener{engine}}
	if b.prompt, err = bench.Prompts(engine, o.prompt+o.tokens); err == nil {
		err = b.serve()
	}
	if err != nil {
		return nil, errors.Join(err, b.model.Close(ctx))
	}
	return b, nil
}

// opener gives trials an engine that is open, and stays so.
type opener struct{ model *bench.Model }

func (o opener) Open(context.Context, bench.Flags) (*bench.Model, error) { return o.model, nil }
func (o opener) Plan(context.Context, bench.Flags) (actors.Info, error) {
	return o.model.Engine.Info(), nil
}

// serve starts the server, with all that it counts and logs.
func (b *bed) serve() error {
	counts, err := export.NewMetrics(export.MetricsConfig{})
	if err != nil {
		return err
	}
	s, err := server.New(server.Options{
		Models: []server.Served{{Name: modelName, Model: b.model, Engine: func() server.Engine { return b.model.Engine() }}},
		Meters: counts.Provider(), Figures: counts, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(context.Background())
	b.stop, b.ended = stop, make(chan error, 1)
	told := make(chan string, 1)
	go func() {
		b.ended <- s.Listen(ctx, server.Listening{Addr: "127.0.0.1:0", Told: func(url string) { told <- url }})
	}()
	select {
	case b.url = <-told:
		return nil
	case err := <-b.ended:
		return err
	}
}

func (b *bed) close() error {
	b.client.CloseIdleConnections()
	b.stop(nil)
	return errors.Join(<-b.ended, b.model.Close(context.Background()))
}
