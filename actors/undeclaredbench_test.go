package actors_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
)

// BenchmarkUndeclared compares sixteen texts that do not say how long they will be, on memory for
// the states of four, with four such texts on ample memory, in pairs. All evaluate a prompt of
// eight tokens and then token by token; sixteen can go on only because states of others are parked.
// It reports the tokens of a second of both, the median of the pairs' ratios, and how many tokens
// there are to a state that is brought back.
func BenchmarkUndeclared(b *testing.B) {
	const long = 192
	dev := device(b, 2)
	for name, cfg := range map[string]actors.Config{
		"mapped":   {ExpertIO: actors.ExpertIOMmap},
		"streamed": {ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 8 << 20},
	} {
		for place, parks := range map[string]actors.Config{"memory": {ParkedMemory: 1 << 30}, "files": {StateDir: b.TempDir()}} {
			b.Run(fmt.Sprintf("experts=%s/parked=%s", name, place), func(b *testing.B) {
				cfg.Context, cfg.ParkedMemory, cfg.StateDir = 256, parks.ParkedMemory, parks.StateDir
				ample, ref := openDemo(b, dev, cfg)
				i := ample.Info()
				cfg.StateMemory = 4 * (i.StateBytes + 256*i.KVBytesPerPos)
				tight, _ := openDemo(b, dev, cfg)
				round := func(e *actors.Engine, texts int) float64 {
					began := time.Now()
					var all sync.WaitGroup
					for i := range texts {
						all.Go(func() {
							if err := undeclared(e, ref.EvalIDs[i*8:][:8], long); err != nil {
								b.Error(err)
							}
						})
					}
					all.Wait()
					return float64(texts*long) / time.Since(began).Seconds()
				}
				var four, sixteen, ratios []float64
				round(ample, 4)
				round(tight, 16)
				before := states(b, tight).Returns
				b.ResetTimer()
				for range b.N {
					f := (round(ample, 4) + round(ample, 4)) / 2
					s := round(tight, 16)
					four, sixteen, ratios = append(four, f), append(sixteen, s), append(ratios, s/f)
				}
				for _, m := range []struct {
					of   []float64
					name string
				}{{four, "four-tokens/s"}, {sixteen, "sixteen-tokens/s"}, {ratios, "sixteen/four"}} {
					slices.Sort(m.of)
					b.ReportMetric(m.of[len(m.of)/2], m.name)
				}
				b.ReportMetric(float64(b.N*16*long)/float64(states(b, tight).Returns-before), "tokens/return")
			})
		}
	}
}

// undeclared decodes n tokens after a prompt by itself, without saying that it will.
func undeclared(e *actors.Engine, prompt []int32, n int) error {
	s, err := e.NewSequence(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	next := prompt
	for range n {
		logits, err := s.Eval(context.Background(), next)
		if err != nil {
			return err
		}
		next = []int32{argmax(logits)}
	}
	return nil
}
