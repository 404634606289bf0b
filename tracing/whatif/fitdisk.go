package whatif

import (
	"cmp"
	"slices"
	"sort"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// reads fits the disk's law, and finds how much of it each read was.
func (o *observed) reads(r *record.Recording) {
	var reads []record.Read
	for _, d := range r.Reads {
		if d.BeganNS > 0 && d.EndedNS >= d.BeganNS && d.Failed == 0 && d.Tier == record.FromDisk {
			reads = append(reads, d)
		}
	}
	slices.SortStableFunc(reads, func(a, b record.Read) int {
		return cmp.Or(cmp.Compare(a.AskedNS, b.AskedNS), cmp.Compare(a.BeganNS, b.BeganNS))
	})
	d := newDepth(reads)
	o.depth = d.most
	o.laws.disk = d.law(reads)
	o.wakes(reads, r.Meta.Engine.ReadWorkers)
	sum := d.sums(o.laws.disk)
	o.works = o.works[:0]
	for i, read := range reads {
		if _, ok := o.first[read.Step]; !ok {
			o.first[read.Step] = i
		}
		w := d.until(sum, o.laws.disk, read.EndedNS) - d.until(sum, o.laws.disk, read.BeganNS)
		o.works = append(o.works, w)
		o.same[readOf{read.Step, read.Layer, read.Expert}] = w
	}
}

// wakes finds how long a worker takes to begin that has nothing to do.
func (o *observed) wakes(reads []record.Read, workers int) {
	var took []float64
	var running []int64 // ends of reads that were asked for before
	for _, r := range reads {
		running = slices.DeleteFunc(running, func(end int64) bool { return end <= r.AskedNS })
		if len(running) == 0 && workers > 0 {
			took = append(took, float64(r.BeganNS-r.AskedNS))
		}
		running = append(running, r.EndedNS)
	}
	o.laws.wakes = trimmed(took)
}

// readOf names a read by what it was for.
type readOf struct {
	step          uint64
	layer, expert int32
}

// work returns the work of a read: that of the same read in the recording, or else of one that the
// same step asked for.
func (o *observed) work(r *reading) float64 {
	if w, ok := o.same[readOf{r.of, int32(r.read.Layer), int32(r.read.Expert)}]; ok {
		return w
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

// depth is how many reads ran, as it changed.
type depth struct {
	at   []int64
	n    []int // from at[i] on
	most int
}

func newDepth(reads []record.Read) *depth {
	type change struct {
		at int64
		by int
	}
	var all []change
	for _, r := range reads {
		all = append(all, change{r.BeganNS, 1}, change{r.EndedNS, -1})
	}
	slices.SortFunc(all, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	d, n := new(depth), 0
	for _, c := range all {
		n += c.by
		d.most = max(d.most, n)
		if k := len(d.at); k > 0 && d.at[k-1] == c.at {
			d.n[k-1] = n
			continue
		}
		d.at, d.n = append(d.at, c.at), append(d.n, n)
	}
	return d
}

// index returns the last change at or before a time.
func (d *depth) index(at int64) int {
	return sort.Search(len(d.at), func(i int) bool { return d.at[i] > at }) - 1
}

// mean returns how many reads ran on average in a time.
func (d *depth) mean(from, to int64) float64 {
	if to <= from {
		return 1
	}
	sum := 0.0
	for i := d.index(from); i < len(d.at) && d.at[i] < to; i++ {
		end := to
		if i+1 < len(d.at) {
			end = min(end, d.at[i+1])
		}
		sum += float64(end-max(from, d.at[i])) * float64(d.n[i])
	}
	return sum / float64(to-from)
}

// law fits how long a read takes by how many ran beside it: least squares, nothing below 0.
func (d *depth) law(reads []record.Read) diskLaw {
	var n, x, y, xx, xy float64
	for _, r := range reads {
		at, took := d.mean(r.BeganNS, r.EndedNS), float64(r.EndedNS-r.BeganNS)
		n, x, y, xx, xy = n+1, x+at, y+took, xx+at*at, xy+at*took
	}
	if n == 0 {
		return diskLaw{Base: 1}
	}
	each := 0.0
	if v := n*xx - x*x; v > 1e-6*n*xx {
		each = max(0, (n*xy-x*y)/v)
	}
	base := (y - each*x) / n
	if base < 0 {
		base, each = 0, y/x
	}
	return diskLaw{base, each}
}

// sums returns how many usual reads each of those that ran could have done until each change.
func (d *depth) sums(l diskLaw) []float64 {
	sum := make([]float64, len(d.at))
	for i := 1; i < len(d.at); i++ {
		sum[i] = sum[i-1]
		if d.n[i-1] > 0 {
			sum[i] += float64(d.at[i]-d.at[i-1]) / l.usual(d.n[i-1])
		}
	}
	return sum
}

func (d *depth) until(sum []float64, l diskLaw, at int64) float64 {
	i := d.index(at)
	if i < 0 {
		return 0
	}
	if d.n[i] == 0 {
		return sum[i]
	}
	return sum[i] + float64(at-d.at[i])/l.usual(d.n[i])
}

// busy is the times in which something is read.
type busy struct {
	from, to []int64
	sum      []int64 // of those before
}

func newBusy(reads []record.Read) (b busy) {
	var all [][2]int64
	for _, r := range reads {
		if r.BeganNS > 0 && r.EndedNS > r.BeganNS {
			all = append(all, [2]int64{r.BeganNS, r.EndedNS})
		}
	}
	slices.SortFunc(all, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
	sum := int64(0)
	for _, r := range all {
		if k := len(b.to) - 1; k >= 0 && r[0] <= b.to[k] {
			b.to[k] = max(b.to[k], r[1])
			continue
		}
		if k := len(b.to) - 1; k >= 0 {
			sum += b.to[k] - b.from[k]
		}
		b.from, b.to, b.sum = append(b.from, r[0]), append(b.to, r[1]), append(b.sum, sum)
	}
	return b
}

func (b *busy) until(at int64) int64 {
	i := sort.Search(len(b.from), func(i int) bool { return b.from[i] > at }) - 1
	if i < 0 {
		return 0
	}
	return b.sum[i] + min(at, b.to[i]) - b.from[i]
}

// share returns in which share of a time something was read.
func (b *busy) share(from, to int64) float64 {
	return float64(b.until(to)-b.until(from)) / float64(to-from)
}

// slowed finds by which share reads slow the device: how much longer the same work took while
// something was read. 0 where work was never seen both with and without reads.
func slowed(r *record.Recording, b busy) float64 {
	type key struct {
		part  record.Part
		layer int32
		rows  int32
	}
	type sums struct{ n, x, y, xx, xy float64 }
	of := make(map[key]*sums)
	for i := range r.Submissions {
		s := &r.Submissions[i]
		if s.BeganNS == 0 || s.EndedNS <= s.BeganNS || s.Part == record.Experts || s.Part == record.State {
			continue
		}
		k := key{s.Part, s.Layer, s.Rows}
		if of[k] == nil {
			of[k] = new(sums)
		}
		x, y, m := b.share(s.BeganNS, s.EndedNS), float64(s.EndedNS-s.BeganNS-s.PausedNS), of[k]
		m.n, m.x, m.y, m.xx, m.xy = m.n+1, m.x+x, m.y+y, m.xx+x*x, m.xy+x*y
	}
	slope, weight := 0.0, 0.0
	for _, m := range of {
		v := m.n*m.xx - m.x*m.x
		if m.n < 8 || v < 0.01*m.n*m.n {
			continue
		}
		each := (m.n*m.xy - m.x*m.y) / v
		base := (m.y - each*m.x) / m.n
		if base <= 0 {
			continue
		}
		slope, weight = slope+each*m.n, weight+base*m.n
	}
	if weight == 0 {
		return 0
	}
	return max(0, min(1, slope/weight))
}
