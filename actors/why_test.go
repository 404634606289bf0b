package actors_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/readpool"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/analyse"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// lateDisk takes a while for each read, however many it does at once.
type lateDisk struct {
	readpool.Source
	takes time.Duration
	quick map[[2]int]bool // layers and experts for which it takes no time
	late  func()          // called before a read that takes a while, where set
}

func (d *lateDisk) ReadExpert(layer, expert int, dst []byte) error {
	if !d.quick[[2]int{layer, expert}] {
		if d.late != nil {
			d.late()
		}
		time.Sleep(d.takes)
	}
	return d.Source.ReadExpert(layer, expert, dst)
}

// lateCore takes a while for each message.
type lateCore struct {
	stages.Core
	takes time.Duration
}

func (c *lateCore) Step(in stages.Message, out *stages.Outbox) error {
	time.Sleep(c.takes)
	return c.Core.Step(in, out)
}

// tokensAfter evaluates a prompt and then tokens, one by one.
func tokensAfter(t *testing.T, s *actors.Sequence, prompt, tokens []int32, thinks time.Duration) {
	defer s.Close()
	chunk := func(of []int32) {
		if _, err := s.Eval(context.Background(), of); err != nil {
			t.Error(err)
		}
	}
	chunk(prompt)
	for i := range tokens {
		time.Sleep(thinks)
		chunk(tokens[i : i+1])
	}
}

// newSequence opens a sequence. They are numbered from 1.
func newSequence(t *testing.T, e *actors.Engine) *actors.Sequence {
	t.Helper()
	s, err := e.NewSequence(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// some returns n token ids, of which none is like the one before.
func some(n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(1 + i*37%250)
	}
	return ids
}

// same returns one token id n times.
func same(n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = 7
	}
	return ids
}

// expertsOf returns the experts that a text uses.
func expertsOf(t *testing.T, cfg actors.Config, tokens []int32) map[[2]int]bool {
	t.Helper()
	e := open(t, cfg)
	tokensAfter(t, newSequence(t, e), tokens[:1], tokens, 0)
	if err := e.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	rec, err := e.Recording(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[[2]int]bool)
	for _, u := range rec.Uses {
		all[[2]int{int(u.Layer), int(u.Expert)}] = true
	}
	return all
}

// planted is something that is wrong with an engine.
type planted struct {
	name   string
	cfg    actors.Config
	plant  func(*testing.T, actors.Config) actors.Config
	run    func(*testing.T, *actors.Engine)
	wanted func(*analyse.Token) bool
	want   analyse.Cause
}

// allPlanted returns what TestWhyPlanted plants.
func allPlanted() []planted {
	slow := func(takes time.Duration) func(*testing.T, actors.Config) actors.Config {
		return func(_ *testing.T, cfg actors.Config) actors.Config {
			return actors.WithReads(cfg, func(src readpool.Source) readpool.Source { return &lateDisk{Source: src, takes: takes} })
		}
	}
	one := func(prompt, tokens []int32, thinks time.Duration) func(*testing.T, *actors.Engine) {
		return func(t *testing.T, e *actors.Engine) { tokensAfter(t, newSequence(t, e), prompt, tokens, thinks) }
	}
	decoded := func(k *analyse.Token) bool { return k.Rows == 1 }
	var reading chan struct{}
	return []planted{
		{"a slow disk", actors.Config{ExpertMemory: 31 * pageSlot, ReadWorkers: 8, Prefetch: actors.PrefetchOff}, slow(4 * time.Millisecond), one(some(1), some(8), 0), decoded, analyse.Disk},
		{"one worker", actors.Config{ExpertMemory: 31 * pageSlot, ReadWorkers: 1, Prefetch: actors.PrefetchOff}, slow(4 * time.Millisecond), one(some(16), nil, 0),
			func(*analyse.Token) bool { return true }, analyse.ReadQueue},
		{"small slots", actors.Config{ExpertMemory: 4 * pageSlot, WaveSlots: 2, Prefetch: actors.PrefetchOff}, slow(2 * time.Millisecond), one(same(1), same(20), 0), decoded, analyse.Room},
		// The second prompt needs nothing that is slow, comes once the first one reads, and waits
		// for its reads.
		{"depth 1", actors.Config{ExpertMemory: 16 * pageSlot, RingDepth: 1, ChunkRows: 4, Prefetch: actors.PrefetchOff}, func(t *testing.T, cfg actors.Config) actors.Config {
			quick := expertsOf(t, cfg, same(20))
			reading = make(chan struct{})
			read := sync.OnceFunc(func() { close(reading) })
			return actors.WithReads(cfg, func(src readpool.Source) readpool.Source {
				return &lateDisk{Source: src, takes: 8 * time.Millisecond, quick: quick, late: read}
			})
		}, func(t *testing.T, e *actors.Engine) {
			var texts sync.WaitGroup
			a, b := newSequence(t, e), newSequence(t, e)
			texts.Go(func() { tokensAfter(t, a, some(80), nil, 0) })
			<-reading
			texts.Go(func() { tokensAfter(t, b, same(40), nil, 0) })
			texts.Wait()
		}, func(k *analyse.Token) bool { return k.Seq == 2 }, analyse.Credit},
		{"a neighbour's prompt", actors.Config{ExpertMemory: 31 * pageSlot, ChunkRows: 128}, nil, func(t *testing.T, e *actors.Engine) {
			var texts sync.WaitGroup
			a, b := newSequence(t, e), newSequence(t, e)
			texts.Go(func() { tokensAfter(t, a, some(1), some(30), 0) })
			texts.Go(func() { tokensAfter(t, b, some(2000), nil, 0) })
			texts.Wait()
		}, decoded, analyse.OtherRequest},
		{"a slow stage", actors.Config{ExpertMemory: 31 * pageSlot}, func(_ *testing.T, cfg actors.Config) actors.Config {
			actors.WrapCores(&cfg, func(id stages.StageID, c stages.Core) stages.Core {
				if id == stages.Router {
					return &lateCore{c, 2 * time.Millisecond}
				}
				return c
			})
			return cfg
		}, one(some(1), some(8), 0), decoded, analyse.Stage},
		{"a slow caller", actors.Config{ExpertMemory: 31 * pageSlot}, nil, one(some(1), some(8), 20*time.Millisecond), decoded, analyse.Caller},
	}
}

