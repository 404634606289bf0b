package expertmem

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moeflux/moeflux-actor/internal/sysmem"
)

// How the governor weighs what it sees.
const (
	governEvery = time.Second
	calmTicks   = 10  // without a shortage before slots come back
	growShare   = 16  // of all slots come back at once
	stallShare  = 10  // tasks that wait for memory for more than a tenth of the time are pressure
	mostExtra   = 2   // reserves that pressure adds at most
	slack       = 0.1 // of a reserve may be missing before slots go
)

// Meter measures available memory; see sysmem.Monitor.
type Meter interface {
	Read() (sysmem.Info, error)
	Close()
}

// governor keeps the expert slots within the available memory. It looks about once a second, gives
// slots up before the machine swaps or a cgroup's limit kills the process, and takes them back
// slowly. It counts the other mapped weights as needed in full, and page cache as free. Direct and
// buffered reads fill the process's own memory. Mapped experts are dropped by the kernel itself, so
// for them the governor only warns.
type governor struct {
	bounded
	meter Meter
	log   *slog.Logger

	// bytes that the page cache must hold: mapped weights and mapped experts
	need    int64
	reserve int64

	slots int   // that memory allows; a caller may have fewer, see number.go
	extra int64 // reserve that pressure has added
	calm  int   // ticks since the last shortage
	seen

	stop chan struct{}
	done sync.WaitGroup

	counts struct{ available, asked, shrunk, grown atomic.Int64 } // for Stats
}

// seen is what a governor remembers of what it has measured and said.
type seen struct {
	stalled time.Duration
	known   bool // stalled is of an earlier tick
	told    bool // has warned that memory is short and nothing can be given up
	blind   bool // has warned that memory cannot be measured
}

// start watches memory until close.
func (g *governor) start(every time.Duration) {
	g.slots = g.most
	g.counts.asked.Store(int64(g.slots))
	g.stop = make(chan struct{})
	g.done.Go(func() {
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-g.stop:
				return
			case <-t.C:
				g.tick(every)
			}
		}
	})
}

// close stops watching. A governor that was never started may be closed too.
func (g *governor) close() {
	if g.stop != nil {
		close(g.stop)
		g.done.Wait()
		g.stop = nil
	}
	g.meter.Close()
}

// tick measures memory once and acts on it.
func (g *governor) tick(every time.Duration) {
	now, err := g.meter.Read()
	if err != nil {
		if !g.blind {
			g.blind = true
			g.log.Warn("memory cannot be watched, the number of expert slots stays", "error", err)
		}
		return
	}
	g.counts.available.Store(now.Available)
	spare := now.Available - g.need
	pressed := g.pressed(now, every)
	if pressed && spare < 2*g.reserve {
		g.extra = min(g.extra+g.reserve/2, mostExtra*g.reserve)
	} else {
		g.extra = max(g.extra-g.reserve/growShare, 0)
	}
	if g.most == 0 {
		g.tell(spare < 0, now)
		return
	}
	room := spare - g.reserve - g.extra + g.held() // bytes that slots may take up
	want := int(min(max(room/g.stride, int64(g.least)), int64(g.most)))
	missing := int64(g.slots-want) * g.stride
	step := min(max(1, g.most/growShare), g.most-g.slots)
	switch {
	case missing > 0 && float64(missing) > slack*float64(g.reserve):
		g.set(want, now, pressed, slog.LevelWarn, "expert slots are given up, memory is short")
		g.counts.shrunk.Add(1)
		g.calm = 0
	case pressed || want < g.slots+step:
		g.calm = 0
	case g.slots < g.most:
		if g.calm++; g.calm > calmTicks {
			g.set(g.slots+step, now, pressed, slog.LevelInfo, "expert slots come back")
			g.counts.grown.Add(1)
		}
	}
	g.tell(want == g.least && room < int64(g.least)*g.stride, now)
}

// pressed reports whether tasks have spent much of the time since the last tick waiting for memory.
func (g *governor) pressed(now sysmem.Info, every time.Duration) bool {
	waited, known := now.Stalled-g.stalled, g.known
	g.stalled, g.known = now.Stalled, true
	return known && waited > every/stallShare
}

// set changes the number of slots that memory allows.
func (g *governor) set(slots int, now sysmem.Info, pressed bool, level slog.Level, why string) {
	g.log.Log(context.Background(), level, why, "from", g.slots, "to", slots, "most", g.most, "available_bytes", now.Available, "pressure", pressed)
	g.slots = slots
	g.counts.asked.Store(int64(slots))
	g.resize(slots)
}

// tell warns once that memory is short and nothing is left to give up. It warns again only after
// memory has been sufficient.
func (g *governor) tell(short bool, now sysmem.Info) {
	switch {
	case short && !g.told && g.most == 0:
		g.log.Warn("memory is short: mapped experts will be read from the disk again and again; Config.ExpertIO direct keeps to what there is",
			"available_bytes", now.Available, "needed_bytes", g.need)
	case short && !g.told:
		g.log.Warn("memory is short: no more expert slots can be given up", "slots", g.slots, "available_bytes", now.Available, "needed_bytes", g.need)
	}
	g.told = short
}
