package host

import (
	"runtime"
	"sync/atomic"
	"time"
)

// pause lets threads leave a task at the end of a chunk.
type pause struct {
	wanted atomic.Bool
	do     func()        // what the pause is for; afterwards none is wanted
	lent   time.Duration // that all pauses took; of the goroutine that pauses
	spans  []uint64      // what is left of the task, see pool
}

// clock measures the work on one Submit, without the pauses amid it.
type clock struct {
	began time.Time
	lent  time.Duration // before
}

// start begins a Submit. p may be nil.
func (c *clock) start(p *pause) {
	*c = clock{began: time.Now()}
	if p != nil {
		c.lent = p.lent
	}
}

// worked returns for how many nanoseconds the Submit has been worked on. p may be nil.
func (c *clock) worked(p *pause) int64 {
	took := time.Since(c.began)
	if p != nil {
		took -= p.lent - c.lent
	}
	return int64(took)
}

// resume goes on with what run has left.
func (p *pool) resume(s *scratch, t task, pause *pause) (done bool) {
	p.mu.Lock()
	p.threads = len(pause.spans)
	chunks := 0
	for i, span := range pause.spans {
		p.parts[i].span.Store(span)
		chunks += int(span>>32) - int(uint32(span))
	}
	return p.job(s, t, chunks, pause)
}

// left notes which chunks a pause has left, and returns how many.
func (p *pool) left(pause *pause) (chunks int) {
	pause.spans = pause.spans[:0]
	for i := range p.parts[:p.threads] {
		span := p.parts[i].span.Load()
		pause.spans = append(pause.spans, span)
		chunks += int(span>>32) - int(uint32(span))
	}
	return chunks
}

// paused reports whether the job's threads should leave it. A job that may be paused is a long one:
// it lets other goroutines run first, such as the one that wants the pause, which on a machine
// without an idle processor would have to wait for the end of the job.
func (p *pool) paused() bool {
	if p.pause == nil {
		return false
	}
	runtime.Gosched()
	return p.pause.wanted.Load()
}
