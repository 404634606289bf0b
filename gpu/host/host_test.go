package host

import (
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/moeflux/moeflux-actor/gpu/gputest"
	"github.com/moeflux/moeflux-actor/internal/invariants"
	"github.com/moeflux/moeflux-actor/internal/numcmp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, threads int) *Device {
	t.Helper()
	d, err := New(Config{Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestConformance(t *testing.T) {
	counts := []int{1, 2, 5}
	if invariants.Enabled { // under the race detector a suite takes half a minute, and one thread races with none
		counts = []int{5}
	}
	for _, threads := range counts {
		t.Run(fmt.Sprintf("threads=%d", threads), func(t *testing.T) { gputest.Run(t, open(t, threads)) })
	}
}

// TestThreads wants the same bits from any number of threads.
func TestThreads(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the suite three times")
	}
	want := gputest.Outputs(t, open(t, 1))
	counts := []int{2, 5}
	if invariants.Enabled {
		counts = counts[1:]
	}
	for _, threads := range counts {
		got := gputest.Outputs(t, open(t, threads))
		if len(got) != len(want) || len(want) < 100 {
			t.Errorf("%d outputs with %d threads, %d with one", len(got), threads, len(want))
		}
		for name, w := range want {
			if err := numcmp.Equal(got[name], w); err != nil {
				t.Errorf("%s: %d threads against one: %v", name, threads, err)
			}
		}
	}
}
