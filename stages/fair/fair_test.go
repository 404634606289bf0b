package fair_test

import (
	"testing"

	"github.com/moeflux/moeflux-actor/stages/fair"
)

// TestClock holds what an account begins with. Packages admission and schedule compare all of this
// with models of their own.
func TestClock(t *testing.T) {
	var c fair.Clock
	var a, b, late fair.Account
	c.Open(&a)
	c.Open(&b)
	c.Serve(&a, 10)
	c.Open(&late)
	if late.Had() != 5 {
		t.Errorf("a new account begins with %d, want what two had of 10 on average", late.Had())
	}
	if c.Close(&late); c.Ahead(&late) || late.Active() || !c.Ahead(&a) || c.Ahead(&b) {
		t.Errorf("of 10, 0 and 5 only the first is ahead of the average, and only the last is not active")
	}
	c.Close(&b)
	if !c.Close(&a) || c.Ahead(&a) {
		t.Error("who was served alone is ahead of others, though nobody waits")
	}
	if c.Open(&b); b.Had() != 10 {
		t.Errorf("after everybody was idle an account begins with %d, want 10", b.Had())
	}
}
