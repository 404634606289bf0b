package actors

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unsafe"

	"github.com/moeflux/moeflux-actor/actors/remote"
	"github.com/moeflux/moeflux-actor/actors/remote/frame"
	"github.com/moeflux/moeflux-actor/actors/remote/hostlist"
	"github.com/moeflux/moeflux-actor/actors/remote/secrets"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/fingerprint"
	"github.com/moeflux/moeflux-actor/io/modelfiles"
	"github.com/moeflux/moeflux-actor/stages/dispatch"
	"github.com/moeflux/moeflux-actor/stages/expertio"
)

// secrets returns how the engine and its hosts know each other.
func (c *Config) secrets() *secrets.Files {
	return &secrets.Files{TokenFile: c.HostsToken, Cert: c.HostsCert, Key: c.HostsKey, CA: c.HostsCA, Insecure: c.HostsInsecure}
}

// hostAddrs returns the addresses of the expert hosts that are named, or says which cannot be.
func (c *Config) hostAddrs() (addrs []string, err error) {
	for _, list := range []struct{ name, text string }{{"Config.Hosts", c.Hosts}, {"Config.HostsJoin", c.HostsJoin}} {
		all, err := hostlist.Read(list.text)
		if err != nil {
			return nil, fmt.Errorf("actors: %s: %w", list.name, err)
		}
		for _, l := range all {
			err := c.checkHost(l.Addr)
			if err != nil && l.Line > 0 {
				err = fmt.Errorf("%s:%d: %w", list.text, l.Line, err)
			}
			if err != nil {
				return nil, fmt.Errorf("actors: %s: %w", list.name, err)
			}
			if !slices.Contains(addrs, l.Addr) {
				addrs = append(addrs, l.Addr)
			}
		}
	}
	if len(addrs) > expertio.MaxHosts {
		return nil, fmt.Errorf("actors: Config.Hosts and Config.HostsJoin name %d hosts; there can be %d at most", len(addrs), expertio.MaxHosts)
	}
	if len(addrs) > 0 && c.Resident == ResidentOn {
		return nil, fmt.Errorf("actors: Config.Resident is on, and Config.Hosts or Config.HostsJoin names expert hosts; leave one of them out")
	}
	return addrs, nil
}

// checkHost reports an address that is none, or that must not be dialled.
func (c *Config) checkHost(addr string) error {
	err := c.secrets().CheckAddr(addr)
	if errors.Is(err, secrets.ErrUnprotected) {
		err = fmt.Errorf("%w (Config.HostsCert, Config.HostsKey and Config.HostsCA; or Config.HostsInsecure)", err)
	}
	return err
}

// prepareHosts reads what hosts must know, and computes what they must answer to be asked. Where
// every expert is in memory here nobody is asked.
func (e *Engine) prepareHosts(cfg Config) error {
	all, err := cfg.hostAddrs()
	if err != nil || len(all) == 0 {
		return err
	}
	if !e.info.ExpertIO.Streams() {
		cfg.Logger.Warn("expert hosts are not asked: all experts are in this machine's memory", "hosts", strings.Join(all, ","))
		return nil
	}
	to, err := hostConfig(&cfg, all, &modelfiles.Files{Config: e.model, Weights: e.weights, Experts: e.experts}, e.identity.own)
	if err != nil {
		return err
	}
	to.Send = e.rt.Send
	e.hosts = remote.New(to)
	return nil
}

