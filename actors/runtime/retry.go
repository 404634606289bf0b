package runtime

import (
	"errors"
	"time"

	"github.com/moeflux/moeflux-actor/stages"
)

// queuePace is how fast the queue for memory moves: when requests left it lately. Only the
// sequencer's shell uses it.
type queuePace struct {
	left  [16]int64 // ns, in a circle
	count int
}

// The bounds of what a caller is told. Nobody knows what a queue does that has not moved yet.
const (
	leastRetry   = 10 * time.Millisecond
	mostRetry    = time.Minute
	unknownRetry = time.Second
)

// note notes that n requests have left the queue.
func (p *queuePace) note(n int, now int64) {
	for range min(n, len(p.left)) {
		p.left[p.count%len(p.left)] = now
		p.count++
	}
}

// retryAfter returns how long it takes, on average, until the next one leaves. A queue that stands
// still makes that longer.
func (p *queuePace) retryAfter(now int64) time.Duration {
	n := min(p.count, len(p.left))
	if n == 0 {
		return unknownRetry
	}
	oldest := p.left[(p.count-n)%len(p.left)]
	return min(max(time.Duration(now-oldest)/time.Duration(n), leastRetry), mostRetry)
}

// tellWhen completes an answer that says that the queue is full.
func (s *shell) tellWhen(m stages.Message) {
	var err error
	switch m := m.(type) {
	case *stages.ChunkEvaluated:
		err = m.Err
	case *stages.SequenceDone:
		err = m.Err
	case *stages.StateReady:
		err = m.Err
	}
	if full, ok := errors.AsType[*stages.QueueFullError](err); ok {
		full.RetryAfter = s.queue.retryAfter(s.r.Now())
	}
}
