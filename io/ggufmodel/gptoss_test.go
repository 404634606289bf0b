package ggufmodel_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/ggufmodel"
)

// withKeys returns a file of a fixture that has further keys: their bytes, as the format has them.
func withKeys(t *testing.T, name string, keys ...string) string {
	t.Helper()
	raw, err := os.ReadFile(fixtures.GGUF(t, name))
	if err != nil {
		t.Fatal(err)
	}
	const counts, filler = 24, "\x06\x00\x00\x00\x00\x00\x00\x00filler\x08\x00\x00\x00"
	added := strings.Join(keys, "") + filler
	pad := (32 - (len(added)+8)%32) % 32 // data begins at a multiple of 32
	added += string(binary.LittleEndian.AppendUint64(nil, uint64(pad))) + strings.Repeat("x", pad)
	binary.LittleEndian.PutUint64(raw[16:], binary.LittleEndian.Uint64(raw[16:])+uint64(len(keys))+1)
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, slices.Concat(raw[:counts], []byte(added), raw[counts:]), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// key returns the bytes of a key of gpt-oss.
func key(name, value string) string {
	name = "gpt-oss." + name
	return string(binary.LittleEndian.AppendUint64(nil, uint64(len(name)))) + name + value
}

// Which layers have a window is a period or a list; what the family does not have is refused.
func TestWindows(t *testing.T) {
	const pattern, u32, f32, flags = "attention.sliding_window_pattern", "\x04\x00\x00\x00", "\x06\x00\x00\x00", "\x09\x00\x00\x00\x07\x00\x00\x00"
	for _, c := range []struct{ key, want string }{
		{key("some.other", u32+"\x01\x00\x00\x00"), "sliding_attention full_attention"},
		{key(pattern, u32+"\x02\x00\x00\x00"), "sliding_attention full_attention"},
		{key(pattern, u32+"\x03\x00\x00\x00"), "sliding_attention sliding_attention"},
		{key(pattern, u32+"\x01\x00\x00\x00"), "full_attention full_attention"},
		{key(pattern, flags+"\x02\x00\x00\x00\x00\x00\x00\x00\x00\x01"), "full_attention sliding_attention"},
		{key(pattern, u32+"\x00\x00\x00\x00"), "a period is at least 1"},
		{key(pattern, flags+"\x01\x00\x00\x00\x00\x00\x00\x00\x01"), "not a truth value for each of 2 layers"},
		{key("rope.freq_base_swa", f32+"\x00\x40\x1c\x46"), "rope.freq_base_swa\": differs"},
		{key("rope.freq_base_swa", f32+"\x00\x7c\x12\x48"), "sliding_attention full_attention"}, // 150,000
		{key("rope.scaling.yarn_attn_factor", f32+"\x00\x00\x00\x40"), "yarn_attn_factor\": is 2"},
		{key("expert_gating_func", u32+"\x01\x00\x00\x00"), "expert_gating_func\": is 1"},
		{key("expert_weights_scale", f32+"\x00\x00\x00\x40"), "expert_weights_scale\": is 2"},
	} {
		m, err := ggufmodel.Open(withKeys(t, fixtures.GptOssMXFP4, c.key))
		if err != nil {
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q: got %v, want %q", c.key, err, c.want)
			}
			continue
		}
		var types []string
		for _, l := range m.Config.Layers {
			types = append(types, l.Mixer.String())
		}
		if got := strings.Join(types, " "); got != c.want {
			t.Errorf("%q: got %q, want %q", c.key, got, c.want)
		}
		m.Close()
	}
}
