package actors_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/readpool"
	"github.com/moeflux/moeflux-actor/snapshot"
	"github.com/moeflux/moeflux-actor/stages"
)

// TestRecurrentBound gives sequences of a model with recurrent state memory until StateMemory is
// used up, which is a typed error at once, since nobody is about to give any back, and again after
// some were closed.
func TestRecurrentBound(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	info := open(t, actors.Config{Model: dir}).Info()
	state, page := info.StateBytes, 64*info.KVBytesPerPos
	e := open(t, actors.Config{Model: dir, StateMemory: 1 << 20})
	if got := e.Info().StateMemory; got != 1<<20 {
		t.Fatalf("a state memory of %d", got)
	}
	var seqs []*actors.Sequence
	for {
		s := sequence(t, e) // which takes nothing yet
		_, err := s.Eval(ctx, []int32{1})
		if err == nil && int64(len(seqs))*(state+page) <= 1<<20 {
			seqs = append(seqs, s)
			continue
		}
		full, ok := errors.AsType[*stages.StateMemoryError](err)
		n := int64(len(seqs))
		want := stages.StateMemoryError{Pages: 1, States: 1, Need: state + page, Used: n * (state + page), Max: 1 << 20}
		if !ok || *full != want || n != 1<<20/(state+page) {
			t.Fatalf("after %d sequences: %v, want %v", n, err, &want)
		}
		break
	}
	for len(seqs) > 2 {
		if err := seqs[0].Close(); err != nil {
			t.Fatal(err)
		}
		seqs = seqs[1:]
	}
	for {
		if _, err := seqs[0].Fork(ctx); errors.As(err, new(*stages.StateMemoryError)) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range seqs {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOverwriteCheckpoint keeps a checkpoint again and again in a budget for one, and shows what a
// cap set at run time leaves.
func TestOverwriteCheckpoint(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	info := open(t, actors.Config{Model: dir}).Info()
	e := open(t, actors.Config{Model: dir, CheckpointMemory: info.StateBytes})
	s := sequence(t, e)
	eval(t, s, 1, 2, 3)
	want := eval(t, s, 4)
	if _, err := s.Rewind(ctx, 0); err != nil {
		t.Fatal(err)
	}
	eval(t, s, 1, 2, 3)
	for range 3 {
		if err := s.Checkpoint(ctx, 3); err != nil {
			t.Fatal(err)
		}
	}
	eval(t, s, 9, 9)
	if err := s.RestoreTo(ctx, 3); err != nil || !slices.Equal(eval(t, s, 4), want) {
		t.Errorf("restored: %v, or other logits", err)
	}
	st, err := e.Stats(ctx)
	if err != nil || st.States.Evicted != 0 || st.States.Kept != 1 {
		t.Errorf("%+v, %v", st.States, err)
	}
}

// TestMaxCheckpoints sets the cap by Config and at run time.
func TestMaxCheckpoints(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen3MoEBF16, 0)
	for _, c := range []struct {
		config int
		max    []int // set before the last checkpoint
		want   []int
	}{
		{0, nil, []int{0, 3, 4, 5}}, {-1, nil, []int{0, 5}}, {2, nil, []int{0, 5}}, {3, nil, []int{0, 4, 5}}, {0, []int{0}, []int{0, 5}},
		{0, []int{-7}, []int{0, 5}}, {-1, []int{9}, []int{0, 4, 5}}, {9, []int{4}, []int{0, 3, 4, 5}},
	} {
		e := open(t, actors.Config{Model: dir, Checkpoints: c.config})
		if got := e.Info().Checkpoints; c.config == 0 && got != 4 || c.config != 0 && got != max(c.config, 0) {
			t.Errorf("Config.Checkpoints %d means %d", c.config, got)
		}
		s := sequence(t, e)
		for pos := range 6 {
			if pos > 0 {
				eval(t, s, 1)
			}
			if pos == 5 && c.max != nil {
				before, _ := s.Describe(ctx)
				if err := s.SetMaxCheckpoints(ctx, c.max[0]); err != nil {
					t.Fatal(err)
				}
				if after, _ := s.Describe(ctx); !slices.Equal(before.Checkpoints, after.Checkpoints) {
					t.Errorf("a cap of %d takes effect at once: %v", c.max[0], after.Checkpoints)
				}
			}
			if err := s.Checkpoint(ctx, pos); err != nil {
				t.Fatal(err)
			}
		}
		if d, err := s.Describe(ctx); err != nil || !slices.Equal(d.Checkpoints, c.want) {
			t.Errorf("Config.Checkpoints %d, then %v: %v, %v, want %v", c.config, c.max, d.Checkpoints, err, c.want)
		}
	}
}

// TestChunkPos asserts where chunks begin.
func TestChunkPos(t *testing.T) {
	e := open(t, actors.Config{Model: fixtures.Packed(t, fixtures.Qwen3MoEBF16, 0)})
	s := sequence(t, e)
	for _, c := range []struct {
		pos  actors.Pos
		len  int
		fits bool
	}{{actors.At(1), 0, false}, {actors.At(0), 0, true}, {actors.Pos{}, 1, true}, {actors.At(0), 2, false}, {actors.At(-1), 2, false}, {actors.At(2), 2, true}} {
		_, err := s.EvalChunk(ctx, actors.Chunk{Tokens: []int32{1}, Pos: c.pos})
		wrong, ok := errors.AsType[*stages.PosError](err)
		if ok == c.fits || ok && (wrong.Len != c.len || wrong.Pos != c.pos || wrong.Seq != s.ID()) || c.fits && err != nil {
			t.Errorf("a chunk at %v of %d: %v", c.pos, c.len, err)
		}
		if want := c.len + map[bool]int{true: 1}[c.fits]; s.Len() != want {
			t.Fatalf("%d positions, want %d", s.Len(), want)
		}
	}
}

// TestSaveTo saves into a buffer, in every version.
func TestSaveTo(t *testing.T) {
	for _, name := range families {
		s := sequence(t, open(t, actors.Config{Model: fixtures.Packed(t, name, 0), ChunkRows: rowsOfSteps(name, 16)}))
		eval(t, s, 1, 2, 3)
		forms := []actors.SaveOptions{{}, {Plain: true}, {Version: snapshot.Version2}, {Version: snapshot.Version2, Plain: true}}
		if sealedAlone(name) {
			own := snapshot.Version6
			if name == fixtures.GlmMoEDSASharedBF16 || name == fixtures.MiniMaxM3BF16 { // no windows
				own = snapshot.Version4
			}
			forms = []actors.SaveOptions{{}, {Version: own}}
		}
		for _, o := range forms {
			want := save(t, s, o)
			buf := bytes.Repeat([]byte{0xAA}, len(want)+3)
			if n, err := s.SaveTo(ctx, buf, o); err != nil || n != len(want) || !bytes.Equal(buf[:n], want) || buf[n] != 0xAA {
				t.Errorf("%s, %+v: %d of %d bytes, %v, or others than Save writes", name, o, n, len(want), err)
			}
			if o.Version != 0 && snapshotVersion(t, want) != o.Version {
				t.Errorf("%s: version %d, want %d", name, snapshotVersion(t, want), o.Version)
			}
			small := bytes.Repeat([]byte{0xAA}, len(want)-1)
			n, err := s.SaveTo(ctx, small, o)
			short, ok := errors.AsType[*snapshot.Error](err)
			if !errors.Is(err, snapshot.ErrBufferTooSmall) || !ok || short.Got != int64(len(small)) || short.Want != int64(len(want)) || n != 0 {
				t.Errorf("%s: a buffer that is too small: %d, %v", name, n, err)
			}
			if slices.ContainsFunc(small, func(b byte) bool { return b != 0xAA }) {
				t.Errorf("%s: a buffer that is too small is written to", name)
			}
		}
		eval(t, s, 4)
	}
}

func snapshotVersion(t *testing.T, raw []byte) int {
	t.Helper()
	f, err := snapshot.Inspect(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	return f.Info().Version
}

// countingReader counts how often it is read.
type countingReader struct {
	*bytes.Reader
	reads atomic.Int64
}

func (r *countingReader) ReadAt(p []byte, at int64) (int, error) {
	r.reads.Add(1)
	return r.Reader.ReadAt(p, at)
}

// TestLoadBusy loads over a sequence that is evaluating: the file is not touched. While a sequence
// is being loaded it takes no chunk, and the loading succeeds.
func TestLoadBusy(t *testing.T) {
	release := make(chan struct{})
	e, faulty := streamed(t, actors.Config{Prefetch: actors.PrefetchOff}, readpool.Fault{Kind: readpool.Slow, Release: release})
	s := sequence(t, e)
	file := &countingReader{Reader: bytes.NewReader(save(t, s, actors.SaveOptions{}))}
	ended := make(chan error, 1)
	go func() {
		_, err := s.Eval(ctx, []int32{1})
		ended <- err
	}()
	for (*faulty).Reads() == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := s.Load(ctx, file, file.Size(), actors.LoadOptions{}); !errors.Is(err, stages.ErrBusy) || file.reads.Load() != 0 {
		t.Errorf("over a busy sequence: %v after %d reads", err, file.reads.Load())
	}
	close(release)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	raw := save(t, s, actors.SaveOptions{})
	slow := &blockingReader{Reader: bytes.NewReader(raw), from: int64(len(raw)) / 2, began: make(chan struct{}), goOn: make(chan struct{})}
	go func() { ended <- s.Load(ctx, slow, int64(len(raw)), actors.LoadOptions{}) }()
	<-slow.began
	if _, err := s.Eval(context.Background(), []int32{1}); !errors.Is(err, stages.ErrBusy) {
		t.Errorf("a chunk while the sequence is loaded: %v", err)
	}
	close(slow.goOn)
	if err := <-ended; err != nil || s.Len() != 1 {
		t.Errorf("loaded: %v, %d positions", err, s.Len())
	}
}

// blockingReader waits when the byte at from is to be read.
type blockingReader struct {
	*bytes.Reader
	from        int64
	began, goOn chan struct{}
}

func (r *blockingReader) ReadAt(p []byte, at int64) (int, error) {
	if at <= r.from && at+int64(len(p)) > r.from {
		close(r.began)
		<-r.goOn
	}
	return r.Reader.ReadAt(p, at)
}
