package host

import (
	"math/bits"
	"time"
)

// farCodes says which codes a kernel of one row held as int8 prefetches into the second-level cache
// while it multiplies others. A group whose codes begin at w begins with those at
//
//	w - w&mask + (w&mask)>>shift + ahead
//
// Each iteration takes two lines of them and goes on by step. The generator knows the offsets of
// the fields.
type farCodes struct{ mask, shift, ahead, step int }

const (
	pairBytes = 2 * lineBytes
	pageBytes = 4096
)

// inOrder takes what comes some bytes later.
func inOrder(ahead int) farCodes { return farCodes{ahead: ahead, step: pairBytes} }

// byPages takes the next block of pages, two lines of each page in turn: as many pages as a group,
// whose codes are groupBytes, has iterations. A processor's own prefetcher follows each page only
// so far, so it follows several then. Groups of one iteration are taken in order.
func (k *kernels) byPages(groupBytes int) farCodes {
	pages := groupBytes / pairBytes
	if pages < 2 || pages&(pages-1) != 0 || groupBytes%pairBytes != 0 {
		return k.far
	}
	block := pages * pageBytes
	shift := bits.TrailingZeros(uint(pages))
	return farCodes{mask: block - 1, shift: shift, ahead: block, step: pageBytes}
}

// farChoice is what one thread has chosen: in order or by pages. Which is faster depends on the
// processor and its memory, so calls are timed: now and then some pairs of equal size, a call of
// either kind in each. What wins most pairs is used until the next trial. Results are the same.
type farChoice struct {
	pages bool // what is used
	calls int  // since the last trial began, whose calls are the first
	wins  int  // of what is not used, in the trial
	bytes int  // of the pair under way
	anew  int  // how often a pair of the trial has begun anew
	took  time.Duration
}

const (
	farLeast  = 32 << 10 // bytes of a call that is worth timing
	farPairs  = 32       // of a trial
	farWins   = 24       // that change the choice: equals win as many once in 300 trials
	farAnew   = 128      // pairs that begin anew, which end a trial: neighbours differ in size
	farPeriod = 1 << 13  // calls from trial to trial, some hundredths of a second or more
)

// time runs do, which takes some bytes of codes, in order or by pages.
func (c *farChoice) time(bytes int, do func(pages bool)) {
	pages, timed := c.begin(bytes)
	if !timed {
		do(pages)
		return
	}
	began := time.Now()
	do(pages)
	c.end(time.Since(began))
}

// begin says of the next call, which takes some bytes of codes, whether it goes by pages, and
// whether end is to be told how long it took.
func (c *farChoice) begin(bytes int) (pages, timed bool) {
	switch {
	case bytes < farLeast:
		return c.pages, false
	case c.calls == farPeriod:
		c.calls, c.wins, c.anew = 0, 0, 0
	case c.calls >= 2*farPairs:
		c.calls++
		return c.pages, false
	}
	if c.calls%2 == 1 && bytes != c.bytes {
		c.calls-- // it begins the pair anew
		if c.anew++; c.anew == farAnew {
			c.calls = 2 * farPairs
			return c.pages, false
		}
	}
	c.bytes = bytes
	return c.pages != c.other(), true
}

// other reports whether the trial's next call is of the kind that is not used. The kinds take turns
// in being first.
func (c *farChoice) other() bool { return c.calls%2 == 1 != (c.calls/2%2 == 1) }

// end notes how long a timed call took.
func (c *farChoice) end(took time.Duration) {
	other := c.other()
	c.calls++
	if c.calls%2 == 1 {
		c.took = took
		return
	}
	if other && took < c.took || !other && c.took < took {
		c.wins++
	}
	if c.calls == 2*farPairs && c.wins >= farWins {
		c.pages = !c.pages
	}
}
