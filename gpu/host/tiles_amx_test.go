//go:build amx && amd64 && !noasm

package host

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// TestTilesInterrupted multiplies by tiles in goroutines that change threads all the time, while
// the collector stops them and stacks grow. Every product has the bits of the first.
func TestTilesInterrupted(t *testing.T) {
	k := variant("amx")
	if k == nil {
		t.Fatal("this processor, or the system, has no matrix unit")
	}
	processors(t, 4*runtime.NumCPU())
	c := newPanelCase(q4.In(quant.Panels, quant.PanelRows), 8*panelRows, 1024, 40)
	want := c.tiled(k, &c.panels, 40, false)
	until := time.Now().Add(time.Duration(testenv.Rounds(1, 3, 600)) * time.Second)
	var all sync.WaitGroup
	for range 8 * runtime.NumCPU() {
		all.Go(func() {
			for time.Now().Before(until) {
				if got := deepen(50, func() []float32 { return c.tiled(k, &c.panels, 40, false) }); !slices.Equal(got, want) {
					t.Error("other bits")
					return
				}
				runtime.Gosched()
			}
		})
	}
	for time.Now().Before(until) {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	all.Wait()
}

// deepen calls f with n frames below it.
func deepen(n int, f func() []float32) []float32 {
	var pad [256]byte
	if n == 0 {
		return f()
	}
	pad[n] = byte(n)
	y := deepen(n-1, f)
	return y[:len(y)+int(pad[n])-n]
}
