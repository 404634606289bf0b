package actors_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/snapshot"
)

// families has one model of each kind of state.
var families = []string{fixtures.Qwen35MoEQ4, fixtures.Qwen3NextBF16, fixtures.Qwen3MoEBF16, fixtures.DeepseekV3BF16, fixtures.GlmMoEDSASharedBF16, fixtures.GptOssBF16, fixtures.MiMoV2FlashBF16,
	fixtures.MiniMaxM3BF16, fixtures.Step35BF16}

// sealedAlone reports whether no plain file holds states of the model.
func sealedAlone(name string) bool {
	return slices.Contains([]string{fixtures.GlmMoEDSASharedBF16, fixtures.GptOssBF16, fixtures.MiMoV2FlashBF16, fixtures.MiniMaxM3BF16, fixtures.Step35BF16}, name)
}

// rowsOfSteps keeps latent attention to one of its two forms, which do not have the same bits.
func rowsOfSteps(name string, otherwise int) int {
	if strings.HasPrefix(name, "deepseek") || name == fixtures.GlmMoEDSASharedBF16 {
		return 1
	}
	return otherwise
}

func save(tb testing.TB, s *actors.Sequence, o actors.SaveOptions) []byte {
	tb.Helper()
	size, err := s.Size(context.Background(), o)
	if err != nil {
		tb.Fatal(err)
	}
	var b bytes.Buffer
	if n, err := s.Save(context.Background(), &b, o); err != nil || n != size || int64(b.Len()) != size {
		tb.Fatalf("saved %d of %d bytes, wrote %d: %v", n, size, b.Len(), err)
	}
	return b.Bytes()
}

func load(s *actors.Sequence, raw []byte, o actors.LoadOptions) error {
	return s.Load(context.Background(), bytes.NewReader(raw), int64(len(raw)), o)
}

// TestSaveLoad saves a sequence at several positions while others decode, loads it into another
// engine, over another text, and goes on: the logits are those of never having stopped. All kinds
// of state, ring depths, sealed and plain files; memory that the host can address, and not.
func TestSaveLoad(t *testing.T) {
	for _, name := range families {
		if !testenv.Share(t, name, 4) {
			continue
		}
		dir := fixtures.Packed(t, name, 0)
		dev := device(t, 2)
		base := open(t, actors.Config{Model: dir, Device: dev, ChunkRows: rowsOfSteps(name, 32)})
		text := prompt(3, 135, base.Model().VocabSize)
		whole, err := sequence(t, base).EvalChunk(context.Background(), actors.Chunk{Tokens: text, Logits: actors.AllLogits})
		if err != nil {
			t.Fatal(err)
		}
		vocab := base.Model().VocabSize
		for _, depth := range []int{3, 2, 1}[:testenv.Rounds(1, 3, 3)] {
			for _, far := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/depth=%d/far=%v", name, depth, far), func(t *testing.T) {
					cfg := actors.Config{Model: dir, Device: dev, RingDepth: depth, ChunkRows: rowsOfSteps(name, 5+depth)}
					if far {
						cfg.Device = &farDevice{dev}
					}
					from, to := open(t, cfg), open(t, cfg)
					stop := decodeAlong(t, from)
					stopTo := decodeAlong(t, to)
					src, dst := sequence(t, from), sequence(t, to)
					eval(t, dst, 1, 2, 3)
					for i, pos := range []int{0, 1, 63, 64, 65, 130} {
						if at := src.Len(); pos > at {
							eval(t, src, text[at:pos]...)
						}
						o, l := actors.SaveOptions{Plain: i%2 == 1 && !sealedAlone(name)}, actors.LoadOptions{}
						if o.Plain {
							l.Accept = snapshot.Plain
						}
						if err := load(dst, save(t, src, o), l); err != nil {
							t.Fatal(err)
						}
						if dst.Len() != pos {
							t.Fatalf("%d positions, want %d", dst.Len(), pos)
						}
						for k := pos; k < pos+3; k++ {
							if got := eval(t, dst, text[k]); !slices.Equal(got, whole.Logits[k*vocab:(k+1)*vocab]) {
								t.Fatalf("saved at %d: logits at %d differ", pos, k)
							}
						}
					}
					stop()
					stopTo()
				})
			}
		}
	}
}

