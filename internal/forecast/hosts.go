package forecast

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/figures"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages/expertio/placement"
)

// Host is an expert host, and the network to it.
type Host struct {
	Addr   string `json:"address"`
	Error  string `json:"error,omitempty"` // why it would not be asked
	Device string `json:"device"`
	Slots  int    `json:"slots"` // experts that it has memory for
	Bytes  int64  `json:"bytes"` // of that memory

	RoundTrip figures.Spread `json:"round_trip_seconds"` // of pings, through both programs
	RowBytes  int            `json:"row_bytes"`          // of a row on its way to the host
	Out       figures.Spread `json:"out_bandwidth"`      // bytes a second, to the host
	In        figures.Spread `json:"in_bandwidth"`       // and back

	// of an ask for the experts of one row of a layer
	AskExperts     int     `json:"ask_experts"`
	AskSeconds     float64 `json:"ask_seconds"`      // as it is measured here
	ReadSeconds    float64 `json:"read_seconds"`     // as the host says
	ComputeSeconds float64 `json:"computed_seconds"` // likewise

	Placed
}

// Placed is what a machine would have of all experts.
type Placed struct {
	Owned  int     `json:"owned"`  // experts
	Copies int     `json:"copies"` // of what others own
	Share  float64 `json:"share"`  // of uses, all experts being used alike: of what has a copy half
}

// Hosts is what experts on several machines promise.
type Hosts struct {
	All       []Host `json:"all"`
	Here      Placed `json:"here"` // of this machine
	HereSlots int    `json:"here_slots"`
	Experts   int    `json:"experts"` // of the model, in all layers
	Sums      bool   `json:"sums"`    // whether hosts answer with a sum for each row
	Split     *Split `json:"forecast"`
	Pays      string `json:"pays"` // yes, no or perhaps; "" if it cannot be said
	Verdict   string `json:"verdict"`
	// of a chunk of a prompt: an expert with more rows is sooner read here than sent away; 0 if
	// that is unknown
	PromptRows float64 `json:"prompt_rows"`
}

// Whether hosts make a text quicker.
const (
	PaysYes     = "yes"
	PaysNo      = "no"
	PaysPerhaps = "perhaps"
)

// SurveyHosts asks and measures the hosts that a Config names, and says who would own how many
// experts, given what the engine would run with here. It is nil if there are none.
func SurveyHosts(ctx context.Context, cfg actors.Config, i *actors.Info) (*Hosts, error) {
	all, err := actors.SurveyHosts(ctx, cfg)
	if err != nil || all == nil {
		return nil, err
	}
	contents, err := actors.Describe(cfg)
	if err != nil {
		return nil, err
	}
	h := &Hosts{Sums: cfg.HostsSum}
	for k := range all {
		h.All = append(h.All, hostOf(&all[k]))
	}
	h.place(i, contents.Model)
	return h, nil
}

func hostOf(s *actors.HostSurvey) Host {
	if s.Err != nil {
		return Host{Addr: s.Addr, Error: s.Err.Error()}
	}
	seconds := make([]float64, len(s.RoundTrips))
	for i, d := range s.RoundTrips {
		seconds[i] = d.Seconds()
	}
	return Host{
		Addr: s.Addr, Device: s.Device, Slots: s.Experts, Bytes: s.Bytes, RowBytes: s.RowBytes,
		RoundTrip: figures.SpreadOf(seconds), Out: figures.SpreadOf(s.Out), In: figures.SpreadOf(s.In),
		AskExperts: s.AskExperts, AskSeconds: s.Took.Seconds(), ReadSeconds: s.Read.Seconds(), ComputeSeconds: s.Computed.Seconds(),
	}
}

// place says who would own how many experts, as engines decide it once they know how quick hosts
// are. What is known of uses may let them do better.
func (h *Hosts) place(i *actors.Info, m *model.Config) {
	layers := len(m.MoELayers())
	h.HereSlots, h.Experts = i.Slots, layers*m.NumExperts
	if !i.ExpertIO.Streams() {
		h.Here, h.HereSlots, h.Pays = Placed{Owned: h.Experts, Share: 1}, h.Experts, PaysNo
		h.Verdict = "hosts would not be asked: all experts are in this machine's memory"
		return
	}
	owners := []placement.Owner{{Room: i.Slots}}
	all := []*Placed{&h.Here}
	for k := range h.All {
		x := &h.All[k]
		owners, all = append(owners, placement.Owner{Room: x.Slots, Cost: x.ComputeSeconds}), append(all, &x.Placed)
	}
	t := placement.Make(placement.Model{Layers: layers, Experts: m.NumExperts}, owners, nil)
	one := 1 / float64(h.Experts)
	for key, own := range t.Owners {
		o := all[own+1]
		o.Owned++
		o.Share += one
		if second := t.Copies[key]; second != placement.Nobody {
			c := all[second+1]
			c.Copies++
			o.Share, c.Share = o.Share-one/2, c.Share+one/2
		}
	}
}

