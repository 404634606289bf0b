package synth

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Simulation is what a cache of experts would see.
type Simulation struct {
	Tokens   int     `json:"tokens"`
	Distinct float64 `json:"distinct"` // share of all experts that are used at all
	// share of uses that the busiest quarter of the experts takes
	Busiest float64 `json:"busiest_quarter"`
	// share of a token's experts that the previous token used too
	Overlap  float64 `json:"overlap"`
	Overlap8 float64 `json:"overlap_8"` // the same for the token 8 before
	// layers of tokens whose routing is too close to predict
	Close int   `json:"close"`
	LRU   []LRU `json:"lru"`
}

// Text formats the simulation for people.
func (s *Simulation) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d tokens use %.1f%% of all experts, the busiest quarter of them for %.1f%% of uses\n", s.Tokens, 100*s.Distinct, 100*s.Busiest)
	fmt.Fprintf(&b, "a token shares %.1f%% of its experts with the token before it, %.1f%% with the one 8 before\n", 100*s.Overlap, 100*s.Overlap8)
	if s.Close > 0 {
		fmt.Fprintf(&b, "%d decisions are too close to predict\n", s.Close)
	}
	for _, l := range s.LRU {
		fmt.Fprintf(&b, "a cache of the last used %4.1f%% of all experts hits %.1f%% from empty, %.1f%% in the second half\n", 100*l.Share, 100*l.Hits, 100*l.Late)
	}
	return b.String()
}

// LRU says how a cache of whole experts that all layers share would do. It begins empty.
type LRU struct {
	Share float64 `json:"share"` // share of all experts that fit
	Hits  float64 `json:"hits"`  // share of uses
	Late  float64 `json:"late"`  // share of uses in the second half
}

// cacheShares are the sizes of the caches that Simulate tries.
var cacheShares = []float64{0.125, 0.25, 0.375, 0.5, 0.75}

// Simulate routes the first n tokens of the chain, n being at least 2. If trace is not nil,
// Simulate writes a line for each token: its number, the token, and the picks of each layer with
// experts, separated by commas.
func (m *Model) Simulate(ctx context.Context, n int, trace io.Writer) (*Simulation, error) {
	if n < 2 {
		return nil, &OptionError{What: fmt.Sprintf("%d tokens", n), Want: "2 or more"}
	}
	out := &Simulation{Tokens: n}
	uses := make([][]int32, n) // per token: layer·experts + expert
	w := bufio.NewWriter(io.Discard)
	if trace != nil {
		w = bufio.NewWriter(trace)
	}
	for i, token := range m.Chain(n) {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("synth: %w", context.Cause(ctx))
		}
		fmt.Fprintf(w, "%d %d", i, token)
		for at, l := range m.Routing(token) {
			for j, e := range l.Experts {
				sep := ","
				if j == 0 {
					sep = " "
				}
				fmt.Fprintf(w, "%s%d", sep, e)
				uses[i] = append(uses[i], int32(at*m.cfg.NumExperts)+e)
			}
			if l.Close {
				out.Close++
			}
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return nil, fmt.Errorf("synth: routing trace: %w", err)
	}
	out.count(uses, len(m.routers)*m.cfg.NumExperts)
	return out, nil
}

// count fills in the figures. All layers together have total experts.
func (s *Simulation) count(uses [][]int32, experts int) {
	counts := make([]int, experts)
	total, distinct := 0, 0
	for _, u := range uses {
		for _, e := range u {
			if counts[e] == 0 {
				distinct++
			}
			counts[e]++
			total++
		}
	}
	slices.Sort(counts)
	busiest := 0
	for _, c := range counts[experts-experts/4:] {
		busiest += c
	}
	s.Distinct = float64(distinct) / float64(experts)
	s.Busiest = float64(busiest) / float64(total)
	s.Overlap, s.Overlap8 = overlap(uses, 1), overlap(uses, min(8, len(uses)-1))
	for _, share := range cacheShares {
		hits, late := lru(uses, int(share*float64(experts)))
		s.LRU = append(s.LRU, LRU{Share: share, Hits: hits, Late: late})
	}
}

// overlap returns the share of uses that the token back tokens earlier had too.
func overlap(uses [][]int32, back int) float64 {
	same, total := 0, 0
	for i := back; i < len(uses); i++ {
		before := make(map[int32]bool, len(uses[i-back]))
		for _, e := range uses[i-back] {
			before[e] = true
		}
		for _, e := range uses[i] {
			if before[e] {
				same++
			}
		}
		total += len(uses[i])
	}
	return float64(same) / float64(total)
}

// lru runs the uses through a cache of that many experts. It returns the share of hits, in all and
// in the second half.
func lru(uses [][]int32, capacity int) (hits, late float64) {
	type use struct{ expert, time int32 }
	last := map[int32]int32{} // the cached experts, with the time of their last use
	// in order of time; entries that are not an expert's last use are skipped
	var queue []use
	var time, hit, lateHit, lateUses int32
	for i, u := range uses {
		second := i >= len(uses)/2
		for _, e := range u {
			time++
			if second {
				lateUses++
			}
			if _, in := last[e]; in {
				hit++
				if second {
					lateHit++
				}
			}
			last[e] = time
			queue = append(queue, use{e, time})
			for len(last) > capacity {
				if q := queue[0]; last[q.expert] == q.time {
					delete(last, q.expert)
				}
				queue = queue[1:]
			}
		}
	}
	return float64(hit) / float64(time), float64(lateHit) / float64(lateUses)
}
