package recall

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/snapshot"
	"github.com/moeflux/moeflux-actor/snapshot/store"
	"github.com/moeflux/moeflux-actor/stages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	full = &snapshot.Shape{Layers: []model.Mixer{model.FullAttention, model.FullAttention}, KVHeads: 2, HeadDim: 3}
	// the layers that keep positions have no interval, and latents have another width than the rest
	latent = &snapshot.Shape{
		Layers: []model.Mixer{model.LatentAttention, model.FullAttention, model.LatentAttention}, KVHeads: 1, HeadDim: 5, KVLoraRank: 4, RopeDim: 2,
	}
	linear = &snapshot.Shape{
		Layers:  []model.Mixer{model.LinearAttention, model.FullAttention, model.LinearAttention, model.FullAttention},
		KVHeads: 1, HeadDim: 2, ConvRows: 2, ConvDim: 3, ValueHeads: 2, ValueDim: 3, KeyDim: 1,
	}
	shapes = map[string]*snapshot.Shape{"full": full, "latent": latent, "linear": linear}
)

// state is that of a text: each byte tells of its row and of all tokens up to there.
type state struct {
	shape  *snapshot.Shape
	tokens []int32
	err    error // of every row
}

func (s state) row(layer int, p snapshot.Part, row int) []byte {
	part := partsOf(s.shape)
	width, upTo := part.rowBytes(p), row+1
	switch p {
	case snapshot.Convolution:
		width, upTo = 4*s.shape.ConvDim, len(s.tokens)
	case snapshot.Recurrence:
		width, upTo = 4*s.shape.ValueDim*s.shape.KeyDim, len(s.tokens)
	}
	h := fnv.New64a()
	_ = binary.Write(h, binary.LittleEndian, []int32{int32(layer), int32(p), int32(row)})
	_ = binary.Write(h, binary.LittleEndian, s.tokens[:upTo])
	return bytes.Repeat(h.Sum(nil), 8)[:width]
}

func (s state) each(layer int, p snapshot.Part, first int, rows []byte, do func(want, row []byte)) error {
	for i := first; len(rows) > 0; i++ {
		want := s.row(layer, p, i)
		do(want, rows[:len(want)])
		rows = rows[len(want):]
	}
	return s.err
}

func (s state) ReadRows(layer int, p snapshot.Part, first int, dst []byte) error {
	return s.each(layer, p, first, dst, func(want, row []byte) { copy(row, want) })
}

// filled is a state that is filled and compared with what it must be.
type filled struct {
	state
	bytes int
	wrong int
}

func (f *filled) WriteRows(layer int, p snapshot.Part, first int, src []byte) error {
	return f.each(layer, p, first, src, func(want, row []byte) {
		f.bytes += len(row)
		if !bytes.Equal(want, row) {
			f.wrong++
		}
	})
}

// size returns how many bytes a state has.
func size(s *snapshot.Shape, positions int) (n int) {
	p := partsOf(s)
	for _, kind := range s.Layers {
		switch kind {
		case model.FullAttention:
			n += positions * (p.rowBytes(snapshot.Keys) + p.rowBytes(snapshot.Values))
		case model.LatentAttention:
			n += positions * (p.rowBytes(snapshot.Latents) + p.rowBytes(snapshot.RotatedKeys))
		default:
			n += 4*s.ConvRows*s.ConvDim + 4*s.ValueHeads*s.ValueDim*s.KeyDim
		}
	}
	return n
}

// rig is a store of an engine that has every state that it is asked for.
type rig struct {
	*Store
	t      testing.TB
	cfg    Config
	said   *said
	frozen int // states that are being read
	freeze func(Text) (Frozen, error)
}

// said is what was logged.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *said) count(part string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.text.String(), part)
}

func newRig(t testing.TB, shape *snapshot.Shape, cfg Config) *rig {
	t.Helper()
	r := &rig{t: t, said: new(said)}
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	if cfg.Limit == 0 {
		cfg.Limit = 1 << 30
	}
	if cfg.free == nil {
		cfg.free = func() (int64, error) { return 1 << 40, nil }
	}
	if cfg.folder == nil {
		cfg.folder = unsynced{newFaulty(t, filepath.Join(cfg.Dir, dirName))}
	}
	cfg.Shape, cfg.Log = shape, slog.New(slog.NewTextHandler(r.said, nil))
	cfg.Freeze = func(ctx context.Context, text Text) (Frozen, error) {
		if r.freeze != nil {
			return r.freeze(text)
		}
		return r.have(text.Tokens), nil
	}
	r.cfg = cfg
	r.open()
	t.Cleanup(func() {
		r.Close()
		if r.frozen != 0 {
			t.Errorf("%d states were not given back", r.frozen)
		}
	})
	return r
}

// unsynced is a folder that leaves it to the system when a disk gets what is written: that files
// are durable is tested in package store.
type unsynced struct{ store.FS }

func (f unsynced) Sync() error { return nil }

func (f unsynced) Create(name string) (store.WriteFile, error) {
	w, err := f.FS.Create(name)
	return unsyncedFile{w}, err
}

type unsyncedFile struct{ store.WriteFile }

func (unsyncedFile) Sync() error { return nil }

// have returns the state of a text.
func (r *rig) have(tokens []int32) Frozen {
	r.frozen++
	return Frozen{Tokens: tokens, Source: state{shape: r.cfg.Shape, tokens: tokens}, Release: func() { r.frozen-- }}
}

func (r *rig) open() {
	r.t.Helper()
	s, err := Open(context.Background(), r.cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	r.Store = s
}

func (r *rig) reopen() {
	r.t.Helper()
	r.Close()
	r.open()
}

// keep keeps a text and waits until it is written.
func (r *rig) keep(scope string, tokens ...int32) {
	done := make(chan struct{})
	r.Keep(Text{scope, tokens}, func() { close(done) })
	<-done
}

// find returns how much of a text there is, and how often it was lost before that; the bytes are
// those of the text.
func (r *rig) find(scope string, tokens ...int32) (n, lost int) {
	r.t.Helper()
	for ; ; lost++ {
		f := r.Find(Text{scope, tokens})
		if f == nil {
			return 0, lost
		}
		n := len(f.Tokens)
		if !slices.Equal(f.Tokens, tokens[:n]) {
			r.t.Fatalf("%v was found for %v", f.Tokens, tokens)
		}
		to := &filled{state: state{shape: r.cfg.Shape, tokens: f.Tokens}}
		err := r.Fill(f, to)
		if errors.As(err, new(*LostError)) {
			continue
		}
		if want := size(r.cfg.Shape, n); err != nil || to.wrong > 0 || to.bytes != want {
			r.t.Fatalf("the state of %v: %d bytes, want %d; %d rows are wrong; %v", f.Tokens, to.bytes, want, to.wrong, err)
		}
		return n, lost
	}
}

func (r *rig) stats() stages.StateStats {
	st := new(stages.Stats)
	r.AddStats(st)
	return st.States
}
