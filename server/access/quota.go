package access

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/moeflux/moeflux-actor/server/fault"
)

// keyLimits are the limits of the keys of one name; 0 means none.
type keyLimits struct{ running, queued, requests, tokens int }

func (k *Key) limits() keyLimits {
	return keyLimits{k.Running, k.Queued, k.RequestsPerMinute, k.TokensPerMinute}
}

// Quota counts what the keys of one name have used and have under way.
type Quota struct {
	now func() time.Time

	mu       sync.Mutex
	limits   keyLimits
	inside   int             // requests that have entered and not left
	running  int             // of these, those that have had their turn
	waiting  []chan struct{} // those that wait for it; each is closed when it has come
	requests bucket
	tokens   bucket
}

func newQuota(now func() time.Time) *Quota { return &Quota{now: now} }

// set changes the limits.
func (q *Quota) set(to keyLimits) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	q.requests.resize(to.requests, now)
	q.tokens.resize(to.tokens, now)
	q.limits = to
	q.next()
}

// Enter counts a request, unless the keys have as many as they may, or have used up what they may
// in a minute. It returns what is left.
func (q *Quota) Enter() (Standing, *fault.Fault) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now, l := q.now(), q.limits
	q.requests.fill(now)
	q.tokens.fill(now)
	f := q.refusal()
	if f == nil {
		q.inside++
		q.requests.take(1)
	}
	st := Standing{at: now}
	switch {
	case l.requests > 0:
		st.requests = allowance{l.requests, int(q.requests.level), q.requests.untilFull()}
	case l.running > 0:
		reset := time.Duration(0)
		if q.inside > 0 {
			reset = time.Second // nobody knows; it is worth asking again after that
		}
		st.requests = allowance{l.running + l.queued, l.running + l.queued - q.inside, reset}
	}
	if l.tokens > 0 {
		st.tokens = allowance{l.tokens, int(q.tokens.level), q.tokens.untilFull()}
	}
	return st, f
}

// refusal says why a request may not enter; nil if it may.
func (q *Quota) refusal() *fault.Fault {
	l := q.limits
	f := &fault.Fault{Status: http.StatusTooManyRequests, Type: fault.RateLimit, Retry: time.Second}
	switch {
	case l.running > 0 && q.inside >= l.running+l.queued:
		f.Code, f.Message = "too_many_requests", fmt.Sprintf("the key has %d requests under way, which is as many as it may have", q.inside)
	case l.requests > 0 && q.requests.level < 1:
		f.Code, f.Retry = "rate_limit_exceeded", q.requests.until(1)
		f.Message = fmt.Sprintf("the key may ask %d times a minute; the next time is in %v", l.requests, f.Retry.Round(time.Millisecond))
	case l.tokens > 0 && q.tokens.level < 1:
		f.Code, f.Retry = "rate_limit_exceeded", q.tokens.until(1)
		f.Message = fmt.Sprintf("the key has used its %d tokens a minute; there are some again in %v", l.tokens, f.Retry.Round(time.Millisecond))
	default:
		return nil
	}
	return f
}

// Leave counts a request that has entered and is over.
func (q *Quota) Leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inside--
}

// Turn waits until a request that has entered may run, in the order of coming, and returns what
// ends that. The error is the cause of ctx where that ends first.
func (q *Quota) Turn(ctx context.Context) (end func(), err error) {
	q.mu.Lock()
	mine := make(chan struct{})
	q.waiting = append(q.waiting, mine)
	q.next()
	q.mu.Unlock()
	select {
	case <-mine:
	case <-ctx.Done():
		q.mu.Lock()
		defer q.mu.Unlock()
		if at := slices.Index(q.waiting, mine); at >= 0 {
			q.waiting = slices.Delete(q.waiting, at, at+1)
		} else {
			q.running-- // its turn came at the same moment
			q.next()
		}
		return nil, context.Cause(ctx)
	}
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.running--
		q.next()
	}, nil
}

// next gives their turn to those that may run.
func (q *Quota) next() {
	for len(q.waiting) > 0 && (q.limits.running == 0 || q.running < q.limits.running) {
		close(q.waiting[0])
		q.waiting = q.waiting[1:]
		q.running++
	}
}

// Spend counts tokens that a request has used.
func (q *Quota) Spend(tokens int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tokens.fill(q.now())
	q.tokens.take(tokens)
}

// bucket holds at most what may be used in a minute, and fills evenly. What was used beyond that is
// a debt.
type bucket struct {
	size  int // 0: there is no limit
	level float64
	at    time.Time
}

// resize changes what may be used in a minute. What was used before is still used.
func (b *bucket) resize(size int, now time.Time) {
	b.fill(now)
	b.level += float64(size - b.size)
	b.size = size
}

func (b *bucket) fill(now time.Time) {
	if past := now.Sub(b.at); past > 0 {
		b.level = min(float64(b.size), b.level+past.Minutes()*float64(b.size))
	}
	b.at = now
}

func (b *bucket) take(n int) {
	if b.size > 0 {
		b.level -= float64(n)
	}
}

// until returns when the bucket will hold so much.
func (b *bucket) until(level float64) time.Duration {
	return max(0, time.Duration((level-b.level)/float64(b.size)*float64(time.Minute)))
}

func (b *bucket) untilFull() time.Duration { return b.until(float64(b.size)) }
