package actors_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
)

// BenchmarkOversubscribed compares an engine whose device has four threads for each core with one
// that has a thread for each core, in pairs: four texts at once decode with the demo model, its
// experts streamed or mapped. Go runs as many threads as there are cores, or as the device has. It
// reports the tokens of a second of both, and the median of the pairs' ratios: 70 % is the least
// that is wanted.
func BenchmarkOversubscribed(b *testing.B) {
	const texts, tokens = 4, 32
	cores := runtime.NumCPU()
	few, many := device(b, cores), device(b, 4*cores)
	for name, cfg := range map[string]actors.Config{
		"mapped":   {ExpertIO: actors.ExpertIOMmap},
		"streamed": {ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 8 << 20},
	} {
		for _, procs := range []int{cores, 4 * cores} {
			b.Run(fmt.Sprintf("experts=%s/procs=%d", name, procs), func(b *testing.B) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				cfg.Context = 64
				one, ref := openDemo(b, few, cfg)
				four, _ := openDemo(b, many, cfg)
				round := func(e *actors.Engine) float64 {
					began := time.Now()
					var all sync.WaitGroup
					for i := range texts {
						all.Go(func() {
							if _, err := crowdText(ctx, e, i, ref.EvalIDs[i*8:][:8], tokens); err != nil {
								b.Error(err)
							}
						})
					}
					all.Wait()
					return texts * tokens / time.Since(began).Seconds()
				}
				round(one)
				round(four)
				b.ResetTimer()
				var alone, crowd, ratios []float64
				for i := range b.N {
					speeds := [2]float64{}
					for k := range 2 { // the order changes from pair to pair
						e := (i + k) % 2
						speeds[e] = round([]*actors.Engine{one, four}[e])
					}
					alone, crowd, ratios = append(alone, speeds[0]), append(crowd, speeds[1]), append(ratios, speeds[1]/speeds[0])
				}
				for unit, all := range map[string][]float64{"alone-tok/s": alone, "crowd-tok/s": crowd, "crowd/alone": ratios} {
					slices.Sort(all)
					b.ReportMetric(all[len(all)/2], unit)
				}
			})
		}
	}
}
