package analyse

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// flows draws arrows to reads from where they were asked for, and from reads to the waves that
// computed with the experts.
func (t *timeline) flows() {
	type wave struct {
		step  uint64
		layer int32
	}
	waves := make(map[wave][]int)
	for i := range t.x.device {
		if s := &t.x.device[i]; s.Part == record.Experts {
			waves[wave{s.Step, s.Layer}] = append(waves[wave{s.Step, s.Layer}], i)
		}
	}
	for i := range t.x.reads {
		r := &t.x.reads[i]
		asked := t.x.covering(r.AskedNS, len(t.x.handled), "expert-io")
		if t.lanes[i][0] == 0 || asked < 0 || !t.shows(r.BeganNS, r.EndedNS) {
			continue
		}
		h := &t.x.handled[asked]
		if !t.shows(h.BeganNS, h.EndedNS) {
			continue
		}
		id := fmt.Sprint(i + 1)
		add := func(phase string, ns int64, group, track int) {
			t.emit(&entry{name: "expert", cat: "expert", phase: phase, ns: ns, group: group, track: trackID(group, track), id: id})
		}
		used := -1
		if u := t.x.firstUse(r); u != nil {
			for _, k := range waves[wave{u.Step, u.Layer}] {
				if s := &t.x.device[k]; s.BeganNS >= r.PlacedNS && t.shows(s.BeganNS, s.EndedNS) {
					used = k
					break
				}
			}
		}
		add("s", min(max(r.AskedNS, h.BeganNS), max(h.EndedNS-1, h.BeganNS)), stagesGroup, int(h.Stage))
		if used < 0 {
			add("f", r.BeganNS, t.lanes[i][0], t.lanes[i][1])
			continue
		}
		add("t", r.BeganNS, t.lanes[i][0], t.lanes[i][1])
		add("f", t.x.device[used].BeganNS, deviceGroup, queue(&t.x.device[used]))
	}
}

// firstUse returns the use that a read was for: the first one after it was asked for; nil if there
// was none before the expert left again.
func (x *index) firstUse(r *record.Read) *record.Use {
	p := place{r.Layer, r.Expert}
	for _, u := range x.lastUse[p] {
		if u.AtNS < r.AskedNS {
			continue
		}
		i, _ := slices.BinarySearchFunc(x.gone[p], r.AskedNS+1, func(at, t int64) int { return cmp.Compare(at, t) })
		if i < len(x.gone[p]) && x.gone[p][i] < u.AtNS {
			return nil
		}
		return u
	}
	return nil
}

// waits draws what stood still, as slices that may overlap.
func (t *timeline) waits() {
	names := [record.NumReasons]string{
		record.LayerCredit: "a layer waits for a credit", record.WaveCredit: "a wave waits for a credit", record.Room: "experts wait for slots", record.Lane: "rows wait for a lane",
		record.Turn: "waits for its turn", record.Company: "lingers for company", record.Memory: "waits for memory", record.ReadCredit: "reads wait to be asked for", record.StateReady: "waits for its state",
	}
	for i := range t.x.rec.Waits {
		w := &t.x.rec.Waits[i]
		if w.EndedNS <= w.BeganNS || int(w.Reason) >= len(names) || !t.shows(w.BeganNS, w.EndedNS) {
			continue
		}
		e := entry{name: names[w.Reason], cat: "wait", phase: "b", ns: w.BeganNS, group: waitsGroup, id: fmt.Sprint(i + 1), args: map[string]any{
			"step": w.Step, "request": w.Request, "layer": w.Layer, "wave": w.Wave, "for_step": w.For,
		}}
		t.emit(&e)
		e.phase, e.ns, e.args = "e", w.EndedNS, nil
		t.emit(&e)
	}
}

// counters draws how full the engine is: what is read at each change, the rest when a step ends.
func (t *timeline) counters() {
	type change struct {
		at                     int64
		bytes, queued, running int64
	}
	var all []change
	bytes := t.x.rec.Meta.Model.SlotBytes
	for i := range t.x.reads {
		r := &t.x.reads[i]
		began := r.BeganNS
		if began == 0 {
			began = r.PlacedNS
		}
		all = append(all, change{r.AskedNS, bytes, 1, 0}, change{began, 0, -1, 1}, change{r.PlacedNS, -bytes, 0, -1})
	}
	slices.SortStableFunc(all, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	var now change
	for i, c := range all {
		now.bytes, now.queued, now.running = now.bytes+c.bytes, now.queued+c.queued, now.running+c.running
		if i+1 < len(all) && all[i+1].at == c.at {
			continue
		}
		t.counter("reads", c.at, map[string]any{"in line": now.queued, "running": now.running})
		t.counter("bytes in flight", c.at, map[string]any{"bytes": now.bytes})
	}
	for i := range t.x.rec.Levels {
		l := &t.x.rec.Levels[i]
		t.counter("slots", l.AtNS, map[string]any{"used": l.SlotsUsed, "empty": l.Slots - l.SlotsUsed})
		t.counter("waves in the ring", l.AtNS, map[string]any{"waves": l.Waves})
		t.counter("requests that wait", l.AtNS, map[string]any{"requests": l.Requests})
	}
}

func (t *timeline) counter(name string, ns int64, values map[string]any) {
	if ns >= t.from && ns <= t.to {
		t.emit(&entry{name: name, phase: "C", ns: ns, group: countersGroup, args: values})
	}
}
