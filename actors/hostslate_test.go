package actors_test

import (
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	expert "github.com/moeflux/moeflux-actor/actors/remote/host"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
)

// TestHostsLate holds back what one of two hosts says while a text is decoded, for less time than
// would make it silent: the other one is asked, too, and nobody waits for the first.
func TestHostsLate(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	base := open(t, actors.Config{Model: dir, ExpertIO: actors.ExpertIOBuffered})
	text := prompt(1, 20, base.Model().VocabSize)
	const tokens = 40
	want, err := transcript(sequence(t, base), text, tokens)
	if err != nil {
		t.Fatal(err)
	}
	slow := newRelay(t, expertHost(t, expert.Config{Model: dir}))
	cfg := asksHosts(dir, slow.Addr().String(), expertHost(t, expert.Config{Model: dir}))
	cfg.HostPatience = 20 * time.Second
	e := open(t, cfg)
	connected(t, e, 2)
	talk := func(decoding func()) {
		t.Helper()
		s := sequence(t, e)
		got, err := transcript(s, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		decoding()
		rest, err := transcript(s, []int32{argmax(got[0])}, tokens-1)
		if err != nil {
			t.Fatal(err)
		}
		sameLogits(t, append(got, rest...), want)
	}
	for range 3 { // what is usual is known then
		talk(func() {})
	}
	before := statsOf(t, e).Hosts
	talk(func() { slow.set(true, false) }) // it says nothing until the text is over
	h := statsOf(t, e).Hosts
	if hedged, all := h[1].Hedges-before[1].Hedges, h[0].Asks-before[0].Asks; hedged == 0 || 2*hedged < all {
		t.Errorf("of %d asks that one host did not answer the other one got %d: before %+v, after %+v", all, hedged, before, h)
	}
	if h[0].Failed+h[1].Failed != 0 {
		t.Errorf("asks have failed: %+v", h)
	}
	slow.set(false, false)
	talk(func() {}) // what was late comes now
}
