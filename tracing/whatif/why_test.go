package whatif

import (
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/analyse"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// explain says where the time of tokens went, of records of a simulated engine.
func explain(t *testing.T, rec *record.Recording) *analyse.Why {
	t.Helper()
	urgent := make(map[uint64]uint8)
	for _, s := range rec.Steps {
		urgent[s.Step] = s.Urgent
	}
	for i := range rec.Submissions {
		rec.Submissions[i].Urgent = urgent[rec.Submissions[i].Step]
	}
	why, err := analyse.WhyTokens(rec, 0)
	if err != nil {
		t.Fatal(err)
	}
	return why
}

// explained wants each token's time to be divided without a remainder, and nearly all of it to have
// a cause.
func explained(t *testing.T, tokens []analyse.Token) {
	t.Helper()
	for i := range tokens {
		sum, unexplained := int64(0), int64(0)
		for _, c := range tokens[i].Causes {
			sum += c.NS
			if c.Cause == analyse.Unexplained {
				unexplained = c.NS
			}
		}
		if sum != tokens[i].WallNS || unexplained*50 > sum {
			t.Errorf("token %d took %d ns: %d have causes, and %d of them are unexplained", i+1, tokens[i].WallNS, sum, unexplained)
		}
	}
}

// first returns the cause that took most of the time of some tokens together, and its share.
func first(tokens []analyse.Token, wanted func(*analyse.Token) bool) (c analyse.Cause, share float64) {
	var by [analyse.NumCauses]int64
	all := int64(0)
	for i := range tokens {
		if !wanted(&tokens[i]) {
			continue
		}
		for _, s := range tokens[i].Causes {
			by[s.Cause] += s.NS
			all += s.NS
		}
	}
	for i, ns := range by {
		if ns > by[c] {
			c = analyse.Cause(i)
		}
	}
	return c, float64(by[c]) / float64(max(all, 1))
}

func isDecoded(k *analyse.Token) bool { return k.Rows == 1 }

// What is wrong with an engine, of which all times are known, is the first cause of its tokens, and
// is not where it is right.
func TestPlantedCauses(t *testing.T) {
	for _, c := range []struct {
		name   string
		plant  func(*world)
		laws   func(*laws)
		wanted func(*analyse.Token) bool
		want   analyse.Cause
	}{
		{"nothing", func(w *world) { w.meta.Engine.Slots = 200; w.texts = 1 }, nil, func(k *analyse.Token) bool { return k.Rows == 1 && k.Pos > 40 }, analyse.Device},
		{"a slow disk", func(w *world) { w.meta.Engine.Slots = 200; w.disk = diskLaw{20_000_000, 0} }, nil, isDecoded, analyse.Disk},
		{"one worker", func(w *world) {
			e := &w.meta.Engine
			e.Slots, e.ReadWorkers, e.LastToken, e.NextGate = 200, 1, false, false
			w.decode = 5
			w.disk = diskLaw{2_000_000, 0}
		}, nil,
			func(*analyse.Token) bool { return true }, analyse.ReadQueue},
		{"small slots", func(w *world) {
			e := &w.meta.Engine
			e.Slots, e.WaveSlots, e.LastToken, e.NextGate = 8, 4, false, false
		}, nil, isDecoded, analyse.Room},
		{"depth 1", func(w *world) {
			e := &w.meta.Engine // the second text needs nothing from the disk, and waits for the first one's reads
			e.RingDepth, e.LastToken, e.NextGate, w.disk = 1, false, false, diskLaw{4_000_000, 0}
			w.at, w.texts, w.prompts, w.still, w.decode = 2, 2, []int{320, 320}, []bool{false, true}, 1
		}, nil, func(k *analyse.Token) bool { return k.Seq == 2 && k.Rows > 1 }, analyse.Credit},
		{"a neighbour's prompt", func(w *world) {
			w.meta.Engine.Slots = 200
			w.at, w.texts, w.prompts, w.decode = 2, 2, []int{1, 2000}, 20
		}, nil, func(k *analyse.Token) bool { return k.Seq == 1 && k.Pos > 3 }, analyse.OtherRequest},
		{"a neighbour's prompt on a device that keeps the order", func(w *world) {
			w.meta.Engine.Slots, w.meta.Engine.Preempts = 200, false
			w.at, w.texts, w.prompts, w.decode = 2, 2, []int{1, 2000}, 20
		}, nil, func(k *analyse.Token) bool { return k.Seq == 1 && k.Pos > 3 }, analyse.OtherRequest},
		{"a slow stage", func(w *world) { w.meta.Engine.Slots = 200 }, func(l *laws) {
			for k := range l.message[stages.Router] {
				l.message[stages.Router][k] = 3_000_000
			}
		}, isDecoded, analyse.Stage},
		{"a slow device", func(w *world) { w.meta.Engine.Slots = 200 }, func(l *laws) { op := l.op; l.op = func(o *operation) float64 { return 20 * op(o) } }, isDecoded, analyse.Device},
		{"a slow caller", func(w *world) { w.meta.Engine.Slots = 200; w.thinksNS = 50_000_000 }, nil, isDecoded, analyse.Caller},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := smallWorld()
			c.plant(&w)
			w.change = c.laws
			rec, _ := w.run(t, Settings{})
			why := explain(t, rec)
			explained(t, why.Tokens)
			if got, share := first(why.Tokens, c.wanted); got != c.want || share < 0.4 {
				t.Errorf("the first cause is %s with %.0f %%, want %s with 40 or more", got, 100*share, c.want)
			}
		})
	}
}

