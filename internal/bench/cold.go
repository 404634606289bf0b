package bench

import (
	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/cachesim"
	"github.com/moeflux/moeflux-actor/internal/forecast"
)

// routingTrace holds the experts that a cold run used, in order.
type routingTrace struct {
	visits []cachesim.Visit
	decode int // where the visits of decoded tokens begin
}

// Optimum is what the best possible cache would have read for the decoded tokens: it has as many
// slots, starts equally empty, reads only what is used, and knows the future.
type Optimum struct {
	Misses   int64   `json:"expert_misses"`
	KeptRate float64 `json:"expert_kept_rate"`
	Bytes    int64   `json:"bytes_read"`
}

// add records what an evaluation picked.
func (t *routingTrace) add(r *actors.Evaluated, i *actors.Info, experts int) {
	layers := len(r.Picks) / max(1, r.Rows*i.TopK)
	for from := 0; from < r.Rows; from += i.ChunkRows {
		to := min(r.Rows, from+i.ChunkRows)
		for layer := range layers {
			at := layer * r.Rows
			t.visits = forecast.AppendVisits(t.visits, layer*experts, r.Picks[(at+from)*i.TopK:(at+to)*i.TopK], i)
		}
	}
}

// optimum computes what the best cache would have read for the decoded tokens.
func (t *routingTrace) optimum(i *actors.Info) (*Optimum, error) {
	misses, err := cachesim.Optimum(t.visits, i.Slots)
	if err != nil {
		return nil, err
	}
	uses := 0
	for _, v := range t.visits[t.decode:] {
		uses += len(v)
	}
	n := int64(misses.Sum(t.decode))
	return &Optimum{Misses: n, KeptRate: 1 - float64(n)/float64(max(1, uses)), Bytes: n * int64(i.SlotBytes)}, nil
}
