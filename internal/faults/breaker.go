package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/moeflux/moeflux-actor/internal/cgroup"
)

// breaker tries the faults.
type breaker struct {
	o          *options
	out        io.Writer
	memory, io *cgroup.Tree
	disk       string // MAJOR:MINOR
	made       int    // processes
}

// trial is one fault. It returns a line about the outcome.
type trial struct {
	name string
	try  func(*breaker, context.Context) (string, error)
}

var trials = []trial{
	{"memory", (*breaker).lowerMemory}, {"stall", (*breaker).stall}, {"dead", (*breaker).dead}, {"cancel", (*breaker).cancel}, {"two", (*breaker).two},
}

func names() (all []string) {
	for _, t := range trials {
		all = append(all, t.name)
	}
	return all
}

// all tries the faults that were asked for, and continues after one that the program did not
// survive.
func (b *breaker) all(ctx context.Context) error {
	var errs []error
	tried := 0
	for _, t := range trials {
		for _, name := range b.o.only {
			if name != t.name || ctx.Err() != nil {
				continue
			}
			tried++
			what, err := t.try(b, ctx)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", t.name, err))
				what = "NOT SURVIVED: " + err.Error()
			}
			fmt.Fprintf(b.out, "%-7s %s\n", t.name+":", what)
		}
	}
	faults := "faults"
	if tried == 1 {
		faults = "fault"
	}
	fmt.Fprintf(b.out, "%d %s tried, %d survived\n", tried, faults, tried-len(errs))
	return errors.Join(append(errs, ctx.Err())...)
}

// settled is when the program has begun to decode.
const settled = 2 * time.Second

