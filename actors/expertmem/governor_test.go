package expertmem

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moeflux/moeflux-actor/internal/sysmem"
)

// fakeMemory is a machine whose memory the test sets.
type fakeMemory struct {
	sysmem.Info
	err    error
	closed bool
}

func (f *fakeMemory) Read() (sysmem.Info, error) { return f.Info, f.err }
func (f *fakeMemory) Close()                     { f.closed = true }

const mib = 1 << 20

// governed is a governor of 100 slots of 1 MiB beside weights of 50 MiB, with a reserve of 16 MiB.
// Slots that were asked for take up memory at once.
func governed(most int) (g *governor, mem *fakeMemory, log *bytes.Buffer, sizes *[]int) {
	mem, log, sizes = &fakeMemory{}, new(bytes.Buffer), new([]int)
	g = &governor{
		meter: mem, log: slog.New(slog.NewTextHandler(log, nil)), need: 50 * mib, reserve: 16 * mib,
		bounded: bounded{most: most, least: 8, stride: mib, resize: func(n int) { *sizes = append(*sizes, n) }},
	}
	g.slots = most
	g.held = func() int64 { return int64(g.slots) * mib }
	return g, mem, log, sizes
}

// free sets how much is available beyond weights and reserve.
func (f *fakeMemory) free(spareMiB int64) { f.Available = (50 + 16 + spareMiB) * mib }

func TestGovernorShrinksAndGrows(t *testing.T) {
	g, mem, log, sizes := governed(100)
	mem.free(5)
	for range 30 {
		g.tick(time.Second)
	}
	mem.free(-1) // a tenth of the reserve may be missing
	g.tick(time.Second)
	if len(*sizes) != 0 {
		t.Fatalf("resized to %v although memory is there", *sizes)
	}
	mem.free(-30) // 30 MiB are missing
	g.tick(time.Second)
	mem.free(0) // they were given up
	g.tick(time.Second)
	mem.free(-200) // far too much
	g.tick(time.Second)
	g.tick(time.Second)
	if want := []int{70, 8}; !slices.Equal(*sizes, want) {
		t.Fatalf("resized to %v, want %v", *sizes, want)
	}
	if n := strings.Count(log.String(), "no more expert slots"); n != 1 {
		t.Errorf("told %d times that memory is short, want once:\n%s", n, log)
	}
	*sizes = nil
	for i := range 40 {
		mem.free(int64(100 - g.slots)) // all of it is free again
		g.tick(time.Second)
		if i == calmTicks-1 && len(*sizes) != 0 {
			t.Errorf("slots come back after %d calm ticks: %v", i+1, *sizes)
		}
	}
	if n := len(*sizes); n < growShare-2 || (*sizes)[n-1] != 100 || !slices.IsSorted(*sizes) || (*sizes)[0] != 8+100/growShare {
		t.Errorf("slots come back as %v, want slowly and all", *sizes)
	}
	if g.counts.shrunk.Load() != 2 || g.counts.grown.Load() != int64(len(*sizes)) || g.counts.asked.Load() != 100 {
		t.Errorf("counted %d shrinks, %d grows and %d slots", g.counts.shrunk.Load(), g.counts.grown.Load(), g.counts.asked.Load())
	}
}

// Slots that nobody has filled take up no memory yet: room for them must be there all the same.
func TestGovernorCountsWhatIsHeld(t *testing.T) {
	g, mem, _, sizes := governed(100)
	g.held = func() int64 { return 20 * mib }
	mem.free(80)
	g.tick(time.Second)
	mem.free(40)
	g.tick(time.Second)
	if want := []int{60}; !slices.Equal(*sizes, want) {
		t.Errorf("resized to %v, want %v", *sizes, want)
	}
}

// Under pressure the reserve grows, but only when little is left: elsewhere the pressure is
// somebody else's.
func TestGovernorPressure(t *testing.T) {
	g, mem, _, sizes := governed(100)
	press := func(free int64, waited time.Duration) {
		mem.free(free)
		mem.Stalled += waited
		g.tick(time.Second)
	}
	mem.Stalled = time.Hour // long ago
	press(2, 0)
	press(2, 50*time.Millisecond) // a twentieth of the time
	press(40, 500*time.Millisecond)
	if len(*sizes) != 0 {
		t.Fatalf("resized to %v without pressure of our own", *sizes)
	}
	press(2, 500*time.Millisecond)
	press(10, 500*time.Millisecond)
	if want := []int{94, 88}; !slices.Equal(*sizes, want) {
		t.Errorf("resized to %v, want %v", *sizes, want)
	}
	for range 20 {
		press(10, 500*time.Millisecond)
	}
	if g.extra != mostExtra*g.reserve {
		t.Errorf("pressure has added %d to the reserve, want %d", g.extra, mostExtra*g.reserve)
	}
	for range 60 {
		press(int64(100-g.slots), 0)
	}
	if g.extra != 0 || g.slots != 100 {
		t.Errorf("in calm %d slots and %d more reserve, want 100 and none", g.slots, g.extra)
	}
}

// With mapped experts nothing can be given up; it is told once each time.
func TestGovernorMapped(t *testing.T) {
	g, mem, log, sizes := governed(0)
	for _, free := range []int64{0, -10, -17, -20, -20, 10, -30} {
		mem.free(free)
		g.tick(time.Second)
	}
	if n := strings.Count(log.String(), "Config.ExpertIO direct"); n != 2 || len(*sizes) != 0 {
		t.Errorf("told %d times, want 2; resized to %v:\n%s", n, *sizes, log)
	}
}

// Memory that cannot be read changes nothing, and is told once.
func TestGovernorBlind(t *testing.T) {
	g, mem, log, sizes := governed(100)
	mem.err = errors.New("no meter")
	for range 3 {
		g.tick(time.Second)
	}
	if n := strings.Count(log.String(), "no meter"); n != 1 || len(*sizes) != 0 {
		t.Errorf("told %d times, resized to %v:\n%s", n, *sizes, log)
	}
}

// The governor looks once a second until it is closed.
func TestGovernorRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, mem, _, _ := governed(100)
		var sizes atomic.Int32 // asked for by the governor's goroutine
		g.resize = func(int) { sizes.Add(1) }
		mem.free(-30)
		g.start(time.Second)
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		early := sizes.Load()
		time.Sleep(time.Second)
		synctest.Wait()
		if late := sizes.Load(); early != 0 || late != 1 {
			t.Errorf("%d sizes before the first second and %d after it, want 0 and 1", early, late)
		}
		g.close()
		if !mem.closed {
			t.Error("the meter is open")
		}
		time.Sleep(time.Hour)
	})
}
