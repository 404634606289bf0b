package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/moeflux/moeflux-actor/internal/certs"
	"github.com/moeflux/moeflux-actor/internal/process"
)

type certsCmd struct {
	Dir   string   `arg:"" placeholder:"DIR" help:"The folder of the authority. It is made if it does not exist."`
	Names []string `arg:"" optional:"" name:"NAME" help:"Hosts, by the name or address that engines dial, without a port."`
	Days  int      `default:"365" placeholder:"N" help:"For how many days the certificates hold. Default: 365. The authority holds for ten years."`
	Renew bool     `help:"Replace the certificates of the hosts that are named or, if none is, that of engines."`
	JSON  bool     `name:"json" help:"Print one JSON object: authority, engine and hosts, each with name, cert, key, expires and made."`
}

// certsResult is what certs prints.
type certsResult struct {
	Authority certs.Files   `json:"authority"`
	Engine    certs.Files   `json:"engine"`
	Hosts     []certs.Files `json:"hosts"`
}

// Run makes certificates, and an authority if there is none.
func (c *certsCmd) Run(_ context.Context, inv *process.Invocation) error {
	if c.Days < 1 {
		return process.Usagef("--days %d: must be 1 or more", c.Days)
	}
	for _, name := range c.Names {
		if err := certs.CheckName(name); err != nil {
			return process.Usage(err)
		}
	}
	a, err := certs.Open(c.Dir, inv.Env.Now())
	if err != nil {
		return err
	}
	r := certsResult{Authority: a.Files, Hosts: []certs.Files{}}
	var made []certs.Files
	r.Engine, made, err = a.Make(c.Names, certs.Wish{Days: c.Days, Renew: c.Renew})
	if exists, ok := errors.AsType[*certs.ExistsError](err); ok {
		return process.Usagef("%v; give --renew to replace it and its key, or leave the name out", exists)
	}
	if err != nil {
		return err
	}
	r.Hosts = append(r.Hosts, made...)
	return inv.Print(c.JSON, &r, r.text)
}

// text is the result for people, with what to do next.
func (r *certsResult) text() string {
	var b strings.Builder
	say := func(f *certs.Files, what string) {
		verb := "kept"
		if f.Made {
			verb = "made"
		}
		fmt.Fprintf(&b, "%s %s and %s: %s, until %s\n", verb, f.Cert, f.Key, what, f.Expires.Format(time.DateOnly))
	}
	say(&r.Authority, "the authority; the key stays here, for further certificates")
	say(&r.Engine, "for engines")
	for i := range r.Hosts {
		say(&r.Hosts[i], "for the host "+r.Hosts[i].Name)
	}
	var addrs []string
	ca := r.Authority.Cert
	for _, f := range r.Hosts {
		addr, cert, key := net.JoinHostPort(f.Name, "8090"), filepath.Base(f.Cert), filepath.Base(f.Key)
		addrs = append(addrs, addr)
		fmt.Fprintf(&b, "\nOn %s, with %s, %s and %s:\n    %s host DIR --addr %s --tls-cert %s --tls-key %s --tls-ca %s\n", f.Name, filepath.Base(ca), cert, key, process.Program, addr, cert, key, filepath.Base(ca))
	}
	if len(addrs) > 0 {
		fmt.Fprintf(&b, "\nWhere the text runs:\n    %s run --model DIR -p PROMPT --hosts %s --hosts-cert %s --hosts-key %s --hosts-ca %s\n", process.Program, strings.Join(addrs, ","), r.Engine.Cert, r.Engine.Key, ca)
	}
	return b.String()
}
