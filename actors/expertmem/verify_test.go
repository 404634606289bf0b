package expertmem

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/model"
)

// damaged is a file whose records have a wrong bit as long as bad is set.
type damaged struct {
	*expertfile.File
	bad bool
}

func (d *damaged) ReadExpert(layer, expert int, dst []byte) error {
	err := d.File.ReadExpert(layer, expert, dst)
	if d.bad {
		dst[len(dst)/2] ^= 4
	}
	return err
}

// TestSample reads one expert many times, wrong at some of them. By default the first read is
// compared and then every 16th, and after a wrong one the next; with on every read is.
func TestSample(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0)
	raw, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := model.ParseConfig(raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := expertfile.Open(dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.LoadSums(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		verify Verify
		wrong  []int // reads, from 1
		found  []int
	}{
		{VerifyAuto, []int{1}, []int{1}},
		{VerifyAuto, []int{2, 16}, nil},
		{VerifyAuto, []int{17, 18, 19}, []int{17, 18, 19}},
		{"", []int{1, 2, 4, 18, 19}, []int{1, 2, 19}},
		{VerifyOn, []int{2, 5, 16}, []int{2, 5, 16}},
	} {
		src := &damaged{File: f}
		reads := newCheckedReads(src, f, c.verify)
		var found []int
		for n := 1; n <= 40; n++ {
			src.bad = slices.Contains(c.wrong, n)
			if reads.ReadExpert(f.Layers()[0], 1, make([]byte, f.Layout().Bytes)) != nil {
				found = append(found, n)
			}
		}
		if !slices.Equal(found, c.found) || int(reads.corrupt.Load()) != len(c.found) {
			t.Errorf("%q, reads %v are wrong: found %v, counted %d, want %v", c.verify, c.wrong, found, reads.corrupt.Load(), c.found)
		}
	}
}
