package runtime

import (
	"testing"
	"time"
)

// TestQueuePace tells when a full queue has room again.
func TestQueuePace(t *testing.T) {
	var p queuePace
	want := func(what string, now, d time.Duration) {
		t.Helper()
		if got := p.retryAfter(int64(now)); got != d {
			t.Errorf("%s: %v, want %v", what, got, d)
		}
	}
	want("nothing has left yet", time.Hour, time.Second)
	for i := range 16 {
		p.note(1, int64(time.Duration(i)*time.Second))
	}
	want("one a second", 16*time.Second, time.Second)
	want("and then none", 46*time.Second, 46*time.Second/16)
	want("and then none for long", 2*time.Hour, time.Minute)
	p.note(16, int64(3*time.Hour))
	want("all at once", 3*time.Hour, 10*time.Millisecond)
	p.note(8, int64(3*time.Hour+16*time.Second))
	want("half of them later", 3*time.Hour+16*time.Second, time.Second)
}
