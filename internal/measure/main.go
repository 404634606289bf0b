// Command measure makes the table of models that are bigger than memory: for each shape, routing
// and share of the model's size it puts the program under a memory limit (a cgroup of its own,
// version 1 or 2, cached file pages counted), drops the page cache, and lets bench --cold decode.
// It prints the median speed beside that of other programs, and beside what disk and memory would
// allow.
//
//	go build -o bin/moeflux-actor ./cmd/moeflux-actor
//	sudo go run ./internal/measure -program bin/moeflux-actor -models /var/tmp/models
//	sudo go run ./internal/measure -models /var/tmp/models -shapes qwen3-30b-a3b -shares 25 -runs 5 -- --read-workers 4
//
// synth makes the models that are missing, some 20 GB a shape; the routings of a shape share the
// files of their experts. Flags after -- go to bench. It needs root on Linux. Rows take turns, so
// that a disturbance of the machine hits them all alike.
//
// measure plot draws speeds that were measured, of this program and others, against the share of
// the model that memory holds. It needs no root.
//
//	go run ./internal/measure plot docs/speed.json docs/speed.svg
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
	"strconv"
	"strings"
	"syscall"
)

// options are the command line.
type options struct {
	program, models string
	shapes, routes  []string
	shares          []int // percent of the model's size
	layers          int   // 0 means the shape's own
	prompt, gen     int
	runs            int
	hold            bool // take the memory before a run, so that the host has it ready
	json            string
	bench           []string // further flags of bench
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

// run is the whole program but for signals.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 && args[0] == "plot" {
		return runPlot(args[1:])
	}
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	groups, err := findGroups("/", os.Geteuid())
	if err != nil {
		return err
	}
	m := &measurer{o: o, groups: groups, progress: stderr}
	rows, err := m.measure(ctx)
	if len(rows) > 0 { // also those that were measured before an interruption
		if err := errors.Join(writeTable(stdout, o, rows), writeJSON(o.json, rows)); err != nil {
			return err
		}
	}
	return err
}

// parse reads the command line.
func parse(args []string, stderr io.Writer) (*options, error) {
	var (
		o                      options
		shapes, routes, shares string
	)
	f := flag.NewFlagSet("measure", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.program, "program", "bin/moeflux-actor", "the program to measure")
	f.StringVar(&o.models, "models", "", "the folder of the models; missing ones are made")
	f.StringVar(&shapes, "shapes", "qwen3-30b-a3b,qwen3.5-35b-a3b", "the models' shapes")
	f.StringVar(&routes, "routes", "mild,uniform", "the laws of routing")
	f.StringVar(&shares, "shares", "25,50", "the limits, in percent of the model's size")
	f.IntVar(&o.layers, "layers", 0, "layers of the models; fewer than the shape's own for a trial")
	f.IntVar(&o.prompt, "prompt-tokens", 8, "tokens of the prompt")
	f.IntVar(&o.gen, "gen-tokens", 64, "tokens decoded")
	f.IntVar(&o.runs, "runs", 3, "cold runs of every row")
	f.BoolVar(&o.hold, "hold", false, "before each run, take as much memory as the limit and release it as the program grows; for virtual machines that return free memory to their host")
	f.StringVar(&o.json, "json", "", "also write all figures to this file")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	o.shapes, o.routes, o.bench = strings.Split(shapes, ","), strings.Split(routes, ","), f.Args()
	for _, s := range strings.Split(shares, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > 100 {
			return nil, fmt.Errorf("-shares %s must be percentages like 25,50", shares)
		}
		o.shares = append(o.shares, n)
	}
	switch {
	case o.models == "":
		return nil, errors.New("-models is missing; give the folder of the models")
	case o.layers < 0 || o.prompt < 1 || o.gen < 1 || o.runs < 1:
		return nil, errors.New("-layers, -prompt-tokens, -gen-tokens and -runs must be positive")
	}
	var err error
	if o.program, err = filepath.Abs(o.program); err != nil {
		return nil, err
	}
	if _, err := os.Stat(o.program); err != nil {
		return nil, fmt.Errorf("-program: %w; build it with go build -o bin/moeflux-actor ./cmd/moeflux-actor", err)
	}
	return &o, nil
}
