package host

import "sync"

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

// join returns the pool, with n workers or more. leave gives it back.
func (c *crew) join(n int) *pool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pool == nil {
		c.pool = newPool(0)
	}
	c.devices++
	c.pool.grow(n)
	return c.pool
}

// leave ends the workers when the last device has gone.
func (c *crew) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.devices--; c.devices == 0 {
		c.pool.close()
		c.pool = nil
	}
}
