package tracing

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
)

func TestRing(t *testing.T) {
	rec := func(step stages.StepID, n int) Record { return Record{Step: step, BeganNS: int64(n)} }
	for _, tc := range []struct {
		name     string
		capacity int
		add      []Record
		take     stages.StepID
		want     []Record
		left     int
		lost     int64
	}{
		{"empty", 4, nil, 1, nil, 0, 0},
		{"all of one step", 4, []Record{rec(1, 1), rec(1, 2)}, 1, []Record{rec(1, 1), rec(1, 2)}, 0, 0},
		{"two steps mixed", 4, []Record{rec(1, 1), rec(2, 2), rec(1, 3), rec(2, 4)}, 1, []Record{rec(1, 1), rec(1, 3)}, 2, 0},
		{"the later step first", 4, []Record{rec(1, 1), rec(2, 2), rec(1, 3)}, 2, []Record{rec(2, 2)}, 2, 0},
		{"overwritten", 3, []Record{rec(1, 1), rec(1, 2), rec(1, 3), rec(1, 4), rec(1, 5)}, 1, []Record{rec(1, 3), rec(1, 4), rec(1, 5)}, 0, 2},
		{"wrapped and mixed", 3, []Record{rec(1, 1), rec(2, 2), rec(1, 3), rec(2, 4)}, 2, []Record{rec(2, 2), rec(2, 4)}, 1, 1},
		{"stale", 4, []Record{rec(1, 1), rec(2, 2), rec(66, 3)}, 66, []Record{rec(66, 3)}, 1, 0},
		{"default capacity", 0, []Record{rec(1, 1)}, 1, []Record{rec(1, 1)}, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := NewRing(tc.capacity)
			for _, rec := range tc.add {
				r.Add(rec)
			}
			head := Record{Step: 99}
			got := r.Take(tc.take, []Record{head})
			if !slices.Equal(got, append([]Record{head}, tc.want...)) || r.Len() != tc.left || r.Lost() != tc.lost {
				t.Errorf("after %v, Take(%d)\n got %v, %d left, %d lost\nwant %v, %d left, %d lost",
					tc.add, tc.take, got[1:], r.Len(), r.Lost(), tc.want, tc.left, tc.lost)
			}
		})
	}
}

// A ring behaves as a list that forgets its head.
func TestRingAgainstList(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		capacity := 1 + rng.IntN(9)
		r := NewRing(capacity)
		var list []Record
		lost := int64(0)
		for op := range 300 {
			if rng.IntN(6) > 0 {
				rec := Record{Step: stages.StepID(rng.IntN(4)), BeganNS: int64(op)}
				r.Add(rec)
				if list = append(list, rec); len(list) > capacity {
					list, lost = list[1:], lost+1
				}
				continue
			}
			step := stages.StepID(rng.IntN(4))
			var want, rest []Record
			for _, rec := range list {
				if rec.Step == step {
					want = append(want, rec)
				} else {
					rest = append(rest, rec)
				}
			}
			list = rest
			if got := r.Take(step, nil); !slices.Equal(got, want) || r.Len() != len(list) || r.Lost() != lost {
				t.Fatalf("seed %d op %d: Take(%d) got %v, %d left, %d lost; want %v, %d, %d",
					seed, op, step, got, r.Len(), r.Lost(), want, len(list), lost)
			}
		}
	}
}

// A ring without a given capacity grows while its steps go on, and then says what it has lost.
func TestRingGrows(t *testing.T) {
	r := NewRing(0)
	const more = 10
	for i := range MaxRingRecords + more {
		r.Add(Record{Step: stages.StepID(1 + i/(MaxRingRecords/2)), BeganNS: int64(i)})
	}
	if r.Len() != MaxRingRecords || r.Lost() != more || r.TakeLost(1) != more || r.TakeLost(1) != 0 || r.TakeLost(2) != 0 {
		t.Errorf("%d records held and %d lost, want %d and %d of step 1", r.Len(), r.Lost(), MaxRingRecords, more)
	}
	got := r.Take(1, nil)
	if len(got) != MaxRingRecords/2-more || got[0].BeganNS != more {
		t.Errorf("%d records of step 1 from %d on, want %d from %d on", len(got), got[0].BeganNS, MaxRingRecords/2-more, more)
	}
	for i := range got {
		if got[i].BeganNS != int64(more+i) {
			t.Fatalf("record %d is number %d, want %d", i, got[i].BeganNS, more+i)
		}
	}
}

func TestRingDoesNotAllocate(t *testing.T) {
	r := NewRing(64)
	dst := make([]Record, 0, 64)
	n := stages.StepID(0)
	if a := testing.AllocsPerRun(100, func() {
		n++
		for range 40 {
			r.Add(Record{Step: n})
		}
		dst = r.Take(n, dst[:0])
	}); a != 0 || len(dst) != 40 {
		t.Errorf("%v allocations for 40 records of which %d were taken; want 0", a, len(dst))
	}
}

func BenchmarkRingAdd(b *testing.B) {
	r := NewRing(0)
	rec := Record{Step: 1, Layer: 3, Stage: stages.Dispatch, Kind: stages.KindBeginLayer}
	b.ReportAllocs()
	for b.Loop() {
		rec.BeganNS++
		r.Add(rec)
	}
}
