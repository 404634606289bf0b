package actors_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/bench"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/tune"
	"github.com/moeflux/moeflux-actor/internal/tuned"
	"github.com/moeflux/moeflux-actor/io/readpool"
)

// crowdedDisk takes the longer for a read the more there are at once.
type crowdedDisk struct {
	readpool.Source
	alone   time.Duration
	running *atomic.Int64
}

func (d *crowdedDisk) ReadExpert(layer, expert int, dst []byte) error {
	n := d.running.Add(1)
	defer d.running.Add(-1)
	time.Sleep(d.alone * time.Duration(n*n))
	return d.Source.ReadExpert(layer, expert, dst)
}

// plantedOpener opens a model with settings that are planted as its defaults, on a disk of its own.
type plantedOpener struct {
	cfg    actors.Config
	disk   func(readpool.Source) readpool.Source
	opened []bench.Flags
	slow   time.Duration // for the first Open
}

func (o *plantedOpener) config(flags bench.Flags) actors.Config {
	cfg := o.cfg
	number := func(name string, to *int) {
		if n, err := strconv.Atoi(flags[name]); err == nil {
			*to = n
		}
	}
	number("read-workers", &cfg.ReadWorkers)
	number("ring-depth", &cfg.RingDepth)
	number("prefetch-layers", &cfg.PrefetchLayers)
	if p := flags["prefetch"]; p != "" {
		cfg.Prefetch = actors.Prefetch(p)
	}
	cfg.Record = flags["record"]
	return actors.WithReads(cfg, o.disk)
}

func (o *plantedOpener) Plan(_ context.Context, flags bench.Flags) (actors.Info, error) {
	d, err := host.New(host.Config{Threads: 1})
	if err != nil {
		return actors.Info{}, err
	}
	defer d.Close()
	cfg := o.config(flags)
	cfg.Device = d
	return actors.Plan(cfg)
}

func (o *plantedOpener) Open(ctx context.Context, flags bench.Flags) (*bench.Model, error) {
	if o.opened = append(o.opened, flags); len(o.opened) == 1 {
		time.Sleep(o.slow)
	}
	d, err := host.New(host.Config{Threads: 1})
	if err != nil {
		return nil, err
	}
	cfg := o.config(flags)
	cfg.Device = d
	e, err := actors.Open(ctx, cfg)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return &bench.Model{
		Config: cfg, Engine: e, Span: func(ctx context.Context, _ string) (context.Context, func()) { return ctx, func() {} },
		Close: func() error { return errors.Join(e.Close(context.Background()), d.Close()) },
	}, nil
}

// tuneFor tunes, with more time as long as there is too little on this machine.
func tuneFor(t *testing.T, o bench.Opener, given tuned.Settings) *tune.Result {
	t.Helper()
	for seconds := 14; ; seconds *= 2 {
		h := &bench.Host{Now: time.Now, Progress: func(string, int64, int64) {}, Note: t.Logf}
		began := time.Now()
		r, err := (&tune.Tuner{Host: h, Opener: o, Given: given, Time: time.Duration(seconds) * time.Second, Temp: t.TempDir()}).Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > time.Duration(seconds)*time.Second+5*time.Second {
			t.Errorf("%d s were given, it took %v", seconds, took)
		}
		if r.Model = o.(*plantedOpener).cfg.Model; r.Needed == 0 {
			t.Log(r.Text())
			return r
		}
	}
}

// tunedModel is a small model with slots for some of its experts.
func tunedModel(t *testing.T) actors.Config {
	return actors.Config{
		Model: fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0), ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 12 * pageSlot, Context: 512, RecordMemory: fewRecords, Prefetch: actors.PrefetchLastToken,
	}
}

// A first run that takes long, since the files have to come from the disk, is not taken for what a
// run costs: it is recorded once more. What an earlier tune chose is tried first, and nothing that
// comes to the same.
func TestTuneBegins(t *testing.T) {
	o := &plantedOpener{cfg: tunedModel(t), disk: func(src readpool.Source) readpool.Source { return src }, slow: 2 * time.Second}
	h := &bench.Host{Now: time.Now, Progress: func(string, int64, int64) {}, Note: t.Logf}
	tuner := tune.Tuner{Host: h, Opener: o, Given: tuned.Settings{Prefetch: "last-token", Threads: 1}, Earlier: tuned.Settings{RingDepth: 3, Threads: 7}, Time: 8 * time.Second, Temp: t.TempDir()}
	r, err := tuner.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if len(o.opened) < 2 || o.opened[0]["record"] == "" || o.opened[1]["record"] == "" || len(r.Candidates) == 0 || r.Candidates[0].Settings != (tuned.Settings{RingDepth: 3}) {
		t.Errorf("opened %v, candidates %v", o.opened, r.Candidates)
	}
	seen := map[tuned.Settings]bool{}
	for _, c := range r.Candidates {
		if seen[c.Settings] || c.Threads > 0 || c.Prefetch != "" {
			t.Errorf("%s is tried twice, or changes what is given", c)
		}
		seen[c.Settings] = true
	}
}

// Where the defaults are bad for a disk, tune finds what is better there, and what the user gives
// stays as it is.
func TestTunePlanted(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	cfg := tunedModel(t)
	given := tuned.Settings{Prefetch: "last-token", PrefetchLayers: 2, RingDepth: 2, Threads: 1}
	var running atomic.Int64
	for _, c := range []struct {
		name    string
		workers int // planted
		disk    func(readpool.Source) readpool.Source
		good    func(workers int) bool
	}{
		{"a far disk, one worker", 1, func(src readpool.Source) readpool.Source { return &lateDisk{Source: src, takes: 3 * time.Millisecond} }, func(n int) bool { return n >= 2 }},
		{"a disk that does one thing at a time, many workers", 8, func(src readpool.Source) readpool.Source { return &crowdedDisk{src, 2 * time.Millisecond, &running} }, func(n int) bool { return n > 0 && n < 8 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // they sleep most of the time
			o := &plantedOpener{cfg: cfg, disk: c.disk}
			o.cfg.ReadWorkers = c.workers
			r := tuneFor(t, o, given)
			for tries := 1; tries < 4 && r.Verdict != nil && !r.Verdict.Significant; tries++ {
				r = tuneFor(t, o, given) // other work on this machine hides the difference
			}
			if set := r.Chosen(); !c.good(set.ReadWorkers) || set != (tuned.Settings{ReadWorkers: set.ReadWorkers}) || r.Verdict.Gain < 0.02 || r.Replay.Why != "" || !r.Final() {
				t.Errorf("chosen %q, verdict %+v, replay %+v", set, r.Verdict, r.Replay)
			}
			given := given
			given.ReadWorkers = c.workers
			if r := tuneFor(t, o, given); len(r.Candidates) != 0 || r.Verdict != nil || r.Chosen() != (tuned.Settings{}) {
				t.Errorf("everything is given, but %d candidates are tried: %+v", len(r.Candidates), r.Verdict)
			}
		})
	}
}
