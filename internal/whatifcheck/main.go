// Command whatifcheck measures how well a recorded run predicts other settings (tracing/whatif).
// For each share of a model's experts that memory holds, it decodes the same text with the engine's
// defaults and with each of some other settings, several times in turns, predicts all of them from
// the recording of the defaults, and prints the predictions beside the medians.
//
//	go run ./internal/whatifcheck -shape qwen3-30b-a3b -layers 4 -dir /var/tmp/models
//	go run ./internal/whatifcheck -sum a.json b.json
//	go run ./internal/whatifcheck -again -record /var/tmp/recordings a.json b.json
//
// synth makes a model that is missing. With -json the results are written to a file, and -sum
// prints what several files come to; -again predicts anew from recordings that -record kept.
package main

import (
	"context"
	"encoding/json"
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

	"github.com/moeflux/moeflux-actor/io/synth"
)

type options struct {
	shape, dir, route string
	layers, vocab     int
	shares            []int // percent of the experts
	warm, prompt      int
	gen, runs         int
	json              string
	record            string
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
	var o options
	var shares string
	f := flag.NewFlagSet("whatifcheck", flag.ContinueOnError)
	f.StringVar(&o.shape, "shape", "qwen3-30b-a3b", "the shape of the model")
	f.StringVar(&o.dir, "dir", "", "the folder of the models")
	f.StringVar(&o.route, "route", "mild", "how its tokens use experts")
	f.IntVar(&o.layers, "layers", 6, "the layers of the model")
	f.IntVar(&o.vocab, "vocab", 16384, "the size of its vocabulary")
	f.StringVar(&shares, "shares", "25,50,75", "percent of the experts that memory holds")
	f.IntVar(&o.warm, "warm", 160, "the tokens of a prompt that comes before, which fills all slots")
	f.IntVar(&o.prompt, "prompt", 8, "the tokens of the prompt")
	f.IntVar(&o.gen, "gen", 80, "the tokens that are decoded")
	f.IntVar(&o.runs, "runs", 3, "runs with each setting")
	f.StringVar(&o.json, "json", "", "where the results go besides")
	f.StringVar(&o.record, "record", "", "a folder for the recordings of the defaults")
	sum := f.Bool("sum", false, "print what the results in files come to")
	again := f.Bool("again", false, "like -sum, with new predictions from the recordings in the folder of -record")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *sum || *again {
		return o.sumUp(f.Args(), *again, out)
	}
	if o.dir == "" || f.NArg() > 0 {
		return errors.New("name the folder of the models with -dir, and nothing else")
	}
	for s := range strings.SplitSeq(shares, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > 99 {
			return fmt.Errorf("%q is not a share in percent", s)
		}
		o.shares = append(o.shares, n)
	}
	return o.check(ctx, out)
}

// check measures all shares and prints what that comes to.
func (o *options) check(ctx context.Context, out io.Writer) error {
	model, err := o.model(ctx)
	if err != nil {
		return err
	}
	var all []*table
	for _, share := range o.shares {
		t, err := o.measure(ctx, model, share)
		if err != nil {
			return err
		}
		t.print(out)
		all = append(all, t)
	}
	printSum(all, out)
	if o.json == "" {
		return nil
	}
	text, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(o.json, text, 0o644)
}

// model returns the model's directory, and makes the model if it is missing.
func (o *options) model(ctx context.Context) (string, error) {
	dir := filepath.Join(o.dir, fmt.Sprintf("%s-%d-%d-%s", o.shape, o.layers, o.vocab, o.route))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	shape, err := synth.Named(o.shape)
	if err != nil {
		return "", err
	}
	return dir, synth.Write(ctx, dir, synth.Options{Shape: shape, Layers: o.layers, Vocab: o.vocab, Seed: 1, Route: synth.Route(o.route)}, nil)
}

// sumUp prints what files of results come to together.
func (o *options) sumUp(files []string, again bool, out io.Writer) error {
	var all []*table
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		var t []*table
		if err := json.Unmarshal(text, &t); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, t...)
	}
	for _, t := range all {
		if again {
			if err := t.again(o.record); err != nil {
				return err
			}
		}
		t.print(out)
	}
	printSum(all, out)
	return nil
}
