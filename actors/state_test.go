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
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/snapshot"
	"github.com/moeflux/moeflux-actor/stages"
)

// families has one model of each kind of state.
var families = []string{fixtures.Qwen35MoEQ4, fixtures.Qwen3NextBF16, fixtures.Qwen3MoEBF16, fixtures.DeepseekV3BF16}

// rowsOfSteps keeps latent attention to one of its two forms, which do not have the same bits.
func rowsOfSteps(name string, otherwise int) int {
	if strings.HasPrefix(name, "deepseek") {
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
		dir := fixtures.Packed(t, name, 0)
		dev := device(t, 2)
		base := open(t, actors.Config{Model: dir, Device: dev, ChunkRows: rowsOfSteps(name, 32)})
		text := prompt(3, 135, base.Model().VocabSize)
		whole, err := sequence(t, base).EvalChunk(context.Background(), actors.Chunk{Tokens: text, Logits: actors.AllLogits})
		if err != nil {
			t.Fatal(err)
		}
		vocab := base.Model().VocabSize
		for _, depth := range []int{1, 2, 3} {
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
						o, l := actors.SaveOptions{Plain: i%2 == 1}, actors.LoadOptions{}
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

// TestLoadRefused shows that whatever is wrong with a file, or happens on the way, the sequence is
// as before and goes on, and no page is lost.
func TestLoadRefused(t *testing.T) {
	ctx := context.Background()
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	info := open(t, actors.Config{Model: dir}).Info()
	page := info.KVBytesPerPos * 64
	e := open(t, actors.Config{Model: dir, Context: 128, StateMemory: 5*page + 3*info.StateBytes})
	s, other := sequence(t, e), sequence(t, e)
	text := prompt(5, 100, 512)
	eval(t, s, text...)
	raw := save(t, s, actors.SaveOptions{})
	next := eval(t, s, 7)
	eval(t, other, 1, 2, 3)
	bad := func(at int) []byte {
		b := slices.Clone(raw)
		b[at] ^= 4
		return b
	}
	foreign, err := snapshot.Inspect(bytes.NewReader(raw), int64(len(raw)))
	if err != nil || foreign.Seal() == nil || !slices.Equal(foreign.Seal().Tokens, text) {
		t.Fatalf("the seal has not the text's tokens: %v", err)
	}
	broken := errors.New("the disk is broken")
	gone, cancel := context.WithCancel(ctx)
	cancel()
	for what, c := range map[string]struct {
		try  func() error
		want error
	}{
		"a header of another model": {func() error { return load(other, bad(8), actors.LoadOptions{}) }, snapshot.ErrShape},
		"a body with a flipped bit": {func() error { return load(other, bad(len(raw)/2), actors.LoadOptions{}) }, snapshot.ErrChecksum},
		"cut short":                 {func() error { return load(other, raw[:len(raw)-1], actors.LoadOptions{}) }, snapshot.ErrTruncated},
		"a reader that fails": {func() error {
			return other.Load(ctx, &failingReader{Reader: bytes.NewReader(raw), from: int64(len(raw)) / 2, err: broken}, int64(len(raw)), actors.LoadOptions{})
		}, broken},
		"a caller that has gone": {func() error { return other.Load(gone, bytes.NewReader(raw), int64(len(raw)), actors.LoadOptions{}) }, context.Canceled},
		"a writer that fails":    {func() error { _, err := s.Save(ctx, failingWriter{broken}, actors.SaveOptions{}); return err }, broken},
	} {
		if err := c.try(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
		if s.Len() != 101 || other.Len() != 3 || s.Err() != nil || other.Err() != nil {
			t.Fatalf("%s: %d and %d positions, errors %v and %v", what, s.Len(), other.Len(), s.Err(), other.Err())
		}
	}
	// Five pages are there. The first sequence has two, and the other two when it has loaded; a
	// draft needs two more.
	if err := load(other, raw, actors.LoadOptions{}); err != nil || !slices.Equal(eval(t, other, 7), next) {
		t.Errorf("with pages: %v, or other logits", err)
	}
	var full *stages.StateMemoryError
	if err := load(s, raw, actors.LoadOptions{}); !errors.As(err, &full) || full.Pages != 2 || full.States != 1 || full.Used != 4*page+2*info.StateBytes {
		t.Errorf("no pages for a draft: %v", err)
	}
	if s.Len() != 101 {
		t.Errorf("%d positions", s.Len())
	}
	// In place there is room; a file that is damaged is found out before the old state goes.
	if err := load(s, bad(len(raw)/2), actors.LoadOptions{InPlace: true}); !errors.Is(err, snapshot.ErrChecksum) || s.Len() != 101 || s.Err() != nil {
		t.Errorf("a damaged file in place: %v, %d positions, %v", err, s.Len(), s.Err())
	}
	once := &failingReader{Reader: bytes.NewReader(raw), from: int64(len(raw)) / 2, err: broken, after: 1}
	if err := s.Load(ctx, once, int64(len(raw)), actors.LoadOptions{InPlace: true}); !errors.Is(err, broken) || !errors.Is(s.Err(), stages.ErrGivenUp) {
		t.Errorf("a reader that fails the second time: %v, then %v", err, s.Err())
	}
	if err := load(s, raw, actors.LoadOptions{InPlace: true}); err != nil || s.Err() != nil || !slices.Equal(eval(t, s, 7), next) {
		t.Errorf("in place: %v, %v, or other logits", err, s.Err())
	}
	if err := errors.Join(s.Close(), other.Close()); err != nil {
		t.Fatal(err)
	}
	if st, err := e.Stats(ctx); err != nil || st.PagesUsed != 0 {
		t.Errorf("%d pages are used by nobody, %v", st.PagesUsed, err)
	}
	for what, err := range map[string]error{
		"load": load(s, raw, actors.LoadOptions{}), "save": func() error { _, err := s.Save(ctx, new(bytes.Buffer), actors.SaveOptions{}); return err }(),
	} {
		if !errors.Is(err, stages.ErrClosed) {
			t.Errorf("%s of a closed sequence: %v", what, err)
		}
	}
}

// failingReader fails to read the byte at from, but for the first times.
type failingReader struct {
	*bytes.Reader
	from  int64
	err   error
	after int
}

func (r *failingReader) ReadAt(p []byte, at int64) (int, error) {
	if at <= r.from && at+int64(len(p)) > r.from {
		if r.after--; r.after < 0 {
			return 0, r.err
		}
	}
	return r.Reader.ReadAt(p, at)
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// TestCloseWhileSaving closes an engine while states are written and read: Close waits, and both
// end with ErrClosed.
func TestCloseWhileSaving(t *testing.T) {
	e, err := actors.Open(context.Background(), actors.Config{Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), Device: device(t, 1)})
	if err != nil {
		t.Fatal(err)
	}
	s, err := e.NewSequence(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	eval(t, s, prompt(1, 70, 512)...)
	w := &slowWriter{began: make(chan struct{}), goOn: make(chan struct{})}
	saved := make(chan error, 1)
	go func() {
		_, err := s.Save(context.Background(), w, actors.SaveOptions{})
		saved <- err
	}()
	<-w.began
	closed := make(chan error, 1)
	go func() { closed <- e.Close(context.Background()) }()
	for _, err := e.Stats(context.Background()); !errors.Is(err, stages.ErrClosed); _, err = e.Stats(context.Background()) {
	}
	select {
	case <-closed:
		t.Error("Close does not wait for whoever reads a state")
	default:
	}
	close(w.goOn)
	// all may have been read before
	if err := <-saved; err != nil && !errors.Is(err, stages.ErrClosed) {
		t.Errorf("save: %v", err)
	}
	if err := <-closed; err != nil {
		t.Errorf("close: %v", err)
	}
}

// TestGoOnWhileSaving evaluates and empties a sequence while it is being saved: what is saved is
// the state of the moment of the call. (States that are still being read then are TestEditors' in
// package stagetest: these here fit into one buffer.)
func TestGoOnWhileSaving(t *testing.T) {
	for _, name := range families {
		e := open(t, actors.Config{Model: fixtures.Packed(t, name, 0), ChunkRows: rowsOfSteps(name, 16)})
		s, other := sequence(t, e), sequence(t, e)
		text := prompt(1, 100, e.Model().VocabSize)
		eval(t, other, text...)
		want := eval(t, other, 9)
		eval(t, s, text...)
		var file bytes.Buffer
		w := &slowWriter{began: make(chan struct{}), goOn: make(chan struct{}), to: &file}
		saved := make(chan error, 1)
		go func() {
			_, err := s.Save(context.Background(), w, actors.SaveOptions{})
			saved <- err
		}()
		<-w.began
		eval(t, s, 1, 2, 3)
		if err := s.Reset(context.Background()); err != nil {
			t.Fatal(err)
		}
		eval(t, s, prompt(2, 90, e.Model().VocabSize)...)
		close(w.goOn)
		if err := <-saved; err != nil {
			t.Fatal(err)
		}
		if err := load(s, file.Bytes(), actors.LoadOptions{}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(eval(t, s, 9), want) {
			t.Errorf("%s: what was saved is not the state of the moment of the call", name)
		}
	}
}

type slowWriter struct {
	began, goOn chan struct{}
	once        sync.Once
	to          *bytes.Buffer // or nil
}

func (w *slowWriter) Write(p []byte) (int, error) {
	w.once.Do(func() { close(w.began) })
	<-w.goOn
	if w.to != nil {
		return w.to.Write(p)
	}
	return len(p), nil
}
