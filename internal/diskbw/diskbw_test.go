package diskbw

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// files makes files of the given sizes.
func files(t *testing.T, sizes ...int) []string {
	t.Helper()
	var out []string
	for i, n := range sizes {
		path := filepath.Join(t.TempDir(), string(rune('a'+i)))
		if err := os.WriteFile(path, make([]byte, n), 0o600); err != nil {
			t.Fatal(err)
		}
		out = append(out, path)
	}
	return out
}

// TestMeasure reads unaligned records, the last of which ends with its file.
func TestMeasure(t *testing.T) {
	const record = 10_000
	rates, err := Measure(context.Background(), Config{
		Files: files(t, 5*record, 0, 3*record+17), RecordBytes: record, Depths: []int{1, 3}, Rounds: 2, Time: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[Mode]int{}
	for _, r := range rates {
		seen[r.Mode]++
		if r.Reads < 2 || r.Reads > 16 || !(r.Min > 0 && r.Min <= r.Median && r.Median <= r.Max) || r.PerRead <= 0 {
			t.Errorf("got %+v, want 2 to 16 reads (two rounds of 8 records) and rates in order", r)
		}
	}
	if seen[Buffered] != 2 || seen[Direct] != 2 && seen[Direct] != 0 {
		t.Errorf("rates %v, want two depths of every supported mode", seen)
	}
}

func TestRefused(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]Config{
		"nothing":     {},
		"depth":       {Files: files(t, 100), RecordBytes: 10, Depths: []int{0}},
		"mode":        {Files: files(t, 100), RecordBytes: 10, Modes: []Mode{"mmap"}},
		"short files": {Files: files(t, 100), RecordBytes: 1000},
		"no file":     {Files: []string{filepath.Join(t.TempDir(), "none")}, RecordBytes: 10},
	} {
		if r, err := Measure(ctx, c); err == nil {
			t.Errorf("%s: got %v and no error", name, r)
		}
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := Measure(ended, Config{Files: files(t, 100), RecordBytes: 10}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestCutShort reads a file that lost its end: an error, and no endless loop.
func TestCutShort(t *testing.T) {
	path := files(t, 100)[0]
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := readFull(f, make([]byte, 50), 80, 50); err == nil {
		t.Error("50 bytes at 80 of 100: no error")
	}
}
