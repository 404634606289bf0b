package actors

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/stages"
)

// plainBuffer is memory of nobody's.
type plainBuffer struct{ mem []byte }

func (b *plainBuffer) Len() int      { return len(b.mem) }
func (b *plainBuffer) Bytes() []byte { return b.mem }
func (b *plainBuffer) Release()      {}

// touching makes n slots and a toucher that goes so many ahead.
func touching(n, ahead int, give func([]byte) error, short func() bool, log *slog.Logger) (*slotMemory, *toucher) {
	s := &slotMemory{buffers: []gpu.Buffer{&plainBuffer{make([]byte, n)}}, perBuffer: n, stride: 1, bytesEach: 1, filled: make([]atomic.Bool, n)}
	t := newToucher(s, give, short, log)
	t.ahead = ahead
	return s, t
}

// Slots get memory in order, so many ahead of those that are read into, and none twice; all that has memory is counted.
func TestToucher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		given := 0
		s, touch := touching(10, 3, func(mem []byte) error {
			mem[0]++
			given++
			return nil
		}, func() bool { return false }, nil)
		read := func(id stages.SlotID) {
			s.noteFilled(id, true)
			touch.reading(id)
			synctest.Wait()
		}
		s.noteFilled(1, true) // read into before the toucher came to it
		touch.done.Go(touch.run)
		synctest.Wait()
		if given != 2 || s.nHeld.Load() != 3 {
			t.Errorf("at the beginning %d slots are touched and %d count, want 2 and 3", given, s.nHeld.Load())
		}
		read(1)
		if given != 4 || s.nHeld.Load() != 5 {
			t.Errorf("after slot 1: %d touched, %d count; want 4 and 5", given, s.nHeld.Load())
		}
		read(0) // used again
		if given != 4 {
			t.Errorf("after slot 0 again: %d touched, want 4", given)
		}
		read(9)
		if given != 8 || s.nHeld.Load() != 10 {
			t.Errorf("after the last slot: %d touched, %d count; want 8 and 10", given, s.nHeld.Load())
		}
		for id, b := range s.buffers[0].Bytes() {
			if want := byte(1); b != want && id != 1 && id != 9 || b != 0 && (id == 1 || id == 9) {
				t.Errorf("slot %d was touched %d times", id, b)
			}
		}
		touch.close()
	})
}

// It ends when it is told to, when memory is short, and when the system cannot; slots that it could not touch do not count.
func TestToucherEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		given := 0
		give := func([]byte) error { given++; return nil }
		_, touch := touching(10, 3, give, func() bool { return false }, nil)
		touch.done.Go(touch.run)
		synctest.Wait()
		touch.close()
		if given != 3 {
			t.Errorf("closed: %d touched, want 3", given)
		}

		given = 0
		_, touch = touching(10, 100, give, func() bool { return given == 4 }, nil)
		touch.done.Go(touch.run)
		synctest.Wait()
		if given != 4 {
			t.Errorf("memory short after 4: %d touched", given)
		}
		touch.close()

		var log bytes.Buffer
		s, touch := touching(10, 100, func([]byte) error { return errors.New("no such call") }, func() bool { return false },
			slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
		touch.done.Go(touch.run)
		synctest.Wait()
		if s.nHeld.Load() != 0 || strings.Count(log.String(), "no such call") != 1 {
			t.Errorf("it cannot be done: %d count, log %q", s.nHeld.Load(), log.String())
		}
		touch.close()
	})
}
