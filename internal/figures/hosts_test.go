package figures

import (
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/stages"
)

func TestHostsText(t *testing.T) {
	s := &actors.Stats{Hosts: []stages.HostStats{
		{Addr: "a:1", Up: true, Asks: 6, Failed: 1, Uses: 20, Answered: 10 * time.Millisecond, Waited: time.Millisecond, Computed: 4 * time.Millisecond},
		{Addr: "b:1", Asks: 5, Uses: 10, Answered: 5 * time.Millisecond, Read: 2 * time.Millisecond},
	}}
	got := hostsText(hostsOf(s), 30)
	want := "2 hosts computed 30 expert uses; an ask takes 1.50 ms, of which the host waits 0.10, reads 0.20 and computes 0.40; 1 of 11 asks failed and went another way"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
