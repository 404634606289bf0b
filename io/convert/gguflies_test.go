package convert_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/io/gguf"
)

// forgery is a GGUF file whose header is changed in place, over and over.
type forgery struct {
	raw   []byte
	begin int // of the data
	path  string
	file  *os.File
	rand  *rand.Rand
}

func forge(t *testing.T, path string) *forgery {
	t.Helper()
	m, err := gguf.OpenModel(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	f := &forgery{raw: readFile(t, path), begin: len(m.Files()[0].Begin()), path: filepath.Join(t.TempDir(), "model.gguf"), rand: rand.New(rand.NewPCG(5, 6))}
	if err := os.WriteFile(f.path, f.raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if f.file, err = os.OpenFile(f.path, os.O_WRONLY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.file.Close() })
	return f
}

// change changes the header in one to three places, and now and then cuts the file short.
func (f *forgery) change() error {
	extreme := []uint64{0, 1, 2, 3, 12, 30, 1 << 16, 1 << 31, math.MaxUint32, 1 << 32, math.MaxInt64, 1 << 63, math.MaxUint64}
	r, changed := f.rand, append([]byte(nil), f.raw[:f.begin]...)
	for range 1 + r.IntN(3) {
		at := r.IntN(f.begin - 8)
		switch r.IntN(5) {
		case 0:
			changed[at] = byte(r.Uint32())
		case 1:
			changed[at] ^= 1 << r.IntN(8)
		case 2:
			binary.LittleEndian.PutUint32(changed[at:], uint32(extreme[r.IntN(len(extreme))]))
		case 3:
			binary.LittleEndian.PutUint64(changed[at:], extreme[r.IntN(len(extreme))])
		default: // one part of the header in the place of another
			copy(changed[at:], f.raw[r.IntN(f.begin-8):][:8])
		}
	}
	if _, err := f.file.WriteAt(changed, 0); err != nil || r.IntN(64) > 0 {
		return err
	}
	return f.file.Truncate(int64(r.IntN(len(f.raw))))
}

// restore makes the file whole again.
func (f *forgery) restore() error {
	info, err := f.file.Stat()
	if err == nil && info.Size() < int64(len(f.raw)) {
		_, err = f.file.WriteAt(f.raw[info.Size():], info.Size())
	}
	return err
}

// A file of which bytes that tell what it holds are changed opens, or is an error: it takes no
// memory that its size does not account for, and nothing panics.
func TestLoadMutations(t *testing.T) {
	// What opening any file takes: buffers of a conversion, and what a header makes of itself.
	const fixed = 32 << 20
	paths := []string{fixtures.GGUF(t, fixtures.MiniMaxM2BF16), fixtures.GGUF(t, fixtures.DeepseekV3BF16), fixtures.GGUF(t, fixtures.Qwen35MoEBF16), fixtures.GGUF(t, fixtures.GptOssMXFP4),
		fixtures.GGUF(t, fixtures.Step35BF16), fixtures.GGUF(t, fixtures.DeepseekV32BF16), fixtures.GGUF(t, fixtures.GlmMoEDSASharedBF16), fixtures.GGUF(t, fixtures.MiniMaxM3BF16), fixtures.GGUF(t, fixtures.HunyuanV1MoEBF16),
		fixtures.Path(t, fixtures.ExactGGUF), fixtures.Path(t, fixtures.RoundedGGUF)}
	rounds := testenv.Rounds(2_000, 2_000, 100_000) / len(paths) // of step35 2 of 181 open
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f, opened := forge(t, path), 0
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range rounds {
				if err := f.change(); err != nil {
					t.Fatal(err)
				}
				l, err := convert.Load(f.path)
				if err == nil {
					opened++
					if n := len(l.Weights.Mapping()); n > 2*len(f.raw) { // numbers of F16 in vectors are widened
						t.Errorf("%d bytes of weights of a file of %d", n, len(f.raw))
					}
					l.Weights.Close()
					l.Experts.Close()
				}
				if err := f.restore(); err != nil {
					t.Fatal(err)
				}
			}
			runtime.ReadMemStats(&after)
			if each := (after.TotalAlloc - before.TotalAlloc) / uint64(rounds); each > uint64(fixed+8*f.begin) {
				t.Errorf("%d bytes are allocated to open a file of %d with a header of %d", each, len(f.raw), f.begin)
			}
			if opened == 0 || opened == rounds {
				t.Errorf("%d of %d mutations open", opened, rounds)
			}
			t.Logf("%d of %d mutations open; one takes %d bytes of the heap", opened, rounds, (after.TotalAlloc-before.TotalAlloc)/uint64(rounds))
		})
	}
}
