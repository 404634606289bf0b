package actors_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/io/readpool"
)

// slowDisk is a disk of so many bytes a second that reads one record after the other.
type slowDisk struct {
	readpool.Source
	bytesPerSecond float64
	mu             sync.Mutex
	busy           time.Duration
}

func (d *slowDisk) ReadExpert(layer, expert int, dst []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	began := time.Now()
	err := d.Source.ReadExpert(layer, expert, dst)
	time.Sleep(time.Duration(float64(len(dst))/d.bytesPerSecond*1e9) - time.Since(began))
	d.busy += time.Since(began)
	return err
}

// BenchmarkSlowDisk decodes with slots for a part of the experts, from a disk of known speed: how
// much of the time it is busy tells how much of the computing hides behind it. MOEFLUX_BENCH_MODEL
// names another model than the demo model.
func BenchmarkSlowDisk(b *testing.B) {
	dir, _ := demoModel(b)
	if d := os.Getenv("MOEFLUX_BENCH_MODEL"); d != "" {
		dir = d
	}
	for _, percent := range []int64{25, 50} {
		for _, gb := range []float64{0.5, 2} {
			b.Run(fmt.Sprintf("slots=%d%%/disk=%vGBs", percent, gb), func(b *testing.B) { benchmarkSlowDisk(b, dir, percent, gb*1e9) })
		}
	}
}

func benchmarkSlowDisk(b *testing.B, dir string, percent int64, bytesPerSecond float64) {
	all := open(b, actors.Config{Model: dir, Device: device(b, 0), ExpertIO: actors.ExpertIOMmap}).Info().ExpertBytes
	disk := &slowDisk{bytesPerSecond: bytesPerSecond}
	e := open(b, actors.WithReads(actors.Config{
		Model: dir, Device: device(b, 0), ExpertIO: actors.ExpertIOBuffered, ExpertMemory: all * percent / 100, Prefetch: actors.PrefetchOff,
	}, func(src readpool.Source) readpool.Source {
		disk.Source = src
		return disk
	}))
	d := newDecoder(b, e)
	before, busy, began := figures(b, e), disk.busy, time.Now()
	for b.Loop() {
		d.next()
	}
	took := time.Since(began)
	after := figures(b, e)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tok/s")
	b.ReportMetric(float64(after.misses-before.misses)/float64(b.N), "reads/tok")
	b.ReportMetric(100*float64(after.hits-before.hits)/float64(after.hits-before.hits+after.misses-before.misses), "hit-%")
	b.ReportMetric(100*(disk.busy-busy).Seconds()/took.Seconds(), "disk-busy-%")
}

type hitsAndMisses struct{ hits, misses int64 }

func figures(tb testing.TB, e *actors.Engine) (f hitsAndMisses) {
	tb.Helper()
	st, err := e.Stats(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	for _, l := range st.Layers {
		f.hits, f.misses = f.hits+l.Hits, f.misses+l.Misses
	}
	return f
}
