package process

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// How often progress is shown.
const (
	barInterval  = 100 * time.Millisecond
	lineInterval = 5 * time.Second
)

// Progress shows how far long work has come: a bar on a terminal, a plain line now and then
// elsewhere. It is not for concurrent use. A nil one shows nothing.
type Progress struct {
	w        io.Writer
	terminal bool
	now      func() time.Time

	begun, shown time.Time
	last         string // what the bar's line holds
	moved        *rate  // what Moved told; nil if it was not called
}

func NewProgress(inv *Invocation) *Progress {
	p := &Progress{w: inv.Stderr, terminal: inv.StderrTerminal, now: inv.Env.Now}
	p.begun = p.now()
	if !p.terminal {
		p.shown = p.begun // no line for work that is done in a moment
	}
	return p
}

// Update tells that done of total units are finished; what says of which work, amount how to write
// a number of units.
func (p *Progress) Update(what string, done, total int64, amount func(int64) string) {
	if p == nil {
		return
	}
	interval := lineInterval
	if p.terminal {
		interval = barInterval
	}
	now := p.now()
	if now.Sub(p.shown) < interval {
		return
	}
	p.shown = now
	share := 0.0
	if total > 0 {
		share = min(1, float64(done)/float64(total))
	}
	text := fmt.Sprintf("%s: %s of %s (%.0f%%)", what, amount(done), amount(total), math100(share))
	left := p.timeLeft(now, share)
	if p.moved != nil {
		if speed := p.moved.perSecond(now); speed > 0 {
			text += fmt.Sprintf(", %s/s", amount(int64(speed)))
			left = time.Duration(float64(total-done) / speed * float64(time.Second)).Round(time.Second)
		} else {
			left = 0
		}
	}
	if left > 0 {
		text += fmt.Sprintf(", %s left", left)
	}
	if !p.terminal {
		fmt.Fprintf(p.w, "%s: %s\n", Program, text)
		return
	}
	const width = 24
	full := int(share * width)
	text = fmt.Sprintf("[%s%s] %s", strings.Repeat("=", full), strings.Repeat(" ", width-full), text)
	if text != p.last {
		fmt.Fprintf(p.w, "\r\x1b[K%s", text)
		p.last = text
	}
}

// Moved tells how many units this call has brought so far, before an Update: then the time left is
// that of their rate in the last seconds, and the rate is shown. Without it all that is done
// counts, which is wrong for work that began in the middle.
func (p *Progress) Moved(n int64) {
	if p == nil {
		return
	}
	if p.moved == nil {
		p.moved = &rate{}
	}
	p.moved.add(p.now(), n)
}

// math100 rounds down, so that 100% means done.
func math100(share float64) float64 { return float64(int(share * 100)) }

// timeLeft guesses from the time so far; 0 means too early to say.
func (p *Progress) timeLeft(now time.Time, share float64) time.Duration {
	gone := now.Sub(p.begun)
	if gone < 2*time.Second || share < 0.01 || share >= 1 {
		return 0
	}
	return time.Duration(float64(gone) * (1 - share) / share).Round(time.Second)
}

// Clear takes the bar off the terminal; call it before anything else is printed and at the end.
func (p *Progress) Clear() {
	if p == nil {
		return
	}
	if p.last != "" {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.last = ""
	}
}

// FormatCount writes a number of things.
func FormatCount(n int64) string { return fmt.Sprint(n) }

// Of returns what tells a count of things that are done.
func (p *Progress) Of(what string) func(done, total int) {
	return func(done, total int) { p.Update(what, int64(done), int64(total), FormatCount) }
}