// plantedFar returns what is planted on a device with memory of its own: not that slots are few,
// since what has left them comes back from the host's memory.
func plantedFar() []planted {
	return slices.DeleteFunc(allPlanted(), func(c planted) bool { return c.want == analyse.Room })
}

// record runs what is planted on a device.
func (c *planted) record(t *testing.T, dev gpu.Device) *record.Recording {
	t.Helper()
	cfg := c.cfg
	cfg.Model, cfg.ExpertIO, cfg.Device = fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0), actors.ExpertIODirect, dev
	cfg.HostMemory = 12 * pageSlot // of a device with memory of its own: hardly a token's experts
	if c.plant != nil {
		cfg = c.plant(t, cfg)
	}
	e := open(t, cfg)
	c.run(t, e)
	if err := e.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	rec, err := e.Recording(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// check wants what is planted to be the first cause of tokens, on a device. A busy machine adds
// causes that are as large, a disk that stalls or a thread that waits for a processor, so one of a
// few recordings has to show it.
func (c *planted) check(t *testing.T, dev gpu.Device) {
	t.Helper()
	const tries = 3
	for i := range tries {
		why, err := analyse.WhyTokens(c.record(t, dev), 0)
		if err != nil {
			t.Fatal(err)
		}
		by := checkWhy(t, why, c.wanted)
		if c.want != analyse.Caller { // the test is the caller, and a busy machine wakes it late
			by[analyse.Caller] = 0
		}
		first := slices.Index(by[:], slices.Max(by[:]))
		if analyse.Cause(first) == c.want {
			return
		}
		t.Logf("try %d: the first cause is %s, want %s; all in order: %d", i+1, analyse.Cause(first), c.want, by)
	}
	t.Errorf("%s is not the first cause in any of %d recordings", c.want, tries)
}

// What is wrong with an engine is the first cause of its tokens, and nearly all of their time has a
// cause.
func TestWhyPlanted(t *testing.T) {
	for _, c := range allPlanted() {
		t.Run(c.name, func(t *testing.T) { c.check(t, device(t, 2)) })
	}
}

// watchedDiscrete is a device with memory of its own whose queues tell when they work.
type watchedDiscrete struct{ *discrete }

func (d watchedDiscrete) NewQueue() (gpu.Queue, error) { return d.Device.NewQueue() }

// The same of a device with memory of its own.
func TestWhyPlantedFar(t *testing.T) {
	for _, c := range plantedFar() {
		t.Run(c.name, func(t *testing.T) {
			c.check(t, watchedDiscrete{&discrete{Device: device(t, 2), free: 1 << 30}})
		})
	}
}

// checkWhy wants the time of each token to be divided without a remainder, with less than 2 % that
// nothing explains. It returns the causes of some tokens together.
func checkWhy(t *testing.T, why *analyse.Why, wanted func(*analyse.Token) bool) (by [analyse.NumCauses]int64) {
	t.Helper()
	for i := range why.Tokens {
		k := &why.Tokens[i]
		sum, unexplained := int64(0), int64(0)
		for _, s := range k.Causes {
			sum += s.NS
			if wanted(k) {
				by[s.Cause] += s.NS
			}
			if s.Cause == analyse.Unexplained {
				unexplained = s.NS
			}
		}
		if sum != k.WallNS || unexplained*50 > sum {
			t.Errorf("token %d took %d ns: %d have causes, and %d of them are unexplained", k.Token, k.WallNS, sum, unexplained)
		}
	}
	return by
}
