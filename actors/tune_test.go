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
	cfg  actors.Config
	disk func(readpool.Source) readpool.Source
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
	for seconds := 16; ; seconds *= 2 {
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

// Where the defaults are bad for a disk, tune finds what is better there, and what the user gives
// stays as it is.
func TestTunePlanted(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	cfg := actors.Config{
		Model: fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0), ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 12 * pageSlot, Context: 512, RecordMemory: fewRecords, Prefetch: actors.PrefetchLastToken,
	}
	given := tuned.Settings{Prefetch: "last-token", PrefetchLayers: 2, RingDepth: 2, Threads: 1}
	var running atomic.Int64
	for _, c := range []struct {
		name    string
		workers int // planted
		disk    func(readpool.Source) readpool.Source
		good    func(workers int) bool
	}{
		{"a far disk, two workers", 2, func(src readpool.Source) readpool.Source { return &lateDisk{src, 3 * time.Millisecond, nil} }, func(n int) bool { return n >= 4 }},
		{"a disk that does one thing at a time, eight workers", 8, func(src readpool.Source) readpool.Source { return &crowdedDisk{src, time.Millisecond, &running} }, func(n int) bool { return n > 0 && n < 8 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := &plantedOpener{cfg, c.disk}
			o.cfg.ReadWorkers = c.workers
			r := tuneFor(t, o, given)
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
