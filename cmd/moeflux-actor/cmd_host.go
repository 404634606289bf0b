package main

import (
	"context"
	"errors"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/actors/remote/host"
	"github.com/moeflux/moeflux-actor/actors/remote/hostlist"
	"github.com/moeflux/moeflux-actor/actors/remote/secrets"
	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/tracing/export"
)

type hostCmd struct {
	Dir  string `arg:"" placeholder:"DIR|FILE.gguf" help:"The packed model directory or GGUF file: the same as that of the engines."`
	Addr string `default:"127.0.0.1:8090" placeholder:"HOST:PORT" help:"Where to listen. Port 0 picks one. Default: 127.0.0.1:8090, which this machine alone reaches. Others need TLS."`

	Join      string `placeholder:"LIST|FILE" help:"Join the group of these hosts: host:port, separated by commas, or a file with one on each line. An engine that knows one host of a group (--hosts-join) finds all of them. On several machines hosts need --token-file for that, or --insecure; they also use UDP, at the same port. Default: none, though other hosts may join this one."`
	Advertise string `placeholder:"HOST:PORT" help:"The address at which engines and other hosts of the group reach this one. Default: that of --addr."`

	TLSCert   string `name:"tls-cert" placeholder:"FILE" help:"The certificate of the host, in PEM."`
	TLSKey    string `name:"tls-key" placeholder:"FILE" help:"The key of that certificate, in PEM."`
	TLSCA     string `name:"tls-ca" placeholder:"FILE" help:"The authorities that certificates of engines must come from, in PEM."`
	TokenFile string `name:"token-file" placeholder:"FILE" help:"A text, of at least 16 bytes, that engines must know (--hosts-token). Default: none."`
	Insecure  bool   `help:"Lets other machines ask without encryption: who sees the network reads what is sent, and may change it."`

	ExpertsDir   string        `name:"experts-dir" placeholder:"DIR" help:"A folder of expert files in place of the model's own."`
	ExpertMemory flags.Size    `placeholder:"SIZE" help:"The most bytes for experts, of the GPU's memory if one computes. Default: what is free when the host starts, limits of cgroups counted, less a sixteenth."`
	HostMemory   flags.Size    `placeholder:"SIZE" help:"With a GPU: the most bytes of this machine's memory for experts between the disk and the GPU. Default: what is free when the host starts, less a sixteenth."`
	ExpertIO     string        `name:"expert-io" placeholder:"NAME" help:"How experts are read: auto, mmap, loaded, direct or buffered. Default: auto."`
	ReadWorkers  int           `placeholder:"N" help:"The number of parallel reads. Default: up to 4 past the page cache, 8 through it, and fewer where the disk is faster then."`
	Device       string        `default:"auto" placeholder:"NAME" help:"What computes: auto, host (the processor), cuda, metal or emu, as with run. Engines ask only a host that computes their bits, so both need the same kind. One device: a host for each of several. Default: auto."`
	Threads      int           `placeholder:"N" help:"Compute threads of the processor. Default: the cores this process may use, as many as a CPU quota allows at the time."`
	Activations  string        `placeholder:"KIND" help:"How matrices are multiplied, int8 or f32: as by the engines. Default: int8 on the processor, f32 on a GPU."`
	CacheDir     string        `placeholder:"DIR" help:"Where the kernels of a GPU are kept. Default: moeflux-actor in the user's cache folder."`
	DrainTimeout time.Duration `default:"5s" placeholder:"TIME" help:"How long answers under way may take after the first signal. Default: 5s."`
	LogLevel     string        `default:"warn" placeholder:"LEVEL" help:"The lowest level that is logged to stderr: debug, info, warn or error."`
	LogFormat    string        `default:"text" placeholder:"KIND" help:"How log lines look: text or json."`
}

