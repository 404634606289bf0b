package actors_test

import (
	"reflect"
	"slices"
	"time"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// equal wants a figure of records to be that of the counters.
func (x *expertRun) equal(what string, records, counters int64) {
	x.Helper()
	if records != counters {
		x.Errorf("%s: by records %d, by the counters %d", what, records, counters)
	}
}

// sums compares what records add up to with the engine's figures.
func (x *expertRun) sums() {
	x.Helper()
	got := make([]stages.LayerStats, len(x.stats.Layers))
	for _, u := range x.rec.Uses {
		l := &got[u.Layer]
		if u.Found == record.Missing || u.Found == record.Far {
			l.Misses++
		} else {
			l.Hits++
		}
		switch {
		case u.Hint == 0:
		case u.Found == record.Late:
			l.PrefetchLate++
		default:
			l.PrefetchHit++
		}
	}
	var ended, bytes, failed, guessed, fromHost int64
	for _, r := range x.rec.Reads {
		l := &got[r.Layer]
		l.BytesRead += r.Bytes
		switch {
		case r.Hint != 0:
			l.BytesAhead += r.Bytes
			if r.Failed == 1 && r.WantedNS == 0 {
				l.PrefetchWasted++
			}
		case r.Step == 0:
			l.BytesWarm += r.Bytes
		}
		if r.Tier == record.FromHost {
			fromHost++
			continue
		}
		if r.BeganNS == 0 { // the engine was closed before its turn came
			continue
		}
		ended, bytes, failed = ended+1, bytes+r.Bytes, failed+int64(r.Failed)
		if r.Hint != 0 || r.Step == 0 {
			guessed++
		}
	}
	for _, g := range x.rec.Guesses {
		*[]*int64{&got[g.Layer].PrefetchIssued, &got[g.Layer].PrefetchDropped, &got[g.Layer].PrefetchDeclined, &got[g.Layer].PrefetchSkipped}[g.Verdict]++
	}
	for _, e := range x.rec.Evictions {
		got[e.Layer].Evictions++
		got[e.Layer].PrefetchWasted += int64(e.Unused)
	}
	for i, l := range x.stats.Layers {
		got[i].PrefetchHeld = got[i].PrefetchIssued - got[i].PrefetchHit - got[i].PrefetchLate - got[i].PrefetchWasted
		want := stages.LayerStats{
			Hits: l.Hits, Misses: l.Misses, BytesRead: l.BytesRead, BytesAhead: l.BytesAhead, BytesWarm: l.BytesWarm, Evictions: l.Evictions,
			PrefetchIssued: l.PrefetchIssued, PrefetchHit: l.PrefetchHit, PrefetchLate: l.PrefetchLate, PrefetchWasted: l.PrefetchWasted, PrefetchHeld: l.PrefetchHeld,
			PrefetchDropped: l.PrefetchDropped, PrefetchDeclined: l.PrefetchDeclined, PrefetchSkipped: l.PrefetchSkipped,
		}
		if !reflect.DeepEqual(got[i], want) {
			x.Errorf("layer %d: records add up to\n%+v, the engine counts\n%+v", i, got[i], want)
		}
	}
	s := x.stats.Reads
	x.equal("reads", ended, s.Ended)
	x.equal("bytes", bytes, s.Bytes)
	x.equal("reads that failed", failed, s.Failed)
	x.equal("guesses read", guessed, s.Speculative)
	x.equal("reads from the host's memory", fromHost, s.FromHost)
}

// routing compares the uses of each step, and the picks of its rows, with what callers were told
// that their rows picked.
func (x *expertRun) routing() {
	x.Helper()
	rows := make(map[uint64]map[int32][]int32) // by step and row, where all is known
	for _, g := range x.rec.Segments {
		if rows[g.Step] == nil {
			rows[g.Step] = make(map[int32][]int32)
		}
		for i := range g.Rows {
			rows[g.Step][g.Row+i] = x.picked[rowName{g.Seq, g.Pos + i}]
		}
	}
	type at struct {
		step          uint64
		layer, expert int32
	}
	want, k, steps := make(map[at]int32), x.info.TopK, 0
	for step, of := range rows {
		if !known(of) {
			delete(rows, step)
			continue
		}
		steps++
		for _, all := range of {
			for i, e := range all {
				want[at{step, int32(x.moe[i/k]), e}]++
			}
		}
	}
	for _, u := range x.rec.Uses {
		if rows[u.Step] == nil {
			continue
		}
		if n := want[at{u.Step, u.Layer, u.Expert}]; n != u.Rows {
			x.Errorf("%+v, picked by %d rows", u, n)
		}
		delete(want, at{u.Step, u.Layer, u.Expert})
	}
	if len(want) > 0 || steps < 10 {
		x.Errorf("%d uses of %d steps are not recorded: %v", len(want), steps, want)
	}
	x.rowPicks(rows)
}

func known(rows map[int32][]int32) bool {
	for _, all := range rows {
		if all == nil {
			return false
		}
	}
	return true
}

// rowPicks compares the picks of rows, of which all of each step are recorded here.
func (x *expertRun) rowPicks(rows map[uint64]map[int32][]int32) {
	x.Helper()
	type at struct {
		step       uint64
		row, layer int32
	}
	got, k := make(map[at][]int32), x.info.TopK
	for _, p := range x.rec.Picks {
		if p.Ahead > 0 || rows[p.Step] == nil {
			continue
		}
		a := at{p.Step, p.Row, p.Layer}
		if len(got[a]) != int(p.First) {
			x.Errorf("%+v follows %v", p, got[a])
		}
		for _, e := range p.Experts[:p.N] {
			got[a] = append(got[a], int32(e))
		}
	}
	for step, of := range rows {
		for row, all := range of {
			for i, layer := range x.moe {
				if p := got[at{step, row, int32(layer)}]; !slices.Equal(p, all[i*k:][:k]) {
					x.Errorf("step %d row %d layer %d: recorded are the picks %v, the caller was told %v", step, row, layer, p, all[i*k:][:k])
				}
			}
		}
	}
}

// readTimes compares the times of reads with those that the disk has noted: the worker had each
// read before the disk did, and after.
func (x *expertRun) readTimes() {
	x.Helper()
	left := make(map[expertName][]diskRead)
	for name, reads := range x.disk.reads {
		left[name] = reads
	}
	on := func(t time.Time) int64 { return int64(t.Sub(x.rec.Meta.Epoch)) }
	for _, r := range x.rec.Reads {
		if r.AskedNS <= 0 || r.BeganNS != 0 && r.BeganNS < r.AskedNS || max(r.AskedNS, r.BeganNS) > r.EndedNS || r.Failed == 0 && r.EndedNS > r.PlacedNS || r.Failed == 1 && r.PlacedNS != 0 {
			x.Errorf("the times of a read are out of order: %+v", r)
		}
		if took, least := r.PlacedNS-r.EndedNS, int64(x.uploads); r.Failed == 0 && (took < least || least == 0 && took != 0) {
			x.Errorf("%+v took %d ns to its slot, want %d at least, or none", r, took, least)
		}
		if r.BeganNS == 0 {
			continue
		}
		name := expertName{r.Layer, r.Expert}
		tries := 1 + int(r.Failed)
		if len(left[name]) < tries {
			x.Errorf("%+v, which the disk knows nothing of", r)
			continue
		}
		first, last := left[name][0], left[name][tries-1]
		left[name] = left[name][tries:]
		if r.BeganNS > on(first.from) || r.EndedNS < on(last.to) || (last.err != nil) != (r.Failed == 1) {
			x.Errorf("%+v, the disk read from %d to %d, error %v", r, on(first.from), on(last.to), last.err)
		}
		if took, most := r.EndedNS-r.BeganNS, on(last.to)-on(first.from)+int64(100*time.Millisecond); took > most {
			x.Errorf("%+v took %d ns, the disk %d", r, took, on(last.to)-on(first.from))
		}
	}
	for name, reads := range left {
		if len(reads) > 0 {
			x.Errorf("%d reads of layer %d expert %d are not recorded", len(reads), name.layer, name.expert)
		}
	}
}

// moments wants every time that a stage noted to be one at which it had a message.
func (x *expertRun) moments() {
	x.Helper()
	had := make(map[stages.StageID]map[int64]bool)
	for _, h := range x.rec.Handled {
		id := stages.StageID(h.Stage)
		if had[id] == nil {
			had[id] = make(map[int64]bool)
		}
		had[id][h.BeganNS] = true
	}
	check := func(what any, times ...int64) {
		for _, at := range times {
			if at != 0 && !had[stages.ExpertIO][at] {
				x.Errorf("%+v: expert-IO had no message at %d", what, at)
			}
		}
	}
	for _, u := range x.rec.Uses {
		if x.info.Resident && !had[stages.Router][u.AtNS] {
			x.Errorf("%+v: the router had no message then", u)
		} else if !x.info.Resident {
			check(u, u.AtNS)
		}
	}
	for _, r := range x.rec.Reads {
		check(r, r.AskedNS, r.WantedNS)
	}
	for _, g := range x.rec.Guesses {
		check(g, g.AtNS)
	}
	for _, e := range x.rec.Evictions {
		check(e, e.AtNS)
	}
	for _, w := range x.rec.Waits {
		if w.Reason == record.Room || w.Reason == record.ReadCredit || w.Reason == record.WaveCredit {
			check(w, w.BeganNS, w.EndedNS)
		}
	}
}

// flows follows experts from the guess to the read to the use.
func (x *expertRun) flows() {
	x.Helper()
	type name struct {
		hint          uint64
		layer, expert int32
	}
	type demand struct {
		step          uint64
		layer, expert int32
		at            int64
	}
	guesses, demands := make(map[name]record.Read), make(map[demand]record.Read)
	for _, r := range x.rec.Reads {
		if r.Hint != 0 {
			guesses[name{r.Hint, r.Layer, r.Expert}] = r
		} else {
			demands[demand{r.Step, r.Layer, r.Expert, r.AskedNS}] = r
		}
	}
	for _, g := range x.rec.Guesses {
		r, ok := guesses[name{g.Hint, g.Layer, g.Expert}]
		if ok != (g.Verdict == record.Issued) || ok && (r.AskedNS != g.AtNS || r.Step != g.Step) {
			x.Errorf("%+v, and its read is %+v", g, r)
		}
	}
	for _, u := range x.rec.Uses {
		r, ok := demands[demand{u.Step, u.Layer, u.Expert, u.AtNS}]
		if (u.Found == record.Missing) != ok || ok && (r.Slot != u.Slot || r.WantedNS != u.AtNS) {
			x.Errorf("%+v, and its read is %+v", u, r)
		}
		if u.Hint == 0 {
			continue
		}
		if r, ok = guesses[name{u.Hint, u.Layer, u.Expert}]; !ok || r.Slot != u.Slot || (r.WantedNS == u.AtNS) != (u.Found == record.Late) || u.Found == record.Resident && r.PlacedNS > u.AtNS {
			x.Errorf("%+v, and the guess was read by %+v", u, r)
		}
	}
}

// waits wants the time from when a layer was routed until its last expert had a slot to be covered
// by waits that follow one on the other, of which the steps that went through have no gap.
func (x *expertRun) waits() {
	x.Helper()
	type layer struct {
		step  uint64
		layer int32
	}
	last, until := make(map[layer]int64), make(map[layer]int64)
	for _, u := range x.rec.Uses {
		last[layer{u.Step, u.Layer}] = u.AtNS
	}
	routed := slices.Index(x.rec.Meta.Messages, "LayerRouted")
	for _, h := range x.rec.Handled {
		if int(h.Message) == routed {
			until[layer{h.Step, h.Layer}] = h.BeganNS
		}
	}
	failed := make(map[uint64]bool)
	for _, e := range x.rec.StepsEnded {
		failed[e.Step] = e.Failed == 1
	}
	for _, w := range x.rec.Waits {
		if l := (layer{w.Step, w.Layer}); w.Reason == record.Room || w.Reason == record.ReadCredit {
			if w.BeganNS != until[l] || w.EndedNS <= w.BeganNS {
				x.Errorf("%+v follows what was waited until %d", w, until[l])
			}
			until[l] = w.EndedNS
		}
	}
	for l, at := range last {
		if !failed[l.step] && at != until[l] && x.failed == 0 {
			x.Errorf("step %d layer %d: the last expert had its slot at %d, waits are recorded until %d", l.step, l.layer, at, until[l])
		}
	}
}
