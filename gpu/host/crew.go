package host

import (
	"errors"
	"sync"

	"github.com/moeflux/moeflux-actor/internal/topology"
)

// crew is the worker threads of a process: as many as the device with the most threads wants. Two
// devices with threads of their own would take processors from each other in the middle of an
// operation, and everybody waits for its slowest thread.
type crew struct {
	mu      sync.Mutex
	pool    *pool // nil: no device is open
	devices int
}

// process is a variable because the processors belong to the process.
var process crew

// errPinned refuses a device whose threads would have to be bound and free at once.
var errPinned = errors.New("host: Config.Pin must be the same for all open devices, since they share their threads")

// join returns the pool, with n workers or more, which have places on a machine unless that is nil.
// leave gives it back.
func (c *crew) join(n int, places topology.Machine) (*pool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pool == nil {
		c.pool = newPool(0)
		c.pool.places = places
	}
	c.devices++
	if (c.pool.places == nil) != (places == nil) {
		c.leaveLocked()
		return nil, errPinned
	}
	if err := c.pool.grow(n); err != nil {
		c.leaveLocked()
		return nil, err
	}
	return c.pool, nil
}

func (c *crew) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaveLocked()
}

// leaveLocked ends the workers when the last device has gone. c.mu is held.
func (c *crew) leaveLocked() {
	if c.devices--; c.devices == 0 {
		c.pool.close()
		c.pool = nil
	}
}
