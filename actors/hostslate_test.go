package actors_test

import (
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	expert "github.com/moeflux/moeflux-actor/actors/remote/host"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
)

// TestHostsLate holds back what one of two hosts says, for a time in which it does not count as
// silent: the other one is asked, too, texts go on, no ask fails, and the bits are the same.
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
	talk := func() {
		t.Helper()
		got, err := transcript(sequence(t, e), text, tokens)
		if err != nil {
			t.Fatal(err)
		}
		sameLogits(t, got, want)
	}
	for range 3 { // what is usual is known then
		talk()
	}
	before := statsOf(t, e).Hosts
	slow.set(true, false)
	time.AfterFunc(300*time.Millisecond, func() { slow.set(false, false) })
	talk()
	h := statsOf(t, e).Hosts
	if h[1].Hedges == before[1].Hedges || h[0].Failed+h[1].Failed != 0 {
		t.Errorf("before %+v, after %+v", before, h)
	}
	talk() // what was late has come meanwhile, or comes now
}
