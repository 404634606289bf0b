package host

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/topology"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// boundThreads returns how many threads of this process may run on each processor alone, the main
// thread left out or not.
func boundThreads(t *testing.T, withMain bool) map[string]int {
	t.Helper()
	const tasks = "/proc/self/task"
	all, err := os.ReadDir(tasks)
	if err != nil {
		t.Fatal(err)
	}
	bound := map[string]int{}
	for _, task := range all {
		if !withMain && task.Name() == fmt.Sprint(os.Getpid()) {
			continue
		}
		status, err := os.ReadFile(fmt.Sprintf("%s/%s/status", tasks, task.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue // it has ended
		}
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(status), "Cpus_allowed_list:")
		list, _, _ := strings.Cut(rest, "\n")
		if list = strings.TrimSpace(list); !strings.ContainsAny(list, "-,") {
			bound[list]++
		}
	}
	return bound
}

// TestPin opens a device whose threads are bound and asks the system where each of them may run:
// where the machine's places are. Products have the usual bits, and threads that end leave none
// bound.
func TestPin(t *testing.T) {
	const threads = 5
	machine, err := topology.Here()
	if err != nil {
		t.Fatal(err)
	}
	if len(machine) < 2 {
		t.Skip("one processor: all threads are bound to it")
	}
	before := boundThreads(t, true)
	product := func(cfg Config, check func(d *Device)) (y []float32) {
		t.Run(fmt.Sprintf("pin=%t", cfg.Pin), func(t *testing.T) {
			d := openConfig(t, cfg)
			q, err := d.NewQueue()
			if err != nil {
				t.Fatal(err)
			}
			defer q.Close()
			const rows, cols = 3072, 1024
			out, c := benchFloats(t, d, rows), new(gpu.Commands)
			gpu.Encode(c, gpu.MatMul{W: benchMatrix(t, d, rows, cols, q4.In(quant.Panels, quant.PanelRows)), X: benchFloats(t, d, cols), Y: out, Rows: 1})
			ticket, err := q.Submit(c)
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			ticket.OnDone(func(err error) { done <- err })
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			check(d)
			y = slices.Clone(gpu.Floats(out.Buf.Bytes(), rows))
		})
		return y
	}
	bound := product(Config{Threads: threads, Pin: true}, func(*Device) {
		if _, err := New(Config{Threads: 1}); !errors.Is(err, errPinned) {
			t.Errorf("a device beside it whose threads are free: %v", err)
		}
		more, err := New(Config{Threads: threads + 1, Pin: true})
		if err != nil {
			t.Fatal(err)
		}
		defer more.Close()
		want := map[string]int{}
		for _, id := range append(machine.Places(threads), machine.Places(threads + 1)[threads]) {
			want[fmt.Sprint(id)]++
		}
		for id, n := range boundThreads(t, true) {
			if n != want[id]+before[id] {
				t.Errorf("%d threads are bound to processor %s, want %d and the %d before", n, id, want[id], before[id])
			}
			delete(want, id)
		}
		if len(want) > 0 {
			t.Errorf("no thread is bound to the processors %v", want)
		}
	})
	if free := product(Config{Threads: threads}, func(*Device) {}); !slices.Equal(bound, free) {
		t.Error("a product has other bits where threads are bound")
	}
	// Go's runtime does not end the main thread: it parks it for good.
	for until := time.Now().Add(10 * time.Second); len(boundThreads(t, false)) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("bound threads stay: %v", boundThreads(t, false))
		}
	}
}
