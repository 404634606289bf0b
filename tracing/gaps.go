package tracing

import "github.com/moeflux/moeflux-actor/tracing/record"

// gap is records of a table that were forgotten before they were read.
type gap struct {
	n       int
	untilNS int64 // they were written before this
	ends    bool  // of requests
}

// drain calls f with each record that the cursor has not seen, and notes if some are missing. at
// says when a record was written.
func drain[T any](e *Emitter, t *record.Table[T], c *record.Cursor, at func(*T) int64, f func(*T)) {
	missed := c.Missed
	t.Read(c, func(recs []T) {
		if n := c.Missed - missed; n > 0 {
			_, ends := any(recs).([]record.Request)
			e.gaps = append(e.gaps, gap{n: int(n), untilNS: at(&recs[0]), ends: ends})
			missed = c.Missed
		}
		for i := range recs {
			f(&recs[i])
		}
	})
}

// fillGaps notes which steps the records that are missing may have been of. Those that were written
// before the first sampled step began are nobody's loss.
func (e *Emitter) fillGaps() {
	for _, g := range e.gaps {
		loss := false
		for _, t := range e.order {
			if t.rec.BeganNS < g.untilNS {
				t.lost += g.n
				loss = true
			}
		}
		if g.ends {
			loss = e.abandon(g.untilNS) || loss
		}
		if loss {
			e.Stats.RecordsLost += int64(g.n)
		}
	}
}

// abandon ends the spans of requests whose steps are all over and whose own end was forgotten. It
// reports whether there were any.
func (e *Emitter) abandon(untilNS int64) (found bool) {
	ended := make(map[requestKey]bool)
	for i := range e.ends {
		ended[requestKey{e.ends[i].Request.Request, e.ends[i].Seq}] = true
	}
	for key, v := range e.evals {
		if v.open > 0 || v.endedNS == 0 || v.endedNS >= untilNS || ended[key] {
			continue
		}
		found = true
		delete(e.evals, key)
		e.guard(func() { v.giveUp(e) })
	}
	return found
}
