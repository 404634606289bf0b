package actors_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	expert "github.com/moeflux/moeflux-actor/actors/remote/host"
	"github.com/moeflux/moeflux-actor/actors/remote/secrets"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/netdelay"
)

// TestSurveyHosts measures hosts through networks of given delays and rates, and through TLS. A
// round trip takes no less than the delay both ways and at most a quarter more, which the relay,
// two programs and a busy machine add; a rate is that of the link, up to 5 % more, since the relay
// works by pieces, and 15 % less.
func TestSurveyHosts(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	ours := newAuthority(t)
	links := []netdelay.Link{{Delay: 4 * time.Millisecond, Rate: 100e6}, {Delay: 2 * time.Millisecond, Rate: 400e6}}
	memory := []int64{64 << 10, 0}
	cfg := asksHosts(dir)
	cfg.Device = device(t, 1)
	files := ours.files("engine", time.Hour)
	cfg.HostsCert, cfg.HostsKey, cfg.HostsCA = files.Cert, files.Key, files.CA
	var addrs []string
	for i, link := range links {
		p, err := netdelay.New(expertHost(t, expert.Config{Model: dir, ExpertMemory: memory[i], ExpertIO: "buffered", Secrets: ours.files("host", time.Hour, "127.0.0.1")}), link)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		addrs = append(addrs, p.Addr())
	}
	token := secrets.Files{TokenFile: tokenFile(t), Cert: files.Cert, Key: files.Key, CA: files.CA}
	addrs = append(addrs, expertHost(t, expert.Config{Model: dir, Secrets: token}))
	cfg.Hosts = strings.Join(addrs, ",")
	var bad []string
	for range 10 { // what else runs on the machine spoils a measurement now and then
		all, err := actors.SurveyHosts(t.Context(), cfg)
		if err != nil || len(all) != len(addrs) {
			t.Fatalf("%d of %d hosts, error %v", len(all), len(addrs), err)
		}
		if bad = spoiled(t, all, links, addrs, memory); len(bad) == 0 {
			return
		}
	}
	t.Error(strings.Join(bad, "\n"))
}

// spoiled checks what was measured of hosts behind links, and returns which figures are not theirs.
func spoiled(t *testing.T, all []actors.HostSurvey, links []netdelay.Link, addrs []string, memory []int64) (bad []string) {
	t.Helper()
	wrong := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	if all[2].Err == nil || all[2].Experts != 0 || len(all[2].RoundTrips) != 0 {
		t.Errorf("a host that takes neither the certificate nor the token: %+v", all[2])
	}
	for i, link := range links {
		s := &all[i]
		if s.Err != nil {
			t.Fatal(s.Err)
		}
		if s.Addr != addrs[i] || !strings.Contains(s.Device, "1 thread") || s.Experts <= 0 || s.Bytes <= 0 || memory[i] > 0 && s.Bytes > memory[i] {
			t.Errorf("host %d: %+v", i, s)
		}
		slices.Sort(s.RoundTrips)
		least := 2 * link.Delay
		if got := s.RoundTrips[len(s.RoundTrips)/2]; got < least || got > least+least/4 || s.RoundTrips[0] < least {
			wrong("host %d: a round trip takes %v, at least %v, want %v", i, got, s.RoundTrips[0], least)
		}
		for way, rates := range map[string][]float64{"out": s.Out, "in": s.In} {
			slices.Sort(rates)
			want := float64(link.Rate) / 8
			if got := rates[len(rates)/2]; got < 0.85*want || got > 1.05*want {
				wrong("host %d: %s %.2f MB/s, want %.2f", i, way, got/1e6, want/1e6)
			}
		}
		if net := s.Took - s.Waited - s.Read - s.Computed; net < least || s.Computed <= 0 || s.AskExperts != 4 {
			t.Errorf("host %d: an ask for %d experts took %v, of which it computed %v", i, s.AskExperts, s.Took, s.Computed)
		}
		t.Logf("host %d: %v; out %.2f, in %.2f MB/s; an ask %v", i, s.RoundTrips[len(s.RoundTrips)/2], s.Out[2]/1e6, s.In[2]/1e6, s.Took)
	}
	if all[0].Experts >= all[1].Experts {
		t.Errorf("hosts with memory for %d and %d experts", all[0].Experts, all[1].Experts)
	}
	return bad
}
