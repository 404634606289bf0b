package schedule_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/stages/schedule"
)

// TestSharesAreThoseOfTheDefinition compares steps with a naive model, one after the other, with
// nothing else in the pipeline.
func TestSharesAreThoseOfTheDefinition(t *testing.T) {
	for seed := range uint64(testenv.Rounds(1000, 1500, 30000)) {
		r := rand.New(rand.NewPCG(seed, 1))
		rows := 1 + r.IntN(12)
		s := schedule.New[*chunk](schedule.Config{Rows: rows, Steps: 1, Layers: 2, Share: 0.5, Preempts: seed%2 == 1})
		b := &books{of: make(map[string]*had)}
		for id := range uint64(30) {
			for range r.IntN(4) {
				c := &chunk{id: int(id), left: 1, alone: r.IntN(12) == 0, key: "abcd"[:1+r.IntN(4)], weight: r.IntN(5)}
				if r.IntN(3) > 0 {
					c.left += r.IntN(20)
				}
				s.Add(c)
				b.add(c)
			}
			if len(b.ready) > 0 && r.IntN(5) == 0 {
				i := r.IntN(len(b.ready))
				s.Remove(b.ready[i])
				b.remove(i)
			}
			kind, want := b.step(rows)
			k, got := s.Next(id + 1)
			if len(want) != len(got) || len(want) > 0 && k != kind || !slices.Equal(got, want) {
				t.Fatalf("seed %d, step %d: of %v in %d rows: kind %d %v, want kind %d %v", seed, id, b.ready, rows, k, got, kind, want)
			}
			s.Ended(id + 1)
			for _, sh := range slices.Clone(got) {
				if sh.Request.left -= sh.Rows; sh.Request.left > 0 {
					s.Add(sh.Request)
					b.add(sh.Request)
				}
			}
			if s.Ready() != len(b.ready) {
				t.Fatalf("seed %d: %d are ready, want %d", seed, s.Ready(), len(b.ready))
			}
		}
	}
}

// client brings one prompt after another.
type client struct {
	key    int // which
	weight int // of the key
	id     int // of its present prompt
	rows   int // of all before
}

// crowd lets clients of keys, so many of each, bring prompts all the time, and returns what each
// key was read, by its weight.
func crowd(t *testing.T, seed uint64, keys, weights []int) []float64 {
	r := rand.New(rand.NewPCG(seed, 5))
	layers := 1 + r.IntN(8)
	g := newRig(schedule.Config{Rows: 32 + r.IntN(480), Steps: 1 + r.IntN(2), Layers: layers, Share: 0.5 + 0.5*r.Float64(), Preempts: seed%2 == 1},
		costs{layer: concave(1e5, 5e6), think: int64(2e5 * r.Float64())}, seed)
	for i := range r.IntN(3) {
		g.decoder(i, 0)
	}
	var clients []*client
	last := 100
	bring := func(c *client) {
		last++
		c.id = last
		rows := 2 + r.IntN(2000)
		at := g.now + g.costs.think
		g.at(at, func() { g.s.Add(&chunk{id: c.id, left: rows, key: fmt.Sprint(c.key), weight: c.weight}) })
	}
	for i, n := range keys {
		for range n {
			clients = append(clients, &client{key: i, weight: weights[i]})
			bring(clients[len(clients)-1])
		}
	}
	read := func() (rows int) {
		for _, n := range g.done {
			rows += n
		}
		return rows
	}
	g.run(t, func() bool {
		for _, c := range clients {
			if _, over := g.prompts[c.id]; over {
				c.rows += g.done[c.id]
				bring(c)
			}
		}
		return read() > 300*g.cfg.Rows
	})
	had := make([]float64, len(keys))
	for _, c := range clients {
		had[c.key] += float64(c.rows+g.done[c.id]) / float64(c.weight)
	}
	return had
}

// TestKeysShareRows holds Jain's index of fairness of keys whose clients bring one prompt after
// another above 0.95: rows are shared by keys and their weights, and not by prompts.
func TestKeysShareRows(t *testing.T) {
	for _, tc := range []struct {
		name          string
		keys, weights []int // clients of each
	}{
		{"equal", []int{20, 5, 2, 1}, []int{1, 1, 1, 1}},
		{"weighted", []int{20, 5, 8}, []int{1, 2, 5}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			worst, sum := 1.0, 0.0
			n := testenv.Rounds(10, 25, 1000)
			for seed := range uint64(n) {
				had := crowd(t, seed, tc.keys, tc.weights)
				total, squares := 0.0, 0.0
				for _, x := range had {
					total += x
					squares += x * x
				}
				index := total * total / (float64(len(had)) * squares)
				if index <= 0.95 {
					t.Fatalf("seed %d: Jain's index %.3f: %.0f rows by weight", seed, index, had)
				}
				worst, sum = min(worst, index), sum+index
			}
			t.Logf("%d seeds: Jain's index by weight %.4f on average, %.4f at worst", n, sum/float64(n), worst)
		})
	}
}

// TestPromptsShareFairly lets prompts of several keys and very different lengths come together: at
// no time has one been read much more than another that still wants some.
func TestPromptsShareFairly(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 5))
		g := newRig(schedule.Config{Rows: 16 + r.IntN(64), Steps: 1, Layers: 4, Share: 0.3 + 0.7*r.Float64(), Preempts: seed%2 == 1}, costs{layer: concave(1e5, 1e6), think: 1e5}, seed)
		if r.IntN(2) == 0 {
			g.decoder(1, 0)
			g.run(t, func() bool { return g.least() > 5 })
		}
		from, want := g.now+1, map[int]int{}
		for i := range 2 + r.IntN(5) {
			want[100+i] = 2 + r.IntN(400)
			g.at(from, func() { g.s.Add(&chunk{id: 100 + i, left: want[100+i], key: fmt.Sprint(i)}) })
		}
		g.run(t, func() bool {
			for a := range want {
				for b := range want {
					if g.done[b] < want[b]-1 && g.done[a] > g.done[b]+2*g.cfg.Rows {
						t.Fatalf("seed %d: prompt %d has %d rows, %d has %d of %d", seed, a, g.done[a], b, g.done[b], want[b])
					}
				}
			}
			return len(g.prompts) == len(want)
		})
	}
}

// TestNewcomer lets a short prompt of a new key come while others with much to read have been
// served for long: it is in the next step.
func TestNewcomer(t *testing.T) {
	s := schedule.New[*chunk](schedule.Config{Rows: 512, Steps: 1, Layers: 1, Share: 0.5})
	for i := range 20 {
		s.Add(&chunk{id: i, left: 1 << 20, key: fmt.Sprint(i % 7)})
	}
	step := func(id uint64) []schedule.Share[*chunk] {
		_, shares := s.Next(id)
		shares = slices.Clone(shares)
		s.Begun(id, 1)
		s.Asked(id)
		s.Retired(id, 1)
		s.Ended(id)
		for _, sh := range shares {
			if sh.Request.left -= sh.Rows; sh.Request.left > 0 {
				s.Add(sh.Request)
			}
		}
		return shares
	}
	for id := range uint64(70) {
		step(id + 1)
	}
	short := &chunk{id: 100, left: 30, key: "new"}
	s.Add(short)
	if got := step(100); got[0].Request != short || got[0].Rows != 30 || len(got) != 2 || got[1].Rows != 482 {
		t.Errorf("%v, want the 30 rows of the new key, and 482 of another", got)
	}
}
