package tracing

import "sync"

// mostFailures bounds the errors that no emitter has taken. Those of requests that nobody traces
// are dropped as their ends are read.
const mostFailures = 1 << 12

// Failures is where the engine tells why requests have failed: records have no room for an error.
// Its methods may be called from many goroutines, and never block. The zero value is ready for use.
type Failures struct {
	mu sync.Mutex
	of map[requestKey]error
}

// Tell notes why a request was not answered. It comes just after the record of the request's end.
func (f *Failures) Tell(request, seq uint64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of == nil {
		f.of = make(map[requestKey]error)
	}
	if len(f.of) < mostFailures {
		f.of[requestKey{request, seq}] = err
	}
}

// take returns why a request has failed, once; nil if nobody has told.
func (f *Failures) take(key requestKey) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.of[key]
	delete(f.of, key)
	return err
}
