package access

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moeflux/moeflux-actor/server/fault"
)

// A minute's worth may come at once; then it comes back evenly, and a debt is paid first.
func TestBucket(t *testing.T) {
	now := time.Unix(1000, 0)
	var b bucket
	b.resize(60, now)
	for _, c := range []struct {
		after       time.Duration
		take        int
		level       float64
		until, full time.Duration
	}{
		{0, 0, 60, 0, 0},
		{0, 60, 0, time.Second, time.Minute},
		{500 * time.Millisecond, 0, 0.5, 500 * time.Millisecond, 59500 * time.Millisecond},
		{time.Hour, 0, 60, 0, 0},
		{0, 90, -30, 31 * time.Second, 90 * time.Second},
		{30 * time.Second, 0, 0, time.Second, time.Minute},
	} {
		now = now.Add(c.after)
		b.fill(now)
		b.take(c.take)
		if b.level != c.level || b.until(1) != c.until || b.untilFull() != c.full {
			t.Errorf("after %v and %d: %v, 1 in %v, full in %v; want %+v", c.after, c.take, b.level, b.until(1), b.untilFull(), c)
		}
	}
	b.resize(30, now)
	if b.level != -30 {
		t.Errorf("with half of the size the level is %v", b.level)
	}
	b.fill(now.Add(-time.Hour))
	if b.level != -30 {
		t.Errorf("a clock that goes back changes the level to %v", b.level)
	}
}

// However turns end and requests give up, no more run than may, and none is forgotten.
func TestTurnsRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuota(time.Now)
		q.set(keyLimits{running: 3, queued: 1000})
		var all sync.WaitGroup
		var mu sync.Mutex
		running, most := 0, 0
		add := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			running += n
			most = max(most, running)
		}
		for i := range 200 {
			all.Go(func() {
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Duration(1+i%7)*time.Second, fault.ErrGone)
				defer cancel()
				end, err := q.Turn(ctx)
				if err != nil {
					if !errors.Is(err, fault.ErrGone) {
						t.Error(err)
					}
					return
				}
				add(1)
				time.Sleep(time.Duration(i%4) * time.Second / 2)
				add(-1)
				end()
			})
		}
		all.Wait()
		if most != 3 || q.running != 0 || len(q.waiting) != 0 {
			t.Errorf("%d ran at once; %d run still, %d wait", most, q.running, len(q.waiting))
		}
	})
}
