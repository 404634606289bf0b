package tokenizer

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func wantUnsupported(t *testing.T, err error, key string) {
	t.Helper()
	if got := (*UnsupportedError)(nil); !errors.As(err, &got) || got.Key != key {
		t.Errorf("got error %v, want an *UnsupportedError for %s", err, key)
	}
}

func TestUnsupported(t *testing.T) {
	split := func(keys obj) []any {
		s := obj{"type": "Split", "pattern": obj{"String": "x"}, "behavior": "Isolated"}
		for k, v := range keys {
			s[k] = v
		}
		return []any{s}
	}
	nested := any(obj{"type": "NFC"})
	for range 12 {
		nested = obj{"type": "Sequence", "normalizers": []any{nested}}
	}
	for _, c := range []struct {
		key string
		s   spec
	}{
		{"version", spec{topKeys: obj{"version": "2.0"}}},
		{"novelty", spec{topKeys: obj{"novelty": 1}}},
		{"model", spec{topKeys: obj{"model": nil}}},
		{"model.type", spec{modelKeys: obj{"type": "WordPiece"}}},
		{"model.dropout", spec{modelKeys: obj{"dropout": 0.1}}},
		{"model.continuing_subword_prefix", spec{modelKeys: obj{"continuing_subword_prefix": "##"}}},
		{"model.end_of_word_suffix", spec{modelKeys: obj{"end_of_word_suffix": "</w>"}}},
		{"model.novelty", spec{modelKeys: obj{"novelty": true}}},
		{"normalizer.type", spec{normalizer: obj{"type": "Lowercase"}}},
		{"normalizer.normalizers[1].type", spec{normalizer: obj{"type": "Sequence", "normalizers": []obj{{"type": "NFC"}, {"type": "Strip"}}}}},
		{"normalizer.strip", spec{normalizer: obj{"type": "NFC", "strip": true}}},
		{"pre_tokenizer", spec{topKeys: obj{"pre_tokenizer": nil}}},
		{"pre_tokenizer", spec{topKeys: obj{"pre_tokenizer": obj{"type": "Sequence", "pretokenizers": split(nil)}}}},
		{"pre_tokenizer.type", spec{topKeys: obj{"pre_tokenizer": obj{"type": "Metaspace"}}}},
		{"pre_tokenizer.pretokenizers[1]", spec{preTokenizers: []any{obj{"type": "ByteLevel"}}}},
		{"pre_tokenizer.pretokenizers[0].behavior", spec{preTokenizers: split(obj{"behavior": "Sideways"})}},
		{"pre_tokenizer.pretokenizers[0].limit", spec{preTokenizers: split(obj{"limit": 3})}},
		{"pre_tokenizer.pretokenizers[0].pattern.Glob", spec{preTokenizers: split(obj{"pattern": obj{"Glob": "*"}})}},
		{"pre_tokenizer.pretokenizers[0].pattern.Regex", spec{preTokenizers: split(obj{"pattern": obj{"Regex": `\w+`}})}},
		{"decoder", spec{topKeys: obj{"decoder": nil}}},
		{"decoder.type", spec{topKeys: obj{"decoder": obj{"type": "WordPiece"}}}},
		{"decoder.decoders", spec{topKeys: obj{"decoder": obj{"type": "Sequence", "decoders": []any{}}}}},
		{"decoder.decoders[1]", spec{topKeys: obj{"decoder": obj{"type": "Sequence", "decoders": []obj{{"type": "ByteLevel"}, {"type": "Strip"}}}}}},
		{"post_processor.type", spec{postProcessor: obj{"type": "BertProcessing"}}},
		{"added_tokens[0].novelty", spec{added: []map[string]any{{"id": 300, "content": "x!", "novelty": true}}}},
	} {
		_, err := Parse(c.s.json(t))
		wantUnsupported(t, err, c.key)
		if err != nil && len(err.Error()) > 600 {
			t.Errorf("%s: the message has %d bytes", c.key, len(err.Error()))
		}
	}
	if _, err := Parse(spec{normalizer: nested}.json(t)); err == nil || !strings.Contains(err.Error(), "within each other") {
		t.Errorf("12 nested sequences: got error %v, want one about nesting", err)
	}
}

