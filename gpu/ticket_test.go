package gpu

import (
	"errors"
	"testing"
)

// TestTicket asks for completion before and after the work is done: the callback comes once, with
// the error, and then the ticket's memory serves again.
func TestTicket(t *testing.T) {
	var tickets Tickets[int]
	bad := errors.New("bad")
	for i, after := range []bool{false, true, false} {
		p, fresh := tickets.Get()
		if fresh != (i == 0) || p.DeviceNS() != 0 {
			t.Errorf("round %d: fresh %v, %d ns before it is done", i, fresh, p.DeviceNS())
		}
		calls := 0
		ask := func() {
			p.OnDone(func(err error) {
				calls++
				if err != bad || p.DeviceNS() != 1 {
					t.Errorf("round %d: %v after %d ns, want %v after 1", i, err, p.DeviceNS(), bad)
				}
			})
		}
		if !after {
			ask()
		}
		p.Complete(0, bad)
		if after {
			ask()
		}
		if calls != 1 {
			t.Errorf("round %d: %d calls", i, calls)
		}
	}
}

func TestOnDoneTwice(t *testing.T) {
	p, _ := new(Tickets[int]).Get()
	p.OnDone(func(error) {})
	defer func() {
		if recover() == nil {
			t.Error("a second OnDone did not panic")
		}
	}()
	p.OnDone(func(error) {})
}
