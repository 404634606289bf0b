package gputest

import (
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
)

// RunMarks tests the marks of a device that has a clock for them.
func RunMarks(t *testing.T, d gpu.Device) {
	const n, few, many = 1 << 16, 2, 60
	q, err := d.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	s := newSetup(t, d, "marks")
	x := s.inout("X", make([]float32, n))
	uneven := 0
	for round := range 10 {
		var c gpu.Commands
		for i, adds := range []int{few, many, few} {
			for range adds {
				gpu.Encode(&c, gpu.Add{A: x.view(), B: x.view(), Y: x.view(), N: n})
			}
			gpu.Encode(&c, gpu.Mark{Tag: int32(10 + i)})
		}
		ns := timed(t, q, &c)
		marks := c.Marks()
		if len(marks) != 3 || marks[0].Tag != 10 || marks[2].Tag != 12 {
			t.Fatalf("round %d: the marks are %v", round, marks)
		}
		first, second, third := marks[0].NS, marks[1].NS, marks[2].NS
		if first < 1 || second < first || third < second || third > ns {
			t.Errorf("round %d: marks at %d, %d and %d ns of %d: want them in order", round, first, second, third, ns)
		}
		if between := second - first; between > 2*first && between > 2*(third-second) {
			uneven++
		}
	}
	if uneven == 0 { // other work on the machine may hit some rounds
		t.Errorf("in no round did the %d operations between two marks take longer than the %d before and after them", many, few)
	}
}

// timed submits and waits, and returns how long it took by the device's clock.
func timed(t *testing.T, q gpu.Queue, c *gpu.Commands) (ns int64) {
	t.Helper()
	ticket, err := q.Submit(c)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	ticket.OnDone(func(err error) { ns = ticket.DeviceNS(); done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return ns
}
