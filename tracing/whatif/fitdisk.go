package whatif

import (
	"cmp"
	"slices"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// fewReads is how many reads are too few to fit a law to.
const fewReads = 30

// reads fits the disk's law, and finds how much of it each read was.
func (o *observed) reads(r *record.Recording) {
	var reads, counted []record.Read
	for _, d := range r.Reads {
		if d.BeganNS > 0 && d.EndedNS >= d.BeganNS && d.Failed == 0 && d.Tier == record.FromDisk {
			reads = append(reads, d)
		}
	}
	slices.SortStableFunc(reads, func(a, b record.Read) int {
		return cmp.Or(cmp.Compare(a.AskedNS, b.AskedNS), cmp.Compare(a.BeganNS, b.BeganNS))
	})
	for i := range reads {
		if reads[i].AskedNS >= o.since {
			counted = append(counted, reads[i])
		}
	}
	if len(counted) < fewReads {
		counted = reads
	}
	d := newDepth(reads)
	o.depth = d.most
	o.laws.disk = newDepth(counted).law(counted)
	o.wakes(r, reads)
	sum := d.sums(o.laws.disk)
	for i, read := range reads {
		if _, ok := o.first[read.Step]; !ok {
			o.first[read.Step] = i
		}
		w := d.until(sum, o.laws.disk, read.EndedNS) - d.until(sum, o.laws.disk, read.BeganNS)
		o.works = append(o.works, w)
		name := nameOf(&read)
		o.same[name] = append(o.same[name], w)
	}
}

// wakes finds how long workers take to begin that have nothing to do, while the device works and
// while it does not.
func (o *observed) wakes(r *record.Recording, reads []record.Read) {
	work := newBusyDevice(r.Submissions)
	var took [2][]float64
	var running []*record.Read // that were asked for before
	workers := r.Meta.Engine.ReadWorkers
	for i := range reads {
		d := &reads[i]
		running = slices.DeleteFunc(running, func(o *record.Read) bool { return o.EndedNS <= d.AskedNS })
		alike := !slices.ContainsFunc(running, func(o *record.Read) bool { return o.Urgent != d.Urgent })
		if len(running) == 0 || len(running) < workers && d.Hint == 0 && alike {
			lag := float64(d.BeganNS - d.AskedNS)
			o.lags[nameOf(d)] = lag
			if k := work.at(d.AskedNS); d.AskedNS >= o.since && len(running) == 0 {
				took[k] = append(took[k], lag)
			}
		}
		running = append(running, d)
	}
	for k := range took {
		if len(took[k]) == 0 { // never seen: as the other
			took[k] = took[1-k]
		}
		o.laws.wakes[k] = trimmed(slices.Clone(took[k]))
	}
}

func nameOf(r *record.Read) readOf { return readOf{r.Step, r.Layer, r.Expert} }

// readOf names a read by what it was for.
type readOf struct {
	step          uint64
	layer, expert int32
}

// lag returns how long a worker takes to begin a read that was asked for while the device works or
// does not.
func (o *observed) lag(r *reading, working bool) float64 {
	if ns, ok := o.lags[readOf{r.of, int32(r.read.Layer), int32(r.read.Expert)}]; ok {
		return ns
	}
	if working {
		return o.laws.wakes[1]
	}
	return o.laws.wakes[0]
}

// work returns the work of a read: that of the same read in the recording, or else of one that the
// same step asked for.
func (o *observed) work(r *reading) float64 {
	name := readOf{r.of, int32(r.read.Layer), int32(r.read.Expert)}
	if same := o.same[name]; len(same) > o.used[name] {
		o.used[name]++
		return same[o.used[name]-1]
	}
	if len(o.works) == 0 {
		return 1
	}
	at, ok := o.first[r.of]
	if !ok {
		at = int(r.of) % len(o.works)
	}
	n := o.count[r.of]
	o.count[r.of]++
	return o.works[(at+n)%len(o.works)]
}
