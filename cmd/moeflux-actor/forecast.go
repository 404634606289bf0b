package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/cachesim"
	"github.com/moeflux/moeflux-actor/io/fingerprint"
	"github.com/moeflux/moeflux-actor/io/profile"
	"github.com/moeflux/moeflux-actor/io/synth"
	"github.com/moeflux/moeflux-actor/io/weights"
)

// slowestShare is the least share of the memory's bandwidth at which a token's weights are
// multiplied: 58 % to 85 % were measured for models of real size, with 1 to 16 threads of three
// kinds of processor (docs/experiments.md).
const slowestShare = 0.55

// forecast says how fast one text should decode. At best the slower of memory and disk decides, and
// all other work is hidden behind it. At worst a token reads first and then computes, at
// slowestShare of the bandwidth.
type forecast struct {
	TokensPerSecond float64 `json:"tokens_per_second"`     // at best
	Low             float64 `json:"tokens_per_second_low"` // at worst
	Bound           string  `json:"bound"`                 // memory or disk
	// of a token: the weights that it touches, at the memory's bandwidth
	ComputeSeconds float64 `json:"compute_seconds"`
	// of a token: the experts that are not kept, at the disk's bandwidth
	DiskSeconds     float64 `json:"disk_seconds"`
	KeptRate        float64 `json:"expert_kept_rate"`
	KeptRateFrom    string  `json:"expert_kept_rate_from"` // how that is known
	MemoryBandwidth float64 `json:"memory_bandwidth"`      // bytes a second
	DiskBandwidth   float64 `json:"disk_bandwidth"`        // 0 if nothing is read
}

// newForecast returns the forecast for tokens that touch the given bytes, experts' among them; nil
// if a bandwidth that matters is unknown.
func newForecast(touched, experts int64, kept expectedKept, memory, disk float64) *forecast {
	f := &forecast{KeptRate: kept.rate, KeptRateFrom: kept.from, MemoryBandwidth: memory, Bound: "memory"}
	if kept.from == "" || memory <= 0 || kept.rate < 1 && disk <= 0 {
		return nil
	}
	f.ComputeSeconds = float64(touched) / memory
	if kept.rate < 1 {
		f.DiskBandwidth = disk
		f.DiskSeconds = (1 - kept.rate) * float64(experts) / disk
	}
	if f.DiskSeconds > f.ComputeSeconds {
		f.Bound = "disk"
	}
	f.TokensPerSecond = 1 / max(f.DiskSeconds, f.ComputeSeconds, 1e-9)
	f.Low = 1 / max(f.DiskSeconds+f.ComputeSeconds/slowestShare, 1e-9)
	return f
}

// text describes the forecast.
func (f *forecast) text() string {
	s := fmt.Sprintf("%.2f to %.2f tokens/s, bound by %s: a token computes for %.1f ms or more", f.Low, f.TokensPerSecond, f.Bound, 1e3*f.ComputeSeconds)
	if f.DiskSeconds > 0 {
		s += fmt.Sprintf(" and reads for %.1f ms", 1e3*f.DiskSeconds)
	}
	return s + fmt.Sprintf("; kept %.1f%%, %s", 100*f.KeptRate, f.KeptRateFrom)
}

// expectedKept is the share of uses that find their expert kept in a slot, and how that is known;
// "" if it is not.
type expectedKept struct {
	rate float64
	from string
}

// tokensAhead names the tokens of a chain that a forecast is for: all from one on, or those that
// follow a prompt which began with empty slots.
type tokensAhead struct {
	from, prompt, gen int
	chunk             int  // rows of the prompt that are evaluated together
	cold              bool // slots are empty at the first token

	profile string // of the use of experts, "" for none
}

// warmTokens is the length of the chain that the forecast of a synthetic model looks at; its second
// half counts.
const warmTokens = 512

// trained is what a warm cache keeps, by its share of all experts. It was measured with the routers
// of the demo model, which are trained ones, on source code that they had not seen
// (docs/experiments.md, "Which experts stay in memory", the policy that was kept).
var trained = []struct{ share, kept float64 }{{0, 0}, {0.10, 0.376}, {0.25, 0.700}, {0.50, 0.929}, {1, 1}}