// slots is how many experts all machines have memory for.
func (h *Hosts) slots() int {
	n := h.HereSlots
	for k := range h.All {
		n += h.All[k].Slots
	}
	return n
}

// up is the hosts that would be asked.
func (h *Hosts) up() (up []*Host) {
	for k := range h.All {
		if h.All[k].Error == "" {
			up = append(up, &h.All[k])
		}
	}
	return up
}

// Base is what a forecast with hosts goes out from.
type Base struct {
	Info     *actors.Info
	Contents *actors.Contents
	Text     Text
	Alone    *Forecast // without hosts
}

// Expect adds the forecast. ReadSeconds of disks elsewhere are taken to be those of this machine.
func (h *Hosts) Expect(b Base) error {
	up, f := h.up(), b.Alone
	if len(up) == 0 {
		h.Verdict = "no host can be asked"
	}
	if h.Verdict != "" || f == nil {
		return nil
	}
	together := *b.Info
	together.Slots = h.slots()
	kept, err := Expect(&together, b.Text)
	if err != nil {
		return err
	}
	if together.Slots >= h.Experts {
		kept.From = "since all machines together hold every expert"
	}
	m := b.Contents.Model
	there, row := float64(up[0].RowBytes), float64(4*m.HiddenSize)
	n := SplitNeeds{
		Layers: len(m.MoELayers()), Picks: b.Info.TopK, OutBytes: up[0].RowBytes, RowBytes: 4 * m.HiddenSize, Sums: h.Sums, Kept: kept.Rate, DenseSeconds: float64(b.Contents.TouchedWeights) / f.MemoryBandwidth,
	}
	if f.DiskBandwidth > 0 {
		n.ReadSeconds = float64(b.Info.SlotBytes) / f.DiskBandwidth
	}
	owners := []Owner{{Share: h.Here.Share, UseSeconds: float64(b.Info.SlotBytes) / f.MemoryBandwidth}}
	for _, x := range up {
		network := x.RoundTrip.Median + there/x.Out.Median + float64(x.AskExperts)*row/x.In.Median
		owners = append(owners, Owner{
			Share: x.Share, UseSeconds: x.ComputeSeconds / float64(x.AskExperts), RoundTrip: x.RoundTrip.Median, Out: x.Out.Median, In: x.In.Median,
			Extra: max(0, x.AskSeconds-x.ReadSeconds-x.ComputeSeconds-network),
		})
	}
	h.Split = SplitOf(n, owners)
	h.Split.KeptRateFrom = kept.From
	h.judge(f)
	if f.DiskBandwidth > 0 {
		fastest := slices.MaxFunc(up, func(a, b *Host) int { return int(a.In.Median) - int(b.In.Median) })
		h.PromptRows = BreakEven(&n, fastest.Out.Median, fastest.In.Median)
	}
	return nil
}

// judge says whether splitting pays, and if not, why.
func (h *Hosts) judge(alone *Forecast) {
	s := h.Split
	speeds := fmt.Sprintf("%.2f to %.2f tokens/s with hosts, %.2f to %.2f without", s.Low, s.TokensPerSecond, alone.Low, alone.TokensPerSecond)
	switch {
	case s.Low >= alone.TokensPerSecond:
		h.Pays, h.Verdict = PaysYes, "splitting pays: "+speeds
	case s.TokensPerSecond <= alone.Low:
		h.Pays, h.Verdict = PaysNo, "splitting does not pay: "+speeds
	default:
		h.Pays, h.Verdict = PaysPerhaps, "splitting may pay, measure it with bench: "+speeds
	}
	if h.Pays == PaysYes {
		return
	}
	switch s.Bound {
	case BoundNetwork:
		h.Verdict += "; a token waits for the network most of its time"
	case BoundHosts:
		h.Verdict += "; a token waits most of its time for what the hosts compute"
	case BoundDisk:
		h.Verdict += fmt.Sprintf("; a token waits for disks most of its time: memory for %d more experts would hold them all", max(0, h.Experts-h.slots()))
	default:
		h.Verdict += "; what is computed here takes most of its time"
	}
}

// seconds formats a time of some microseconds or more.
func seconds(s float64) string {
	return time.Duration(s * 1e9).Round(time.Microsecond).String()
}
