package placement

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

// skewed is a model whose experts are used as those of trained routers are: a few often.
func skewed(layers, experts int) Model {
	r := rand.New(rand.NewPCG(1, 1))
	chances := make([]float64, layers*experts)
	for layer := range layers {
		for rank, e := range r.Perm(experts) {
			chances[layer*experts+e] = 1 / float64(1+rank)
		}
	}
	return Model{Layers: layers, Experts: experts, First: 1, Chance: func(key int) float64 { return chances[key] }}
}

// counts returns how many experts each owner has, this machine first, and how many copies.
func counts(m Model, t *Table, owners int) (owned, copies []int) {
	owned, copies = make([]int, owners), make([]int, owners)
	for key := m.First * m.Experts; key < m.Layers*m.Experts; key++ {
		owned[t.Owners[key]+1]++
		if c := t.Copies[key]; c != Nobody {
			copies[c+1]++
		}
	}
	return owned, copies
}

// TestMake keeps every owner within its memory where all experts fit, and gives each about as much
// to do where memory allows it.
func TestMake(t *testing.T) {
	m := skewed(9, 64) // 512 experts
	unknown := m
	unknown.Chance = nil
	for _, tc := range []struct {
		name   string
		m      Model
		owners []Owner
		off    float64 // the most that the slowest may be above its part
	}{
		{"equal", m, []Owner{{300, 0}, {300, 0}, {300, 0}}, 0.1},
		{"nothing is known", unknown, []Owner{{300, 0}, {300, 0}, {300, 0}}, 0.1},
		{"one is slow", m, []Owner{{400, 1}, {400, 1}, {400, 4}}, 0.15},
		{"one has little memory", m, []Owner{{100, 1}, {300, 1}, {400, 1}}, 0.15},
		{"just enough", m, []Owner{{100, 1}, {212, 1}, {200, 1}}, math.Inf(1)},
		{"one has no memory", m, []Owner{{600, 1}, {0, 1}, {600, 0}}, 0.1},
		{"too little for all", m, []Owner{{20, 1}, {40, 1}, {60, 1}}, math.Inf(1)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			table := Make(tc.m, tc.owners, nil)
			if again := Make(tc.m, tc.owners, nil); !reflect.DeepEqual(again, table) || table.Epoch != 1 {
				t.Error("the same machines have another table")
			}
			owned, copies := counts(tc.m, table, len(tc.owners))
			room := 0
			for _, o := range tc.owners {
				room += o.Room
			}
			for i, o := range tc.owners {
				want := float64(512*o.Room) / float64(room)
				if fits := owned[i]+copies[i] <= o.Room; room >= 512 && !fits || room < 512 && (copies[i] != 0 || math.Abs(float64(owned[i])-want) > 16) || o.Room == 0 && owned[i] != 0 {
					t.Errorf("owner %d has %d experts and %d copies in memory for %d", i, owned[i], copies[i], o.Room)
				}
			}
			k := maker{owners: withCosts(tc.owners)}
			if got, part := Cost(tc.m, tc.owners, table)/8, k.part(); got > part*(1+tc.off) || got < part-1e-9 {
				t.Errorf("the slowest has %g to do in a layer, its part is %g", got, part)
			}
		})
	}
}

// TestCopies wants the copies to be of what is used most, by a host that does not own it.
func TestCopies(t *testing.T) {
	m := skewed(9, 64)
	owners := []Owner{{0, 1}, {300, 1}, {300, 1}} // 88 to spare
	table := Make(m, owners, nil)
	least, most, n := [2]float64{1, 1}, [2]float64{}, 0 // of each owner
	for key := 64; key < 9*64; key++ {
		p, own := m.Chance(key), table.Owners[key]
		switch c := table.Copies[key]; {
		case c == Nobody:
			most[own] = max(most[own], p)
		case c == own || c < 0:
			t.Errorf("expert %d is owned by %d and copied by %d", key, own, c)
		default:
			least[own], n = min(least[own], p), n+1
		}
	}
	for own := range least {
		if n != 88 || least[own] < most[own] {
			t.Errorf("%d copies; of host %d of experts with a chance of %g or more, one of %g has none", n, own, least[own], most[own])
		}
	}
}

// TestMoves has hosts join and leave: of what stays, little moves.
func TestMoves(t *testing.T) {
	m := skewed(9, 64)
	owners := []Owner{{200, 1}, {300, 1}, {300, 1}, {300, 1}}
	without := func(host int) []Owner {
		some := append([]Owner(nil), owners...)
		some[host+1].Room = 0
		return some
	}
	for host := range 3 {
		t.Run(fmt.Sprint(host), func(t *testing.T) {
			before := Make(m, without(host), nil)
			joined := Make(m, owners, before)
			left := Make(m, without(host), joined)
			if joined.Epoch != 2 || left.Epoch != 3 {
				t.Errorf("epochs %d and %d", joined.Epoch, left.Epoch)
			}
			others, mine, orphans := 0, 0, 0
			for key := 64; key < 9*64; key++ {
				switch {
				case joined.Owners[key] == int8(host):
					mine++
				case joined.Owners[key] != before.Owners[key]:
					others++
				}
				if left.Owners[key] != joined.Owners[key] && joined.Owners[key] != int8(host) {
					orphans++
				}
				if left.Owners[key] == int8(host) || left.Copies[key] == int8(host) {
					t.Fatalf("expert %d belongs to a host that has gone", key)
				}
			}
			if mine < 64 || others > 40 || orphans > 40 {
				t.Errorf("of 512 experts the host that joins has %d, and %d moved between others; when it left %d did", mine, others, orphans)
			}
			worse := Cost(m, owners, joined) / Cost(m, owners, Make(m, owners, nil))
			if worse > 1.1 {
				t.Errorf("after joining a layer costs %.2f of what it would from scratch", worse)
			}
		})
	}
}
