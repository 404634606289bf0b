package ggufmodel_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/gguf"
	"github.com/moeflux/moeflux-actor/io/ggufmodel"
	"github.com/moeflux/moeflux-actor/model"
)

func open(t *testing.T, path string) *ggufmodel.Model {
	t.Helper()
	m, err := ggufmodel.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// Every family that GGUF files have a name for is read, and the page for users says so.
func TestRules(t *testing.T) {
	page, err := os.ReadFile("../../docs/convert.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, a := range model.Known() {
		name := model.GGUFName(a)
		if name == "" {
			continue
		}
		if n++; !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/convert.md does not name %s", name)
		}
	}
	if n != ggufmodel.RuleCount() {
		t.Errorf("%d rules for %d families that have a name in GGUF files", ggufmodel.RuleCount(), n)
	}
}

// A file says of its model what the config.json of the checkpoint says, of which it was made.
func TestConfig(t *testing.T) {
	if len(fixtures.GGUFs()) != ggufmodel.RuleCount() {
		t.Errorf("%d files for %d families", len(fixtures.GGUFs()), ggufmodel.RuleCount())
	}
	for _, name := range fixtures.GGUFs() {
		raw, err := os.ReadFile(filepath.Join(fixtures.Dir(t, name), "config.json"))
		if err != nil {
			t.Fatal(err)
		}
		want, err := model.ParseConfig(raw, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want.YaRN != nil {
			want.YaRN.MScale = want.YaRN.MScaleAllDim
		}
		m := open(t, fixtures.GGUF(t, name))
		if name == fixtures.Qwen35MoEBF16 { // the file has a tokenizer, which the checkpoint has not
			want.EOSTokenIDs = m.Config.EOSTokenIDs
		}
		if name == fixtures.GptOssMXFP4 { // <|call|> and <|return|>, and not <|end|>, which the file names
			want.EOSTokenIDs = []int32{94, 95}
		}
		if name == fixtures.HunyuanV1MoEBF16 { // files have the stretched base, in float32
			want.RopeTheta = m.Config.RopeTheta
			if off := m.Config.RopeTheta/8743.393107950698 - 1; math.Abs(off) > 0x1p-23 { // 100·50^(16/14), rounded twice
				t.Errorf("the base of rotary frequencies is off by %g", off)
			}
		}
		if !reflect.DeepEqual(m.Config, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, m.Config, want)
		}
	}
}

// Draft layers are left out; every other tensor has a place in the model.
func TestNames(t *testing.T) {
	for _, name := range fixtures.GGUFs() {
		m := open(t, fixtures.GGUF(t, name))
		tensors := 0
		for range m.File.Tensors {
			tensors++
		}
		if name == fixtures.Step35BF16 {
			tensors-- // factors of frequencies, which are read into the configuration
		}
		if len(m.Names())+len(m.Unused) != tensors || (len(m.Unused) > 0) != (name == fixtures.Glm4MoEBF16 || name == fixtures.HyV3BF16) {
			t.Errorf("%s: %d names and %d unused of %d tensors", name, len(m.Names()), len(m.Unused), tensors)
		}
		for _, pack := range m.Names() {
			if m.Tensor(pack) == nil || strings.Contains(pack, "blk") {
				t.Errorf("%s: %q", name, pack)
			}
		}
	}
	for _, c := range []struct {
		name, want string
		shared     model.SharedExpert
	}{
		{"ssm_in.weight", "linear_attn.in_proj_qkvz.weight", 0},
		{"ffn_up_shexp.weight", "mlp.shared_expert.up_proj.weight", model.SharedExpertGated},
		{"ffn_up_shexp.weight", "mlp.shared_experts.up_proj.weight", model.SharedExpertUngated},
		{"ffn_up_shexp.weight", "", model.NoSharedExpert},
		{"ffn_gate_inp_shexp.weight", "mlp.shared_expert_gate.weight", model.SharedExpertGated},
		{"attn_k_b.weight", "self_attn.embed_q.weight", 0},
		{"attn_kv_b.weight", "self_attn.kv_b_proj.weight", 0},
		{"indexer.k_norm.bias", "self_attn.indexer.k_norm.bias", 0},
		{"indexer.proj.weight", "self_attn.indexer.weights_proj.weight", 0},
		{"indexer.k_norm", "", 0},
		{"attn_q", "", 0},
		{"attn_q.scale", "", 0},
		{"attn_sinks.weight", "self_attn.sinks", 0},
		{"attn_sinks.bias", "", 0},
	} {
		if got := ggufmodel.PackName(c.name, c.shared); got != c.want {
			t.Errorf("%s is %q, want %q", c.name, got, c.want)
		}
	}
}

