package actors_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
)

// BenchmarkRecords decodes the same text on two engines in turn, token by token: one keeps records,
// one has no memory for them. It tells the median of the pairs' differences, and how many records a
// layer of a token makes. MOEFLUX_BENCH_MODEL names another model than the demo model.
func BenchmarkRecords(b *testing.B) {
	dir, _ := demoModel(b)
	if d := os.Getenv("MOEFLUX_BENCH_MODEL"); d != "" {
		dir = d
	}
	all := open(b, actors.Config{Model: dir, Device: device(b, 0), ExpertIO: actors.ExpertIOMmap}).Info().ExpertBytes
	for _, percent := range []int64{100, 25} {
		b.Run(fmt.Sprintf("slots=%d%%", percent), func(b *testing.B) {
			cfg := actors.Config{Model: dir, Device: device(b, 0), ExpertIO: actors.ExpertIOMmap}
			if percent < 100 {
				cfg.ExpertIO, cfg.ExpertMemory = actors.ExpertIOBuffered, all*percent/100
			}
			noted := open(b, cfg)
			cfg.RecordMemory = -1
			with, without := newDecoder(b, noted), newDecoder(b, open(b, cfg))
			before := recorded(noted)
			var took, more []time.Duration
			for n := 0; b.Loop(); n++ {
				var t [2]time.Duration
				for i := range t { // who is first changes
					d := with
					if (i+n)%2 == 0 {
						d = without
					}
					from := time.Now()
					d.next()
					t[(i+n)%2] = time.Since(from)
				}
				took, more = append(took, t[0]), append(more, t[1]-t[0])
			}
			slices.Sort(took)
			slices.Sort(more)
			token, cost := took[len(took)/2], more[len(more)/2]
			b.ReportMetric(float64(token.Nanoseconds())/1e3, "µs/token")
			b.ReportMetric(float64(cost.Nanoseconds())/1e3, "µs-more")
			b.ReportMetric(100*float64(cost)/float64(token), "%-more")
			b.ReportMetric(float64(recorded(noted)-before)/float64(len(took))/float64(len(noted.Model().Layers)), "records/layer")
		})
	}
}

// recorded returns how many records an engine has made.
func recorded(e *actors.Engine) (n uint64) {
	for _, of := range e.Records().Totals() {
		n += of
	}
	return n
}
