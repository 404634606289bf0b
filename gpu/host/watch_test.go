package host

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
)

// TestWatch holds that whoever watches a queue hears of the beginning and the end of each
// submission, in order, and of the end before the ticket tells of it.
func TestWatch(t *testing.T) {
	d := open(t, 2)
	buf, err := d.NewBuffer(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer buf.Release()
	q, err := d.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	var (
		mu  sync.Mutex
		log []string
		// what the device told last
		took atomic.Int64
	)
	note := func(s string) {
		mu.Lock()
		defer mu.Unlock()
		log = append(log, s)
	}
	q.(gpu.Watched).Watch(func(p gpu.Progress) {
		note(map[bool]string{true: "begin", false: "end"}[p.Working])
		took.Store(p.DeviceNS)
	})
	done := make(chan error, 1) // OnDone may call back at once
	var want []string
	for range 3 {
		var c gpu.Commands
		gpu.Encode(&c, gpu.Fill{Dst: gpu.View{Buf: buf}, Bytes: 1 << 20})
		ticket, err := q.Submit(&c)
		if err != nil {
			t.Fatal(err)
		}
		ticket.OnDone(func(err error) {
			note("told")
			if got, want := took.Load(), ticket.DeviceNS(); got != want || got == 0 {
				t.Errorf("the watcher hears of %d ns, the ticket says %d", got, want)
			}
			done <- err
		})
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		want = append(want, "begin", "end", "told")
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(log, want) {
		t.Errorf("got %v, want %v", log, want)
	}
}
