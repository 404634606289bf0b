package whatif

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

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

// law fits how many reads were done in each time without a pause to how many ran at once when. That
// looks at nothing but whole reads, so it is not led astray by how much the time of one read
// varies.
func (d *depth) law(reads []record.Read) diskLaw {
	if len(reads) == 0 {
		return diskLaw{Base: 1}
	}
	spells := d.spells(reads)
	sum := 0.0
	for _, r := range reads {
		sum += float64(r.EndedNS - r.BeganNS)
	}
	usual := sum / float64(len(reads))
	best, least := diskLaw{Base: usual}, math.Inf(1)
	for share := 0.0; share <= 1; share += 1.0 / 64 { // of a read beside no other that others slow
		l := diskLaw{Base: usual * (1 - share), Each: usual * share}
		l = l.scaled(l.done(spells) / float64(len(reads)))
		if off := l.off(spells); off < least {
			best, least = l, off
		}
	}
	return best
}

// spell is a time without a pause: how long so many ran at once, and how many were done.
type spell struct {
	ns    map[int]float64
	reads float64
}

func (d *depth) spells(reads []record.Read) []spell {
	var all []spell
	var from []int64
	for i := 0; i < len(d.at); i++ {
		if d.n[i] > 0 && (i == 0 || d.n[i-1] == 0) {
			all, from = append(all, spell{ns: make(map[int]float64)}), append(from, d.at[i])
		}
		if d.n[i] > 0 && i+1 < len(d.at) {
			all[len(all)-1].ns[d.n[i]] += float64(d.at[i+1] - d.at[i])
		}
	}
	for _, r := range reads {
		k := sort.Search(len(from), func(i int) bool { return from[i] > r.BeganNS }) - 1
		all[k].reads++
	}
	return all
}

// in returns how many reads are done in a spell.
func (l diskLaw) in(s *spell) (n float64) {
	for depth, ns := range s.ns {
		n += ns * float64(depth) / l.usual(depth)
	}
	return n
}

func (l diskLaw) done(spells []spell) (n float64) {
	for i := range spells {
		n += l.in(&spells[i])
	}
	return n
}

// scaled returns a law by which everything takes so many times as long.
func (l diskLaw) scaled(by float64) diskLaw { return diskLaw{l.Base * by, l.Each * by} }

// off is how badly a law explains spells.
func (l diskLaw) off(spells []spell) (sum float64) {
	for i := range spells {
		d := l.in(&spells[i]) - spells[i].reads
		sum += d * d / spells[i].reads
	}
	return sum
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