// Heads of the checkpoint h0 h1 h2 (of key head 0) h3 h4 h5 (of key head 1) stand as h0 h3 h1 h4 h2
// h5 in a file.
func TestTileOrder(t *testing.T) {
	if got, want := ggufmodel.TileOrder(2, 6), []int{0, 2, 4, 1, 3, 5}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for name, want := range map[string]bool{fixtures.Qwen35MoEBF16: true, fixtures.Qwen3NextBF16: false, fixtures.Glm4MoEBF16: false} {
		if got := open(t, fixtures.GGUF(t, name)).TiledHeads(); got != want {
			t.Errorf("%s: tiled is %v", name, got)
		}
	}
}

// edited returns a file of a fixture whose bytes were changed. The new text is as long as the old.
func edited(t *testing.T, name, old, now string) string {
	t.Helper()
	raw, err := os.ReadFile(fixtures.GGUF(t, name))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(raw), old) == 0 || len(old) != len(now) {
		t.Fatalf("%s: %q becomes %q", name, old, now)
	}
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(raw), old, now)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// What is missing, unknown or not supported is said under the file's own names.
func TestRefuses(t *testing.T) {
	u32 := "\x04\x00\x00\x00"
	for _, c := range []struct{ name, old, now, want string }{
		{fixtures.MiniMaxM2BF16, "minimax-m2.embedding_length", "minimax-m2.embedding_lengtj", `"minimax-m2.embedding_length": the key is missing`},
		{fixtures.MiniMaxM2BF16, "minimax-m2.rope.freq_base", "minimax-m2.rope.freq_basf", `"minimax-m2.rope.freq_base": the key is missing`},
		{fixtures.MiniMaxM2BF16, "expert_gating_func" + u32 + "\x02", "expert_gating_func" + u32 + "\x01", "expert_gating_func\": is 1"},
		{fixtures.MiniMaxM2BF16, "attention.value_length" + u32 + "\x20", "attention.value_length" + u32 + "\x10", "value_length\": is 16, but heads of keys have 32"},
		{fixtures.MiniMaxM2BF16, "block_count" + u32 + "\x02\x00", "block_count" + u32 + "\x02\x7f", "leaves 32514 layers"},
		{fixtures.MiniMaxM2BF16, "block_count" + u32 + "\x02", "block_count" + u32 + "\x01", ""}, // the other counts as a draft layer
		{fixtures.MiniMaxM2BF16, "attention.head_count" + u32, "attention.head_count\x06\x00\x00\x00", "no whole number"},
		{fixtures.MiniMaxM2BF16, "blk.1.attn_k_norm", "blk.1.attn_j_norm", `"blk.1.attn_j_norm.weight": this program does not know the tensor`},
		{fixtures.DeepseekV3BF16, "expert_gating_func" + u32 + "\x02", "expert_gating_func" + u32 + "\x01", "expert_gating_func\": is 1"},
		{fixtures.DeepseekV3BF16, "blk.2.exp_probs_b.bias", "blk.2.exp_prpbs_b.bias", "topk_method"},
		{fixtures.DeepseekV3BF16, "yarn", "warn", `"warn" is not supported`},
		{fixtures.Qwen3NextBF16, "ssm.time_step_rank" + u32 + "\x04", "ssm.time_step_rank" + u32 + "\x03", "128 channels do not divide among 3 heads"},
		{fixtures.GptOssMXFP4, "attention.sliding_window" + u32, "attention.sliding_windaw" + u32, `"gpt-oss.attention.sliding_window": the key is missing`},
		{fixtures.GptOssMXFP4, "rope.freq_base", "rope.freq_basf", `"gpt-oss.rope.freq_base": the key is missing`},
		{fixtures.GptOssMXFP4, "blk.1.attn_sinks.weight", "blk.1.attn_sanks.weight", `"blk.1.attn_sanks.weight": this program does not know the tensor`},
		{fixtures.HyV3BF16, "expert_shared_feed_forward_length" + u32 + "\x40", "expert_shared_feed_forward_length" + u32 + "\x41", "65 is not a multiple of expert_feed_forward_length 64"},
		{fixtures.HunyuanV1MoEBF16, "attention.key_length" + u32 + "\x10", "attention.key_length" + u32 + "\x20", "is 16 of 32 channels: heads of this architecture are rotated whole"},
		{fixtures.HunyuanV1MoEBF16, "blk.1.attn_q_norm", "blk.1.attn_q_narm", `"blk.1.attn_q_narm.weight": this program does not know the tensor`},
		{fixtures.DeepseekV32BF16, "indexer.top_k", "indexer.top_x", `"deepseek32.attention.indexer.top_k": the key is missing`},
		{fixtures.DeepseekV32BF16, "blk.1.indexer.attn_k", "blk.1.indexer.attn_x", `"blk.1.indexer.attn_x.weight": this program does not know the tensor`},
		{fixtures.GlmMoEDSASharedBF16, "indexer.types", "indexer.typus", ""}, // their tensors tell
		{fixtures.MiniMaxM3BF16, "indexer.block_size", "indexer.block_sice", `"minimax-m3.attention.indexer.block_size": the key is missing`},
		{fixtures.MiniMaxM3BF16, "expert_weights_norm\x07\x00\x00\x00\x01", "expert_weights_norm\x07\x00\x00\x00\x00", "expert_weights_norm\": is false"},
		{fixtures.Qwen3NextBF16, "qwen3next", "qwen4next", `the architecture "qwen4next" is not read`},
		{fixtures.DeepseekV3BF16, "\x00deepseek2", "\x00deepseek4", "the engine lacks compressed attention"},
		{fixtures.Qwen3NextBF16, "general.architecture", "general.architectvre", "no general.architecture"},
	} {
		m, err := ggufmodel.Open(edited(t, c.name, c.old, c.now))
		if c.want == "" {
			if err != nil {
				t.Errorf("%q: %v", c.now, err)
				continue
			}
			m.Close()
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.now, err, c.want)
		}
	}
	var arch *ggufmodel.ArchError
	if _, err := ggufmodel.Open("../gguf/testdata/types.gguf"); !errors.As(err, &arch) || arch.Name != "test" {
		t.Errorf("got %v", err)
	}
	if why := (&ggufmodel.ArchError{Path: "x", Name: "laguna"}).Error(); !strings.Contains(why, `"laguna" is not read from GGUF files: the engine lacks gates of attention by softplus`) {
		t.Errorf("got %s", why)
	}
	if _, err := ggufmodel.Open("rules.go"); !errors.Is(err, gguf.ErrNotGGUF) {
		t.Errorf("got %v", err)
	}
}

// Old files of deepseek2 say how heads of queries and keys are, not what is kept of them.
func TestOldDeepseek(t *testing.T) {
	path := edited(t, fixtures.DeepseekV3BF16, "attention.key_length_mla", "attention.key_length_old")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	u32 := "\x04\x00\x00\x00"
	s := strings.NewReplacer("attention.key_length"+u32+"\x50", "attention.key_length"+u32+"\x50",
		"attention.value_length"+u32+"\x40", "attention.value_length"+u32+"\x20").Replace(string(raw))
	if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
		t.Fatal(err)
	}
	c := open(t, path).Config
	if c.QKNopeHeadDim != 64 || c.QKRopeHeadDim != 16 || c.VHeadDim != 32 {
		t.Errorf("heads of %d+%d and %d", c.QKNopeHeadDim, c.QKRopeHeadDim, c.VHeadDim)
	}
}
