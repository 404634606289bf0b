// Command faults breaks what lies below the program while it runs. Every token of its synthetic
// model is known, so it sees whether the program carries on correctly, or says in time and by name
// what is wrong:
//
//   - memory: the limit of its cgroup drops while it decodes. It gives up expert slots, goes on
//     with the same tokens, and is not killed.
//   - stall: its disk does not answer for seconds. It waits and goes on with the same tokens.
//   - dead: its disk does not answer for longer than --read-timeout. It ends in time with an error
//     that says so, although the disk is still silent.
//   - cancel: it is interrupted while its disk does not answer. It stops at once.
//   - two: two of them read one model at once.
//
// The disk is silenced for the program alone, by throttling its cgroup to a byte a second.
//
//	go build -o bin/moeflux-actor ./cmd/moeflux-actor
//	bin/moeflux-actor synth --shape qwen3-30b-a3b --layers 2 --vocab 8192 /var/tmp/small
//	sudo go run ./internal/faults -program bin/moeflux-actor -model /var/tmp/small
//
// It needs root on Linux, with cgroups for memory and disks (version 1 or 2). Without them it fails
// and says what is missing: only -only leaves a fault out.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/moeflux/moeflux-actor/internal/cgroup"
)

// options are the command line.
type options struct {
	program, model string
	only           []string
	tokens         int           // of a run that meets a fault
	stall          time.Duration // how long the disk does not answer
	share          int           // percent of an undisturbed run's memory that is left
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

// run is the whole program except for signals.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	b := &breaker{o: o, out: stdout}
	if b.memory, err = cgroup.FindMemory("/", os.Geteuid()); err != nil {
		return err
	}
	if b.io, err = cgroup.FindIO("/", os.Geteuid()); err != nil {
		return err
	}
	if b.disk, err = diskOf("/", filepath.Join(o.model, "packed_experts")); err != nil {
		return err
	}
	return b.all(ctx)
}

// parse reads the command line.
func parse(args []string, stderr io.Writer) (*options, error) {
	var (
		o    options
		only string
	)
	f := flag.NewFlagSet("faults", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.program, "program", "bin/moeflux-actor", "the program")
	f.StringVar(&o.model, "model", "", "a model that synth made, with experts of some 500 MB at least")
	f.StringVar(&only, "only", "", "the faults to try, of "+strings.Join(names(), ",")+"; all of them if not given")
	f.IntVar(&o.tokens, "tokens", 6000, "tokens to decode under a fault; more if the run is over before the fault is")
	f.DurationVar(&o.stall, "stall", 4*time.Second, "how long the disk does not answer")
	f.IntVar(&o.share, "share", 60, "what is left of the memory that the program has without a limit, in percent")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case f.NArg() > 0:
		return nil, fmt.Errorf("%q is not a flag", f.Arg(0))
	case o.model == "":
		return nil, errors.New("-model is missing; make one with synth: " +
			"moeflux-actor synth --shape qwen3-30b-a3b --layers 2 --vocab 8192 DIR")
	case o.tokens < 16 || o.stall < 2*time.Second || o.share < 10 || o.share > 90:
		return nil, errors.New("-tokens must be 16 or more, -stall 2s or more, and -share 10 to 90")
	}
	o.only = names()
	if only != "" {
		o.only = strings.Split(only, ",")
	}
	for _, name := range o.only {
		if !slices.Contains(names(), name) {
			return nil, fmt.Errorf("-only %s: name some of %s", name, strings.Join(names(), ","))
		}
	}
	var err error
	for _, path := range []*string{&o.program, &o.model} {
		if *path, err = filepath.Abs(*path); err != nil {
			return nil, err
		}
	}
	if _, err := os.Stat(o.program); err != nil {
		return nil, fmt.Errorf("-program: %w; build it with go build -o bin/moeflux-actor ./cmd/moeflux-actor", err)
	}
	if _, err := os.Stat(filepath.Join(o.model, "synth.json")); err != nil {
		return nil, fmt.Errorf("-model: %w; make one with synth", err)
	}
	return &o, nil
}
