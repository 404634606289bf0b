package host

import (
	"testing"
	"time"
)

// TestByPages follows a kernel through codes: each line of the next block is prefetched once, and
// by pages in turn, wherever matrices begin.
func TestByPages(t *testing.T) {
	for _, groupBytes := range []int{64, 128, 256, 512, 1024, 2048} {
		k := kernels{far: inOrder(8192)}
		far := k.byPages(groupBytes)
		if pages := groupBytes / pairBytes; pages < 2 {
			if far != k.far {
				t.Errorf("groups of %d bytes: %+v, want in order", groupBytes, far)
			}
			continue
		} else if far.ahead != pages*pageBytes {
			t.Errorf("groups of %d bytes: blocks of %d bytes, want %d pages", groupBytes, far.ahead, pages)
		}
		block := far.ahead
		seen := map[int]int{}
		for w := 3 * block; w < 4*block; w += groupBytes {
			at := w - w&far.mask + (w&far.mask)>>far.shift + far.ahead
			for i := 0; i < groupBytes; i += pairBytes {
				if page := at / pageBytes % (block / pageBytes); page != i/pairBytes {
					t.Fatalf("groups of %d bytes: iteration %d takes page %d", groupBytes, i/pairBytes, page)
				}
				seen[at]++
				seen[at+lineBytes]++
				at += far.step
			}
		}
		for at := 4 * block; at < 5*block; at += lineBytes {
			if seen[at] != 1 {
				t.Errorf("groups of %d bytes: line %d of the next block is prefetched %d times",
					groupBytes, at/lineBytes, seen[at])
			}
		}
		if n := block / lineBytes; len(seen) != n {
			t.Errorf("groups of %d bytes: %d lines are prefetched, want the next block's %d",
				groupBytes, len(seen), n)
		}
	}
}

// TestFarChoice: the faster kind is used after a trial, and given up when it is the slower one.
// Equal kinds change nothing, nor does a difference within the calls that other work held up.
func TestFarChoice(t *testing.T) {
	const order, pages = false, true
	held := func(i int) time.Duration { return time.Duration(i%5/4) * time.Millisecond }
	run := func(c *farChoice, calls int, took map[bool]time.Duration) (timed int) {
		for i := range calls {
			kind, look := c.begin(farLeast)
			if look {
				c.end(took[kind] + held(i))
				timed++
			}
		}
		return timed
	}
	var c farChoice
	for _, step := range []struct {
		order, pages time.Duration
		want         bool
	}{
		{20, 20, order}, {20, 19, pages}, {20, 20, pages},
		{20, 21, order}, {20, 19, pages}, {18, 19, order},
	} {
		took := map[bool]time.Duration{order: step.order, pages: step.pages}
		if timed := run(&c, farPeriod, took); timed != 2*farPairs {
			t.Errorf("%+v: %d calls of %d were timed, want %d", step, timed, farPeriod, 2*farPairs)
		}
		if c.pages != step.want {
			t.Errorf("%+v: by pages %t", step, c.pages)
		}
	}
}

// TestFarChoiceAlternating: calls whose sizes alternate make no pairs, and the trial ends.
func TestFarChoiceAlternating(t *testing.T) {
	var c farChoice
	timed := 0
	for i := range farPeriod {
		pages, look := c.begin((1 + i%2) * farLeast)
		if look {
			c.end(1)
			timed++
		} else if pages {
			t.Fatalf("call %d goes by pages, which nothing has chosen", i)
		}
	}
	if timed != farAnew {
		t.Errorf("%d calls were timed, want %d", timed, farAnew)
	}
}

// TestFarChoicePairs: small calls are not timed, and a pair whose second call has another size
// begins anew.
func TestFarChoicePairs(t *testing.T) {
	var c farChoice
	if _, timed := c.begin(farLeast - 1); timed {
		t.Error("a small call is timed")
	}
	sizes := []int{1, 2, 2, 3, 3, 3, 4, 4}
	kinds := []bool{false, false, true, true, false, false, false, true}
	for i, n := range sizes {
		kind, timed := c.begin(n * farLeast)
		if !timed {
			t.Fatalf("call %d is not timed", i)
		}
		if kind != kinds[i] {
			t.Errorf("call %d goes by pages %t, want %t", i, kind, kinds[i])
		}
		c.end(1)
	}
}
