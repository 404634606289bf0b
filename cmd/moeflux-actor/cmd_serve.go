package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/internal/systemd"
	"github.com/moeflux/moeflux-actor/server"
	"github.com/moeflux/moeflux-actor/tracing/export"
)

type serveCmd struct {
	Addr         string        `default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Where to listen. Port 0 picks one. Default: 127.0.0.1:8080, which this machine alone reaches."`
	APIKeyFile   string        `name:"api-key-file" placeholder:"FILE" help:"The keys of those who may ask, one a line, with settings behind it: name=NAME, class=background, normal or interactive, weight=N (how large its shares are among those of its class), running=N (requests at once), queued=N (that wait for their turn), requests=N and tokens=N (a minute), admin=yes (may see /metrics and /debug). It is read again when it changes, and for SIGHUP. Default: none, or what MOEFLUX_API_KEYS holds in the same form."`
	OpenToAnyone bool          `help:"Lets anybody who reaches the server use it without a key, also from other machines."`
	Host         []string      `placeholder:"NAME" help:"A name by which clients may call the server, beside localhost and addresses in numbers."`
	Origin       []string      `placeholder:"URL" help:"A web page (scheme://host:port) that may ask from a browser."`
	TLSCert      string        `name:"tls-cert" placeholder:"FILE" help:"The certificate of the server, in PEM."`
	TLSKey       string        `name:"tls-key" placeholder:"FILE" help:"The key of that certificate, in PEM."`
	DrainTimeout time.Duration `default:"30s" placeholder:"TIME" help:"How long answers under way may take after the first signal. Default: 30s."`

	SharePrefixes bool `help:"What was read for one key need not be read again for another. The time of an answer then tells what others have asked."`

	configFlags
	fleetFlags     `group:"Models:"`
	flags.Settings `group:"Engine:"`
}

// Run serves until a signal comes.
func (c *serveCmd) Run(ctx context.Context, inv *process.Invocation, line *kong.Context) error {
	if c.PrintConfig {
		return printConfig(inv.Stdout, line)
	}
	if c.DrainTimeout < 0 {
		return process.Usagef("--drain-timeout %v: must be 0 or more", c.DrainTimeout)
	}
	o := server.Options{Hosts: c.Host, Origins: c.Origin, SharePrefixes: c.SharePrefixes, Logger: c.Logger(inv.Stderr), Now: inv.Env.Now}
	var err error
	if o.Keys, err = c.keys(inv); err != nil {
		return err
	}
	return c.withModels(ctx, inv, func(models []server.Served, spans *export.Exporter) error {
		o.Models = models
		return c.serve(ctx, inv, o, spans)
	})
}

func (c *serveCmd) serve(ctx context.Context, inv *process.Invocation, o server.Options, spans *export.Exporter) error {
	done, err := c.figures(ctx, inv, spans, &o)
	if err != nil {
		return err
	}
	defer done()
	srv, err := server.New(o)
	if err != nil {
		return process.Usage(err)
	}
	if c.APIKeyFile != "" {
		defer c.followKeys(ctx, srv)()
	}
	var names []string
	for i := range o.Models {
		names = append(names, o.Models[i].Name)
	}
	socket, err := systemd.Listener()
	if errors.As(err, new(*systemd.UnitError)) {
		return process.Usage(err)
	}
	if err != nil {
		return err
	}
	supervisor := systemd.Supervisor{Log: o.Logger}
	defer supervisor.Watch(ctx, srv.Alive)()
	return srv.Listen(ctx, server.Listening{
		Addr: c.Addr, Listener: socket, Anyone: c.OpenToAnyone, CertFile: c.TLSCert, KeyFile: c.TLSKey, Drain: c.DrainTimeout,
		Told: func(url string) {
			inv.Say("serving %s, listening on %s", strings.Join(names, ", "), url)
			supervisor.Ready(url)
		},
	})
}
