package actors_test

import (
	"slices"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
)

// An engine that has a slot for every expert reads all of them by itself, and then misses none and
// asks no router ahead; one that has not reads nothing unasked. Results are the same.
func TestFill(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	want := eval(t, sequence(t, open(t, actors.Config{Model: dir, ExpertIO: actors.ExpertIOMmap})), 3, 1, 4)
	all := open(t, actors.Config{Model: dir, ExpertIO: actors.ExpertIOBuffered})
	info := all.Info()
	if n := int(info.ExpertBytes / int64(info.SlotBytes)); info.Slots != n {
		t.Fatalf("%d slots, want all %d", info.Slots, n)
	}
	// expert-IO's own count: the read pool counts bytes that expert-IO may not have heard of yet
	read := func(e *actors.Engine) (n int64) {
		st, err := e.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range st.Layers {
			n += st.Layers[i].BytesRead
		}
		return n
	}
	for wait := time.Now().Add(time.Minute); read(all) < info.ExpertBytes && time.Now().Before(wait); {
		time.Sleep(time.Millisecond)
	}
	if got := read(all); got != info.ExpertBytes {
		t.Fatalf("%d bytes read, want all %d", got, info.ExpertBytes)
	}
	s := sequence(t, all)
	if got := eval(t, s, 3, 1, 4); !slices.Equal(got, want) {
		t.Error("with all experts in slots: other logits than with mapped ones")
	}
	eval(t, s, 1)
	st, err := all.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var misses, asked, later, warm int64
	for i := range st.Layers {
		l := &st.Layers[i]
		misses, warm = misses+l.Misses, warm+l.BytesWarm
		asked, later = asked+l.AheadPicks, later+l.TwoAheadPicks
	}
	if misses != 0 || warm != info.ExpertBytes {
		t.Errorf("%d misses and %d bytes warm, want none and %d", misses, warm, info.ExpertBytes)
	}
	// of the first layer's rows, before whose wave nobody knows
	if asked+later > 2*3*int64(info.TopK) {
		t.Errorf("%d and %d picks were predicted by routers, although nothing had to be read", asked, later)
	}
	few := open(t, actors.Config{Model: dir, ExpertIO: actors.ExpertIOBuffered, ExpertMemory: int64(info.Slots-1) * int64((info.SlotBytes+4095)/4096*4096)})
	time.Sleep(20 * time.Millisecond)
	if got := read(few); got != 0 {
		t.Errorf("with a slot too few %d bytes were read unasked", got)
	}
}
