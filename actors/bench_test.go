package actors_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu/host"
)

// BenchmarkDecode decodes greedily with the demo model, warm: all files in the page cache, slots
// filled.
func BenchmarkDecode(b *testing.B) {
	for _, io := range []actors.ExpertIO{actors.ExpertIOMmap, actors.ExpertIOBuffered} {
		for _, depth := range []int{1, 2, 3} {
			b.Run(fmt.Sprintf("io=%s/depth=%d", io, depth), func(b *testing.B) {
				e, _ := openDemo(b, device(b, 0), actors.Config{RingDepth: depth, ExpertIO: io})
				d := newDecoder(b, e)
				for b.Loop() {
					d.next()
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tok/s")
				st, err := e.Stats(context.Background())
				if err != nil {
					b.Fatal(err)
				}
				var hits, misses int64
				for _, l := range st.Layers {
					hits, misses = hits+l.Hits, misses+l.Misses
				}
				b.ReportMetric(100*float64(hits)/float64(hits+misses), "hit-%")
			})
		}
	}
}

// decoder decodes one token a call, from an empty sequence again when the context is half full.
type decoder struct {
	b     *testing.B
	s     *actors.Sequence
	token int32
}

func newDecoder(b *testing.B, e *actors.Engine) *decoder {
	d := &decoder{b: b, s: sequence(b, e), token: max(e.Model().BOSTokenID, 0)}
	for range 100 { // first touch of memory
		d.next()
	}
	b.ReportAllocs()
	return d
}

func (d *decoder) next() {
	if d.s.Len() >= 512 {
		if err := d.s.Reset(context.Background()); err != nil {
			d.b.Fatal(err)
		}
	}
	d.token = argmax(eval(d.b, d.s, d.token))
}

// BenchmarkFirstToken opens the packed demo model, reads a short prompt, and closes everything:
// what a second run of the command costs from its start to its first token, without the process
// itself.
func BenchmarkFirstToken(b *testing.B) {
	dir, ref := demoModel(b)
	for b.Loop() {
		dev, err := host.New(host.Config{})
		if err != nil {
			b.Fatal(err)
		}
		e, err := actors.Open(context.Background(), actors.Config{Model: dir, Device: dev})
		if err != nil {
			b.Fatal(err)
		}
		s, err := e.NewSequence(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		eval(b, s, ref.Greedy[0].PromptIDs...)
		if err := e.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
		if err := dev.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
