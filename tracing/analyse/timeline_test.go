package analyse

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// drawn is a timeline as a viewer reads it, with times in nanoseconds.
type drawn struct {
	slices   map[[2]int][][2]int64
	names    map[string]int         // of slices
	flows    map[string][]drawnFlow // by id, in order of the file
	waits    map[string][2]int64    // by id
	counters map[string][]map[string]any
	tracks   map[[2]int]string
	groups   map[int]string
}

type drawnFlow struct {
	phase string
	at    int64
	track [2]int
}

// draw reads a timeline, and holds it to the rules of the Trace Event Format that both viewers rely
// on: required fields of each phase, slices of a track that nest, arrows that begin and end in
// slices and whose ends do not go back in time, asynchronous slices that are closed, counters that
// are numbers, and a name for every track.
func draw(t *testing.T, file []byte) *drawn {
	t.Helper()
	var f struct {
		Unit   string           `json:"displayTimeUnit"`
		Events []map[string]any `json:"traceEvents"`
	}
	dec := json.NewDecoder(bytes.NewReader(file))
	dec.UseNumber()
	if err := dec.Decode(&f); err != nil {
		t.Fatal(err)
	}
	if f.Unit != "ns" && f.Unit != "ms" {
		t.Fatalf("the unit is %q", f.Unit)
	}
	d := &drawn{slices: make(map[[2]int][][2]int64), names: make(map[string]int), flows: make(map[string][]drawnFlow), waits: make(map[string][2]int64),
		counters: make(map[string][]map[string]any), tracks: make(map[[2]int]string), groups: make(map[int]string)}
	for i, e := range f.Events {
		if err := d.add(e); err != nil {
			t.Fatalf("event %d, %v: %v", i, e, err)
		}
	}
	d.check(t)
	return d
}

// ns returns a field in nanoseconds.
func ns(e map[string]any, key string) (int64, error) {
	n, ok := e[key].(json.Number)
	if !ok {
		return 0, fmt.Errorf("%s is %v", key, e[key])
	}
	r, ok := new(big.Rat).SetString(n.String())
	if !ok {
		return 0, fmt.Errorf("%s is %v", key, n)
	}
	r.Mul(r, big.NewRat(1000, 1))
	if !r.IsInt() || r.Sign() < 0 {
		return 0, fmt.Errorf("%s is %v: not whole nanoseconds", key, n)
	}
	return r.Num().Int64(), nil
}

func (d *drawn) add(e map[string]any) error {
	at, err := ns(e, "ts")
	if err != nil {
		return err
	}
	name, _ := e["name"].(string)
	phase, _ := e["ph"].(string)
	id, _ := e["id"].(string)
	args, _ := e["args"].(map[string]any)
	group, err1 := e["pid"].(json.Number).Int64()
	track, err2 := e["tid"].(json.Number).Int64()
	if name == "" || err1 != nil || err2 != nil {
		return fmt.Errorf("no name, pid or tid")
	}
	on := [2]int{int(group), int(track)}
	switch phase {
	case "X":
		dur, err := ns(e, "dur")
		if err != nil {
			return err
		}
		d.slices[on] = append(d.slices[on], [2]int64{at, at + dur})
		d.names[name]++
	case "s", "t", "f":
		if phase != "s" && e["bp"] != "e" || id == "" || e["cat"] == nil {
			return fmt.Errorf("an arrow without id or category, or one that binds to the next slice")
		}
		d.flows[id] = append(d.flows[id], drawnFlow{phase, at, on})
	case "b":
		if _, ok := d.waits[id]; ok || id == "" || e["cat"] == nil {
			return fmt.Errorf("an asynchronous slice without an id or category of its own")
		}
		d.waits[id] = [2]int64{at, -1}
	case "e":
		w, ok := d.waits[id]
		if !ok || w[1] >= 0 || at < w[0] {
			return fmt.Errorf("the end of what has not begun")
		}
		d.waits[id] = [2]int64{w[0], at}
	case "C":
		for _, v := range args {
			if _, ok := v.(json.Number); !ok {
				return fmt.Errorf("a counter that is not a number")
			}
		}
		d.counters[name] = append(d.counters[name], args)
	case "M":
		switch label, _ := args["name"].(string); name {
		case "process_name":
			d.groups[int(group)] = label
		case "thread_name":
			for other := range d.tracks {
				if other[1] == on[1] && other != on {
					return fmt.Errorf("another group has a track of this number")
				}
			}
			d.tracks[on] = label
		}
	default:
		return fmt.Errorf("phase %q", phase)
	}
	return nil
}