// engine returns the flags of an engine that opens the same device and model.
func (c *hostCmd) engine() *flags.Engine {
	e := &flags.Engine{Model: c.Dir}
	e.Device, e.Threads, e.Activations, e.CacheDir = c.Device, c.Threads, c.Activations, c.CacheDir
	e.ExpertsDir, e.ExpertMemory, e.HostMemory, e.ExpertIO, e.ReadWorkers = c.ExpertsDir, c.ExpertMemory, c.HostMemory, c.ExpertIO, c.ReadWorkers
	e.Tuned, e.Profile, e.Trace, e.TraceSample, e.LogLevel, e.LogFormat = moeflux.TunedOff, flags.ProfileOff, export.Off, 1, c.LogLevel, c.LogFormat
	return e
}

// Run serves engines until a signal comes.
func (c *hostCmd) Run(ctx context.Context, inv *process.Invocation) (err error) {
	e, keys := c.engine(), secrets.Files{TokenFile: c.TokenFile, Cert: c.TLSCert, Key: c.TLSKey, CA: c.TLSCA, Insecure: c.Insecure}
	if err := e.Check(); err != nil {
		return err
	}
	switch err := keys.CheckAddr(c.Addr); {
	case errors.Is(err, secrets.ErrUnprotected):
		return process.Usagef("--addr: %v (--tls-cert, --tls-key and --tls-ca; or --insecure)", err)
	case err != nil:
		return process.Usagef("--addr: %v", err)
	}
	join, err := c.join(&keys)
	if err != nil {
		return err
	}
	if err := keys.Expired(inv.Env.Now()); err != nil {
		return err
	}
	cfg, err := e.Configure(ctx, inv, e.Logger(inv.Stderr))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cfg.Device.Close()) }()
	h, err := host.Open(ctx, host.Config{
		Model: cfg.Model, ExpertsDir: cfg.ExpertsDir, Device: cfg.Device, ExpertMemory: cfg.ExpertMemory, HostMemory: cfg.HostMemory, ExpertIO: c.ExpertIO, ReadWorkers: cfg.ReadWorkers,
		Secrets: keys, Join: join, Advertise: c.Advertise, Logger: cfg.Logger,
	})
	if err != nil {
		return err
	}
	err = c.serve(ctx, inv, h)
	patience, cancel := context.WithTimeout(context.Background(), c.DrainTimeout)
	defer cancel()
	return errors.Join(err, h.Close(patience))
}

// join returns the hosts whose group this one joins, or says why it cannot.
func (c *hostCmd) join(keys *secrets.Files) (addrs []string, err error) {
	all, err := hostlist.Read(c.Join)
	if err != nil {
		return nil, process.Usagef("--join: %v", err)
	}
	for _, l := range all {
		if err := keys.CheckAddr(l.Addr); err != nil {
			return nil, process.Usagef("--join: %v (--tls-cert, --tls-key and --tls-ca; or --insecure)", err)
		}
		addrs = append(addrs, l.Addr)
	}
	if len(addrs) > 0 || c.Advertise != "" {
		if err := host.CheckAdvertise(c.Addr, c.Advertise); err != nil {
			at := "--addr"
			if c.Advertise != "" {
				at = "--advertise"
			}
			return nil, process.Usagef("%s: %v", at, err)
		}
	}
	if len(addrs) == 0 {
		return nil, nil
	}
	if err := keys.CheckGroup(c.Addr); err != nil {
		return nil, process.Usagef("--join: %v (--token-file, or --insecure)", err)
	}
	return addrs, nil
}

// serve takes engines until a signal comes or the host breaks.
func (c *hostCmd) serve(ctx context.Context, inv *process.Invocation, h *host.Host) error {
	l, err := h.Listen(c.Addr)
	if err != nil {
		return err
	}
	inv.Say("serving %s; listening on %s", h.Describe(), l.Addr())
	served := make(chan error, 1)
	go func() { served <- h.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
		return errors.Join(l.Close(), <-served)
	}
}