// expectKept predicts what the slots keep.
func expectKept(dir string, i *actors.Info, free int64, t tokensAhead) (expectedKept, error) {
	all := 1
	if i.SlotBytes > 0 {
		all = max(1, int(i.ExpertBytes/int64(i.SlotBytes)))
	}
	if i.ExpertIO == actors.ExpertIOMmap {
		if i.ExpertBytes > free {
			return expectedKept{}, nil // the system decides what stays, page by page
		}
		return expectedKept{1, "since all experts are in memory"}, nil
	}
	if i.Slots >= all { // the engine fills the rest in the background
		return expectedKept{1, "since every expert has a slot"}, nil
	}
	_, err := os.Stat(filepath.Join(dir, synth.RecordName))
	switch {
	case err == nil:
		return lawKept(dir, i, t)
	case !errors.Is(err, fs.ErrNotExist):
		return expectedKept{}, err
	}
	if t.profile != "" {
		hits, ok, err := profileKept(dir, t.profile, i)
		if ok || err != nil {
			return hits, err
		}
	}
	share := min(1, float64(i.Slots)/float64(all))
	return expectedKept{trainedKept(share), fmt.Sprintf("assumed: what a warm cache keeps of trained routers' picks, with %.0f%% of all experts", 100*share)}, nil
}

// profileKept is what the slots keep if they hold the experts that earlier runs used most; false if
// there is no profile of them.
func profileKept(dir, path string, i *actors.Info) (h expectedKept, ok bool, err error) {
	cfg, err := weights.ReadConfig(dir)
	if err != nil {
		return h, false, err
	}
	of, err := fingerprint.Of(dir, "")
	if err != nil {
		return h, false, err
	}
	p, err := profile.Load(path, of, len(cfg.Layers), cfg.NumExperts)
	if err != nil {
		return h, false, nil // the engine warns, and runs without
	}
	held, all := 0.0, 0.0
	for _, uses := range p.Uses {
		all += float64(uses)
	}
	for _, key := range p.Hottest(i.Slots) {
		held += float64(p.Uses[key])
	}
	if all == 0 {
		return h, false, nil
	}
	return expectedKept{held / all, fmt.Sprintf("if the slots hold what the %d rows of %s used most", p.Rows, path)}, true, nil
}

// trainedKept interpolates.
func trainedKept(share float64) float64 {
	for k := 1; k < len(trained); k++ {
		if a, b := trained[k-1], trained[k]; share <= b.share {
			return a.kept + (b.kept-a.kept)*(share-a.share)/(b.share-a.share)
		}
	}
	return 1
}

// lawKept simulates the routing law of a synthetic model.
func lawKept(dir string, i *actors.Info, t tokensAhead) (expectedKept, error) {
	m, err := synth.Load(dir)
	if err != nil {
		return expectedKept{}, err
	}
	from := "by the model's own law, in slots that lose the least recently used"
	tokens := m.Chain(warmTokens)
	prompt, chunk := warmTokens/2, 1
	if t.cold {
		from += ", from empty slots"
		tokens = m.Chain(t.from + t.prompt + t.gen)[t.from:]
		prompt, chunk = t.prompt, max(1, t.chunk)
	}
	visits, first := lawVisits(m, tokens, prompt, chunk, i)
	misses, err := cachesim.LRU(visits, i.Slots)
	if err != nil {
		return expectedKept{}, err
	}
	uses := 0
	for _, v := range visits[first:] {
		uses += len(v)
	}
	if uses == 0 {
		return expectedKept{}, nil
	}
	return expectedKept{1 - float64(misses.Sum(first))/float64(uses), from}, nil
}

// lawVisits returns the experts that the tokens use, and the first visit after the prompt.
func lawVisits(m *synth.Model, tokens []int32, prompt, chunk int, i *actors.Info) (visits []cachesim.Visit, first int) {
	experts := m.Config().NumExperts
	for at := 0; at < len(tokens); {
		rows := 1
		if at < prompt {
			rows = min(chunk, prompt-at)
		} else if at == prompt {
			first = len(visits)
		}
		var picks [][]int32 // [layers with experts]
		for _, token := range tokens[at : at+rows] {
			for layer, r := range m.Routing(token) {
				if layer == len(picks) {
					picks = append(picks, nil)
				}
				picks[layer] = append(picks[layer], r.Experts[:min(i.TopK, len(r.Experts))]...)
			}
		}
		for layer, p := range picks {
			visits = appendVisits(visits, layer*experts, p, i)
		}
		at += rows
	}
	return visits, first
}

// appendVisits adds the visits of one layer: each expert of picks once, all together if the slots
// suffice, else in waves.
func appendVisits(visits []cachesim.Visit, firstKey int, picks []int32, i *actors.Info) []cachesim.Visit {
	union := slices.Clone(picks)
	slices.Sort(union)
	union = slices.Compact(union)
	for k := range union {
		union[k] += int32(firstKey)
	}
	if len(union) <= i.Slots {
		return append(visits, union)
	}
	for part := range slices.Chunk(union, max(1, i.WaveSlots)) {
		visits = append(visits, part)
	}
	return visits
}
