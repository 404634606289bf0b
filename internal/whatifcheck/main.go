// Command whatifcheck measures how well a recorded run predicts other settings (tracing/whatif).
// Of each of some subjects (a model, how much of its experts memory holds, how many texts at once)
// it decodes the same text with the engine's defaults and with other settings, several times in
// turns, predicts all of them from the recording of the defaults, and prints the predictions beside
// the medians.
//
//	go run ./internal/whatifcheck -dir /var/tmp/whatif
//	go run ./internal/whatifcheck -dir /var/tmp/whatif -for 90s
//	go run ./internal/whatifcheck -dir /var/tmp/whatif -predict
//	go run ./internal/whatifcheck -dir /var/tmp/whatif -device cuda
//
// Each run is kept in the folder as soon as it is measured, and none is measured again: -for ends
// the measuring after a time, and the next call goes on. -predict measures nothing and predicts
// anew what has been measured.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type options struct {
	dir           string
	device        string
	subjects      []subject
	runs          int
	limit         time.Duration
	others        float64 // the largest share of the processors that other programs may use
	predict       bool
	markdown      bool
	measureNoMore time.Time // zero: no limit
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "whatifcheck:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.limit > 0 {
		o.measureNoMore = time.Now().Add(o.limit)
	}
	var all []*table
	left := 0
	for _, s := range o.subjects {
		r, err := o.results(s)
		if err != nil {
			return err
		}
		if !o.predict {
			if err := o.measure(ctx, r); err != nil {
				return err
			}
		}
		if n := r.left(o.runs); n > 0 {
			left += n
			fmt.Fprintf(out, "%s: %d runs are not measured yet\n", s, n)
			continue
		}
		if o.limit > 0 { // the time is for measuring
			continue
		}
		t, err := r.table()
		if err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
		t.print(out)
		all = append(all, t)
	}
	switch {
	case len(all) > 0:
		printSum(all, out)
		if o.markdown {
			printMarkdown(all, out)
		}
	case left == 0:
		fmt.Fprintln(out, "all is measured")
	}
	return nil
}

func parse(args []string) (*options, error) {
	o := new(options)
	f := flag.NewFlagSet("whatifcheck", flag.ContinueOnError)
	f.StringVar(&o.dir, "dir", "", "the folder of models, measurements and recordings")
	f.StringVar(&o.device, "device", hostDevice, "the device, as --device of the command has it; measurements of each are kept apart")
	shapes := f.String("shapes", "qwen3-30b-a3b,qwen3.5-35b-a3b", "the shapes of the models")
	layers := f.Int("layers", 5, "the layers of the models")
	shares := f.String("shares", "25,50,75", "percent of the experts that memory holds")
	texts := f.String("texts", "1", "how many texts decode at once")
	f.IntVar(&o.runs, "runs", 3, "runs with each setting")
	f.DurationVar(&o.limit, "for", 0, "measure so long, and predict nothing (default: until all is measured)")
	f.Float64Var(&o.others, "others", 0.1, "runs during which other programs used more of the processors are done again; threads of the system that serve reads count among these")
	f.BoolVar(&o.predict, "predict", false, "measure nothing")
	f.BoolVar(&o.markdown, "markdown", false, "print a table for docs/experiments.md too")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if o.dir == "" || f.NArg() > 0 {
		return nil, errors.New("name the folder of models and measurements with -dir, and nothing else")
	}
	some, err := numbers(*shares, 99)
	if err != nil {
		return nil, fmt.Errorf("-shares: %w", err)
	}
	many, err := numbers(*texts, 8)
	if err != nil {
		return nil, fmt.Errorf("-texts: %w", err)
	}
	for _, n := range many {
		for shape := range strings.SplitSeq(*shapes, ",") {
			for _, share := range some {
				o.subjects = append(o.subjects, subject{Shape: shape, Layers: *layers, Share: share, Texts: n, Device: o.device})
			}
		}
	}
	return o, nil
}

// numbers reads a list of numbers from 1 to a bound.
func numbers(list string, most int) (all []int, err error) {
	for s := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > most {
			return nil, fmt.Errorf("%q is not a number from 1 to %d", s, most)
		}
		all = append(all, n)
	}
	return all, nil
}
