package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// naiveMerge is the definition: as long as any pair merges, merge the one of lowest rank, the
// leftmost of equals.
func naiveMerge(table *pairTable, ids []int32) []int32 {
	ids = slices.Clone(ids)
	for {
		best, at, to := uint32(noRank), 0, int32(0)
		for i := 0; i+1 < len(ids); i++ {
			if rank, id := table.get(ids[i], ids[i+1]); rank < best {
				best, at, to = rank, i, id
			}
		}
		if best == noRank {
			return ids
		}
		ids[at] = to
		ids = slices.Delete(ids, at+1, at+2)
	}
}

// Random merges over three letters, which chain and overlap far more than those of a language.
func TestMergeFollowsDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		table, ids := newPairTable(60), int32(3)
		for rank := range uint32(60) {
			left, right := int32(rng.IntN(int(ids))), int32(rng.IntN(int(ids)))
			if r, _ := table.get(left, right); r != noRank {
				continue
			}
			table.put(left, right, rank, ids)
			ids++
		}
		for range 20 {
			piece := make([]int32, 1+rng.IntN(120))
			for i := range piece {
				piece[i] = int32(rng.IntN(3))
			}
			want := naiveMerge(&table, piece)
			var m merger
			m.ids = slices.Clone(piece)
			if m.mergeShort(&table); !slices.Equal(m.ids, want) {
				t.Fatalf("mergeShort(%v)\n got %v\nwant %v", piece, m.ids, want)
			}
			m.ids = slices.Clone(piece)
			if m.mergeLong(&table); !slices.Equal(m.ids, want) {
				t.Fatalf("mergeLong(%v)\n got %v\nwant %v", piece, m.ids, want)
			}
		}
	}
}

func TestPairTable(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	want := map[[2]int32]int32{}
	table := newPairTable(5000)
	for i := range int32(5000) {
		pair := [2]int32{int32(rng.IntN(200)), int32(rng.IntN(1 << 30))}
		if i%7 == 0 {
			pair = [2]int32{i / 7, i / 7}
		}
		want[pair] = i
		table.put(pair[0], pair[1], uint32(i), i)
	}
	for pair, id := range want {
		if rank, got := table.get(pair[0], pair[1]); got != id || rank != uint32(id) {
			t.Errorf("get(%v) = rank %d, id %d, want %d", pair, rank, got, id)
		}
		other := [2]int32{pair[1], pair[0]}
		if _, ok := want[other]; ok {
			continue
		}
		if rank, _ := table.get(other[0], other[1]); rank != noRank {
			t.Errorf("get(%v) = rank %d, want none", other, rank)
		}
	}
}

// One piece of a megabyte is merged in seconds, not hours, and right: a letter run by doubling
// merges.
func TestLongPiece(t *testing.T) {
	merges := [][2]string{}
	for s := "a"; len(s) < 64; s += s {
		merges = append(merges, [2]string{s, s})
	}
	tok := spec{merges: merges}.build(t)
	const size = 1<<20 + 37 // 37 = 32 + 4 + 1
	began := time.Now()
	ids := mustEncode(t, tok, strings.Repeat("a", size))
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("a piece of %d bytes took %v", size, took)
	}
	if want := 1<<14 + 3; len(ids) != want {
		t.Errorf("%d letters became %d tokens, want %d", size, len(ids), want)
	}
	if got := tok.Decode(ids, false); got != strings.Repeat("a", size) {
		t.Errorf("decoding gave %d bytes, want %d", len(got), size)
	}
	for _, kind := range kinds {
		text := strings.Repeat("abcdefghij", 1<<20/10)
		if got := mustLoad(t, kind); got.Decode(mustEncode(t, got, text), false) != text {
			t.Errorf("%s: a word of %d bytes does not come back", kind, len(text))
		}
	}
}

func TestIgnoreMerges(t *testing.T) {
	s := spec{merges: [][2]string{{"b", "c"}, {"a", "b"}, {"ab", "c"}}}
	if got, want := mustEncode(t, s.build(t), "abc"), []int32{'a', 256}; !slices.Equal(got, want) {
		t.Errorf("merged: got %v, want %v", got, want)
	}
	s.modelKeys = obj{"ignore_merges": true}
	tok := s.build(t)
	for range 2 {
		if got, want := mustEncode(t, tok, "abc"), []int32{258}; !slices.Equal(got, want) {
			t.Errorf("ignore_merges: got %v, want %v", got, want)
		}
	}
	if got, want := mustEncode(t, tok, "abcb"), []int32{'a', 256, 'b'}; !slices.Equal(got, want) {
		t.Errorf("ignore_merges on what is no token: got %v, want %v", got, want)
	}
}
