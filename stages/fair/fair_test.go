package fair_test

import (
	"testing"

	"github.com/moeflux/moeflux-actor/stages/fair"
)

// TestClock holds what an account begins with. Packages admission and schedule compare all of this
// with models of their own.
func TestClock(t *testing.T) {
	var c fair.Clock
	var a, b, late, next fair.Account
	c.Open(&a)
	c.Open(&b)
	c.Serve(&a, 10)
	c.Open(&late)
	c.Open(&next)
	if half := a.Had() / 2; late.Had() != half || half != b.With(5) {
		t.Errorf("a new account begins with %d, want what two had of 10 on average: %d", late.Had(), half)
	}
	c.Close(&next)
	if c.Close(&late); c.Ahead(&late) || late.Active() || !c.Ahead(&a) || c.Ahead(&b) {
		t.Errorf("of 10, 0 and 5 only the first is ahead of the average, and only the last is not active")
	}
	c.Close(&b)
	if !c.Close(&a) || c.Ahead(&a) {
		t.Error("who was served alone is ahead of others, though nobody waits")
	}
	if c.Open(&b); b.Had() != a.Had() {
		t.Errorf("after everybody was idle an account begins with %d, want %d", b.Had(), a.Had())
	}
}

// TestWeights serves accounts in the order of what they had: each gets by its weight, however small
// the pieces are, and so it is once weights change while the accounts are active.
func TestWeights(t *testing.T) {
	weights := []int{1, 3, 7, fair.MaxWeight, fair.MaxWeight + 5, -1, 0}
	var c fair.Clock
	accounts := make([]fair.Account, len(weights))
	for i := range accounts {
		c.Weigh(&accounts[i], weights[i])
		c.Open(&accounts[i])
	}
	serve := func(n int64) []int64 {
		got := make([]int64, len(accounts))
		for range n {
			least := 0
			for i := range accounts {
				if accounts[i].With(1) < accounts[least].With(1) {
					least = i
				}
			}
			c.Serve(&accounts[least], 1)
			got[least]++
		}
		return got
	}
	check := func(got []int64, want ...int64) {
		t.Helper()
		for i, n := range got {
			if n < want[i]-1 || n > want[i]+1 {
				t.Errorf("of weights %v served %d, want %d", weights, got, want)
				return
			}
		}
	}
	const rounds = 100
	check(serve(rounds*2013), rounds, 3*rounds, 7*rounds, fair.MaxWeight*rounds, fair.MaxWeight*rounds, rounds, rounds)
	for i, w := range []int{2, 1, 1, 1, 1, 1, 1} {
		c.Weigh(&accounts[i], w)
	}
	check(serve(rounds*8), 2*rounds, rounds, rounds, rounds, rounds, rounds, rounds)
	var late fair.Account
	c.Open(&late)
	for i := range accounts {
		if d := late.Had() - accounts[i].Had(); d > accounts[0].With(2)-accounts[0].Had() || -d > accounts[0].With(2)-accounts[0].Had() {
			t.Errorf("a new account begins with %d, far from the %d of number %d", late.Had(), accounts[i].Had(), i)
		}
	}
}
