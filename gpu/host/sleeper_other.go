//go:build !linux

package host

import "sync"

// sleeper puts one goroutine to sleep until it is woken. A wake that comes first is kept; several
// count as one. The zero value is ready for use.
type sleeper struct {
	mu    sync.Mutex
	woken bool
	asked chan struct{} // not nil: the goroutine sleeps
}

// sleep returns after a wake.
func (s *sleeper) sleep() {
	s.mu.Lock()
	if !s.woken {
		asked := make(chan struct{})
		s.asked = asked
		s.mu.Unlock()
		<-asked
		s.mu.Lock()
	}
	s.woken = false
	s.mu.Unlock()
}

// wake ends a sleep, the present one or the next.
func (s *sleeper) wake() {
	s.mu.Lock()
	s.woken = true
	if s.asked != nil {
		close(s.asked)
		s.asked = nil
	}
	s.mu.Unlock()
}
