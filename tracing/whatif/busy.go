package whatif

import (
	"cmp"
	"slices"
	"sort"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// busy is the times in which something is read, or the device works.
type busy struct {
	from, to []int64
	sum      []int64 // of those before
}

func newBusy(reads []record.Read) busy {
	var all [][2]int64
	for _, r := range reads {
		if r.BeganNS > 0 && r.EndedNS > r.BeganNS {
			all = append(all, [2]int64{r.BeganNS, r.EndedNS})
		}
	}
	return busyIn(all)
}

func newBusyDevice(subs []record.Submission) busy {
	var all [][2]int64
	for i := range subs {
		if s := &subs[i]; s.BeganNS > 0 && s.EndedNS > s.BeganNS {
			all = append(all, [2]int64{s.BeganNS, s.EndedNS})
		}
	}
	return busyIn(all)
}

func busyIn(all [][2]int64) (b busy) {
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
func slowed(r *record.Recording, b busy, since int64) float64 {
	type key struct {
		part  record.Part
		layer int32
		rows  int32
	}
	type sums struct{ n, x, y, xx, xy float64 }
	of := make(map[key]*sums)
	for i := range r.Submissions {
		s := &r.Submissions[i]
		if s.BeganNS <= since || s.EndedNS <= s.BeganNS || s.Part == record.Experts || s.Part == record.State {
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

// at returns 1 if something was going on at a time, else 0.
func (b *busy) at(ns int64) int {
	i := sort.Search(len(b.from), func(i int) bool { return b.from[i] > ns }) - 1
	if i >= 0 && ns < b.to[i] {
		return 1
	}
	return 0
}
