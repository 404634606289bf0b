package main

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

// TestBallast lets a group grow: what was released stays ahead of it by the lead, and by less than
// a piece more. In the end everything is released.
func TestBallast(t *testing.T) {
	b, err := hold(ballastLead) // twice the lead in all
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var usage atomic.Int64
	given := make(chan int, 1)
	looked := make(chan struct{})
	go func() {
		b.giveTo(ctx, func() int64 {
			looked <- struct{}{}
			return usage.Load()
		})
		given <- b.given
	}()
	for range 2 {
		<-looked // the second look comes after everything that the first led to
	}
	usage.Store(ballastPiece + 1)
	for range 3 {
		<-looked
	}
	stop()
	for {
		select {
		case <-looked:
		case n := <-given:
			if want := ballastLead + 2*ballastPiece; n != want {
				t.Errorf("%d bytes were given up for a group of %d, want %d", n, usage.Load(), want)
			}
			return
		case <-time.After(10 * time.Second):
			t.Fatal("the ballast does not end")
		}
	}
}