func (d *drawn) check(t *testing.T) {
	t.Helper()
	for on, all := range d.slices {
		if _, ok := d.groups[on[1]]; ok || on[1] == 0 {
			t.Fatalf("track %v has the number of a group, or 0, which Perfetto takes for its group's", on)
		}
		if d.tracks[on] == "" || d.groups[on[0]] == "" {
			t.Fatalf("track %v has no name", on)
		}
		slices.SortStableFunc(all, func(a, b [2]int64) int { return int(a[0] - b[0]) })
		var open [][2]int64
		for _, s := range all {
			for len(open) > 0 && open[len(open)-1][1] <= s[0] {
				open = open[:len(open)-1]
			}
			if n := len(open); n > 0 && s[1] > open[n-1][1] {
				t.Fatalf("track %q: the slice %v overlaps %v and does not lie in it", d.tracks[on], s, open[n-1])
			}
			open = append(open, s)
		}
	}
	for id, f := range d.flows {
		if len(f) < 2 || f[0].phase != "s" || f[len(f)-1].phase != "f" || len(f) == 3 && f[1].phase != "t" || len(f) > 3 {
			t.Fatalf("arrow %s is %v", id, f)
		}
		for i, p := range f {
			if i > 0 && p.at < f[i-1].at {
				t.Fatalf("arrow %s goes back in time: %v", id, f)
			}
			if !slices.ContainsFunc(d.slices[p.track], func(s [2]int64) bool { return s[0] <= p.at && p.at < s[1] }) {
				t.Fatalf("arrow %s: %v is in no slice", id, p)
			}
		}
	}
	for id, w := range d.waits {
		if w[1] < 0 {
			t.Fatalf("the asynchronous slice %s has no end", id)
		}
	}
}

func drawnOf(t *testing.T, rec *record.Recording, token int) *drawn {
	t.Helper()
	var b bytes.Buffer
	write, err := Timeline(rec, token)
	if err != nil {
		t.Fatal(err)
	}
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return draw(t, b.Bytes())
}

func TestTimeline(t *testing.T) {
	d := drawnOf(t, made(t, oneLayer+"wait Room 180 185 step=1\nread 2 150 160 340 step=1 hint=9\nmsg expert-io PrefetchExperts 149 150 152 step=1"), 0)
	for _, name := range []string{"token 1", "decode step 1", "LayerRouted", "experts of layer 0", "layer 0 expert 3", "layer 0 expert 2", "disk"} {
		if d.names[name] == 0 {
			t.Errorf("there is no slice %q among %v", name, d.names)
		}
	}
	if len(d.flows) != 2 || len(d.waits) != 1 {
		t.Errorf("there are %d arrows and %d waits, want 2 and 1: %v", len(d.flows), len(d.waits), d.flows)
	}
	for _, f := range d.flows { // one expert is used by a wave, the other one by nobody
		if n := len(f); n == 3 && d.tracks[f[2].track] != "ordinary queue: prompts" || n == 2 && f[0].at != 150_000 {
			t.Errorf("an arrow is %v", f)
		}
	}
	last := func(name string) map[string]any { c := d.counters[name]; return c[len(c)-1] }
	if got := fmt.Sprint(last("reads"), last("bytes in flight")); got != "map[in line:0 running:0] map[bytes:0]" {
		t.Errorf("in the end %s", got)
	}
}

// A timeline of one token has what happened while it was made, and whole arrows or none.
func TestTimelineOfToken(t *testing.T) {
	rec := made(t, oneLayer+`
step 2 1105 1482 seq=1 req=2 pos=8
req 2 1102 1105 1480 seq=1 pos=8
msg sequencer EvalChunk 1102 1105 1110 step=2
dev Head 1412 1450 1470 step=2 layer=4
msg sequencer LogitsReady 1473 1478 1482 step=2 layer=4`)
	first, second := drawnOf(t, rec, 1), drawnOf(t, rec, 2)
	if first.names["token 1"] != 1 || first.names["token 2"] != 0 || len(first.flows) != 1 || first.names["decode step 1"] != 1 {
		t.Errorf("token 1 has %v and %d arrows", first.names, len(first.flows))
	}
	if second.names["token 2"] != 1 || second.names["token 1"] != 0 || len(second.flows) != 0 || second.names["decode step 2"] != 1 || second.names["head"] != 1 {
		t.Errorf("token 2 has %v and %d arrows", second.names, len(second.flows))
	}
	if _, err := Timeline(rec, 3); err == nil || !strings.Contains(err.Error(), "tokens 1 to 2") {
		t.Errorf("token 3: %v", err)
	}
}
