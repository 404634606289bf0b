package whatif

import (
	"math"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// operation is one submission to the device. It is its own ticket.
type operation struct {
	step        stages.Step
	part        record.Part
	wave        int // -1: not a wave
	last        bool
	uses, picks int
	urgent      bool

	submittedNS, beganNS, endedNS, pausedNS int64
	left                                    float64 // of its work
	done                                    bool
	then                                    []func(error)
}

func (o *operation) OnDone(f func(error)) {
	if o.done {
		f(nil)
		return
	}
	o.then = append(o.then, f)
}

func (o *operation) DeviceNS() int64 { return o.endedNS - o.beganNS - o.pausedNS }

// device works off operations one after the other; urgent ones go first and, if it preempts, amid
// others. Its goroutine brings the end of each, and runs the line if nobody else does: it begins
// the next operation only then.
type device struct {
	e        *engine
	preempts bool

	taken   []*operation // submitted by the message that is being handled
	queue   []*operation
	current *operation
	paused  *operation // an operation that urgent ones run amid
	held    bool       // its goroutine runs the line
	slow    bool       // something is read
	since   int64      // when current was looked at last
	version uint64     // of the next end
	pausing int64      // since when paused is
}

// submit takes an operation while a message is handled.
func (d *device) submit(o *operation) { d.taken = append(d.taken, o) }

// flush submits what a message has made.
func (d *device) flush() {
	for _, o := range d.taken {
		o.submittedNS = d.e.now
		o.left = d.e.laws.op(o)
		if d.e.watch.submitted != nil {
			d.e.watch.submitted(o)
		}
		at := len(d.queue)
		if o.urgent && d.preempts {
			for at > 0 && !d.queue[at-1].urgent {
				at--
			}
		}
		d.queue = append(d.queue, nil)
		copy(d.queue[at+1:], d.queue[at:])
		d.queue[at] = o
	}
	d.taken = d.taken[:0]
	if d.held || len(d.queue) == 0 {
		return
	}
	switch {
	case d.current == nil:
		d.start(1)
	case d.preempts && d.queue[0].urgent && !d.current.urgent:
		d.progress()
		d.version++
		d.paused, d.pausing, d.current = d.current, d.e.now, nil
		d.start(1)
	}
}

// start begins the next operation, if there is one. How says how it comes to that: 0 for the
// device's own goroutine, 1 if that has to wake up.
func (d *device) start(how int) {
	if len(d.queue) == 0 || d.paused != nil && !d.queue[0].urgent {
		if d.paused != nil {
			d.current, d.paused = d.paused, nil
			if d.current.beganNS > d.pausing { // it was about to begin
				d.current.beganNS = d.e.now
			} else {
				d.current.pausedNS += d.e.now - d.pausing
			}
			d.since = d.e.now
			d.plan()
		}
		return
	}
	o := d.queue[0]
	d.queue = d.queue[1:]
	d.current = o
	d.since = d.e.now + int64(d.e.laws.start(o, how == 1))
	o.beganNS = d.since
	d.plan()
}

// rate is how much of a nanosecond's work is done in one.
func (d *device) rate() float64 {
	if d.slow {
		return 1 / (1 + d.e.laws.slowed)
	}
	return 1
}

// progress notes what is done of the current operation.
func (d *device) progress() {
	if d.current != nil && d.e.now > d.since {
		d.current.left -= float64(d.e.now-d.since) * d.rate()
		d.since = d.e.now
	}
}

// plan has the current operation end when it will.
func (d *device) plan() {
	d.version++
	v, o := d.version, d.current
	d.e.at(d.since+int64(math.Round(max(o.left, 0)/d.rate())), func() {
		if d.version == v {
			d.end(o)
		}
	})
}

// reading says whether something is read.
func (d *device) reading(on bool) {
	if on == d.slow {
		return
	}
	d.progress()
	d.slow = on
	if d.current != nil && d.e.laws.slowed > 0 {
		d.plan()
	}
}

func (d *device) end(o *operation) {
	o.endedNS, o.done = d.e.now, true
	d.current = nil
	if d.e.watch.computed != nil {
		d.e.watch.computed(o)
	}
	d.held = true
	then := o.then
	o.then = nil
	d.e.whoPosts(func() {
		for _, f := range then {
			f(nil)
		}
	}, d.goOn)
}

// goOn begins the next operation after one has ended.
func (d *device) goOn() {
	d.held = false
	if d.current == nil {
		d.start(0)
	}
}