// decoding waits until the program decodes.
func (b *breaker) decoding(ctx context.Context, p *process) error {
	for time.Since(p.began) < settled {
		if p.over() || ctx.Err() != nil {
			return fmt.Errorf("the program ended before it was disturbed (%v, %v): raise -tokens; it said %s", p.err, ctx.Err(), p.last())
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// grown waits until the program's memory has stopped growing, and returns how much it takes.
func (b *breaker) grown(ctx context.Context, p *process) (int64, error) {
	before := int64(0)
	for {
		now := p.memory.Usage()
		if now > 0 && now-before < now/50 {
			return now, nil
		}
		before = now
		for range 20 {
			if p.over() || ctx.Err() != nil {
				return 0, fmt.Errorf("the program ended before its memory was full (%v, %v): raise -tokens; it said %s", p.err, ctx.Err(), p.last())
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// slack is how far above its present use a group's limit is set while the limit is lowered.
const slack = 64 << 20

// lowerMemory lowers the limit while the program decodes, as fast as it gives up memory.
func (b *breaker) lowerMemory(ctx context.Context) (what string, err error) {
	size, err := sizeOf(b.o.model)
	if err != nil {
		return "", err
	}
	limit := size + 1<<30
	p, err := b.start(ctx, limit, "--tokens", fmt.Sprint(b.o.tokens), "--expert-io", "direct")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, p.close(b.disk)) }()
	if err := b.decoding(ctx, p); err != nil {
		return "", err
	}
	before, err := b.grown(ctx, p)
	if err != nil {
		return "", err
	}
	goal, began, steps := before*int64(b.o.share)/100, time.Now(), 0
	for limit > goal {
		if p.over() || ctx.Err() != nil || time.Since(began) > 2*time.Minute {
			return "", fmt.Errorf("the limit came down from %s to %s, not to %s (%v; raise -tokens if the run was over, or -share): %s",
				mib(before), mib(limit), mib(goal), ctx.Err(), p.last())
		}
		next := max(goal, min(limit, p.memory.Usage()+slack))
		if err := p.memory.SetLimit(next); err != nil && !errors.Is(err, syscall.EBUSY) {
			return "", fmt.Errorf("a limit of %d bytes: %w", next, err)
		} else if err == nil && next < limit {
			limit, steps = next, steps+1
		}
		time.Sleep(200 * time.Millisecond)
	}
	took := time.Since(began)
	if p.over() {
		return "", errors.New("the run was over when the limit was down: raise -tokens")
	}
	c, err := p.result(ctx)
	if err != nil {
		return "", err
	}
	kills, err := p.memory.Kills()
	if err != nil || kills > 0 {
		return "", fmt.Errorf("%d processes were killed: %w", kills, err)
	}
	given := strings.Count(p.stderr.String(), "expert slots are given up")
	if given == 0 {
		return "", fmt.Errorf("no expert slots were given up: %s", p.last())
	}
	return fmt.Sprintf("limit lowered from the %s in use to %s in %d steps and %.1f s; slots given up %d times, %s; %d tokens as they must be, nobody killed",
		mib(before), mib(goal), steps, took.Seconds(), given, slots(p.stderr.String()), c.Tokens), nil
}

// slots returns the numbers of expert slots in a log: before the first change and after the last.
func slots(text string) string {
	from, to := "", ""
	for line := range strings.Lines(text) {
		if !strings.Contains(line, "expert slots are given up") {
			continue
		}
		for word := range strings.FieldsSeq(line) {
			if n, ok := strings.CutPrefix(word, "from="); ok && from == "" {
				from = n
			} else if n, ok := strings.CutPrefix(word, "to="); ok {
				to = n
			}
		}
	}
	return fmt.Sprintf("%s slots became %s", from, to)
}

// silent starts a run that reads all the time, and silences its disk once it decodes.
func (b *breaker) silent(ctx context.Context, args ...string) (*process, error) {
	size, err := sizeOf(filepath.Join(b.o.model, "packed_experts"))
	if err != nil {
		return nil, err
	}
	args = append(args, "--tokens", fmt.Sprint(b.o.tokens), "--expert-io", "direct", "--expert-memory", fmt.Sprint(size/4))
	p, err := b.start(ctx, 0, args...)
	if err != nil {
		return nil, err
	}
	if err := b.decoding(ctx, p); err != nil {
		return nil, errors.Join(err, p.close(b.disk))
	}
	if err := p.io.SetReadRate(b.disk, 1); err != nil {
		return nil, errors.Join(fmt.Errorf("throttling disk %s: %w", b.disk, err), p.close(b.disk))
	}
	return p, nil
}

// stall silences the disk for a while, shorter than the read timeout.
func (b *breaker) stall(ctx context.Context) (what string, err error) {
	p, err := b.silent(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, p.close(b.disk)) }()
	const begun = time.Second // reads under way may still end
	time.Sleep(begun)
	before, err := p.read()
	if err != nil {
		return "", err
	}
	time.Sleep(b.o.stall - begun)
	after, err := p.read()
	if err != nil {
		return "", err
	}
	if after != before || p.over() {
		return "", fmt.Errorf("the disk was not silent: %d bytes came, or the run was over: raise -tokens", after-before)
	}
	if err := p.io.SetReadRate(b.disk, 0); err != nil {
		return "", err
	}
	c, err := p.result(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("no byte came for the last %v of %v, then all went on; %d tokens as they must be", b.o.stall-begun, b.o.stall, c.Tokens), nil
}

// dead silences the disk for longer than the read timeout.
func (b *breaker) dead(ctx context.Context) (what string, err error) {
	// it waits for the disk once more before it exits
	const timeout, grace = time.Second, 4 * time.Second
	p, err := b.silent(ctx, "--read-timeout", timeout.String())
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, p.close(b.disk)) }()
	took, err := p.says(ctx, "has not been read after", timeout+grace)
	if err != nil {
		return "", err
	}
	return b.ends(ctx, p, fmt.Sprintf("the error came after %.1f s", took.Seconds()))
}

// cancel interrupts the program while the disk is silent.
func (b *breaker) cancel(ctx context.Context) (what string, err error) {
	p, err := b.silent(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, p.close(b.disk)) }()
	time.Sleep(time.Second)
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		return "", err
	}
	took, err := p.says(ctx, "interrupt", 4*time.Second)
	if err != nil {
		return "", err
	}
	return b.ends(ctx, p, fmt.Sprintf("it stopped %.1f s after the interrupt", took.Seconds()))
}

// ends lets the disk answer again, and requires the program to end with an error of its own.
func (b *breaker) ends(ctx context.Context, p *process, what string) (string, error) {
	if err := p.io.SetReadRate(b.disk, 0); err != nil {
		return "", err
	}
	select {
	case <-p.ended:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case <-time.After(10 * time.Second):
		return "", errors.New("the program does not end, although the disk answers again")
	}
	if code := p.cmd.ProcessState.ExitCode(); code <= 0 {
		return "", fmt.Errorf("the program ended with code %d (%v) in place of an error of its own", code, p.err)
	}
	return fmt.Sprintf("%s, while the disk was silent; exit %d: %s", what, p.cmd.ProcessState.ExitCode(), p.last()), nil
}

// two lets two programs read one model at once, each in a different way.
func (b *breaker) two(ctx context.Context) (what string, err error) {
	size, err := sizeOf(filepath.Join(b.o.model, "packed_experts"))
	if err != nil {
		return "", err
	}
	var ps []*process
	defer func() {
		for _, p := range ps {
			err = errors.Join(err, p.close(b.disk))
		}
	}()
	for _, how := range []string{"direct", "buffered"} {
		p, err := b.start(ctx, 0, "--tokens", fmt.Sprint(b.o.tokens/4), "--expert-io", how, "--expert-memory", fmt.Sprint(size/4))
		if err != nil {
			return "", err
		}
		ps = append(ps, p)
	}
	tokens := 0
	for _, p := range ps {
		c, err := p.result(ctx)
		if err != nil {
			return "", err
		}
		tokens += c.Tokens
	}
	return fmt.Sprintf("direct and buffered on one model at once; %d tokens as they must be", tokens), nil
}

func mib(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

// sizeOf returns the bytes of all files below a directory.
func sizeOf(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}
