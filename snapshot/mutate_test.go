package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/model"
)

// mutate returns a damaged copy of a file. others are further valid files, parts of which may be
// put in.
func mutate(rng *rand.Rand, file []byte, others [][]byte) []byte {
	b := slices.Clone(file)
	for range 1 + rng.IntN(3)*rng.IntN(3) {
		if len(b) == 0 {
			return append(b, byte(rng.Uint32()))
		}
		at := rng.IntN(len(b))
		// headers, lengths and seals are small; this finds the first and the last of them
		if rng.IntN(3) == 0 {
			at = min(rng.IntN(100), len(b)-1)
			if rng.IntN(2) == 0 {
				at = len(b) - 1 - at
			}
		}
		n := min(1+rng.IntN(40), len(b)-at)
		switch rng.IntN(11) {
		case 0:
			b[at] ^= 1 << rng.IntN(8)
		case 1:
			b[at] = byte(rng.Uint32())
		case 2: // cut the end
			b = b[:at]
		case 3: // cut the middle
			b = slices.Delete(b, at, at+n)
		case 4: // grow
			b = slices.Insert(b, at, make([]byte, n)...)
		case 5: // grow the end
			for range n {
				b = append(b, byte(rng.Uint32()))
			}
		case 6: // lie in a word: header, length, or what comes
			if w := at &^ 3; w+4 <= len(b) {
				lies := []uint32{0, 1, 2, 3, 4, 1 << 20, 1<<20 + 1, 1 << 31, ^uint32(0), rng.Uint32(), binary.LittleEndian.Uint32(b[w:]) + 1, binary.LittleEndian.Uint32(b[w:]) - 1}
				binary.LittleEndian.PutUint32(b[w:], lies[rng.IntN(len(lies))])
			}
		case 7: // swap two places
			to := rng.IntN(len(b) - n + 1)
			x, y := slices.Clone(b[at:at+n]), slices.Clone(b[to:to+n])
			copy(b[at:], y)
			copy(b[to:], x)
		case 8: // zeros, as of a page that was never written
			clear(b[at : at+n])
		case 9: // a part of another file
			o := others[rng.IntN(len(others))]
			from := min(at, len(o))
			copy(b[at:at+n], o[from:])
		case 10: // the beginning of one and the end of another
			o := others[rng.IntN(len(others))]
			b = append(b[:at], o[min(at, len(o)):]...)
		}
	}
	return b
}

// holder has a state and gets others the way an engine does: a fresh one is filled and takes the
// old one's place.
type holder struct{ st *paged }

func (h *holder) load(file []byte, o ReadOptions) error {
	st, _, err := load(file, h.st.s, o, h.st.pageRows)
	if err != nil {
		return err
	}
	h.st = st
	return nil
}

// TestMutations damages sealed files at random. Each either loads what was saved in one of them, or
// is refused by a typed error and leaves the holder's state as it was.
func TestMutations(t *testing.T) {
	rounds := testenv.Rounds(10_000, 30_000, 1_000_000)
	const seed1, seed2 = 9, 10
	rng := rand.New(rand.NewPCG(seed1, seed2))
	var refused, loaded int
	kinds := map[error]int{}
	for _, name := range []string{"hybrid", "softmax", "latent", "irregular", "recurrent", "mixed"} {
		s := shapes[name]
		type saved struct {
			st   *paged
			file []byte
		}
		var all []saved
		var files [][]byte
		for _, n := range []int{0, 1, 3, 3, 9} {
			st := randomState(rng, s, 4, n)
			file := mustWrite(t, st, WriteOptions{Version: 2 * rng.IntN(2), Seal: &Seal{Fingerprint: Fingerprint{1}, Tokens: tokens(n), Note: [][]byte{nil, {}, []byte("a note")}[rng.IntN(3)]}})
			all = append(all, saved{st, file})
			files = append(files, file)
		}
		h := &holder{randomState(rng, s, 4, 2)}
		before := mustWrite(t, h.st, WriteOptions{Seal: &Seal{}})
		for round := range (rounds + len(shapes) - 1) / len(shapes) {
			of := all[rng.IntN(len(all))]
			file := mutate(rng, of.file, files)
			err := h.load(file, ReadOptions{Fingerprint: Fingerprint{1}})
			// A shown file must not fall over either.
			if f, err := Inspect(bytes.NewReader(file), int64(len(file))); err == nil {
				f.Info()
				if err := f.Verify(); err == nil && !slices.ContainsFunc(files, func(b []byte) bool { return bytes.Equal(b, file) }) {
					t.Fatalf("%s, round %d of seed %d,%d: a damaged file verifies", name, round, seed1, seed2)
				}
			}
			if err == nil {
				loaded++
				if !slices.ContainsFunc(all, func(s saved) bool { return bytes.Equal(s.file, file) && s.st.equal(h.st) }) {
					t.Fatalf("%s, round %d of seed %d,%d: a damaged file loads", name, round, seed1, seed2)
				}
				before = mustWrite(t, h.st, WriteOptions{Seal: &Seal{}})
				continue
			}
			refused++
			e := (*Error)(nil)
			if !errors.As(err, &e) {
				t.Fatalf("%s, round %d of seed %d,%d: not typed: %v", name, round, seed1, seed2, err)
			}
			kinds[e.Kind]++
			if !bytes.Equal(mustWrite(t, h.st, WriteOptions{Seal: &Seal{}}), before) {
				t.Fatalf("%s, round %d of seed %d,%d: the state in use has changed", name, round, seed1, seed2)
			}
		}
	}
	t.Logf("%d refused, %d were what was saved", refused, loaded)
	for _, kind := range []error{ErrNotSnapshot, ErrVersion, ErrTruncated, ErrShape, ErrNegativeLen, ErrLenOverflow, ErrTrailing, ErrUnsealed, ErrSeal, ErrChecksum} {
		if kinds[kind] == 0 {
			t.Errorf("no file was refused as %q", kind)
		}
		t.Logf("%6d: %v", kinds[kind], kind)
	}
}

