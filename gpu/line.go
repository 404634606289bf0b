package gpu

import "sync"

// Line has a goroutine of its own finish what is added to it, one piece after the other: the
// Submits of a queue, or what a back end waits for before it reports completion. Add never waits.
type Line[T any] struct {
	finish func(T)

	mu      sync.Mutex
	waiting []T
	first   int // of waiting
	closed  bool
	wake    chan struct{} // one token says: look at waiting or closed
	ended   chan struct{}
}

// NewLine starts a line, whose goroutine calls finish for each piece; Close ends it.
func NewLine[T any](finish func(T)) *Line[T] {
	l := &Line[T]{finish: finish, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go l.serve()
	return l
}

// Add puts x after what was added before. It reports whether the line is still open.
func (l *Line[T]) Add(x T) bool {
	l.mu.Lock()
	open := !l.closed
	if open {
		l.waiting = append(l.waiting, x)
	}
	l.mu.Unlock()
	l.poke()
	return open
}

// Close waits until all that was added is finished, and ends the line. It reports whether this was
// the first call.
func (l *Line[T]) Close() (first bool) {
	l.mu.Lock()
	first = !l.closed
	l.closed = true
	l.mu.Unlock()
	l.poke()
	<-l.ended
	return first
}

func (l *Line[T]) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *Line[T]) serve() {
	defer close(l.ended)
	for {
		x, ok, closed := l.take()
		switch {
		case ok:
			l.finish(x)
		case closed:
			return
		default:
			<-l.wake
		}
	}
}

// take returns the oldest piece, or whether there will be no more.
func (l *Line[T]) take() (x T, ok, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == len(l.waiting) {
		return x, false, l.closed
	}
	var none T
	x, l.waiting[l.first] = l.waiting[l.first], none
	l.first++
	switch {
	case l.first == len(l.waiting):
		l.waiting, l.first = l.waiting[:0], 0
	// one that never runs empty must not grow for ever
	case l.first >= 64 && 2*l.first >= len(l.waiting):
		n := copy(l.waiting, l.waiting[l.first:])
		clear(l.waiting[n:])
		l.waiting, l.first = l.waiting[:n], 0
	}
	return x, true, false
}
