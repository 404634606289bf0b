package analyse

import (
	"fmt"
	"slices"
	"testing"
)

// The tracks of a token are those of its timeline, in order, with arrows and counters; without a
// number they are of the slowest token that was decoded.
func TestTracksOf(t *testing.T) {
	rec := made(t, oneLayer+`
step 2 1105 2482 seq=1 req=2 pos=8
req 2 1102 1105 2480 seq=1 pos=8
msg sequencer EvalChunk 1102 1105 1110 step=2
dev Head 1412 1450 2470 step=2 layer=4
msg sequencer LogitsReady 2473 2478 2482 step=2 layer=4
step 3 3105 9482 seq=1 req=3 pos=9 rows=5
req 3 3102 3105 9480 seq=1 pos=9 rows=5`)
	k, err := TracksOf(rec, 1)
	if err != nil {
		t.Fatal(err)
	}
	find := func(name string) *Track {
		i := slices.IndexFunc(k.Tracks, func(t Track) bool { return t.Name == name })
		if i < 0 {
			t.Fatalf("no track %s among %v", name, k.Tracks)
		}
		return &k.Tracks[i]
	}
	if r := find("reader 1"); r.Group != "reads" || fmt.Sprint(r.Slices) != "[{layer 0 expert 3 read 190000 390000}]" {
		t.Errorf("the reader has %v", r)
	}
	if d := find("ordinary queue: prompts"); len(d.Slices) != 4 || d.Slices[0].Name != "mix of layer 0" && d.Slices[0].Kind != "submission" || d.Slices[3].Name != "head" {
		t.Errorf("the device has %v", d)
	}
	if len(k.Arrows) != 1 || len(k.Arrows[0].Points) != 3 || k.Tracks[k.Arrows[0].Points[1].Track].Name != "reader 1" || k.Arrows[0].Points[2].AtNS != 406_000 {
		t.Errorf("the arrows are %v", k.Arrows)
	}
	i := slices.IndexFunc(k.Counters, func(c Counter) bool { return c.Name == "reads running" })
	if i < 0 || fmt.Sprint(k.Counters[i].Levels) != "[{180000 0} {190000 1} {390000 0}]" {
		t.Errorf("the counters are %v", k.Counters)
	}
	if k, err := TracksOf(rec, 0); err != nil || k.Token != 2 || k.ToNS-k.FromNS < 1_300_000 {
		t.Errorf("of no token: %+v, %v; want the slowest that was decoded", k, err)
	}
	if _, err := TracksOf(rec, 4); err == nil {
		t.Error("there is no token 4")
	}
}
