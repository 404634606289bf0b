package server

import (
	"context"
	"sync"

	"github.com/moeflux/moeflux-actor/server/fault"
)

// doors count the requests under way, and shut when the server stops.
type doors struct {
	mu     sync.Mutex
	inside int
	shut   bool
	empty  chan struct{} // closed when the doors are shut and nobody is inside

	shutting context.Context // ends when the doors are shut
	tell     context.CancelFunc
}

func newDoors() *doors {
	d := &doors{empty: make(chan struct{})}
	d.shutting, d.tell = context.WithCancel(context.Background())
	return d
}

// enter lets a request in, unless the doors are shut.
func (d *doors) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shut {
		return false
	}
	d.inside++
	return true
}

func (d *doors) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.inside--; d.shut && d.inside == 0 {
		close(d.empty)
	}
}

// close shuts the doors, once.
func (d *doors) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shut {
		return
	}
	d.tell()
	if d.shut = true; d.inside == 0 {
		close(d.empty)
	}
}

func (d *doors) closed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.shut
}

// Drain refuses new requests and waits for those under way. When ctx ends first they are cancelled:
// each stream ends with an error that says so.
func (s *Server) Drain(ctx context.Context) {
	s.doors.close()
	select {
	case <-s.doors.empty:
	case <-ctx.Done():
		s.cancel(fault.ErrDraining)
		<-s.doors.empty
	}
}
