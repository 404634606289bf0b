package forecast

import (
	"fmt"
	"strings"

	"github.com/moeflux/moeflux-actor/internal/figures"
)

// Text describes the forecast with hosts.
func (s *Split) Text() string {
	text := fmt.Sprintf("%.2f to %.2f tokens/s, bound by %s: a token computes here for %.1f ms or more, and waits %.1f ms for the network and %.1f ms for hosts",
		s.Low, s.TokensPerSecond, s.Bound, 1e3*s.HereSeconds, 1e3*s.NetworkSeconds, 1e3*s.HostsSeconds)
	if s.DiskSeconds > 0 {
		text += fmt.Sprintf(", and %.1f ms for disks", 1e3*s.DiskSeconds)
	}
	return text + fmt.Sprintf("; kept %.1f%%, %s", 100*s.KeptRate, s.KeptRateFrom)
}

// Lines writes what is known of hosts for people.
func (h *Hosts) Lines(b *strings.Builder) {
	for k := range h.All {
		x := &h.All[k]
		if x.Error != "" {
			figures.Line(b, "host", "%s would not be asked: %s", x.Addr, x.Error)
			continue
		}
		figures.Line(b, "host", "%s: %s, memory for %d experts (%s)", x.Addr, x.Device, x.Slots, figures.Bytes(x.Bytes))
		figures.Line(b, "", "round trip %s (%s to %s), %s there and %s back (%s to %s)", seconds(x.RoundTrip.Median), seconds(x.RoundTrip.Min), seconds(x.RoundTrip.Max),
			rate(x.Out.Median), rate(x.In.Median), rate(x.In.Min), rate(x.In.Max))
		figures.Line(b, "", "%s of a row in %s, of which it reads for %s and computes for %s", figures.Counted(x.AskExperts, "expert"), seconds(x.AskSeconds), seconds(x.ReadSeconds), seconds(x.ComputeSeconds))
	}
	if len(h.up()) > 0 && h.Here.Share < 1 {
		figures.Line(b, "placement", "%s", h.placement())
	}
	if h.Split != nil {
		figures.Line(b, "with hosts", "%s", h.Split.Text())
	}
	if h.PromptRows > 0 {
		figures.Line(b, "", "in prompts, an expert with more than %.0f rows of a chunk is sooner read here than sent away", h.PromptRows)
	}
	if h.Verdict != "" {
		figures.Line(b, "hosts", "%s", h.Verdict)
	}
}

// placement says who would own how many experts.
func (h *Hosts) placement() string {
	own := func(name string, p Placed, slots int) string {
		s := fmt.Sprintf("%s %.1f%% of %d experts", name, 100*float64(p.Owned)/float64(h.Experts), h.Experts)
		if slots < p.Owned {
			s += fmt.Sprintf(", %d of them in memory", slots)
		}
		if p.Copies > 0 {
			s += fmt.Sprintf(", and copies of %d", p.Copies)
		}
		return s
	}
	parts := []string{own("this machine", h.Here, h.HereSlots)}
	for _, x := range h.up() {
		parts = append(parts, own(x.Addr, x.Placed, x.Slots))
	}
	return strings.Join(parts, "; ")
}

// rate formats a network's rate.
func rate(bytes float64) string { return fmt.Sprintf("%.3g Gbit/s", 8*bytes/1e9) }