// TestPlainMutations damages files without a seal: each is refused by a typed error, or loads a
// state whose file is that very file, so that nothing in it was passed over.
func TestPlainMutations(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for _, name := range []string{"hybrid", "softmax", "latent"} {
		s := shapes[name]
		st := randomState(rng, s, 4, 5)
		file := mustWrite(t, st, WriteOptions{})
		loaded := 0
		for range 5_000 {
			damaged := mutate(rng, file, [][]byte{file})
			got, f, err := load(damaged, s, ReadOptions{Accept: Plain}, 4)
			if err != nil {
				if !errors.As(err, new(*Error)) {
					t.Fatalf("not typed: %v", err)
				}
				continue
			}
			loaded++
			if f.Seal() == nil && !bytes.Equal(mustWrite(t, got, WriteOptions{Version: f.Info().Version}), damaged) {
				t.Fatal("a file loads whose state would be written otherwise")
			}
		}
		if loaded == 0 {
			t.Errorf("%s: all were refused, flipped values among them", name)
		}
	}
}

// FuzzOpen takes arbitrary bytes for snapshots of every shape.
func FuzzOpen(f *testing.F) {
	v1, _, _ := version1()
	v2, _, _ := version2()
	f.Add([]byte(v1))
	f.Add([]byte(v2))
	rng := rand.New(rand.NewPCG(13, 14))
	names := []string{"hybrid", "softmax", "latent", "irregular", "recurrent", "mixed"}
	for _, name := range names {
		for _, n := range []int{0, 2} {
			f.Add(mustWrite(f, randomState(rng, shapes[name], 4, n), WriteOptions{Seal: &Seal{Tokens: tokens(n)}}))
		}
	}
	all := []*Shape{{Layers: []model.Mixer{lin, ful}, KVHeads: 2, HeadDim: 3, ConvRows: 3, ConvDim: 5, ValueHeads: 2, ValueDim: 2, KeyDim: 4}}
	for _, name := range names {
		all = append(all, shapes[name])
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		for _, s := range all {
			for accept := Sealed; accept <= Padded; accept++ {
				got, opened, err := load(file, s, ReadOptions{Accept: accept}, 4)
				if err != nil {
					if !errors.As(err, new(*Error)) {
						t.Errorf("not typed: %v", err)
					}
					continue
				}
				o := WriteOptions{Version: opened.Info().Version, Seal: opened.Seal()}
				again := mustWrite(t, got, o)
				if !bytes.HasPrefix(file, again) || accept < Padded && len(file) != len(again) {
					t.Error("what loads would be written otherwise")
				}
			}
		}
		if opened, err := Inspect(bytes.NewReader(file), int64(len(file))); err == nil {
			opened.Info()
			if err := opened.Verify(); err != nil && !errors.As(err, new(*Error)) {
				t.Errorf("not typed: %v", err)
			}
		} else if !errors.As(err, new(*Error)) {
			t.Errorf("not typed: %v", err)
		}
	})
}
