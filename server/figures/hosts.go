package figures

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	moeflux "github.com/moeflux/moeflux-actor"
)

// hostFigure is a figure of an expert host.
type hostFigure struct {
	name, unit, what string
	grows            bool // it is a counter, else a level
	of               func(h *moeflux.HostStats) float64
}

// hostSeconds is how long asks of a host took in some way, added up.
func hostSeconds(of func(h *moeflux.HostStats) time.Duration) func(h *moeflux.HostStats) float64 {
	return func(h *moeflux.HostStats) float64 { return of(h).Seconds() }
}

// hostFigures are all of them.
var hostFigures = []hostFigure{
	{"moeflux.host_up", "", "1 if the expert host can be asked.", false, func(h *moeflux.HostStats) float64 {
		if h.Up {
			return 1
		}
		return 0
	}},
	{"moeflux.host_asks", "", "Asks of an expert host.", true, func(h *moeflux.HostStats) float64 { return float64(h.Asks) }},
	{"moeflux.host_asks_failed", "", "Asks that went another way, to another host or to the disk.", true, func(h *moeflux.HostStats) float64 { return float64(h.Failed) }},
	{"moeflux.host_asks_hedged", "", "Asks for what another host was late with.", true, func(h *moeflux.HostStats) float64 { return float64(h.Hedges) }},
	{"moeflux.host_experts", "", "Uses of an expert that the host has computed.", true, func(h *moeflux.HostStats) float64 { return float64(h.Uses) }},
	{"moeflux.host_bytes_sent", "", "Bytes that were sent to the host.", true, func(h *moeflux.HostStats) float64 { return float64(h.BytesOut) }},
	{"moeflux.host_bytes_received", "", "Bytes that came from the host.", true, func(h *moeflux.HostStats) float64 { return float64(h.BytesIn) }},
	{"moeflux.host_answer", "s", "Time from asks to the end of their answers. What the three below do not have of it is the network.", true, hostSeconds(func(h *moeflux.HostStats) time.Duration { return h.Answered })},
	{"moeflux.host_wait", "s", "Time that asks waited for their turn on the host, as it says.", true, hostSeconds(func(h *moeflux.HostStats) time.Duration { return h.Waited })},
	{"moeflux.host_read", "s", "Time that asks waited for reads of the host's disk, as it says.", true, hostSeconds(func(h *moeflux.HostStats) time.Duration { return h.Read })},
	{"moeflux.host_compute", "s", "Time that the host computed for asks, as it says.", true, hostSeconds(func(h *moeflux.HostStats) time.Duration { return h.Computed })},
}

// hostsOf reads the figures of an engine's expert hosts.
func (x *engineMetrics) hostsOf(to metric.Observer, all []moeflux.HostStats, model string) {
	for i := range all {
		of := metric.WithAttributes(attribute.String(attrModel, model), attribute.String(attrHost, all[i].Addr))
		for k, f := range hostFigures {
			to.ObserveFloat64(x.hosts[k], f.of(&all[i]), of)
		}
	}
}
