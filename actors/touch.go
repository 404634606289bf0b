package actors

import (
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/moeflux/moeflux-actor/internal/sysmem"
	"github.com/moeflux/moeflux-actor/stages"
)

// touchAhead is how much memory slots are given before reads come to them: some hundred reads' worth, so that a prompt, which reads as fast as
// the disk can, does not catch up at once; and little enough that a short run takes no memory that it never needs.
const touchAhead = 512 << 20

// toucher makes the system give slots their memory just before they are read into for the first time. That read would else wait while
// the kernel clears the slot's pages: a good part of the read's own time where memory is at hand, and many times that on virtual machines
// that have to ask their host for it (docs/experiments.md). It goes through the slots in the order in which expert-IO takes empty ones,
// touchAhead before them, in a thread that gives way to all others.
type toucher struct {
	slots *slotMemory
	ahead int                    // slots
	give  func(mem []byte) error // sysmem.Populate
	short func() bool            // memory is short: slots have been given up
	log   *slog.Logger

	taken atomic.Int64  // the slots below are read into, or have been; only the line sets it
	wake  chan struct{} // one token says: look at taken or stop
	stop  atomic.Bool
	done  sync.WaitGroup
}

// touch starts the toucher of an engine with slots.
func (e *Engine) touch() {
	if e.slots.filled == nil {
		return
	}
	e.toucher = newToucher(e.slots, sysmem.Populate, func() bool { return e.governor.shrunk.Load() > 0 }, e.log)
	e.toucher.start()
}

func newToucher(s *slotMemory, give func([]byte) error, short func() bool, log *slog.Logger) *toucher {
	return &toucher{slots: s, ahead: max(1, touchAhead/s.stride), give: give, short: short, log: log, wake: make(chan struct{}, 1)}
}

// start runs the toucher until every slot is touched, or close.
func (t *toucher) start() {
	t.done.Go(func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this function, and its priority with it
		if err := sysmem.YieldThread(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			t.log.Debug("slots are given their memory at the priority of everything else", "error", err)
		}
		t.run()
	})
}

// reading notes that a slot is about to be read into. It does not wait.
func (t *toucher) reading(id stages.SlotID) {
	if n := int64(id) + 1; n > t.taken.Load() {
		t.taken.Store(n)
		t.poke()
	}
}

func (t *toucher) poke() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// run touches slots. It ends early when memory is short: what governor and expert-IO give up then must not be asked for again. (A slot
// may be given up while it is being touched. It keeps its memory then, until it comes back; one slot is not worth a lock.)
func (t *toucher) run() {
	for id := range t.slots.filled {
		for int64(id) >= t.taken.Load()+int64(t.ahead) && !t.stop.Load() {
			<-t.wake
		}
		if t.stop.Load() || t.short() {
			return
		}
		if !t.slots.noteFilled(stages.SlotID(id), true) {
			continue // read into already
		}
		if err := t.give(t.slots.bytes(stages.SlotID(id))); err != nil {
			t.slots.noteFilled(stages.SlotID(id), false)
			t.log.Debug("slots get their memory as they are read into", "why", err)
			return
		}
	}
}

// close ends it and waits, for one slot at most.
func (t *toucher) close() {
	t.stop.Store(true)
	t.poke()
	t.done.Wait()
}
