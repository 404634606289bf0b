package gguf

import (
	"os"
	"path/filepath"
	"testing"
)

func TestIs(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for path, want := range map[string]bool{
		write("a.bin", "GGUF\x03\x00\x00\x00"): true, write("b.gguf", "text"): true, write("c.GGUF", ""): true,
		write("d.bin", "PK\x03\x04"): false, write("e", ""): false, dir: false, filepath.Join(dir, "none.gguf"): false,
	} {
		if Is(path) != want {
			t.Errorf("%s: want %v", path, want)
		}
	}
}
