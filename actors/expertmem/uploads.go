package expertmem

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/moeflux/moeflux-actor/gpu"
)

// uploads copies records from the host's memory to slots that lie in devices' own, beside what the
// devices compute: on queues of their own. Its zero value has none yet.
type uploads struct {
	mu     sync.Mutex   // one Submit at a time
	queues []gpu.Queue  // of each part of the device
	bytes  atomic.Int64 // that have arrived
}

// add makes the queue of the next part.
func (u *uploads) add(dev gpu.Device) error {
	queue, err := dev.NewQueue()
	if err != nil {
		return err
	}
	u.queues = append(u.queues, queue)
	return nil
}

// submit begins an upload to a part of the device.
func (u *uploads) submit(c *gpu.Commands, part int) (gpu.Ticket, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.queues[part].Submit(c)
}

// close waits for uploads under way and their callbacks.
func (u *uploads) close() error {
	var errs []error
	for _, q := range u.queues {
		errs = append(errs, q.Close())
	}
	return errors.Join(errs...)
}
