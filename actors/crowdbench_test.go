package actors_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
)

// BenchmarkWaiting compares sixteen callers on memory for four texts with four callers on ample
// memory, in pairs. All have texts of the same random lengths to generate, one after the other. It
// reports the tokens of a second of both, and the median of the pairs' ratios.
func BenchmarkWaiting(b *testing.B) {
	const texts, longest = 64, 48
	dev := device(b, 2)
	for name, cfg := range map[string]actors.Config{
		"mapped":   {ExpertIO: actors.ExpertIOMmap},
		"streamed": {ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 8 << 20},
	} {
		b.Run("experts="+name, func(b *testing.B) {
			cfg.Context = 64
			ample, ref := openDemo(b, dev, cfg)
			i := ample.Info()
			cfg.StateMemory = 4 * (i.StateBytes + 64*i.KVBytesPerPos)
			tight, _ := openDemo(b, dev, cfg)
			rng := rand.New(rand.NewPCG(1, 2))
			lengths := make([]int, texts)
			for i := range lengths {
				lengths[i] = 1 + rng.IntN(longest)
			}
			round := func(e *actors.Engine, callers int) float64 {
				began := time.Now()
				work := make(chan int)
				var all sync.WaitGroup
				for range callers {
					all.Go(func() {
						for i := range work {
							if _, err := crowdText(ctx, e, i, ref.EvalIDs[i*8:][:8], lengths[i]); err != nil {
								b.Error(err)
							}
						}
					})
				}
				tokens := 0
				for i, n := range lengths {
					work <- i
					tokens += n
				}
				close(work)
				all.Wait()
				return float64(tokens) / time.Since(began).Seconds()
			}
			var four, sixteen, ratios []float64
			round(ample, 4)
			round(tight, 16)
			b.ResetTimer()
			for range b.N {
				f, s := round(ample, 4), round(tight, 16)
				four, sixteen, ratios = append(four, f), append(sixteen, s), append(ratios, s/f)
			}
			for _, m := range []struct {
				of   []float64
				name string
			}{{four, "four-tokens/s"}, {sixteen, "sixteen-tokens/s"}, {ratios, "sixteen/four"}} {
				slices.Sort(m.of)
				b.ReportMetric(m.of[len(m.of)/2], m.name)
			}
			st, err := tight.Stats(ctx)
			if err != nil || st.Admission.Waited == 0 {
				b.Fatalf("nobody has waited: %+v, %v", st.Admission, err)
			}
		})
	}
}
