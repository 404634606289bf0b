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
	"github.com/moeflux/moeflux-actor/io/profile"
	"github.com/moeflux/moeflux-actor/io/synth"
	"github.com/moeflux/moeflux-actor/io/weights"
)

// forecast is how fast one text should decode: as fast as the slower of memory and disk lets it,
// everything overlapped.
type forecast struct {
	TokensPerSecond float64 `json:"tokens_per_second"`
	Bound           string  `json:"bound"` // memory or disk
	// of a token: the weights that it touches, at the memory's bandwidth
	ComputeSeconds float64 `json:"compute_seconds"`
	// of a token: the experts that it misses, at the disk's
	DiskSeconds     float64 `json:"disk_seconds"`
	HitRate         float64 `json:"expert_hit_rate"`
	HitRateFrom     string  `json:"expert_hit_rate_from"` // where that is known from
	MemoryBandwidth float64 `json:"memory_bandwidth"`     // bytes a second
	DiskBandwidth   float64 `json:"disk_bandwidth"`       // 0 if nothing is missed
}

// newForecast returns a forecast for tokens that touch so many bytes, of which experts; nil if a
// bandwidth that matters is unknown.
func newForecast(touched, experts int64, hits expectedHits, memory, disk float64) *forecast {
	f := &forecast{HitRate: hits.rate, HitRateFrom: hits.from, MemoryBandwidth: memory, Bound: "memory"}
	if hits.from == "" || memory <= 0 || hits.rate < 1 && disk <= 0 {
		return nil
	}
	f.ComputeSeconds = float64(touched) / memory
	if hits.rate < 1 {
		f.DiskBandwidth = disk
		f.DiskSeconds = (1 - hits.rate) * float64(experts) / disk
	}
	if f.DiskSeconds > f.ComputeSeconds {
		f.Bound = "disk"
	}
	f.TokensPerSecond = 1 / max(f.DiskSeconds, f.ComputeSeconds, 1e-9)
	return f
}

// text is the forecast for people.
func (f *forecast) text() string {
	return fmt.Sprintf("%.2f tokens/s, bound by %s: a token computes for %.1f ms and reads for %.1f ms; hits %.1f%%, %s",
		f.TokensPerSecond, f.Bound, 1e3*f.ComputeSeconds, 1e3*f.DiskSeconds, 100*f.HitRate, f.HitRateFrom)
}

// expectedHits is the share of uses that find their expert in its slot, and where that is known
// from; "" if it is not known.
type expectedHits struct {
	rate float64
	from string
}

// tokensAhead is which tokens of a chain a forecast is for: all from one on, or the last of them
// after slots were empty at the first.
type tokensAhead struct {
	from, prompt, gen int
	chunk             int  // rows of the prompt that are read together
	cold              bool // slots are empty at the first token

	profile string // of the use of experts, "" for none
}

// warmTokens is how much of its chain a model that synth made is asked about; the second half
// counts.
const warmTokens = 512

// trained is what a cache hits that is warm, by the share of all experts that it holds: the demo
// model's routers, really trained ones, on source that they were not trained on
// (docs/experiments.md, "Which experts stay in memory", the policy that was kept).
var trained = []struct{ share, hits float64 }{{0, 0}, {0.10, 0.376}, {0.25, 0.700}, {0.50, 0.929}, {1, 1}}

// expectHits tells what the slots will hit.
func expectHits(dir string, i *actors.Info, free int64, t tokensAhead) (expectedHits, error) {
	all := 1
	if i.SlotBytes > 0 {
		all = max(1, int(i.ExpertBytes/int64(i.SlotBytes)))
	}
	if i.ExpertIO == actors.ExpertIOMmap {
		if i.ExpertBytes > free {
			return expectedHits{}, nil // the system decides what stays, page by page
		}
		return expectedHits{1, "since all experts are in memory"}, nil
	}
	if i.Slots >= all { // and is read into it, whether anybody asks or not
		return expectedHits{1, "since every expert has a slot"}, nil
	}
	_, err := os.Stat(filepath.Join(dir, synth.RecordName))
	switch {
	case err == nil:
		return lawHits(dir, i, t)
	case !errors.Is(err, fs.ErrNotExist):
		return expectedHits{}, err
	}
	if t.profile != "" {
		hits, ok, err := profileHits(dir, t.profile, i)
		if ok || err != nil {
			return hits, err
		}
	}
	share := min(1, float64(i.Slots)/float64(all))
	return expectedHits{trainedHits(share), fmt.Sprintf("assumed: what trained routers leave to a warm cache of %.0f%% of all experts", 100*share)}, nil
}

// profileHits is what slots would hit that hold the experts that earlier runs used most; false if
// there is no profile of use.
func profileHits(dir, path string, i *actors.Info) (h expectedHits, ok bool, err error) {
	cfg, err := weights.ReadConfig(dir)
	if err != nil {
		return h, false, err
	}
	of, err := profile.Of(dir)
	if err != nil {
		return h, false, err
	}
	p, err := profile.Load(path, of, len(cfg.Layers), cfg.NumExperts)
	if err != nil {
		return h, false, nil // the engine does without, too, and says so
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
	return expectedHits{held / all, fmt.Sprintf("if slots hold what the %d rows of %s used most", p.Rows, path)}, true, nil
}

// trainedHits interpolates.
func trainedHits(share float64) float64 {
	for k := 1; k < len(trained); k++ {
		if a, b := trained[k-1], trained[k]; share <= b.share {
			return a.hits + (b.hits-a.hits)*(share-a.share)/(b.share-a.share)
		}
	}
	return 1
}

// lawHits asks the law of a model that synth made.
func lawHits(dir string, i *actors.Info, t tokensAhead) (expectedHits, error) {
	m, err := synth.Load(dir)
	if err != nil {
		return expectedHits{}, err
	}
	from := "by the model's own law and the least recently used"
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
		return expectedHits{}, err
	}
	uses := 0
	for _, v := range visits[first:] {
		uses += len(v)
	}
	if uses == 0 {
		return expectedHits{}, nil
	}
	return expectedHits{1 - float64(misses.Sum(first))/float64(uses), from}, nil
}

// lawVisits returns which experts the tokens use, and where those begin of what follows the prompt.
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

// appendVisits adds the visits of one layer: each expert of picks once, all together if there are
// slots for them, else in waves.
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