// hostConfig is what to dial hosts with, but for who is told.
func hostConfig(cfg *Config, addrs []string, f *modelfiles.Files, own func() (fingerprint.Fingerprint, error)) (to remote.Config, err error) {
	m := f.Config
	to = remote.Config{
		Hosts: addrs, Shape: frame.Shape{Layers: len(m.Layers), Experts: m.NumExperts, Hidden: m.HiddenSize}, Patience: cfg.HostPatience, Log: cfg.Logger,
		Sums: cfg.HostsSum,
	}
	if cfg.HostsJoin != "" {
		to.Most, to.Check = expertio.MaxHosts, cfg.checkHost
	}
	if to.Token, err = cfg.secrets().Token(); err != nil {
		return to, err
	}
	if to.TLS, err = cfg.secrets().Client(); err != nil {
		return to, err
	}
	print, err := own()
	if err != nil {
		return to, err
	}
	to.Fingerprint = print
	to.Groups = roundedGroups(cfg.Device, f)
	if to.Probe, err = probeHosts(cfg.Device, f); err != nil {
		return to, fmt.Errorf("actors: what expert hosts are compared with: %w", err)
	}
	return to, nil
}

// roundedGroups returns, of each layer, how many numbers of a row the device rounds together for
// its experts, if it uses nothing else of them; 0 if it uses the numbers.
func roundedGroups(dev gpu.Device, f *modelfiles.Files) []int {
	groups := make([]int, len(f.Config.Layers))
	if p, ok := dev.(gpu.Processor); !ok || p.Activations() != "int8" {
		return groups
	}
	for _, i := range f.Experts.Layers() {
		l := f.Experts.LayoutOf(i)
		if g := l.Gate.Format.Rounded(); g == l.Up.Format.Rounded() {
			groups[i] = g
		}
	}
	return groups
}

// probeRows is the rows that hosts are tried with: more than one, since kernels differ there.
const probeRows = 3

// alignedBytes returns n bytes that direct reads can fill.
func alignedBytes(n int) []byte {
	all := make([]byte, n+expertfile.DirectAlign)
	at := int(-uintptr(unsafe.Pointer(unsafe.SliceData(all))) % expertfile.DirectAlign)
	return all[at : at+n]
}

// probeHosts computes two experts, the first of the first layer that has some and the last of it.
func probeHosts(dev gpu.Device, f *modelfiles.Files) (*remote.Probe, error) {
	m, layer := f.Config, f.Experts.Layers()[0]
	q := &frame.Question{Layer: layer, Group: roundedGroups(dev, f)[layer], Urgent: true, Inputs: make([]float32, probeRows*m.HiddenSize)}
	for i := range q.Inputs {
		q.Inputs[i] = float32(math.Sin(float64(i)))
	}
	q.Uses = []frame.Use{{Expert: 0, Rows: []int32{0, 1, 2}}, {Expert: m.NumExperts - 1, Rows: []int32{1}}}
	p := &remote.Probe{Question: q, Want: make([]float32, 4*m.HiddenSize)}
	queue, err := dev.NewQueue()
	if err != nil {
		return nil, err
	}
	defer queue.Close()
	lender, err := dispatch.NewLender(m, f.Experts.LayoutOf, dev, queue, f.Weights)
	if err != nil {
		return nil, err
	}
	defer lender.Close()
	work, bench := &dispatch.Lent{Layer: layer, Inputs: q.Inputs}, lender.NewBench()
	defer bench.Release()
	n := f.Experts.Layout().Bytes
	records, err := dev.NewBuffer(2 * n)
	if err != nil {
		return nil, err
	}
	defer records.Release()
	var cmd gpu.Commands
	bytes := alignedBytes(2 * n)
	for i, u := range q.Uses {
		if err := f.Experts.ReadExpert(layer, u.Expert, bytes[i*n:(i+1)*n]); err != nil {
			return nil, err
		}
		work.Experts = append(work.Experts, dispatch.LentExpert{Expert: u.Expert, View: gpu.View{Buf: records, Offset: i * n}, Rows: u.Rows})
	}
	gpu.Encode(&cmd, gpu.Upload{Dst: gpu.View{Buf: records}, Src: bytes})
	if err := bench.Encode(&cmd, work, p.Want); err != nil {
		return nil, err
	}
	t, err := queue.Submit(&cmd)
	if err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	t.OnDone(func(err error) { done <- err })
	return p, <-done
}
