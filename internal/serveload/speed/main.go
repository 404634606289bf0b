// Command speed says what HTTP costs: it opens a model once and measures, in pairs and with the
// same expert slots,
//
//   - tokens a second of several texts at once, from a known prompt on: with the engine's
//     sequences, as "moeflux-actor bench" does it, and as streams over HTTP;
//   - the time until the first text of a known prompt, with Model.Generate and over HTTP.
//
// The clients read in the same process and take time of the same cores. It exits with 1 if HTTP has
// less than 95 % of the engine's tokens, or is more than 20 ms later.
//
//	go run ./internal/serveload/speed -model DIR -expert-memory 500000000
//
// Models of "moeflux-actor synth" need a tokenizer: link or copy one with as many tokens there.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/moeflux/moeflux-actor/internal/figures"
)

// What must hold.
const (
	leastShare = 0.95
	mostLater  = 20 * time.Millisecond
)

type options struct {
	model   string // "": the demo model
	experts int64  // bytes; 0: as many as there is memory for
	threads int

	texts, prompt, tokens, pairs int
	known, firsts                int  // tokens of the prompt whose first token is awaited, and how often
	generate                     bool // Model.Generate is measured as well

	profile string // a file for a profile of the processor while HTTP is measured; "": none
}

var errShort = errors.New("HTTP costs more than it may")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "speed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	o, err := parse(args)
	if err != nil {
		return err
	}
	b, err := open(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	info := b.model.Info()
	fmt.Fprintf(out, "%s: %d of %d slots, %d threads; %d texts of %d tokens after prompts of %d; a prompt of %d\n\n", info.Name, info.Slots, info.ExpertBytes/int64(info.SlotBytes), info.Threads, o.texts, o.tokens, o.prompt, o.known)
	speeds, err := b.speeds(ctx, out)
	if err != nil {
		return err
	}
	later, err := b.firsts(ctx, out)
	if err != nil {
		return err
	}
	return judge(out, speeds, later)
}

// judge prints what is kept, and returns errShort if something is not. later is in milliseconds.
func judge(out io.Writer, shares, later figures.Spread) error {
	fmt.Fprintf(out, "\nHTTP of the engine, by pair: %.3f (%.3f to %.3f); at least %.2f is wanted\n", shares.Median, shares.Min, shares.Max, leastShare)
	fmt.Fprintf(out, "first text later than the engine's, by pair: %.2f ms (%.2f to %.2f); at most %v is wanted\n", later.Median, later.Min, later.Max, mostLater)
	if shares.Median < leastShare || later.Median > float64(mostLater)/float64(time.Millisecond) {
		return errShort
	}
	return nil
}

func parse(args []string) (*options, error) {
	o := new(options)
	f := flag.NewFlagSet("speed", flag.ContinueOnError)
	f.StringVar(&o.model, "model", "", "a packed model with a tokenizer (default: the demo model)")
	f.Int64Var(&o.experts, "expert-memory", 0, "bytes for experts; less than all of them, so that they stream (default: what is free)")
	f.IntVar(&o.threads, "threads", 0, "threads that compute (default: the cores)")
	f.IntVar(&o.texts, "texts", 16, "texts at once")
	f.IntVar(&o.prompt, "prompt", 64, "tokens of their prompts")
	f.IntVar(&o.tokens, "tokens", 64, "new tokens of each")
	f.IntVar(&o.pairs, "pairs", 5, "how often all ways are measured")
	f.IntVar(&o.known, "known", 512, "tokens of the prompt whose first text is awaited")
	f.IntVar(&o.firsts, "firsts", 20, "how often it is awaited, each way")
	f.BoolVar(&o.generate, "generate", false, "measure several texts of Model.Generate, too: what is lost before HTTP")
	f.StringVar(&o.profile, "profile", "", "a file for a profile of the processor while HTTP is measured")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("%q is no flag", f.Arg(0))
	}
	for name, n := range map[string]int{"texts": o.texts, "prompt": o.prompt, "tokens": o.tokens, "pairs": o.pairs, "known": o.known, "firsts": o.firsts} {
		if n < 2 && (name == "prompt" || name == "known") || n < 1 {
			return nil, fmt.Errorf("-%s %d is too few", name, n)
		}
	}
	return o, nil
}

// profiled runs f, with a profile of the processor if one is wanted. Only the last run's is kept.
func (o *options) profiled(f func() error) error {
	if o.profile == "" {
		return f()
	}
	to, err := os.Create(o.profile)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(to); err != nil {
		return errors.Join(err, to.Close())
	}
	err = f()
	pprof.StopCPUProfile()
	return errors.Join(err, to.Close())
}
