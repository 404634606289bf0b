package actors_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/io/readpool"
	"github.com/moeflux/moeflux-actor/stages"
)

// TestPipelineFaults holds two conversations at once while one thing goes wrong, for every read,
// device completion, submission and buffer, for the messages of every stage, and for every kind of
// failure: callers get a typed error in time, what is answered has the right bits, a sequence that
// was hit refuses everything but reset and close, after Reset all goes on, and nothing is left
// after Close.
func TestPipelineFaults(t *testing.T) {
	// as long as the actor library counts dead letters of engines that have stopped, in a goroutine
	defer time.Sleep(1100 * time.Millisecond)
	models := []string{fixtures.Qwen35MoEBF16, fixtures.Qwen3MoEBF16, fixtures.DeepseekV3BF16}
	for _, model := range models[:testenv.Rounds(1, 3, 3)] {
		t.Run(model, func(t *testing.T) {
			g := newGauntlet(t, fixtures.Packed(t, model, 0))
			g.reads()
			g.device()
			g.stages()
			g.resident = true
			g.device()
			g.stages()
			tried, noticed := 0, 0
			for _, kind := range slices.Sorted(maps.Keys(g.tried)) {
				tried, noticed = tried+g.tried[kind], noticed+g.noticed[kind]
				t.Logf("%-24s %4d tried and survived, %4d noticed by a caller", kind, g.tried[kind], g.noticed[kind])
			}
			t.Logf("%d faults tried and survived, %d noticed by a caller, %d conversations went on beside one that was hit, the longest life took %v", tried, noticed, g.spared, g.slowest.Round(time.Millisecond))
			if g.spared == 0 || noticed == 0 || noticed == tried {
				t.Errorf("%d of %d faults noticed, %d conversations spared: the test shows nothing", noticed, tried, g.spared)
			}
		})
	}
}

// each tries the fault that make makes of n = 1 and so on, until one does not happen any more:
// every n under MOEFLUX_THOROUGH, a sample of them otherwise.
func (g *gauntlet) each(make func(n int) fault) {
	g.t.Helper()
	for n := 1; g.try(make(n)); n += testenv.Rounds(127, 61, 1) {
	}
}

// reads lets every read fail in every way, once, which nobody may notice, and for good.
func (g *gauntlet) reads() {
	for _, kind := range []readpool.FaultKind{readpool.Fail, readpool.Short, readpool.Corrupt} {
		g.each(func(n int) fault { return readFault(readpool.Fault{Read: n, Kind: kind, Bit: 977 * n}, true) })
		g.each(func(n int) fault {
			return readFault(readpool.Fault{Read: n, Kind: kind, Bit: 977 * n, Again: 1}, false)
		})
	}
	g.each(func(n int) fault { return readFault(readpool.Fault{Read: n, Kind: readpool.Panic}, false) })
	g.each(func(n int) fault {
		return readFault(readpool.Fault{Read: n, Kind: readpool.Slow, Delay: 5 * time.Millisecond}, true)
	})
	for n := 1; g.try(stalledRead(n)); n += testenv.Rounds(25, 25, 5) { // each takes the read timeout
	}
}

func readFault(f readpool.Fault, quiet bool) fault {
	var faulty *readpool.Faulty
	kind := "read " + f.Kind.String()
	if f.Again > 0 {
		kind += " twice"
	}
	return fault{
		kind: kind, quiet: quiet, hit: func() bool { return faulty.Reads() >= f.Read },
		put: func(c *actors.Config) {
			c.VerifyReads = actors.VerifyOn // the n-th read may not be an expert's first
			*c = actors.WithReads(*c, func(src readpool.Source) readpool.Source {
				faulty = readpool.NewFaulty(src, f)
				return faulty
			})
		},
	}
}

// stalledRead is a read that does not end before the read timeout, nor before callers have their
// errors.
func stalledRead(n int) fault {
	release := make(chan struct{})
	f := readFault(readpool.Fault{Read: n, Kind: readpool.Slow, Release: release}, false)
	put := f.put
	f.kind, f.loose = "read stalled", true
	f.put = func(c *actors.Config) {
		c.ReadTimeout = 80 * time.Millisecond
		put(c)
	}
	f.clear = sync.OnceFunc(func() { close(release) })
	return f
}

// device lets every buffer, submission and completion fail.
func (g *gauntlet) device() {
	for _, kind := range []string{"device buffer", "device submission", "device completion"} {
		g.each(func(n int) fault {
			d, at := &brokenDevice{Device: g.dev}, int64(n)
			counted := &d.submits
			switch kind {
			case "device buffer":
				d.buffer, counted = at, &d.buffers
			case "device submission":
				d.submit = at
			default:
				d.complete = at
			}
			return fault{kind: kind, put: func(c *actors.Config) { c.Device = d }, hit: func() bool { return counted.Load() >= at }}
		})
	}
}

// stages lets every stage panic, or find an invariant broken, at its n-th message.
func (g *gauntlet) stages() {
	step := testenv.Rounds(197, 97, 7)
	for id := range stages.StageID(stages.NumStages) {
		for _, panics := range []bool{false, true} {
			for n := 1; g.try(stageFault(id, n, panics)); n += step {
			}
		}
	}
}

func stageFault(id stages.StageID, n int, panics bool) fault {
	happened := new(atomic.Bool)
	what := "error"
	if panics {
		what = "panic"
	}
	return fault{
		kind: fmt.Sprintf("%s in %s", what, id), hit: happened.Load,
		put: func(c *actors.Config) {
			actors.WrapCores(c, func(at stages.StageID, core stages.Core) stages.Core {
				if at != id {
					return core
				}
				return &brokenCore{Core: core, left: n, panics: panics, happened: happened}
			})
		},
	}
}
