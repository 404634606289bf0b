package actors_test

import (
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	expert "github.com/moeflux/moeflux-actor/actors/remote/host"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
)

// TestHostsLate holds back what the busier of two hosts says while a text is decoded, for less time
// than would make it silent: the other one is asked, too, and nobody waits for the first.
func TestHostsLate(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	base := open(t, actors.Config{Model: dir, ExpertIO: actors.ExpertIOBuffered})
	text := prompt(1, 20, base.Model().VocabSize)
	const tokens = 40
	want, err := transcript(sequence(t, base), text, tokens)
	if err != nil {
		t.Fatal(err)
	}
	relays := [2]*relay{newRelay(t, expertHost(t, expert.Config{Model: dir})), newRelay(t, expertHost(t, expert.Config{Model: dir}))}
	cfg := asksHosts(dir, relays[0].Addr().String(), relays[1].Addr().String())
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
	before, late, other := statsOf(t, e).Hosts, 0, 1
	if before[0].Asks < before[1].Asks { // one that was held up at first is asked little
		late, other = 1, 0
	}
	talk(func() {
		before = statsOf(t, e).Hosts
		relays[late].set(true, false) // it says nothing until the text is over
	})
	h := statsOf(t, e).Hosts
	if hedged, all := h[other].Hedges-before[other].Hedges, h[late].Asks-before[late].Asks; hedged == 0 || 2*hedged < all {
		t.Errorf("of %d asks that one host did not answer the other one got %d: before %+v, after %+v", all, hedged, before, h)
	}
	if h[0].Failed+h[1].Failed != 0 {
		t.Errorf("asks have failed: %+v", h)
	}
	relays[late].set(false, false)
	talk(func() {}) // what was late comes now
}
