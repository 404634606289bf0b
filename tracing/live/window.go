package live

// The window of shares and rates is the last second, in parts.
const (
	parts  = 10
	partNS = 100e6
)

// window adds up amounts by when they came about. What is older than the window is forgotten; what
// comes late, since it is known at its end, finds the parts of its time.
type window struct {
	sums [parts + 1]sums
	at   [parts + 1]int64 // number of the part that a place is of
}

// sums is what is added up.
type sums struct {
	stageNS, stageMessages, stageMailboxNS [mostStages]float64
	deviceNS, starvedNS                    float64
	answered, rows, bytes                  float64
	hits, late, misses, wasted             float64
}

// mostStages bounds the stages of an engine.
const mostStages = 8

// at returns the sums of a moment; nil if it is older than what is kept.
func (w *window) of(ns int64) *sums {
	n := ns / partNS
	i := n % int64(len(w.sums))
	switch {
	case n < w.at[i] || n < 0:
		return nil
	case n > w.at[i]:
		w.at[i], w.sums[i] = n, sums{}
	}
	return &w.sums[i]
}

// spread adds an amount that came about evenly within [from, to).
func (w *window) spread(from, to int64, amount float64, add func(*sums, float64)) {
	if to <= from {
		if s := w.of(to); s != nil {
			add(s, amount)
		}
		return
	}
	for at := max(from, to-(parts+1)*partNS); at < to; {
		end := min((at/partNS+1)*partNS, to)
		if s := w.of(at); s != nil {
			add(s, amount*float64(end-at)/float64(to-from))
		}
		at = end
	}
}

// total adds up the parts from the one of a moment up to that of another.
func (w *window) total(from, to int64) (t sums) {
	for i := range w.sums {
		if w.at[i] < from/partNS || w.at[i] > to/partNS {
			continue
		}
		s := &w.sums[i]
		for k := range t.stageNS {
			t.stageNS[k] += s.stageNS[k]
			t.stageMessages[k] += s.stageMessages[k]
			t.stageMailboxNS[k] += s.stageMailboxNS[k]
		}
		t.deviceNS, t.starvedNS = t.deviceNS+s.deviceNS, t.starvedNS+s.starvedNS
		t.answered, t.rows, t.bytes = t.answered+s.answered, t.rows+s.rows, t.bytes+s.bytes
		t.hits, t.late, t.misses, t.wasted = t.hits+s.hits, t.late+s.late, t.misses+s.misses, t.wasted+s.wasted
	}
	return t
}
