package stagetest

import (
	"slices"

	"github.com/moeflux/moeflux-actor/gpu"
)

// Queue is a device queue whose commands run when the simulator says so, or at once until Hold is
// called.
type Queue struct {
	// Refuse, if set, is asked by Submit, which fails with what it returns.
	Refuse func(*gpu.Commands) error

	run     func(*gpu.Commands) error
	held    bool
	pending []*ticket
}

// ticket is one submitted Commands.
type ticket struct {
	commands *gpu.Commands
	onDone   func(error)
	done     bool
	err      error
}

var _ gpu.Queue = (*Queue)(nil)

// NewQueue returns a queue that executes with run.
func NewQueue(run func(*gpu.Commands) error) *Queue { return &Queue{run: run} }

// Hold makes commands wait for RunOne.
func (q *Queue) Hold() { q.held = true }

// Submit appends c.
func (q *Queue) Submit(c *gpu.Commands) (gpu.Ticket, error) {
	if q.Refuse != nil {
		if err := q.Refuse(c); err != nil {
			return nil, err
		}
	}
	t := &ticket{commands: c}
	q.pending = append(q.pending, t)
	if !q.held {
		q.RunOne()
	}
	return t, nil
}

// RunOne runs the oldest Commands and completes its ticket.
func (q *Queue) RunOne() { q.Run(0) }

// Ready returns which of the pending Commands may run next: those that are in order on their part
// of the device, or urgent and in order there among those, and whose moves come from work that is
// done.
func (q *Queue) Ready() (all []int) {
	for i, t := range q.pending {
		c := t.commands
		if !slices.ContainsFunc(q.pending[:i], func(before *ticket) bool {
			b := before.commands
			return b.Part == c.Part && (b.Urgent || !c.Urgent) || len(c.Moves) > 0 && b.Part == c.Part-1
		}) {
			all = append(all, i)
		}
	}
	return all
}

// Run runs one of those that are Ready, and completes its ticket.
func (q *Queue) Run(i int) {
	t := q.pending[i]
	q.pending = slices.Delete(q.pending, i, i+1)
	t.err, t.done = q.run(t.commands), true
	if t.onDone != nil {
		t.onDone(t.err)
	}
}

// Close runs what is left.
func (q *Queue) Close() error {
	for len(q.pending) > 0 {
		q.RunOne()
	}
	return nil
}

// OnDone calls f when the commands have run.
func (t *ticket) OnDone(f func(error)) {
	if t.done {
		f(t.err)
		return
	}
	t.onDone = f
}

// DeviceNS returns 0: simulated time does not pass.
func (t *ticket) DeviceNS() int64 { return 0 }
