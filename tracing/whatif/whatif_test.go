package whatif

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/cachesim"
)

// off returns how far a number is from another, as a share.
func off(got, want float64) float64 { return math.Abs(got/want - 1) }

// A run of a simulated engine, replayed from its records, is the same run.
func TestReplayIsTheRun(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*world)
		most   float64 // that the speed may be off
	}{
		{"as it is", func(*world) {}, 1e-9},
		{"noise", func(w *world) { w.noise = 0.3 }, 1e-6},
		{"two texts at once", func(w *world) { w.at, w.texts = 2, 4 }, 1e-4},
		{"two texts and noise", func(w *world) { w.at, w.texts, w.noise = 2, 4, 0.2 }, 1e-4},
		// An urgent step comes as an operation of a prompt is about to begin.
		{"two texts, and one is paused before it begins", func(w *world) { w.at, w.texts, w.noise, w.seed = 2, 4, 0.2, 311 }, 1e-4},
		{"depth 1, one worker", func(w *world) { w.meta.Engine.RingDepth, w.meta.Engine.ReadWorkers = 1, 1 }, 1e-9},
		{"no guesses", func(w *world) { e := &w.meta.Engine; e.LastToken, e.NextGate, e.ScoresAhead = false, false, 0 }, 1e-9},
		{"no shared expert", func(w *world) { w.shared = false }, 1e-9},
		{"reads slow the device", func(w *world) { w.slowed = 0.3 }, 1e-6},
		{"long prompts", func(w *world) { w.rows, w.decode = 200, 10 }, 1e-9},
		{"hundred rows", func(w *world) { w.rows = 100 }, 1e-2},
		{"experts are forgotten", func(w *world) { w.forget = true }, 1e-9},
		{"a device in order", func(w *world) { w.at, w.texts, w.meta.Engine.Preempts = 2, 4, false }, 1e-6},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := smallWorld()
			tc.change(&w)
			rec, was := w.run(t, Settings{})
			r, err := New(rec)
			if err != nil {
				t.Fatal(err)
			}
			is := r.Replayed()
			if off(is.DecodeRate, was.DecodeRate) > tc.most || is.Uses != was.Uses || off(float64(is.Reads), float64(was.Reads)) > max(0.01, tc.most) {
				t.Errorf("the run was %+v,\nits replay is %+v", was, is)
			}
			if m := r.Measured(); off(m.DecodeRate, was.DecodeRate) > 1e-9 || off(m.PromptRate, was.PromptRate) > 1e-9 || m.Bytes != was.Bytes {
				t.Errorf("the run was %+v, but is measured as %+v", was, m)
			}
		})
	}
}

// What a recording of one setting predicts of others is what a run with those settings does.
func TestPredictions(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*world)
		most   float64 // that speeds may be off
		bytes  float64 // that bytes may be off
	}{
		{"exact times", func(*world) {}, 0.01, 0.05},
		{"noise", func(w *world) { w.noise = 0.2 }, 0.05, 0.2},
		{"two texts at once", func(w *world) { w.at, w.texts = 2, 4 }, 0.03, 0.1},
		{"reads slow the device", func(w *world) { w.slowed = 0.3 }, 0.02, 0.05},
	} {
		w := smallWorld()
		w.decode, w.rows = 120, 8
		tc.change(&w)
		rec, _ := w.run(t, Settings{})
		r, err := New(rec)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []Settings{
			{RingDepth: 1}, {RingDepth: 4}, {Prefetch: "off"}, {Prefetch: "last-token"}, {Prefetch: "next-gate"}, {ReadWorkers: 1}, {ReadWorkers: 8},
			{ExpertMemory: 30 << 20}, {ExpertMemory: 120 << 20}, {ExpertMemory: 30 << 20, Prefetch: "off", ReadWorkers: 1},
		} {
			t.Run(tc.name+"/"+s.String(), func(t *testing.T) {
				p, err := r.Predict(s)
				if err != nil {
					t.Fatal(err)
				}
				_, is := w.run(t, s)
				t.Logf("%-60s predicted %6.1f, is %6.1f tokens/s; hits %.3f, is %.3f", s, p.DecodeRate, is.DecodeRate, p.Changed.HitRate(), is.HitRate())
				if off(p.DecodeRate, is.DecodeRate) > tc.most {
					t.Errorf("predicted %.1f tokens/s, %.1f were measured", p.DecodeRate, is.DecodeRate)
				}
				if off(float64(p.Changed.Bytes), float64(is.Bytes)) > tc.bytes {
					t.Errorf("predicted %d bytes read, %d were", p.Changed.Bytes, is.Bytes)
				}
			})
		}
	}
}

// Another disk is predicted as a run with that disk goes.
func TestDisk(t *testing.T) {
	for _, each := range []float64{100_000, 400_000, 1_500_000} {
		w := smallWorld()
		w.decode, w.rows = 120, 8
		rec, was := w.run(t, Settings{})
		p, err := Predict(rec, Settings{DiskRate: float64(w.meta.Model.SlotBytes) / each * 1e9})
		if err != nil {
			t.Fatal(err)
		}
		w.disk = diskLaw{Each: each}
		_, is := w.run(t, Settings{})
		if off(p.DecodeRate, is.DecodeRate) > 0.01 || off(is.DecodeRate, was.DecodeRate) < 0.01 {
			t.Errorf("%.0f ns a read: predicted %.1f tokens/s, is %.1f, with the recorded disk %.1f", each, p.DecodeRate, is.DecodeRate, was.DecodeRate)
		}
	}
}

