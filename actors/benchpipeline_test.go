package actors_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
)

// BenchmarkPipeline compares decoded tokens through the actors with a plain loop that runs the very
// same operations one after the other: the difference is what routing, messages, mailboxes and
// wake-ups cost. The two take turns in one process, a text of 16 tokens each, and medians are
// compared, so that other work on the machine hits both. MOEFLUX_BENCH_MODEL adds a packed model,
// for example of synth.
func BenchmarkPipeline(b *testing.B) {
	demo, _ := demoModel(b)
	models := []struct{ name, dir string }{{"fixture", fixtures.Packed(b, fixtures.Qwen35MoEQ4, 0)}, {"demo", demo}}
	if dir := os.Getenv("MOEFLUX_BENCH_MODEL"); dir != "" {
		models = append(models, struct{ name, dir string }{filepath.Base(dir), dir})
	}
	for _, m := range models {
		b.Run("model="+m.name, func(b *testing.B) { benchmarkPipeline(b, m.dir) })
	}
}

func benchmarkPipeline(b *testing.B, dir string) {
	const text = 16
	dev := &tapeDevice{Device: device(b, 0)}
	e := open(b, actors.Config{Model: dir, Device: dev, Context: text, ExpertIO: actors.ExpertIOMmap})
	s, ctx := sequence(b, e), context.Background()
	token := make([]int32, 1)
	begin := func(i int) { // a text begins with an empty sequence
		if i == 0 {
			if err := s.Reset(ctx); err != nil {
				b.Fatal(err)
			}
		}
	}
	through := func(i int) {
		token[0] = int32(7919 * (i + 1) % e.Model().VocabSize)
		if err := s.Use(ctx, token, func([]float32) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	var tapes [text][]*gpu.Commands
	loop := func(i int) {
		for _, c := range tapes[i] {
			if err := dev.Run(c); err != nil {
				b.Fatal(err)
			}
		}
	}
	begin(0)
	dev.record = true
	for i := range tapes {
		dev.tape = nil
		through(i)
		tapes[i] = dev.tape
	}
	dev.record = false
	for n := range 8 * text { // first touch of memory
		begin(n % text)
		through(n % text)
		loop(n % text)
	}
	var took [2][]float64 // microseconds
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		which, run := n/text%2, through
		if which == 1 {
			run = loop
		} else {
			begin(n % text)
		}
		began := time.Now()
		run(n % text)
		took[which] = append(took[which], float64(time.Since(began).Nanoseconds())/1e3)
	}
	reportPipeline(b, took[0], took[1], float64(len(e.Model().Layers)))
}

// BenchmarkDecodeOperations tells how the device's time for a token after a text of 512 is divided
// among operations. Each runs by itself, products that share a job together. MOEFLUX_BENCH_MODEL
// names a packed model, MOEFLUX_BENCH_ACTIVATIONS=int8 rounds inputs, MOEFLUX_CPU names a variant.
func BenchmarkDecodeOperations(b *testing.B) { benchmarkOperations(b, false) }

// BenchmarkPromptOperations is BenchmarkDecodeOperations for the text of 512 itself.
func BenchmarkPromptOperations(b *testing.B) { benchmarkOperations(b, true) }

func benchmarkOperations(b *testing.B, ofPrompt bool) {
	dir := os.Getenv("MOEFLUX_BENCH_MODEL")
	if dir == "" {
		dir, _ = demoModel(b)
	}
	cfg := host.Config{Variant: os.Getenv("MOEFLUX_CPU")}
	if os.Getenv("MOEFLUX_BENCH_ACTIVATIONS") == host.Int8.String() {
		cfg.Activations = host.Int8
	}
	inner, err := host.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { inner.Close() })
	dev := &tapeDevice{Device: inner}
	e := open(b, actors.Config{Model: dir, Device: dev, Context: 1024, ExpertIO: actors.ExpertIOMmap})
	s := sequence(b, e)
	prompt := make([]int32, 512)
	for i := range prompt {
		prompt[i] = int32(7919 * (i + 1) % e.Model().VocabSize)
	}
	dev.record = ofPrompt
	eval(b, s, prompt...)
	dev.record = !ofPrompt
	if !ofPrompt {
		eval(b, s, prompt[0])
	}
	dev.record = false
	type timed struct {
		name string
		ops  *gpu.Commands
	}
	var parts []timed
	for _, c := range dev.tape {
		for ops := c.Ops(); len(ops) > 0; {
			n := 1
			for ops[0].Name() == "matmul" && n < len(ops) && ops[n].Name() == "matmul" && sameInput(ops[0], ops[n]) {
				n++
			}
			name := ops[0].Name()
			if m, ok := ops[0].(*gpu.MatMul); ok {
				name = fmt.Sprintf("matmul-%dx%d", m.W.Rows, m.W.Cols)
			}
			parts = append(parts, timed{name, someOf(ops[:n])})
			ops = ops[n:]
		}
	}
	took := map[string]float64{} // microseconds
	b.ResetTimer()
	for b.Loop() {
		for _, p := range parts {
			began := time.Now()
			if err := inner.Run(p.ops); err != nil {
				b.Fatal(err)
			}
			took[p.name] += float64(time.Since(began).Nanoseconds()) / 1e3
		}
	}
	for name, t := range took {
		b.ReportMetric(t/float64(b.N), name+"-µs")
	}
}

