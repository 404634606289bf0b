package convert_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/io/safetensors"
)

// A checkpoint with a tiktoken.model or hy.tiktoken and no tokenizer.json keeps it, and vocab.bin
// has its tokens.
func TestConvertTiktoken(t *testing.T) {
	for _, c := range []struct {
		name, class string
		special     int
	}{{"tiktoken.model", "TikTokenTokenizer", 256}, {"hy.tiktoken", "HYTokenizer", 210}} {
		t.Run(c.name, func(t *testing.T) { convertRanks(t, c.name, c.class, c.special) })
	}
}

func convertRanks(t *testing.T, name, class string, special int) {
	dir := newCheckpoint(safetensors.BF16).write(t)
	files := map[string]string{
		name: "YQ== 0\nYg== 1\nYWI= 2\n", "tokenizer_config.json": `{"tokenizer_class": "` + class + `"}`,
	}
	for name, content := range files {
		writeFile(t, filepath.Join(dir, name), []byte(content))
	}
	dst := mustConvert(t, dir, convert.Options{Progress: func(p convert.Progress) {
		if p.Warning != "" {
			t.Errorf("warning %q", p.Warning)
		}
	}})
	for name, content := range files {
		got, err := os.ReadFile(filepath.Join(dst, name))
		if err != nil {
			t.Fatal(err)
		}
		sameBytes(t, name, got, []byte(content))
	}
	raw, err := os.ReadFile(filepath.Join(dst, "vocab.bin"))
	if err != nil {
		t.Fatal(err)
	}
	if n := binary.LittleEndian.Uint32(raw); int(n) != 3+special {
		t.Errorf("%d tokens, want %d", n, 3+special)
	}
	sameBytes(t, "the first tokens", raw[8:][:10], []byte("\x01\x00a\x01\x00b\x02\x00ab"))
}
