package remote

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestUsual wants one in a hundred of the last answers to be late, and nothing to be known of few.
func TestUsual(t *testing.T) {
	var u usual
	for i := range fewAnswers - 1 {
		if u.add(time.Duration(i) * time.Second); u.limit != 0 {
			t.Fatalf("after %d answers %v are usual", i+1, u.limit)
		}
	}
	u.add(0)
	for range 2 { // the first ones are forgotten
		for _, ms := range rand.New(rand.NewPCG(1, 1)).Perm(recent) {
			u.add(time.Duration(ms+1) * time.Millisecond)
		}
	}
	if want := (recent - recent/lateOne) * time.Millisecond; u.limit != want {
		t.Errorf("%v are usual, want %v", u.limit, want)
	}
	for range recent {
		u.add(time.Microsecond)
	}
	if u.limit != leastLate {
		t.Errorf("%v are usual, the least is %v", u.limit, leastLate)
	}
}
