package runtime

import (
	"errors"
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
)

// manual is a ticket that the test completes.
type manual struct {
	f    func(error)
	done bool
	err  error
	ns   int64
}

func (m *manual) OnDone(f func(error)) {
	if m.f = f; m.done {
		f(m.err)
	}
}
func (m *manual) DeviceNS() int64 { return m.ns }

func (m *manual) complete(err error) {
	m.done, m.err = true, err
	if m.f != nil {
		m.f(err)
	}
}

// TestAwaitBoth completes two tickets before and after somebody asks: the answer comes once, when
// both are done, with the earlier ticket's error first and the later one's time.
func TestAwaitBoth(t *testing.T) {
	first, last := errors.New("first"), errors.New("last")
	var got []*stages.TicketDone
	aw := &awaits{send: func(to stages.StageID, m stages.Message) {
		if to != stages.Combine {
			t.Errorf("sent to %s", to)
		}
		got = append(got, m.(*stages.TicketDone))
	}}
	for _, tc := range []struct{ first, last, want error }{{nil, nil, nil}, {first, nil, first}, {nil, last, last}, {first, last, first}} {
		for asked := range 3 { // after how many completions
			a, b := new(manual), &manual{ns: 7}
			got = got[:0]
			ask := func(n int) {
				if n == asked {
					aw.await(stages.Combine, &stages.Await{Ticket: b, After: a}, &stages.TicketDone{ID: 5})
				}
			}
			ask(0)
			a.complete(tc.first)
			ask(1)
			if len(got) != 0 {
				t.Errorf("asked after %d: answered when only one is done", asked)
			}
			b.complete(tc.last)
			ask(2)
			if len(got) != 1 || got[0].Err != tc.want || got[0].ID != 5 || got[0].DeviceNS != 7 {
				t.Errorf("asked after %d: got %+v, want one answer with %v", asked, got, tc.want)
			}
		}
	}
	if len(aw.free) != 1 {
		t.Errorf("%d waits were made for one ticket at a time", len(aw.free))
	}
}

// TestAwaitOne waits for a ticket with nothing before it.
func TestAwaitOne(t *testing.T) {
	calls, cause := 0, errors.New("cause")
	aw := &awaits{send: func(_ stages.StageID, m stages.Message) {
		if calls++; m.(*stages.TicketDone).Err != cause {
			t.Errorf("got %+v", m)
		}
	}}
	a := new(manual)
	aw.await(stages.Dispatch, &stages.Await{Ticket: a}, new(stages.TicketDone))
	if a.complete(cause); calls != 1 {
		t.Errorf("%d answers, want one", calls)
	}
}