// What trace show says of layers and sequences adds up to the records: no read, use, guess or time
// of the device is counted twice or left out.
func TestShowAddsUp(t *testing.T) {
	w := smallWorld()
	w.at, w.texts = 2, 4
	rec, _ := w.run(t, Settings{})
	s, err := analyse.ShowAll(rec, 0)
	if err != nil {
		t.Fatal(err)
	}
	explained(t, explain(t, rec).Tokens)
	var want, layers, sequences struct {
		device, bytes                            int64
		uses, missing, late, issued, out, wasted int
	}
	nobodys := int64(0)
	type brought struct {
		hint          uint64
		layer, expert int32
	}
	used := make(map[brought]bool)
	for _, u := range rec.Uses {
		want.uses++
		used[brought{u.Hint, u.Layer, u.Expert}] = true
		switch u.Found {
		case record.Missing:
			want.missing++
		case record.Late:
			want.late++
		}
	}
	for _, r := range rec.Reads {
		want.bytes += r.Bytes
		if r.Hint != 0 && !used[brought{r.Hint, r.Layer, r.Expert}] {
			nobodys += r.Bytes
		}
	}
	for _, d := range rec.Submissions {
		want.device += d.EndedNS - d.BeganNS - d.PausedNS
	}
	for _, g := range rec.Guesses {
		if g.Verdict == record.Issued {
			want.issued++
		}
	}
	for _, e := range rec.Evictions {
		want.out++
		want.wasted += int(e.Unused)
	}
	for _, l := range s.Layers {
		layers.device, layers.bytes, layers.uses, layers.missing = layers.device+l.DeviceNS, layers.bytes+l.ReadBytes, layers.uses+l.Used, layers.missing+l.Experts.Missing
		layers.late, layers.issued, layers.out, layers.wasted = layers.late+l.Late, layers.issued+l.Issued, layers.out+l.Evictions, layers.wasted+l.Wasted
	}
	if layers != want || want.late == 0 || want.wasted == 0 || want.issued == 0 {
		t.Errorf("the layers add up to %+v, the records to %+v", layers, want)
	}
	for _, q := range s.Sequences {
		sequences.device += q.DeviceNS
		sequences.bytes += q.ReadBytes
	}
	if sequences.device != want.device || sequences.bytes != want.bytes-nobodys || nobodys == 0 {
		t.Errorf("the sequences add up to %+v, the records to %+v, of which %d bytes are nobody's", sequences, want, nobodys)
	}
}
