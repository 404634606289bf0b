package gpu

import (
	"slices"
	"testing"
)

// What is added is finished in order, all of it before Close returns, and what is added while
// nothing is idle does not pile up.
func TestLine(t *testing.T) {
	const n = 1000
	var got []int
	turn := make(chan struct{}, 3*n)
	l := NewLine(func(i int) {
		<-turn
		got = append(got, i)
	})
	for i := range 2 * n { // two are added for each that may be finished, and then the rest
		l.Add(i)
		if i%2 == 0 {
			turn <- struct{}{}
		}
	}
	for range n {
		turn <- struct{}{}
	}
	if !l.Close() || l.Close() {
		t.Error("only the first Close says that it was the first")
	}
	want := make([]int, 2*n)
	for i := range want {
		want[i] = i
	}
	if !slices.Equal(got, want) {
		t.Errorf("finished %d pieces in another order than they were added", len(got))
	}
}

// The memory of a line that never runs empty is bounded by what waits.
func TestLineIsBounded(t *testing.T) {
	begun, turn := make(chan struct{}), make(chan struct{})
	l := NewLine(func(int) {
		begun <- struct{}{}
		<-turn
	})
	l.Add(0)
	for i := range 5000 {
		l.Add(i)
		<-begun
		turn <- struct{}{}
	}
	<-begun
	l.mu.Lock()
	n := cap(l.waiting)
	l.mu.Unlock()
	if n > 1024 {
		t.Errorf("room for %d pieces where one or two wait", n)
	}
	turn <- struct{}{}
	l.Close()
}
