package convert_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/io/gguf"
)

// A file of which bytes that tell what it holds are changed opens, or is an error: it takes no
// memory that its size does not account for, and nothing panics.
func TestLoadMutations(t *testing.T) {
	rounds := 2000
	if testing.Short() {
		rounds = 200
	}
	for _, name := range []string{fixtures.MiniMaxM2BF16, fixtures.DeepseekV3BF16} {
		raw := readFile(t, fixtures.GGUF(t, name))
		m, err := gguf.OpenModel(fixtures.GGUF(t, name))
		if err != nil {
			t.Fatal(err)
		}
		begin := len(m.Files()[0].Begin())
		m.Close()
		path := filepath.Join(t.TempDir(), "model.gguf")
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r := rand.New(rand.NewPCG(5, 6))
		opened := 0
		for range rounds {
			changed := append([]byte(nil), raw[:begin]...)
			for range 1 + r.IntN(3) {
				changed[r.IntN(begin)] = byte(r.Uint32())
			}
			if _, err := f.WriteAt(changed, 0); err != nil {
				t.Fatal(err)
			}
			l, err := convert.Load(path)
			if err != nil {
				continue
			}
			opened++
			if n := len(l.Weights.Mapping()); n > 4*len(raw) {
				t.Errorf("%s: %d bytes of weights of a file of %d", name, n, len(raw))
			}
			l.Weights.Close()
			l.Experts.Close()
		}
		if opened == 0 || opened == rounds {
			t.Errorf("%s: %d of %d mutations open", name, opened, rounds)
		}
	}
}
