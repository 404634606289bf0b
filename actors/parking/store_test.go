package parking_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/moeflux/moeflux-actor/actors/parking"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/snapshot"
	"github.com/moeflux/moeflux-actor/stages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var shape = &snapshot.Shape{
	Layers:  []model.Mixer{model.LinearAttention, model.FullAttention, model.LinearAttention, model.FullAttention},
	KVHeads: 2, HeadDim: 8, ConvRows: 3, ConvDim: 16, ValueHeads: 2, ValueDim: 8, KeyDim: 8,
}

// image is a state whose rows say where they are and whose they are.
type image struct {
	of    uint32
	wrong int // rows that hold something else than those of the state
	rows  int // that were written
}

func (x *image) row(layer int, p snapshot.Part, row int, bytes int) []byte {
	b := make([]byte, bytes)
	for i := 0; i < bytes; i += 4 {
		binary.LittleEndian.PutUint32(b[i:], x.of<<16^uint32(layer<<12|int(p)<<8|row<<2|i/4%4))
	}
	return b
}

// width returns the bytes of a row of a part.
func width(p snapshot.Part) int {
	switch p {
	case snapshot.Convolution:
		return shape.ConvDim * 4
	case snapshot.Recurrence:
		return shape.ValueDim * shape.KeyDim * 4
	}
	return shape.KVHeads * shape.HeadDim * 4
}

func (x *image) ReadRows(layer int, p snapshot.Part, first int, dst []byte) error {
	for n := width(p); len(dst) > 0; first, dst = first+1, dst[n:] {
		copy(dst, x.row(layer, p, first, n))
	}
	return nil
}

func (x *image) WriteRows(layer int, p snapshot.Part, first int, src []byte) error {
	for n := width(p); len(src) > 0; first, src = first+1, src[n:] {
		x.rows++
		if !bytes.Equal(src[:n], x.row(layer, p, first, n)) {
			x.wrong++
		}
	}
	return nil
}

// caller takes the answers of a store.
type caller struct {
	mu    sync.Mutex
	waits map[stages.ParkID]chan error
}

func (c *caller) answer(m stages.Message) {
	switch m := m.(type) {
	case *stages.StateParked:
		c.of(m.ID) <- m.Err
	case *stages.StateReturned:
		c.of(m.ID) <- m.Err
	}
}

func (c *caller) of(id stages.ParkID) chan error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waits[id] == nil {
		c.waits[id] = make(chan error, 1)
	}
	return c.waits[id]
}

func open(t *testing.T, cfg parking.Config) (*parking.Store, *caller) {
	t.Helper()
	c := &caller{waits: make(map[stages.ParkID]chan error)}
	cfg.Shape, cfg.Log, cfg.Answer = shape, slog.New(slog.DiscardHandler), c.answer
	cfg.Image = func(m any) parking.Image { return m.(*image) }
	s, err := parking.Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// TestMany parks and brings back many states at once, in memory for a few of them and in files.
func TestMany(t *testing.T) {
	dir := t.TempDir()
	s, c := open(t, parking.Config{Memory: 40_000, Dir: dir})
	var all sync.WaitGroup
	for seq := range uint32(16) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(seq), 0))
			for k := range uint32(40) {
				id, tokens := stages.ParkID(seq*1000+k), make([]int32, r.IntN(60))
				s.Park(stages.Park{Do: stages.ParkWrite, ID: id, Memory: &image{of: uint32(id)}, Tokens: tokens})
				if err := <-c.of(id); err != nil {
					t.Error(err)
					return
				}
				for range r.IntN(3) {
					x := &image{of: uint32(id)}
					s.Park(stages.Park{Do: stages.ParkRead, ID: id, Memory: x, Tokens: tokens})
					if err := <-c.of(id); err != nil || x.wrong > 0 || x.rows < len(tokens)*4 {
						t.Errorf("%v; %d of %d rows are wrong", err, x.wrong, x.rows)
					}
				}
				if r.IntN(4) > 0 {
					s.Park(stages.Park{Do: stages.ParkForget, ID: id})
				}
			}
		})
	}
	all.Wait()
	// What came last is still in memory, whatever was forgotten before.
	last := stages.ParkID(1 << 20)
	s.Park(stages.Park{Do: stages.ParkWrite, ID: last, Memory: &image{of: uint32(last)}, Tokens: make([]int32, 20)})
	if err := <-c.of(last); err != nil {
		t.Fatal(err)
	}
	var st stages.Stats
	s.AddStats(&st)
	if h := st.States.ParkedHost; h <= 0 || h > 40_000 || st.States.ParkedDisk == 0 {
		t.Errorf("%+v", st.States)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.AddStats(&st)
	if st.States.ParkedHost != 0 || st.States.ParkedDisk != 0 {
		t.Errorf("after closing: %+v", st.States)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "parked-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestOldestGoes moves to a file what has been in host memory longest.
func TestOldestGoes(t *testing.T) {
	dir := t.TempDir()
	how := snapshot.WriteOptions{Positions: 20, Seal: new(snapshot.Seal)}
	size, err := snapshot.Size(shape, how)
	if err != nil {
		t.Fatal(err)
	}
	s, c := open(t, parking.Config{Memory: 2 * size, Dir: dir})
	defer s.Close()
	for id := range stages.ParkID(4) {
		s.Park(stages.Park{Do: stages.ParkWrite, ID: id, Memory: &image{of: uint32(id)}, Tokens: make([]int32, 20)})
		if err := <-c.of(id); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "parked-*", "*.state"))
		if want := max(int(id)-1, 0); err != nil || len(files) != want {
			t.Fatalf("after %d: files %v, want %d", id, files, want)
		}
		for k := range max(int(id)-1, 0) {
			if filepath.Base(files[k]) != fmt.Sprintf("%d.state", k) {
				t.Errorf("after %d: files %v", id, files)
			}
		}
	}
}

// TestHungDisk parks and closes while a disk does not answer.
func TestHungDisk(t *testing.T) {
	dir := t.TempDir()
	s, c := open(t, parking.Config{Dir: dir})
	s.Park(stages.Park{Do: stages.ParkWrite, ID: 1, Memory: &image{of: 1}, Tokens: make([]int32, 5)})
	if err := <-c.of(1); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "parked-*", "1.state"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	// nobody writes to this pipe, so whoever opens it waits
	if err := errors.Join(os.Remove(files[0]), unix.Mkfifo(files[0], 0o600)); err != nil {
		t.Fatal(err)
	}
	s.Park(stages.Park{Do: stages.ParkRead, ID: 1, Memory: &image{of: 1}, Tokens: make([]int32, 5)})
	s.Park(stages.Park{Do: stages.ParkWrite, ID: 2, Memory: &image{of: 2}, Tokens: make([]int32, 5)})
	if err := <-c.of(2); err != nil { // others do not wait
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	select {
	case err := <-closed:
		t.Errorf("closed while a job is left: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	s.Park(stages.Park{Do: stages.ParkRead, ID: 2, Memory: &image{of: 2}, Tokens: make([]int32, 5)})
	w, err := os.OpenFile(files[0], os.O_RDWR, 0) // lets everybody else open it
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	select {
	case err := <-c.of(1):
		t.Errorf("an answer after the end: %v", err)
	case err := <-c.of(2):
		t.Errorf("an answer after the end: %v", err)
	default:
	}
}