func sameInput(a, b gpu.Op) bool { return a.(*gpu.MatMul).X == b.(*gpu.MatMul).X }

// someOf returns commands of some operations of others, which stay as they are.
func someOf(ops []gpu.Op) *gpu.Commands {
	all := new(gpu.Commands)
	for _, op := range ops {
		encodeCopy(all, op)
	}
	return all
}

// reportPipeline compares medians, and the times that one token in ten stays below.
func reportPipeline(b *testing.B, through, loop []float64, layers float64) {
	if len(loop) == 0 {
		return
	}
	at := func(took []float64, share float64) float64 { return took[int(share*float64(len(took)))] }
	slices.Sort(through)
	slices.Sort(loop)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(at(through, 0.5), "actors-µs/token")
	b.ReportMetric(at(loop, 0.5), "loop-µs/token")
	b.ReportMetric((at(through, 0.5)-at(loop, 0.5))/layers, "µs/layer")
	b.ReportMetric((at(through, 0.1)-at(loop, 0.1))/layers, "best-µs/layer")
	b.ReportMetric(100*(at(through, 0.5)-at(loop, 0.5))/at(through, 0.5), "%-of-token")
}

// tapeDevice keeps copies of the commands that are submitted to it.
type tapeDevice struct {
	*host.Device
	record bool
	tape   []*gpu.Commands
}

type tapeQueue struct {
	gpu.Queue
	d *tapeDevice
}

func (d *tapeDevice) NewQueue() (gpu.Queue, error) {
	q, err := d.Device.NewQueue()
	return tapeQueue{q, d}, err
}

func (q tapeQueue) Submit(c *gpu.Commands) (gpu.Ticket, error) {
	if q.d.record {
		q.d.tape = append(q.d.tape, copyCommands(c))
	}
	return q.Queue.Submit(c)
}

// copyCommands copies what a decoded token is made of, with the slices that are used again after
// its ticket.
func copyCommands(c *gpu.Commands) *gpu.Commands {
	out := new(gpu.Commands)
	for _, op := range c.Ops() {
		encodeCopy(out, op)
	}
	return out
}

func encodeCopy(out *gpu.Commands, op gpu.Op) {
	switch o := op.(type) {
	case *gpu.Upload:
		gpu.Encode(out, gpu.Upload{Dst: o.Dst, Src: slices.Clone(o.Src)})
	case *gpu.Download:
		gpu.Encode(out, gpu.Download{Src: o.Src, Dst: make([]byte, len(o.Dst))})
	case *gpu.Embed:
		gpu.Encode(out, gpu.Embed{Table: o.Table, Tokens: slices.Clone(o.Tokens), Y: o.Y})
	case *gpu.Gather:
		g := *o
		g.Rows = slices.Clone(o.Rows)
		gpu.Encode(out, g)
	case *gpu.RMSNorm:
		gpu.Encode(out, *o)
	case *gpu.MatMul:
		gpu.Encode(out, *o)
	case *gpu.Add:
		gpu.Encode(out, *o)
	case *gpu.SigmoidGate:
		gpu.Encode(out, *o)
	case *gpu.SwiGLU:
		gpu.Encode(out, *o)
	case *gpu.Rope:
		gpu.Encode(out, *o)
	case *gpu.AppendKV:
		a := *o
		a.Segments = slices.Clone(o.Segments)
		gpu.Encode(out, a)
	case *gpu.Attention:
		a := *o
		a.Segments = slices.Clone(o.Segments)
		gpu.Encode(out, a)
	case *gpu.CausalConv:
		a := *o
		a.Segments = slices.Clone(o.Segments)
		gpu.Encode(out, a)
	case *gpu.DeltaRule:
		a := *o
		a.Segments = slices.Clone(o.Segments)
		gpu.Encode(out, a)
	case *gpu.GatedNorm:
		gpu.Encode(out, *o)
	case *gpu.Experts:
		a := *o
		if a.Table.At.IsZero() {
			a.Table = &gpu.ExpertTable{Experts: slices.Clone(o.Table.Experts)}
		}
		a.Picks.Host = slices.Clone(o.Picks.Host)
		gpu.Encode(out, a)
	case *gpu.Route:
		gpu.Encode(out, *o)
	case *gpu.Combine:
		a := *o
		a.Weights.Host = slices.Clone(o.Weights.Host)
		gpu.Encode(out, a)
	default:
		panic("an operation that the tape does not know: " + op.Name())
	}
}