// decodeAlong keeps a sequence of the engine busy until stop is called.
func decodeAlong(t *testing.T, e *actors.Engine) (stop func()) {
	s := sequence(t, e)
	end := make(chan struct{})
	var wg sync.WaitGroup
	var err error
	wg.Go(func() {
		for i := int32(0); err == nil; i++ {
			select {
			case <-end:
				return
			default:
			}
			if s.Len() > 100 {
				err = s.Reset(context.Background())
			}
			if err == nil {
				_, err = s.Eval(context.Background(), []int32{i % 7})
			}
		}
	})
	return func() {
		close(end)
		wg.Wait()
		if err != nil {
			t.Errorf("the sequence beside: %v", err)
		}
	}
}

// farDevice is a device whose memory the host cannot address, as far as anybody but its own kernels
// can tell.
type farDevice struct{ gpu.Device }

type farBuffer struct{ gpu.Buffer }

func (d *farDevice) NewBuffer(n int) (gpu.Buffer, error) {
	b, err := d.Device.NewBuffer(n)
	if err != nil {
		return nil, err
	}
	return &farBuffer{b}, nil
}

func (b *farBuffer) Bytes() []byte {
	callers := make([]uintptr, 8)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for f, more := frames.Next(); more; f, more = frames.Next() {
		if strings.Contains(f.Function, "/gpu/host.") {
			return b.Buffer.Bytes()
		}
	}
	return nil
}

// TestHandmadeState loads files that are put together from the layout alone, docs/snapshots.md, and
// finds every float in its place: what is saved again is the same file, and attention and
// recurrence read what was written.
func TestHandmadeState(t *testing.T) {
	for _, name := range families {
		e := open(t, actors.Config{Model: fixtures.Packed(t, name, 0)})
		if sealedAlone(name) {
			if _, err := sequence(t, e).Size(ctx, actors.SaveOptions{Plain: true}); !errors.Is(err, snapshot.ErrUnsupported) {
				t.Errorf("%s: a plain file: %v", name, err)
			}
			continue
		}
		const positions = 70
		raw := handmade(e.Model(), positions)
		s := sequence(t, e)
		if err := load(s, raw, actors.LoadOptions{}); !errors.Is(err, snapshot.ErrUnsealed) {
			t.Errorf("%s: a plain file that nobody asked for: %v", name, err)
		}
		if err := load(s, append(raw, 0), actors.LoadOptions{Accept: snapshot.Plain}); !errors.Is(err, snapshot.ErrTrailing) {
			t.Errorf("%s: a byte too many: %v", name, err)
		}
		if err := load(s, raw, actors.LoadOptions{Accept: snapshot.Plain}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if again := save(t, s, actors.SaveOptions{Plain: true}); !bytes.Equal(again, raw) {
			t.Errorf("%s: what was loaded is saved otherwise", name)
		}
		d, err := s.Describe(context.Background())
		if err != nil || d.PosMax != positions || slices.ContainsFunc(d.Tokens, func(t int32) bool { return t >= 0 }) {
			t.Errorf("%s: %+v, %v: want %d tokens that nobody knows", name, d, err, positions)
		}
		if sealed := save(t, s, actors.SaveOptions{}); load(s, sealed, actors.LoadOptions{}) != nil {
			t.Errorf("%s: a sealed file without tokens does not load", name)
		}
	}
}

// handmade writes a state of random values as the format has it.
func handmade(m *model.Config, positions int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	var raw []byte
	word := func(v int) { raw = binary.LittleEndian.AppendUint32(raw, uint32(v)) }
	floats := func(n int) {
		for range n {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(r.NormFloat64()/4)))
		}
	}
	latent := m.Count(model.LatentAttention) > 0
	interval := 1 + slices.IndexFunc(m.Layers, func(l model.Layer) bool { return l.Mixer != model.LinearAttention })
	raw = append(raw, "XLFM"...)
	kvHeads, headDim := m.NumKeyValueHeads, m.HeadDim
	version := 1
	if latent {
		version = 2
	}
	word(version)
	word(len(m.Layers))
	word(interval)
	word(kvHeads)
	word(headDim)
	linear := m.Count(model.LinearAttention) > 0
	conv, rec := 0, 0
	if linear {
		conv, rec = (m.LinearConvKernelDim-1)*m.LinearConvDim(), m.LinearNumValueHeads*m.LinearValueHeadDim*m.LinearKeyHeadDim
	}
	word(conv * 4)
	word(rec * 4)
	if latent {
		word(m.KVLoraRank)
		word(m.QKRopeHeadDim)
	}
	for _, l := range m.Layers {
		switch l.Mixer {
		case model.FullAttention:
			word(positions)
			floats(2 * positions * kvHeads * headDim)
		case model.LatentAttention:
			word(positions)
			floats(positions * (m.KVLoraRank + m.QKRopeHeadDim))
		default:
			floats(conv + rec)
		}
	}
	return raw
}