func TestMalformed(t *testing.T) {
	template := func(single ...any) any {
		return obj{"type": "TemplateProcessing", "single": single, "special_tokens": obj{"a": obj{"id": "a", "ids": []int{97}}, "far": obj{"ids": []int{9999}}}}
	}
	text := obj{"Sequence": obj{"id": "A", "type_id": 0}}
	for _, c := range []struct {
		name, in, message string
	}{
		{"empty", ``, "not a JSON object"},
		{"null", `null`, "is null"},
		{"array", `[]`, "not a JSON object"},
		{"no model", `{}`, "model"},
		{"not UTF-8", "{\"\xff\":1}", "not UTF-8"},
		{"no vocabulary", string(spec{modelKeys: obj{"vocab": nil}}.json(t)), "model.vocab is missing"},
		{"vocabulary of lists", string(spec{modelKeys: obj{"vocab": [][]any{{"a", -1.5}}}}.json(t)), "model.vocab"},
		{"negative id", string(spec{modelKeys: obj{"vocab": obj{"a": -1}}}.json(t)), "id -1"},
		{"huge id", string(spec{modelKeys: obj{"vocab": obj{"a": 1<<31 - 1}}}.json(t)), "id 2147483647"},
		{"id twice", string(spec{modelKeys: obj{"vocab": obj{"a": 7, "b": 7}}}.json(t)), "id 7 to two tokens"},
		{"merge of unknown", string(spec{modelKeys: obj{"merges": []string{"a b"}}}.json(t)), "model.merges[0]"},
		{"merge of three", string(spec{modelKeys: obj{"merges": []string{"a b c"}}}.json(t)), "a b c"},
		{"merge of three in a list", string(spec{modelKeys: obj{"merges": [][]string{{"a", "b", "c"}}}}.json(t)), "3 tokens"},
		{"merges as numbers", string(spec{modelKeys: obj{"merges": 3}}.json(t)), "model.merges"},
		{"added without content", string(spec{added: []map[string]any{{"id": 300}}}.json(t)), "no content"},
		{"added without id", string(spec{added: []map[string]any{{"content": "<x>"}}}.json(t)), "id -1"},
		{"added with a taken id", string(spec{added: []map[string]any{added(97, "<x>")}}.json(t)), "another token"},
		{"added with another id", string(spec{added: []map[string]any{added(300, "a")}}.json(t)), "vocabulary says 97"},
		{"added twice", string(spec{added: []map[string]any{added(300, "<x>"), added(300, "<x>", "special")}}.json(t)), "differs"},
		{"no pattern", string(spec{preTokenizers: []any{obj{"type": "Split", "behavior": "Isolated", "pattern": obj{}}}}.json(t)), "Regex or String"},
		{"bad pattern", string(spec{preTokenizers: []any{obj{"type": "Split", "behavior": "Isolated", "pattern": obj{"Regex": "("}}}}.json(t)), "pattern.Regex"},
		{"long pattern", string(spec{preTokenizers: []any{obj{"type": "Split", "behavior": "Isolated", "pattern": obj{"Regex": strings.Repeat("(", maxPatternBytes+1)}}}}.json(t)), "limit"},
		{"template without text", string(spec{postProcessor: template()}.json(t)), "0 times"},
		{"template with text twice", string(spec{postProcessor: template(text, text)}.json(t)), "2 times"},
		{"template of a pair", string(spec{postProcessor: template(obj{"Sequence": obj{"id": "B"}})}.json(t)), "single[0]"},
		{"template of nothing", string(spec{postProcessor: template(obj{})}.json(t)), "single[0]"},
		{"template of unknown", string(spec{postProcessor: template(obj{"SpecialToken": obj{"id": "zz"}})}.json(t)), "zz"},
		{"template without its id", string(spec{postProcessor: template(text, obj{"SpecialToken": obj{"id": "far"}})}.json(t)), "9999"},
	} {
		tok, err := Parse([]byte(c.in))
		if err == nil || tok != nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: got %v, error %v, want one with %q", c.name, tok != nil, err, c.message)
		}
	}
}

