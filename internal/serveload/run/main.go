// Command run loads a server with clients as they are (package serveload), prints what came of it,
// and exits with 1 if a limit was broken. It starts the server itself: the program, with the demo
// model, whose experts stream through a small memory, in a cgroup that has no more than -memory.
// That needs root.
//
//	go build -o bin/ ./cmd/moeflux-actor
//	go run ./internal/serveload/run -program bin/moeflux-actor -for 10m
//	go run ./internal/serveload/run -url http://127.0.0.1:8080 -clients 50
//
// A server that runs already must have the keys that -keys prints.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/moeflux/moeflux-actor/internal/serveload"
)

type options struct {
	load      serveload.Load
	child     child
	printKeys bool
}

var errBroken = errors.New("the server broke a limit")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "serveload:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.printKeys {
		_, err := io.WriteString(out, o.load.Keys())
		return err
	}
	if o.load.URL == "" {
		if err := o.child.start(o.load.Keys()); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, o.child.stop()) }()
		o.load.URL = o.child.url
	}
	r, err := serveload.Run(ctx, o.load)
	if err != nil {
		return err
	}
	r.Print(out)
	if len(r.Broken) > 0 {
		err = errBroken
	}
	return errors.Join(err, o.child.held(out))
}

func parse(args []string) (*options, error) {
	o := &options{load: serveload.Load{Fair: []int{1, 2, 5, 20}}}
	f := flag.NewFlagSet("serveload", flag.ContinueOnError)
	f.StringVar(&o.load.URL, "url", "", "the server to load (default: one that is started)")
	f.IntVar(&o.load.Clients, "clients", 200, "how many ask; 28 of them have the four keys that are to be served alike")
	f.DurationVar(&o.load.Duration, "for", time.Minute, "how long they ask")
	f.Uint64Var(&o.load.Seed, "seed", 1, "of what they choose to do")
	f.BoolVar(&o.printKeys, "keys", false, "print the keys that a server must have, for its --api-key-file, and do nothing else")
	f.StringVar(&o.child.program, "program", "bin/moeflux-actor", "the program to start")
	f.StringVar(&o.child.model, "model", "", "a packed model (default: the demo model)")
	f.StringVar(&o.child.experts, "expert-memory", "3MiB", "the server's memory for experts; less than all of them, so that they stream")
	f.IntVar(&o.child.texts, "texts", 4, "how many texts the server computes at once; all others wait")
	f.IntVar(&o.child.cores, "cores", 2, "how many cores the server uses")
	f.StringVar(&o.child.log, "log", "", "a file for what the server says")
	limit := f.Int64("memory", 512, "the most MiB that the server that is started may have: of its cgroup, page cache included")
	f.BoolVar(&o.child.soft, "soft", false, "without a cgroup: the server's GOMEMLIMIT is three quarters of -memory, and what it has resident is compared")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("%q is no flag", f.Arg(0))
	}
	if o.load.URL == "" { // a server that runs already has a limit of its own
		o.load.Limits.Memory, o.child.memory = *limit<<20, *limit<<20
	}
	return o, nil
}
