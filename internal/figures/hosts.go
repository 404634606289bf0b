package figures

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/actors"
)

// HostCounts is what an expert host was asked since the engine was opened; see stages.HostStats.
type HostCounts struct {
	Addr     string `json:"addr"`
	Up       bool   `json:"up"` // it can be asked now
	Asks     int64  `json:"asks"`
	Failed   int64  `json:"asks_failed"` // of these: answered by another host or the disk
	Hedges   int64  `json:"asks_hedged"` // for what another host was late with
	Uses     int64  `json:"expert_uses"` // that it has computed
	BytesOut int64  `json:"bytes_sent"`
	BytesIn  int64  `json:"bytes_received"`
	// Seconds added up over asks: until all was answered; and of these, by the host's word, waiting
	// for their turn, reading experts, and computing. The rest is the network and the two programs.
	Answer  float64 `json:"answer_seconds"`
	Wait    float64 `json:"wait_seconds"`
	Read    float64 `json:"host_read_seconds"`
	Compute float64 `json:"host_compute_seconds"`
}

func hostsOf(s *actors.Stats) (all []HostCounts) {
	for _, h := range s.Hosts {
		all = append(all, HostCounts{
			Addr: h.Addr, Up: h.Up, Asks: h.Asks, Failed: h.Failed, Hedges: h.Hedges, Uses: h.Uses, BytesOut: h.BytesOut, BytesIn: h.BytesIn,
			Answer: h.Answered.Seconds(), Wait: h.Waited.Seconds(), Read: h.Read.Seconds(), Compute: h.Computed.Seconds(),
		})
	}
	return all
}

// hostsText says what hosts have done, and where the time of an ask went.
func hostsText(all []HostCounts, uses int64) string {
	var sum HostCounts
	for _, h := range all {
		sum.Asks, sum.Failed = sum.Asks+h.Asks, sum.Failed+h.Failed
		sum.Answer, sum.Wait, sum.Read, sum.Compute = sum.Answer+h.Answer, sum.Wait+h.Wait, sum.Read+h.Read, sum.Compute+h.Compute
	}
	s := fmt.Sprintf("%s computed %s", Counted(len(all), "host"), Counted(int(uses), "expert use"))
	if n := sum.Asks - sum.Failed; n > 0 {
		ms := 1000 / float64(n)
		s += fmt.Sprintf("; an ask takes %.2f ms, of which the host waits %.2f, reads %.2f and computes %.2f", sum.Answer*ms, sum.Wait*ms, sum.Read*ms, sum.Compute*ms)
	}
	if sum.Failed > 0 {
		s += fmt.Sprintf("; %d of %s failed and went another way", sum.Failed, Counted(int(sum.Asks), "ask"))
	}
	return s
}