func TestMergesAsStrings(t *testing.T) {
	s := spec{merges: [][2]string{{"a", "b"}, {"ab", "Ġ"}}}
	want := mustEncode(t, s.build(t), "xab ab")
	s.modelKeys = obj{"merges": []string{"#version: 0.2", "a b", "ab Ġ"}}
	if got := mustEncode(t, s.build(t), "xab ab"); !slices.Equal(got, want) || len(got) != 3 {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestPostProcessor(t *testing.T) {
	special := func(id string) obj { return obj{"SpecialToken": obj{"id": id, "type_id": 0}} }
	template := func(before, after string) obj {
		single := []any{obj{"Sequence": obj{"id": "A", "type_id": 0}}}
		if before != "" {
			single = append([]any{special(before)}, single...)
		}
		if after != "" {
			single = append(single, special(after))
		}
		return obj{"type": "TemplateProcessing", "single": single, "pair": []any{}, "special_tokens": obj{
			"<b>": obj{"id": "<b>", "ids": []int{300}, "tokens": []string{"<b>"}},
			"<e>": obj{"id": "<e>", "ids": []int{301, 301}, "tokens": []string{"<e>", "<e>"}},
		}}
	}
	level := obj{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": false, "use_regex": true}
	for _, c := range []struct {
		name string
		post any
		want []int32
	}{
		{"none", nil, []int32{'x'}},
		{"byte level", level, []int32{'x'}},
		{"template", template("<b>", "<e>"), []int32{300, 'x', 301, 301}},
		{"in a sequence", obj{"type": "Sequence", "processors": []any{level, template("<b>", "")}}, []int32{300, 'x'}},
		{"two in a sequence", obj{"type": "Sequence", "processors": []any{template("<e>", ""), template("<b>", "<b>")}}, []int32{300, 301, 301, 'x', 300}},
	} {
		tok := spec{postProcessor: c.post, added: []map[string]any{added(300, "<b>", "special"), added(301, "<e>", "special")}}.build(t)
		if got, err := tok.Encode("x", true); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, %v, want %v", c.name, got, err, c.want)
		}
		if got := mustEncode(t, tok, "x"); !slices.Equal(got, []int32{'x'}) {
			t.Errorf("%s: without special tokens: got %v, want [120]", c.name, got)
		}
	}
}

func TestConfig(t *testing.T) {
	post := obj{"type": "TemplateProcessing", "special_tokens": obj{"<e>": obj{"ids": []int{301}}},
		"single": []any{obj{"Sequence": obj{"id": "A"}}, obj{"SpecialToken": obj{"id": "<e>"}}}}
	file := spec{postProcessor: post, added: []map[string]any{added(300, "<b>", "special"), added(301, "<e>", "special")}}.json(t)
	for _, c := range []struct {
		name, config string
		want         []int32 // for "x"
		bos, eos     int32   // -1: none
		fails        string
	}{
		{name: "no file", want: []int32{'x', 301}, bos: -1, eos: -1},
		{name: "nothing said", config: `{"bos_token":"<b>","eos_token":{"content":"<e>","lstrip":false},"model_max_length":1e30}`, want: []int32{'x', 301}, bos: 300, eos: 301},
		{name: "nulls", config: `{"bos_token":null,"eos_token":null,"add_bos_token":null}`, want: []int32{'x', 301}, bos: -1, eos: -1},
		{name: "bos", config: `{"bos_token":"<b>","add_bos_token":true}`, want: []int32{300, 'x'}, bos: 300, eos: -1},
		{name: "both", config: `{"bos_token":"<b>","eos_token":"<e>","add_bos_token":true,"add_eos_token":true}`, want: []int32{300, 'x', 301}, bos: 300, eos: 301},
		{name: "neither", config: `{"add_bos_token":false}`, want: []int32{'x'}, bos: -1, eos: -1},
		{name: "bos missing", config: `{"add_bos_token":true}`, fails: "without a bos_token"},
		{name: "bos unknown", config: `{"bos_token":"<zz>"}`, fails: "<zz>"},
		{name: "bos no token", config: `{"bos_token":[1]}`, fails: "bos_token"},
		{name: "no JSON", config: `{`, fails: "not a JSON object"},
		{name: "no flag", config: `{"add_bos_token":"yes"}`, fails: "add_bos_token"},
		{name: "further token", config: `{"added_tokens_decoder":{"120":{"content":"x","special":true},"302":{"content":"<n>"}},"bos_token":"<n>"}`, want: []int32{'x', 301}, bos: 302, eos: -1},
		{name: "further token with a taken id", config: `{"added_tokens_decoder":{"120":{"content":"<n>"}}}`, fails: "another token"},
		{name: "key is no id", config: `{"added_tokens_decoder":{"x":{"content":"<n>"}}}`, fails: "no token id"},
	} {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "tokenizer.json"), file)
		if c.config != "" {
			writeFile(t, filepath.Join(dir, "tokenizer_config.json"), []byte(c.config))
		}
		tok, err := LoadDir(dir)
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) || !strings.Contains(err.Error(), dir) {
				t.Errorf("%s: got error %v, want one with %q and the directory", c.name, err, c.fails)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got, err := tok.Encode("x", true); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: Encode(x, true) = %v, %v, want %v", c.name, got, err, c.want)
		}
		for _, end := range []struct {
			name string
			get  func() (int32, bool)
			want int32
		}{{"BOS", tok.BOS, c.bos}, {"EOS", tok.EOS, c.eos}} {
			if id, ok := end.get(); ok != (end.want >= 0) || ok && id != end.want {
				t.Errorf("%s: %s() = %d, %v, want %d", c.name, end.name, id, ok, end.want)
			}
		}
		if c.name == "further token" {
			if got := mustEncode(t, tok, "<n>x"); !slices.Equal(got, []int32{302, 'x'}) || !tok.IsSpecial('x') {
				t.Errorf("%s: got %v, special %v, want [302 120], true", c.name, got, tok.IsSpecial('x'))
			}
		}
	}
}

func TestLoad(t *testing.T) {
	tok, err := Load(filepath.Join("testdata", "demo", "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := tok.BOS(); ok {
		t.Error("Load read tokenizer_config.json")
	}
	missing := filepath.Join(t.TempDir(), "tokenizer.json")
	if _, err := Load(missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Load of a missing file: %v, want os.ErrNotExist", err)
	}
	if _, err := LoadDir(filepath.Dir(missing)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("LoadDir of an empty directory: %v, want os.ErrNotExist", err)
	}
	writeFile(t, missing, []byte("{}"))
	if _, err := Load(missing); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("Load of {}: error %v, want one with the file", err)
	}
}

func writeFile(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
