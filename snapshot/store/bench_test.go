package store

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/moeflux/moeflux-actor/snapshot"
)

// BenchmarkPut saves a state beside a plain file of the same bytes that is synced.
func BenchmarkPut(b *testing.B) {
	content := stateOf(b, ours, count(1<<20), 1) // 20 MB
	path := b.TempDir()
	folder, err := Dir(path)
	if err != nil {
		b.Fatal(err)
	}
	s := mustOpen(b, folder, Options{})
	write := func(w io.Writer) error {
		for at := 0; at < len(content); at += 512 << 10 {
			if _, err := w.Write(content[at:min(at+512<<10, len(content))]); err != nil {
				return err
			}
		}
		return nil
	}
	b.Run("way=put", func(b *testing.B) {
		b.SetBytes(int64(len(content)))
		for i := 0; b.Loop(); i++ {
			if err := s.Put(context.Background(), fmt.Sprint(i%2), write); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("way=plain", func(b *testing.B) {
		b.SetBytes(int64(len(content)))
		for i := 0; b.Loop(); i++ {
			f, err := os.Create(filepath.Join(path, fmt.Sprint("plain", i%2)))
			if err == nil {
				err = write(f)
			}
			if err == nil {
				err = f.Sync()
			}
			if err == nil {
				err = f.Close()
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkLongest searches among sessions whose seals are known.
func BenchmarkLongest(b *testing.B) {
	folder, err := Dir(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	s := mustOpen(b, folder, Options{})
	for i := range 100 {
		mustPut(b, s, fmt.Sprint(i), stateOf(b, ours, count(100*i+1), 1))
	}
	text := count(10_000)
	for b.Loop() {
		got, err := s.Longest([]snapshot.Fingerprint{ours}, text)
		if err != nil {
			b.Fatal(err)
		}
		if err := got.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
