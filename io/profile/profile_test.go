package profile

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/io/fingerprint"
)

var ours = fingerprint.Fingerprint{1, 2, 3}

// counted returns a profile of random counts.
func counted(t testing.TB, layers, experts int) *Profile {
	t.Helper()
	p, err := New(layers, experts)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	uses := make([]int64, layers*experts)
	for k := range uses {
		uses[k] = r.Int64N(101)
	}
	if err := p.Merge(100, uses); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSaveLoad(t *testing.T) {
	path := Path(filepath.Join(t.TempDir(), "new", "folder"), ours)
	if _, err := Load(path, ours, 3, 5); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("a missing file: %v, want %v", err, fs.ErrNotExist)
	}
	p := counted(t, 3, 5)
	for range 2 { // the second replaces the first
		if err := p.Save(path, ours); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Load(path, ours, 3, 5)
	if err != nil {
		t.Fatal(err)
	}
	if got.Layers != 3 || got.Experts != 5 || got.Rows != p.Rows || !slices.Equal(got.Uses, p.Uses) {
		t.Errorf("got %+v, want %+v", got, p)
	}
	if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) != 1 {
		t.Errorf("the folder holds %v, %v, want the profile alone", files, err)
	}
	for _, tc := range []struct {
		of              fingerprint.Fingerprint
		layers, experts int
	}{{fingerprint.Fingerprint{9}, 3, 5}, {ours, 5, 3}, {ours, 3, 4}} {
		var e *FileError
		if p, err := Load(path, tc.of, tc.layers, tc.experts); p != nil || !errors.Is(err, ErrForeign) || !errors.As(err, &e) || e.Path != path {
			t.Errorf("as %v of %d layers of %d: %v, %v, want %v", tc.of, tc.layers, tc.experts, p, err, ErrForeign)
		}
	}
}

// A file with any flipped bit, or that is too short or too long, is refused.
func TestDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p")
	raw := counted(t, 2, 3).encode(ours)
	refused := func(what string, raw []byte) {
		t.Helper()
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		var e *FileError
		if p, err := Load(path, ours, 2, 3); p != nil || !errors.As(err, &e) {
			t.Errorf("%s: %v, %v, want a *FileError", what, p, err)
		}
	}
	for i := range raw {
		bad := slices.Clone(raw)
		bad[i] ^= 1 << (i % 8)
		refused(fmt.Sprintf("a bit of byte %d", i), bad)
		refused("cut short", raw[:i])
	}
	refused("a byte more", append(slices.Clone(raw), 0))
	// More uses than rows, with the right checksum.
	body := slices.Clone(raw[:len(raw)-sha256.Size])
	binary.LittleEndian.PutUint32(body[headerSize:], 101)
	sum := sha256.Sum256(body)
	refused("more uses than rows", append(body, sum[:]...))
	if _, err := Load(filepath.Dir(path), ours, 2, 3); err == nil {
		t.Error("a folder was read as a profile")
	}
	if err := os.Truncate(path, int64(maxFile)+1); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path, ours, 2, 3); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("a huge file: %v", err)
	}
}

func TestSaveErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := counted(t, 1, 1)
	for _, path := range []string{filepath.Join(file, "p"), t.TempDir()} {
		var e *FileError
		if err := p.Save(path, ours); !errors.As(err, &e) {
			t.Errorf("saving to %s: %v, want a *FileError", path, err)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

func TestMerge(t *testing.T) {
	p, err := New(1, 3)
	if err != nil {
		t.Fatal(err)
	}
	merge := func(rows int64, uses ...int64) {
		t.Helper()
		if err := p.Merge(rows, uses); err != nil {
			t.Fatal(err)
		}
		for k, n := range p.Uses {
			if n > p.Rows || p.Rows > Horizon {
				t.Fatalf("expert %d was used by %d of %d rows, of %d at most", k, n, p.Rows, Horizon)
			}
		}
	}
	shares := func(want ...float64) {
		t.Helper()
		for k, w := range want {
			if got := p.Share(k); math.Abs(got-w) > 1e-4 {
				t.Errorf("share of expert %d is %.5f, want %.5f", k, got, w)
			}
		}
	}
	shares(0, 0, 0)
	merge(0, 5, 5, 5) // no rows: nothing changes
	shares(0, 0, 0)
	merge(HalfLife, HalfLife, HalfLife/2, 0)
	shares(1, 0.5, 0)
	merge(HalfLife, 0, HalfLife/2, 0) // the older rows count half
	shares(1/3., 0.5, 0)
	if p.Rows != HalfLife/2+HalfLife {
		t.Errorf("%d rows, want %d", p.Rows, HalfLife/2+HalfLife)
	}
	merge(10*Horizon, 0, 5*Horizon, 0) // a long run displaces everything older
	shares(0, 0.5, 0)
	if p.Rows != Horizon {
		t.Errorf("%d rows, want %d", p.Rows, Horizon)
	}
	merge(HalfLife, -7, HalfLife+1, math.MaxInt64) // counts as 0, HalfLife, HalfLife
	newer := float64(HalfLife) / (HalfLife + Horizon/2)
	shares(0, newer+(1-newer)/2, newer)
	if err := p.Merge(1, make([]int64, 4)); !errors.Is(err, ErrSize) {
		t.Errorf("four counts for three experts: %v, want %v", err, ErrSize)
	}
}

// Many short runs outweigh an old habit, however many rows it was counted over, and in the end
// nothing is left of it. They do so as fast if each is a single row.
func TestMergeShortRuns(t *testing.T) {
	for _, old := range []int64{100, HalfLife, 10 * Horizon} {
		for _, run := range []int64{1, 100} {
			p, err := New(1, 3)
			if err != nil {
				t.Fatal(err)
			}
			merge := func(rows int64, uses ...int64) {
				if err := p.Merge(rows, uses); err != nil {
					t.Fatal(err)
				}
			}
			merge(old, old, 0, old/40)
			for rows := int64(0); rows < 4*HalfLife; rows += run {
				merge(run, 0, run, 0)
			}
			if habit, since := p.Share(0), p.Share(1); habit >= since {
				t.Errorf("%d old rows weigh %.3f, and %d of runs of %d weigh %.3f", old, habit, 4*HalfLife, run, since)
			}
			for rows := int64(0); rows < 16*HalfLife; rows += run {
				merge(run, 0, run, 0)
			}
			if p.Share(0) > 1e-2 || p.Share(2) > 1e-2 {
				t.Errorf("of %d old rows %.4f and %.4f are left after runs of %d", old, p.Share(0), p.Share(2), run)
			}
			if want := HalfLife / math.Ln2; math.Abs(float64(p.Rows)-want) > want/20 {
				t.Errorf("%d rows after runs of %d, want about %.0f", p.Rows, run, want)
			}
		}
	}
}

func TestHottest(t *testing.T) {
	p, err := New(2, 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Merge(9, []int64{2, 9, 0, 2, 5, 9}); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int][]int{-1: {}, 0: {}, 2: {1, 5}, 4: {1, 5, 4, 0}, 99: {1, 5, 4, 0, 3}} {
		if got := p.Hottest(n); !slices.Equal(got, want) {
			t.Errorf("the hottest %d are %v, want %v", n, got, want)
		}
	}
}

func TestNewErrors(t *testing.T) {
	for _, size := range [][2]int{{0, 1}, {1, 0}, {-1, -1}, {MaxKeys, 2}, {1 << 30, 1 << 30}} {
		if p, err := New(size[0], size[1]); err == nil || p != nil {
			t.Errorf("%d layers of %d experts: %v, %v, want an error", size[0], size[1], p, err)
		}
	}
}

// Update adds to an existing profile, and replaces one that cannot be used.
func TestUpdate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p")
	for i, want := range []uint32{HalfLife, HalfLife/2 + HalfLife, HalfLife} {
		if i == 2 {
			if err := os.WriteFile(path, []byte("damaged"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := Update(path, ours, 1, 2, HalfLife, []int64{4, 6}); err != nil {
			t.Fatal(err)
		}
		if p, err := Load(path, ours, 1, 2); err != nil || p.Rows != want {
			t.Errorf("update %d: %+v, %v, want %d rows", i, p, err, want)
		}
	}
	if err := Update(path, ours, 1, 2, 10, nil); !errors.Is(err, ErrSize) {
		t.Errorf("no counts: %v", err)
	}
	if err := Update(path, ours, 0, 0, 1, nil); err == nil {
		t.Error("no layers: no error")
	}
}

// Whatever the bytes, nothing panics, and accepted content is what encode would write.
func FuzzParse(f *testing.F) {
	f.Add(counted(f, 2, 3).encode(ours))
	f.Add([]byte(magic))
	f.Add([]byte{})
	huge := append([]byte(magic), make([]byte, headerSize+100)...)
	for i := len(magic) + sha256.Size; i < headerSize; i++ {
		huge[i] = 0xff
	}
	f.Add(huge)
	f.Fuzz(func(t *testing.T, raw []byte) {
		check := func(raw []byte) {
			of, p, err := parse(raw)
			if err != nil {
				return
			}
			if !slices.Equal(p.encode(of), raw) {
				t.Errorf("%x is read and written as %x", raw, p.encode(of))
			}
			p.Hottest(10)
		}
		check(raw)
		// The same with the right checksum, to get past that check.
		sum := sha256.Sum256(raw)
		check(append(slices.Clone(raw), sum[:]...))
	})
}