// What a recording cannot tell is refused by name.
func TestUnknown(t *testing.T) {
	w := smallWorld()
	e := &w.meta.Engine
	e.LastToken, e.NextGate, e.ScoresAhead = true, false, 0
	rec, _ := w.run(t, Settings{})
	r, err := New(rec)
	if err != nil {
		t.Fatal(err)
	}
	var unknown *UnknownError
	if _, err := r.Predict(Settings{Prefetch: "next-gate"}); !errors.As(err, &unknown) || !strings.Contains(err.Error(), "routers of later layers") {
		t.Errorf("next-gate without its scores: %v", err)
	}
	if _, err := r.Predict(Settings{Prefetch: "off"}); err != nil {
		t.Errorf("off: %v", err)
	}
	rec.Forgotten = map[string]uint64{"uses": 3}
	if _, err := New(rec); !errors.As(err, &unknown) || !strings.Contains(err.Error(), "3 uses are missing") {
		t.Errorf("uses are missing: %v", err)
	}
	rec.Forgotten = nil
	for i := range rec.Submissions { // times that the line of messages does not bear out
		rec.Submissions[i].EndedNS += (rec.Submissions[i].EndedNS - rec.Submissions[i].BeganNS) / 2
	}
	if r, err = New(rec); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Predict(Settings{RingDepth: 1}); !errors.As(err, &unknown) || !strings.Contains(err.Error(), "% off") {
		t.Errorf("a replay that is off by %.2f: %v", r.Error(), err)
	}
	if _, err := r.Predict(Settings{RingDepth: 100, Prefetch: "x", Policy: "y"}); err == nil {
		t.Error("bad settings are taken")
	}
}

// What nobody has compared with an engine is named.
func TestUnchecked(t *testing.T) {
	all := func(change func(*world, *Settings)) string {
		w, s := smallWorld(), Settings{}
		w.rows, w.decode, w.texts, w.meta.Model.Layers, w.meta.Model.Routed = 8, 10, 4, 5, w.meta.Model.Routed[:5]
		w.meta.Machine.Device, w.meta.Settings = "host (2 threads)", map[string]string{"expert-io": "direct"}
		change(&w, &s)
		rec, _ := w.run(t, Settings{})
		return strings.Join(unchecked(rec, &s), "; ")
	}
	for _, c := range []struct {
		name   string
		change func(*world, *Settings)
		want   string // "": nothing
	}{
		{"all that was compared", func(_ *world, s *Settings) {
			*s = Settings{RingDepth: 1, Prefetch: "off", ReadWorkers: 1, ExpertMemory: 40 << 20}
		}, ""},
		{"a GPU", func(w *world, _ *Settings) { w.meta.Machine.Device = "cuda (H100)" }, "the device cuda (H100)"},
		{"two texts", func(w *world, _ *Settings) { w.at = 2 }, "2 texts at once"},
		{"the page cache", func(w *world, _ *Settings) { w.meta.Settings["expert-io"] = "buffered" }, "--expert-io buffered"},
		{"a long prompt", func(w *world, _ *Settings) { w.rows = 30 }, "a prompt of 30 tokens"},
		{"another disk and order", func(_ *world, s *Settings) { *s = Settings{DiskRate: 1e9, Policy: "lru", RingDepth: 3} }, "--ring-depth 3; --disk; --policy"},
		{"a deep model", func(w *world, _ *Settings) {
			w.meta.Model.Layers, w.meta.Model.Routed = 6, smallWorld().meta.Model.Routed
		}, "a model with 6 layers"},
	} {
		if got := all(c.change); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// With the policy lru, and nothing read ahead, the replay misses what a cache of that kind misses
// that knows nothing of an engine.
func TestLRU(t *testing.T) {
	w := smallWorld()
	e := &w.meta.Engine
	e.LastToken, e.NextGate, e.ScoresAhead, w.rows = false, false, 0, 1
	rec, _ := w.run(t, Settings{})
	r, err := New(rec)
	if err != nil {
		t.Fatal(err)
	}
	for _, slots := range []int{40, 60, 90} {
		p, err := r.Predict(Settings{Policy: "lru", ExpertMemory: int64(slots) << 20})
		if err != nil {
			t.Fatal(err)
		}
		var visits []cachesim.Visit
		for i, u := range rec.Uses {
			if i == 0 || u.Step != rec.Uses[i-1].Step || u.Layer != rec.Uses[i-1].Layer {
				visits = append(visits, nil)
			}
			visits[len(visits)-1] = append(visits[len(visits)-1], u.Layer*int32(w.meta.Model.Experts)+u.Expert)
		}
		want, err := cachesim.LRU(visits, slots)
		if err != nil {
			t.Fatal(err)
		}
		if got := int(p.Changed.Uses - p.Changed.Hits); off(float64(got), float64(want.Sum(0))) > 0.02 {
			t.Errorf("%d slots: %d misses, a least recently used cache has %d", slots, got, want.Sum(0))
		}
	}
}
