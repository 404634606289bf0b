package expertfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/model"
)

// The check value that every catalogue of CRCs gives for CRC-32C.
const checkSum = 0xE3069283

func TestSumWriter(t *testing.T) {
	text := strings.Repeat("123456789", 3)
	for piece := 1; piece <= len(text); piece++ {
		var passed bytes.Buffer
		s := SumWriter{W: &passed, Record: 9}
		for rest := []byte(text); len(rest) > 0; {
			n := min(piece, len(rest))
			if got, err := s.Write(rest[:n]); got != n || err != nil {
				t.Fatalf("wrote %d of %d bytes, %v", got, n, err)
			}
			rest = rest[n:]
		}
		if !slices.Equal(s.Sums, []uint32{checkSum, checkSum, checkSum}) || passed.String() != text {
			t.Errorf("pieces of %d: sums %#x, passed on %q", piece, s.Sums, passed.String())
		}
	}
}

// sumsFile returns a File with two layers of two records of nine bytes, in its own directory.
func sumsFile(t *testing.T) (*File, string) {
	dir := t.TempDir()
	f := &File{layout: model.ExpertLayout{Bytes: 9}, experts: 2, layers: []int{1, 3}, files: map[int]*layerFile{}}
	for _, l := range f.layers {
		path := filepath.Join(dir, LayerName(l))
		if err := os.WriteFile(path, []byte("123456789abcdefghi"), 0o644); err != nil {
			t.Fatal(err)
		}
		f.files[l] = &layerFile{path: path}
	}
	return f, filepath.Join(dir, SumsName)
}

func TestCheckRecord(t *testing.T) {
	f, path := sumsFile(t)
	if err := f.CheckRecord(1, 0, []byte("anything!")); err != nil {
		t.Errorf("without checksums: %v", err)
	}
	var missing *SumsError
	if err := f.LoadSums(); !errors.As(err, &missing) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	sums := Sums{}
	for _, l := range f.layers {
		var err error
		if sums[l], err = SumRecords(f.Path(l), 9); err != nil || sums[l][0] != checkSum {
			t.Fatalf("sums %#x, %v", sums[l], err)
		}
	}
	if _, err := SumRecords(f.Path(1), 10); err == nil {
		t.Error("half a record is summed")
	}
	if err := os.WriteFile(path, sums.Encode(9), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := f.LoadSums(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.CheckRecord(3, 0, []byte("123456789")), f.CheckRecord(3, 1, []byte("abcdefghi"))); err != nil {
		t.Error(err)
	}
	err := f.CheckRecord(3, 0, []byte("123456788"))
	var read *ReadError
	var sum *SumError
	if !errors.As(err, &read) || !errors.As(err, &sum) || read.Layer != 3 || read.Expert != 0 || read.Path != f.Path(3) || sum.Want != checkSum {
		t.Errorf("another byte: %v", err)
	}
}

// TestDamagedSums changes every byte of the file, truncates it at every length, and uses it with
// another model.
func TestDamagedSums(t *testing.T) {
	f, path := sumsFile(t)
	good := Sums{1: {1, 2}, 3: {3, 4}}.Encode(9)
	load := func(raw []byte) error {
		if err := os.WriteFile(path, raw, 0o644); err != nil {
			t.Fatal(err)
		}
		return f.LoadSums()
	}
	if err := load(good); err != nil {
		t.Fatal(err)
	}
	for i := range good {
		bad := slices.Clone(good)
		bad[i] ^= 0x10
		var damaged *SumsError
		if err := load(bad); !errors.As(err, &damaged) || damaged.Path != path {
			t.Errorf("byte %d changed: %v", i, err)
		}
		if err := load(good[:i]); !errors.As(err, &damaged) {
			t.Errorf("cut to %d bytes: %v", i, err)
		}
	}
	for what, raw := range map[string][]byte{
		"more behind": append(slices.Clone(good), 0, 0, 0, 0), "another size": Sums{1: {1, 2}, 3: {3, 4}}.Encode(8), "another layer": Sums{1: {1, 2}, 2: {3, 4}}.Encode(9),
		"more experts": Sums{1: {1, 2, 3}, 3: {3, 4, 5}}.Encode(9), "fewer layers": Sums{1: {1, 2}}.Encode(9), "nothing": {},
	} {
		if err := load(raw); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

func BenchmarkCheckRecord(b *testing.B) {
	record := make([]byte, 1769472) // of qwen3-30b-a3b
	for i := range record {
		record[i] = byte(i * 7)
	}
	f := &File{sums: Sums{0: {0}}}
	b.SetBytes(int64(len(record)))
	for b.Loop() {
		if f.CheckRecord(0, 0, record) == nil {
			b.Fatal("a checksum of 0")
		}
	}
}
