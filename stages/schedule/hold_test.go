package schedule_test

import (
	"testing"

	"github.com/moeflux/moeflux-actor/stages/schedule"
)

// decoder is a schedule with a sequence that decodes, beside a prompt or alone.
type decoder struct {
	t    *testing.T
	s    schedule.Schedule[*chunk]
	now  int64
	last uint64
}

const (
	holdLayers = 4
	holdAlone  = 1000 // what a decode step takes alone
)

// newDecoder returns one that has decoded for some time.
func newDecoder(t *testing.T, share float64) *decoder {
	d := &decoder{t: t, s: schedule.New[*chunk](schedule.Config{Rows: 8, Steps: 1, Layers: holdLayers, Share: share, Preempts: true})}
	d.pass(1)
	for range 20 {
		if id := d.compute(holdAlone); d.s.Holds(id) {
			t.Fatal("a step is held although there is no prompt")
		}
		d.s.Ended(d.last)
	}
	return d
}

func (d *decoder) pass(ns int64) {
	d.now += ns
	d.s.Now(d.now)
}

// form returns the step that is formed now.
func (d *decoder) form(want schedule.Kind) uint64 {
	d.t.Helper()
	k, shares := d.s.Next(d.last + 1)
	if len(shares) == 0 || k != want {
		d.t.Fatalf("%v of kind %d, want some of kind %d", shares, k, want)
	}
	d.last++
	return d.last
}

// prompt begins a prompt and one of its layers.
func (d *decoder) prompt() (id uint64) {
	d.s.Add(&chunk{id: 2, left: 8})
	id = d.form(schedule.Prompt)
	d.s.Begun(id, 1)
	return id
}

// compute computes a decode step, which begins at once.
func (d *decoder) compute(ns int64) uint64 {
	d.t.Helper()
	d.s.Add(&chunk{id: 1, left: 1})
	id := d.form(schedule.Decode)
	d.s.Begun(id, holdLayers)
	d.s.Asked(id)
	d.pass(ns)
	d.s.Retired(id, holdLayers)
	return id
}

// until returns when a step that is held now is due.
func (d *decoder) until(id uint64) int64 {
	d.t.Helper()
	if !d.s.Holds(id) {
		d.t.Fatalf("at %d: step %d is not held", d.now, id)
	}
	round, at := d.s.Timer()
	if round == 0 || at <= d.now {
		d.t.Fatalf("round %d of a timer at %d, it is %d", round, at, d.now)
	}
	return at
}

// A token beside a prompt comes when prompts have had their share since the one before; one that
// takes long takes it from the prompt.
func TestHolds(t *testing.T) {
	for _, c := range []struct {
		share       float64
		takes, want int64 // from token to token
	}{
		{0.5, 1000, 2000}, {0.5, 1500, 2000}, {0.5, 2500, 2500}, {0.75, 1000, 4000}, {0.75, 3999, 4000}, {0.75, 4000, 4000},
	} {
		d := newDecoder(t, c.share)
		d.prompt()
		ended := d.now
		id := d.compute(c.takes)
		if c.takes >= c.want {
			if d.s.Holds(id) {
				t.Errorf("share %v: a step of %d is held", c.share, c.takes)
			}
			continue
		}
		if at := d.until(id); at != ended+c.want {
			t.Errorf("share %v: a step of %d is held until %d after the one before, want %d", c.share, c.takes, at-ended, c.want)
		}
		d.pass(c.want - c.takes - 1)
		if !d.s.Holds(id) {
			t.Errorf("share %v: a step is not held to its end", c.share)
		}
		d.pass(1)
		if d.s.Holds(id) {
			t.Errorf("share %v: a step is held for too long", c.share)
		}
	}
}

// With a share of 1 a decode step goes when a prompt step has begun all of its layers.
func TestPromptsFirst(t *testing.T) {
	d := newDecoder(t, 1)
	prompt := d.prompt()
	d.s.Add(&chunk{id: 1, left: 1})
	if _, shares := d.s.Next(100); len(shares) != 0 {
		t.Error("a decode step goes amid a prompt step")
	}
	d.s.Begun(prompt, holdLayers-1)
	id := d.form(schedule.Decode)
	d.s.Begun(id, holdLayers)
	d.s.Asked(id)
	d.pass(holdAlone)
	if d.s.Holds(id) {
		t.Error("it is held besides")
	}
}

// A step is held no longer when its timer fires, be it early, and when no prompt is left.
func TestHoldEnds(t *testing.T) {
	d := newDecoder(t, 0.5)
	prompt := d.prompt()
	id := d.compute(holdAlone)
	d.until(id)
	d.s.WaitOver(1000)
	if !d.s.Holds(id) {
		t.Error("another wait's end has ended it")
	}
	d.s.WaitOver(1)
	if d.s.Holds(id) {
		t.Error("it is held although its time is over")
	}
	d.s.Ended(id)

	id = d.compute(holdAlone)
	d.until(id)
	d.s.Ended(prompt)
	if d.s.Holds(id) {
		t.Error("it is held although no prompt is left")
	}
}

// Prompts that had nothing for long, since every token takes as long as it may, get some time.
func TestHoldsForTheStarved(t *testing.T) {
	d := newDecoder(t, 0.5)
	d.prompt()
	held, tokens := int64(0), 100
	for range tokens {
		id := d.compute(3 * holdAlone)
		before := d.now
		if d.s.Holds(id) {
			d.pass(d.until(id) - d.now)
		}
		held += d.now - before
		d.s.Ended(id)
	}
	// a quarter of the share, which is as long as a token alone, but for the first few tokens
	if least := int64(tokens-20) * holdAlone / 4; held < least || held > least*5/4 {
		t.Errorf("prompts had %d ns after %d tokens, want %d at least and not much more", held, tokens, least)
	}
}
