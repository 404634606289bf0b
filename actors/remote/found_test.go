package remote

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/stages"
)

// TestPlaces has a host, which nobody reaches, tell of its group. Each host gets one place, however
// it is called, and a host that has left gives it to another when there is no other. Nobody leaves
// while no group is known, and nobody is dialled whom the check refuses.
func TestPlaces(t *testing.T) {
	var mu sync.Mutex
	var gone []int
	var log testenv.Log
	c := New(Config{
		Hosts: []string{"127.0.0.1:1", "localhost:1"}, Most: 4, Log: slog.New(slog.NewTextHandler(&log, nil)),
		Check: func(addr string) error {
			if strings.HasPrefix(addr, "10.") {
				return fmt.Errorf("%s is elsewhere", addr)
			}
			return nil
		},
		Send: func(_ stages.StageID, m stages.Message) {
			mu.Lock()
			defer mu.Unlock()
			if h, ok := m.(*stages.HostChanged); ok && h.Gone {
				gone = append(gone, h.Host)
			}
		},
	})
	defer c.Close()
	c.Dial()
	is := func(what string, leavers []int, want ...string) {
		t.Helper()
		var at, left []string
		for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
			at, left = nil, nil
			c.found.mu.Lock()
			for i := range c.found.places {
				if l := c.link(i); l != nil && !l.place.leaving {
					at = append(at, l.addr)
				} else if l != nil && l.place.left.IsZero() {
					left = append(left, l.addr)
				}
			}
			c.found.mu.Unlock()
			mu.Lock()
			now := slices.Clone(gone)
			mu.Unlock()
			if slices.Equal(at, want) && len(left) == 0 && slices.Equal(now, leavers) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %v have places and %v have left, want %v and %v", what, at, now, want, leavers)
			}
		}
	}
	one, other := c.link(0), c.link(1)
	is("the named", nil, "127.0.0.1:1", "localhost:1")
	c.found.tells(one, []string{"127.0.0.1:1", "127.0.0.1:2"})
	is("a group", nil, "127.0.0.1:1", "localhost:1", "127.0.0.1:2")
	c.found.tells(other, []string{"127.0.0.1:1", "127.0.0.1:2", "10.0.0.3:1"})
	is("two names of one", []int{1}, "127.0.0.1:1", "127.0.0.1:2")
	c.found.tells(one, []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4", "127.0.0.1:5"})
	is("a full house", []int{1}, "127.0.0.1:1", "127.0.0.1:4", "127.0.0.1:2", "127.0.0.1:3")
	c.found.lost(one)
	is("a network that is cut", []int{1}, "127.0.0.1:1", "127.0.0.1:4", "127.0.0.1:2", "127.0.0.1:3")
	c.found.tells(one, []string{"127.0.0.1:1", "127.0.0.1:5", "127.0.0.1:3", "127.0.0.1:4"})
	is("one for another", []int{1, 2}, "127.0.0.1:1", "127.0.0.1:4", "127.0.0.1:5", "127.0.0.1:3")
	for _, says := range []string{"10.0.0.3:1 is elsewhere", "127.0.0.1:5 why=\"the group has more hosts"} {
		if !strings.Contains(log.String(), says) {
			t.Errorf("the log does not say %q: %s", says, log.String())
		}
	}
}
