package readpool

import (
	"slices"
	"time"
)

// How a pool finds out how many reads at once suit the disk. Windows are short, so that what else
// goes on changes little between two of them, and most trials of a worse number end after four.
const (
	windowReads  = 16  // of a window
	trialPairs   = 9   // of windows, at most
	trialWins    = 8   // of these, without which the number stays
	trialGain    = 1.1 // and the median gain
	trialLoss    = 0.8 // a pair's gain that is reason enough to end it
	firstPause   = 256 // reads from one trial to the next
	longestPause = 4096
)

// depth chooses how many reads run at once by the rate at which they end. It compares the present
// number with another one, window by window in turns. The other number replaces it if it is clearly
// faster in nearly every pair of windows, so that numbers that are alike do not take turns. It
// reads no clock.
type depth struct {
	levels []int // descending
	at     int   // the present level
	other  int   // the one on trial, if trying
	next   int   // the one to try next
	left   int   // the one that was replaced last, or -1

	trying bool
	pause  int // reads until the next trial
	gap    int // the next pause
	turn   int // the window of the trial
	gains  []float64
	first  float64 // the rate of a pair's first window
	window window
}

// window measures reads that end.
type window struct {
	stale int // reads that began before it and have not ended
	reads int
	bytes int64
	busy  time.Duration // while reads ran, until since
	since time.Time     // if reads run
}

// newDepth begins with most reads at once, and stays there unless fewer may be chosen.
func newDepth(most int, fewer bool) *depth {
	d := &depth{levels: []int{most}, left: -1, pause: firstPause, gap: firstPause, next: 1, gains: make([]float64, 0, trialPairs)}
	for n := most / 2; fewer && n > 0; n /= 2 {
		d.levels = append(d.levels, n)
	}
	return d
}

// most is how many reads may run at once now.
func (d *depth) most() int {
	if d.trying && d.triesOther() {
		return d.levels[d.other]
	}
	return d.levels[d.at]
}

// triesOther reports whether the window is the other number's. The order changes from pair to pair,
// lest what comes second always has what the first has left.
func (d *depth) triesOther() bool { return (d.turn%2 == 1) != (d.turn/2%2 == 1) }

// begun notes that a read begins, and how many run with it.
func (d *depth) begun(now time.Time, running int) {
	if running == 1 {
		d.window.since = now
	}
}

// ended notes that a read of some bytes ends, and how many still run.
func (d *depth) ended(now time.Time, bytes, running int) {
	w := &d.window
	switch {
	case len(d.levels) == 1:
		return
	case !d.trying:
		if d.pause--; d.pause <= 0 {
			d.trial()
			w.open(now, running)
		}
		return
	case w.stale > 0:
		if w.stale--; w.stale == 0 {
			w.open(now, running)
			w.stale = 0
		}
		return
	}
	w.reads++
	w.bytes += int64(bytes)
	if running == 0 || w.reads == windowReads {
		w.busy += max(0, now.Sub(w.since)) // workers may tell of their ends in another order
		w.since = now
	}
	if w.reads == windowReads {
		d.closeWindow(float64(w.bytes) / max(w.busy.Seconds(), 1e-9))
		w.open(now, running)
	}
}

// open begins a window as soon as the reads that run now have ended.
func (w *window) open(now time.Time, running int) { *w = window{stale: running, since: now} }

// trial begins to compare the present number with another one.
func (d *depth) trial() {
	if d.next %= len(d.levels); d.next == d.at {
		d.next = (d.next + 1) % len(d.levels)
	}
	d.other, d.next = d.next, d.next+1
	d.trying, d.turn, d.gains = true, 0, d.gains[:0]
}

// closeWindow takes the rate of a window.
func (d *depth) closeWindow(rate float64) {
	if rate == 0 { // every read failed, which says nothing of the disk
		d.stay()
		return
	}
	second := d.turn%2 == 1
	ofOther := d.triesOther()
	d.turn++
	if !second {
		d.first = rate
		return
	}
	gain := d.first / rate
	if ofOther {
		gain = rate / d.first
	}
	d.gains = append(d.gains, gain)
	d.judge()
}

// judge ends the trial as soon as its outcome is known.
func (d *depth) judge() {
	wins := 0
	for _, g := range d.gains {
		if g > 1 {
			wins++
		}
	}
	lost := len(d.gains) - wins
	switch {
	case lost > trialPairs-trialWins || d.gains[len(d.gains)-1] < trialLoss:
		d.stay()
	case len(d.gains) == trialPairs:
		slices.Sort(d.gains)
		if d.gains[trialPairs/2] < trialGain {
			d.stay()
			return
		}
		d.replace()
	}
}

// stay ends a trial that changes nothing. The next one is longer in coming.
func (d *depth) stay() {
	d.trying = false
	d.gap = min(2*d.gap, longestPause)
	d.pause = d.gap
}

// replace ends a trial that the other number has won. Another trial comes soon, since still another
// number may be better yet, unless this one was left a moment ago.
func (d *depth) replace() {
	again := d.other == d.left
	d.left, d.at = d.at, d.other
	if again {
		d.stay()
		return
	}
	d.trying = false
	d.gap, d.pause = firstPause, firstPause
}

// lift returns to the largest number, where too few reads end to wait for them.
func (d *depth) lift() {
	d.at, d.left = 0, -1
	d.stay()
}

// lullAfter is for how long no read begins, while some wait, until all workers may read. Those that
// may are with reads that hardly end, and then nothing can be found out.
const lullAfter = time.Second

// awaitLull sees that somebody looks whether reads begin, where some wait and fewer than all
// workers may read. p.mu is held.
func (p *Pool) awaitLull() {
	if p.lulling || !p.mayLull() {
		return
	}
	p.lulling = true
	if p.lull == nil {
		p.lull = time.AfterFunc(lullAfter, p.endLull)
	} else {
		p.lull.Reset(lullAfter)
	}
}

func (p *Pool) mayLull() bool {
	return !p.ended && p.stats.Queued > 0 && p.depth.most() < p.cfg.Workers
}

// endLull lets all workers read if none has begun a read for long.
func (p *Pool) endLull() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lulling = false
	switch {
	case !p.mayLull():
	case time.Since(p.beganAt) < lullAfter:
		p.awaitLull()
	default:
		p.depth.lift()
		p.wakeNext()
	}
}
