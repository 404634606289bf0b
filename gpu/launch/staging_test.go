package launch

import (
	"bytes"
	"testing"
)

// Pieces of a staging do not overlap, are what the block has at the offset, and are used again when
// they were returned; copies out are made if the device has done its part.
func TestStaging(t *testing.T) {
	made := 0
	var blocks Blocks[int]
	blocks.New = func(size int) (int, []byte, error) {
		made++
		return made, make([]byte, size), nil
	}
	var s Staging[int]
	for round := range 3 {
		type piece struct{ from, to int }
		taken := map[int][]piece{}
		for _, n := range []int{1, 100, LeastBlock - 64, LeastBlock, 3 * LeastBlock, 64, 7} {
			mem, in, at, err := s.Take(&blocks, n)
			if err != nil || len(mem) != n || cap(mem) != n || at%blockAlign != 0 {
				t.Fatalf("%d bytes: %d of %d at %d, %v", n, len(mem), cap(mem), at, err)
			}
			for _, p := range taken[in] {
				if at < p.to && p.from < at+n {
					t.Errorf("%d bytes at %d of block %d overlap %v", n, at, in, p)
				}
			}
			taken[in] = append(taken[in], piece{at, at + n})
		}
		src, _, _, err := s.Take(&blocks, 4)
		if err != nil {
			t.Fatal(err)
		}
		dst := make([]byte, 4)
		s.Out(dst, src)
		copy(src, "done")
		s.Return(&blocks, round > 0)
		if done := bytes.Equal(dst, []byte("done")); done != (round > 0) {
			t.Errorf("round %d: copied out: %v", round, done)
		}
	}
	if made > 4 {
		t.Errorf("%d blocks were made, want no new ones after the first round", made)
	}
	freed := 0
	blocks.Free = func(Block[int]) { freed++ }
	blocks.Drain()
	blocks.Drain()
	if freed != made {
		t.Errorf("%d of %d blocks came back", freed, made)
	}
}

// TestStagingIsGivenBack takes more than is kept for the next copies: a block for a large copy is
// no larger than the copy, and what is spare afterwards is bounded.
func TestStagingIsGivenBack(t *testing.T) {
	live, most := 0, 0
	blocks := Blocks[int]{
		New: func(size int) (int, []byte, error) {
			live += size
			most = max(most, live)
			return size, make([]byte, size), nil
		},
		Free: func(x Block[int]) { live -= len(x.Bytes) },
	}
	var s Staging[int]
	const large = 3*MostSpare + 1
	for range 2 {
		for _, n := range []int{large, MostSpare, MostSpare / 2, MostSpare / 4, 100} {
			if _, _, _, err := s.Take(&blocks, n); err != nil {
				t.Fatal(err)
			}
		}
		s.Return(&blocks, true)
		if live > MostSpare {
			t.Errorf("%d bytes are kept for the next copies, want at most %d", live, MostSpare)
		}
	}
	if most > large+3*MostSpare {
		t.Errorf("copies of %d bytes took %d", large+2*MostSpare, most)
	}
	blocks.Drain()
	if live != 0 {
		t.Errorf("%d bytes were not given back", live)
	}
}
