package gputest

import (
	"sync"
	"sync/atomic"

	"github.com/moeflux/moeflux-actor/gpu"
)

// Held is a device whose next work, or all of it, once it is armed, seems to take until Release:
// the work is done, but nobody is told.
type Held struct {
	gpu.Device
	// Came is closed when work is held, Released by Release.
	Came, Released chan struct{}

	armed, all atomic.Bool
	came, once sync.Once
}

// NewHeld returns a device that is not armed. The caller goes on owning d.
func NewHeld(d gpu.Device) *Held {
	return &Held{Device: d, Came: make(chan struct{}), Released: make(chan struct{})}
}

// Arm makes the next submission the one to hold. It is called once.
func (d *Held) Arm() { d.armed.Store(true) }

// ArmAll makes all submissions from now on ones to hold.
func (d *Held) ArmAll() { d.all.Store(true) }

// Release tells of the work that is held.
func (d *Held) Release() { d.once.Do(func() { close(d.Released) }) }

// NewQueue opens a queue on the device.
func (d *Held) NewQueue() (gpu.Queue, error) {
	q, err := d.Device.NewQueue()
	return &heldQueue{q, d}, err
}

type heldQueue struct {
	gpu.Queue
	d *Held
}

func (q *heldQueue) Submit(c *gpu.Commands) (gpu.Ticket, error) {
	ticket, err := q.Queue.Submit(c)
	if err == nil && (q.d.all.Load() || q.d.armed.CompareAndSwap(true, false)) {
		ticket = &heldTicket{ticket, q.d}
		q.d.came.Do(func() { close(q.d.Came) })
	}
	return ticket, err
}

type heldTicket struct {
	gpu.Ticket
	d *Held
}

func (t *heldTicket) OnDone(f func(error)) {
	t.Ticket.OnDone(func(err error) {
		go func() {
			<-t.d.Released
			f(err)
		}()
	})
}

func (t *heldTicket) DeviceNS() int64 { return 0 }
