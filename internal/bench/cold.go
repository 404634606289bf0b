package bench

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/cachesim"
	"github.com/moeflux/moeflux-actor/internal/forecast"
)

// routingTrace holds the experts that a cold run used, in order.
type routingTrace struct {
	visits []cachesim.Visit
	decode int // where the visits of decoded tokens begin
	layers int // visits of a decoded token
}

// Optimum is what the best possible cache would have read for the decoded tokens: it has as many
// slots, starts equally empty, reads only what is used, and knows the future.
type Optimum struct {
	Misses   int64   `json:"expert_misses"`
	KeptRate float64 `json:"expert_kept_rate"`
	Bytes    int64   `json:"bytes_read"`
	Bounds   *Bounds `json:"bounds"` // null if a bandwidth that matters is unknown
}

// Bounds says how long a decoded token takes at least with what a cache reads, in seconds, where
// disk and memory work side by side: over all tokens together, which lets a token's reads hide
// behind another one's computing; token by token; and layer by layer, which lets no read begin
// before its layer. Memory gives the weights that a token touches, each layer the same share of
// them.
type Bounds struct {
	Together float64 `json:"together_seconds"`
	ByToken  float64 `json:"by_token_seconds"`
	ByLayer  float64 `json:"by_layer_seconds"`
}

// add records what an evaluation picked.
func (t *routingTrace) add(r *actors.Evaluated, i *actors.Info, experts int) {
	layers := len(r.Picks) / max(1, r.Rows*i.TopK)
	t.layers = layers
	for from := 0; from < r.Rows; from += i.ChunkRows {
		to := min(r.Rows, from+i.ChunkRows)
		for layer := range layers {
			at := layer * r.Rows
			t.visits = forecast.AppendVisits(t.visits, layer*experts, r.Picks[(at+from)*i.TopK:(at+to)*i.TopK], i)
		}
	}
}

// optimum computes what the best cache would have read for the decoded tokens, each of which takes
// compute seconds at the memory's bandwidth, from a disk of some bytes a second; 0 is unknown.
func (t *routingTrace) optimum(i *actors.Info, compute, disk float64) (*Optimum, error) {
	misses, err := cachesim.Optimum(t.visits, i.Slots)
	if err != nil {
		return nil, err
	}
	uses := 0
	for _, v := range t.visits[t.decode:] {
		uses += len(v)
	}
	n := int64(misses.Sum(t.decode))
	o := &Optimum{Misses: n, KeptRate: 1 - float64(n)/float64(max(1, uses)), Bytes: n * int64(i.SlotBytes)}
	if compute > 0 && disk > 0 && t.layers > 0 && len(misses) >= t.decode+t.layers {
		o.Bounds = boundsOf(misses[t.decode:], t.layers, compute, float64(i.SlotBytes)/disk)
	}
	return o, nil
}

// boundsOf bounds tokens whose layers miss some experts each, which take read seconds.
func boundsOf(misses cachesim.Misses, layers int, compute, read float64) *Bounds {
	tokens := float64(len(misses)) / float64(layers)
	b := &Bounds{Together: max(compute, read*float64(misses.Sum(0))/tokens)}
	for from := 0; from < len(misses); from += layers {
		token := misses[from:min(from+layers, len(misses))]
		b.ByToken += max(compute, read*float64(token.Sum(0))) / tokens
		for _, n := range token {
			b.ByLayer += max(compute/float64(layers), read*float64(n)) / tokens
		}
	}
	return b
}

// text says what share of the speed the bounds allow was measured.
func (b *Bounds) text(measured float64) string {
	part := func(seconds float64, how string) string {
		return fmt.Sprintf("%.2f %s (%.0f%% of it measured)", 1/seconds, how, 100*measured*seconds)
	}
	return "at most " + part(b.Together, "tokens/s over all tokens") + ", " + part(b.ByToken, "token by token") + ", " + part(b.ByLayer, "layer by layer")
}
