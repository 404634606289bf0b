package actors

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/sysmem"
)

// sharedMemory is a machine whose memory the test sets while an engine looks at it.
type sharedMemory struct {
	mu  sync.Mutex
	now sysmem.Info
}

func (m *sharedMemory) Read() (sysmem.Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now, nil
}

func (m *sharedMemory) Close() {}

func (m *sharedMemory) set(available int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = sysmem.Info{Total: 1 << 40, Available: available}
}

// TestLimitLowered lowers the memory under an engine that decodes: it gives slots up down to those
// of a wave, takes them back when there is memory again, says the same all the while, and counts
// it.
func TestLimitLowered(t *testing.T) {
	dev, err := host.New(host.Config{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	mem := &sharedMemory{}
	mem.set(1 << 24)
	const slots, wave = 32, 4
	e, err := Open(context.Background(), Config{
		Model: fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0), Device: dev, ExpertIO: ExpertIODirect, ExpertMemory: slots * 24576, WaveSlots: wave,
		memory: mem, memoryEvery: 2 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(context.Background())
	s, err := e.NewSequence(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	text := func() []int32 {
		t.Helper()
		var ids []int32
		for id, err := range s.Generate(context.Background(), []int32{3, 1, 4}, GenerateOptions{MaxTokens: 10, IgnoreEOS: true}) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		if err := s.Reset(context.Background()); err != nil {
			t.Fatal(err)
		}
		return ids
	}
	want := text()
	until := func(what string, ok func(*Stats) bool) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); ; {
			if got := text(); !slices.Equal(got, want) {
				t.Fatalf("%s: %v, want %v", what, got, want)
			}
			st, err := e.Stats(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if ok(st) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %d slots, memory %+v", what, st.Slots, st.Memory)
			}
		}
	}
	until("with memory", func(st *Stats) bool { return st.Slots == slots && st.Memory.Shrunk == 0 && st.Memory.Available > 0 })
	mem.set(1 << 19)
	until("lowered", func(st *Stats) bool {
		return st.Slots == wave && st.Memory.SlotsAsked == wave && st.Memory.Shrunk > 0 && st.Memory.SlotsHeld <= wave*24576
	})
	mem.set(1 << 24)
	until("raised", func(st *Stats) bool { return st.Slots == slots && st.Memory.Grown > 1 })

	// a caller's bound stays, whatever memory allows, until the caller lifts it
	const bound = 10
	resize := func(ask, want int) {
		t.Helper()
		if n, err := e.ResizeSlots(context.Background(), ask); n != want || err != nil {
			t.Fatalf("%d slots asked for: %d, %v, want %d", ask, n, err, want)
		}
	}
	resize(bound, bound)
	mem.set(1 << 19)
	until("bounded and lowered", func(st *Stats) bool { return st.Slots == wave })
	resize(bound, wave)
	mem.set(1 << 24)
	until("bounded and raised", func(st *Stats) bool {
		if st.Slots > bound {
			t.Fatalf("%d slots, more than the caller's bound of %d", st.Slots, bound)
		}
		return st.Memory.SlotsAsked == slots
	})
	until("bounded", func(st *Stats) bool { return st.Slots == bound })
	resize(slots, slots)
}
