package dispatch

import (
	"errors"
	"testing"
)

// manual is a ticket that the test completes.
type manual struct {
	f    func(error)
	done bool
	err  error
}

func (m *manual) OnDone(f func(error)) {
	if m.f = f; m.done {
		f(m.err)
	}
}
func (m *manual) DeviceNS() int64 { return 7 }

func (m *manual) complete(err error) {
	m.done, m.err = true, err
	if m.f != nil {
		m.f(err)
	}
}

// TestBoth completes two tickets before and after somebody asks: the answer comes once, when both are done, with the earlier
// ticket's error first.
func TestBoth(t *testing.T) {
	first, last := errors.New("first"), errors.New("last")
	for _, tc := range []struct{ first, last, want error }{{nil, nil, nil}, {first, nil, first}, {nil, last, last}, {first, last, first}} {
		for asked := range 3 { // after how many completions
			a, b := new(manual), new(manual)
			calls, got := 0, error(nil)
			ask := func(n int) {
				if n == asked {
					both{a, b}.OnDone(func(err error) { calls, got = calls+1, err })
				}
			}
			ask(0)
			a.complete(tc.first)
			ask(1)
			if calls != 0 {
				t.Errorf("asked after %d: answered when only one is done", asked)
			}
			b.complete(tc.last)
			ask(2)
			if calls != 1 || got != tc.want {
				t.Errorf("asked after %d: %d answers, error %v, want one with %v", asked, calls, got, tc.want)
			}
		}
	}
	if ns := (both{new(manual), new(manual)}).DeviceNS(); ns != 7 {
		t.Errorf("device time %d, want the later ticket's", ns)
	}
}
