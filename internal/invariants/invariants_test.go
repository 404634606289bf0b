package invariants

import "testing"

func TestCheck(t *testing.T) {
	panicked := func(ok bool) (msg any) {
		defer func() { msg = recover() }()
		Check(ok, "slot %d is in %d places", 3, 2)
		return nil
	}
	if msg := panicked(true); msg != nil {
		t.Errorf("an invariant that holds panicked: %v", msg)
	}
	var want any
	if Enabled {
		want = "broken invariant: slot 3 is in 2 places"
	}
	if msg := panicked(false); msg != want {
		t.Errorf("enabled %v: a broken invariant gave %v, want %v", Enabled, msg, want)
	}
}

// A check that is off costs nothing, not even its arguments.
func TestCheckIsFree(t *testing.T) {
	n := 1 << 20 // too large for the runtime's preallocated small values
	if a := testing.AllocsPerRun(100, func() { n++; Check(true, "n is %d", n) }); !Enabled && a != 0 {
		t.Errorf("%v allocations a check, want 0", a)
	}
}
