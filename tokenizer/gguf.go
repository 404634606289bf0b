package tokenizer

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// GGUF is a tokenizer as the metadata of a GGUF file has it, below tokenizer.ggml.
type GGUF struct {
	Model  string   // kind; gpt2 is byte-level BPE
	Pre    string   // name of the rule that splits text, which is in no file
	Tokens []string // by id: in the byte alphabet if Types says normal, else as text
	Types  []int32  // of each token, see ggufNormal
	Merges []string // "left right", the most urgent first
	BOS    int32    // -1 if there is none
	EOS    int32    // -1 if there is none
	AddBOS bool     // BOS goes before a text
	AddEOS bool     // EOS goes behind a text
}

// The types of tokens in a GGUF file.
const (
	ggufNormal  = 1
	ggufControl = 3 // a special token, which decoding may leave out
	ggufUser    = 4 // an added token that is text
	ggufUnused  = 5 // fills an id
)

// ggufRule is what the name of a rule stands for: what the tokenizer.json has that the models of
// that name are published with, or the code of their tokenizer.
type ggufRule struct {
	nfc      bool     // text is brought to normal form C
	whole    bool     // a piece that is a token as a whole is not merged
	patterns []string // expressions that split, one after the other; each has a cutter
}

var ggufRules = map[string]ggufRule{
	"qwen2":         {nfc: true, patterns: []string{patternQwen2}},
	"qwen35":        {nfc: true, patterns: []string{patternQwen35}},
	"hunyuan":       {nfc: true, whole: true, patterns: []string{patternQwen2}},
	"hunyuan-dense": {patterns: patternsDeepSeek},
	"deepseek-v3":   {patterns: patternsDeepSeek},
	"joyai-llm":     {patterns: patternsDeepSeek},
	"gpt-4o":        {whole: true, patterns: []string{patternO200K}},
	"minimax-m2":    {patterns: []string{patternO200K}},
	"glm4":          {patterns: []string{patternLlama3}},
	"chatglm-bpe":   {patterns: []string{patternLlama3}},
	"kimi-k2":       {whole: true, patterns: []string{patternKimi}},
}

// patternsDeepSeek are those of DeepSeek-V3.
var patternsDeepSeek = []string{patternNumbers3, patternCJK, patternDeepSeekWords}

// normalizer returns the rule's normal form.
func (r ggufRule) normalizer() normalizer {
	if r.nfc {
		return normalizer{norm.NFC}
	}
	return nil
}

// splits returns the steps that split text.
func (r ggufRule) splits() (steps []splitStep) {
	for _, p := range r.patterns {
		steps = append(steps, splitStep{cut: knownPatterns[p]})
	}
	return steps
}

// FromGGUF makes the tokenizer of a GGUF file. Its ids are those of the tokenizer.json that the
// file was made from, including a normal form that GGUF has no key for. The error is an
// *UnsupportedError if the tokenizer is of another kind than byte-level BPE, or if nobody here
// knows the rule that splits text: a rule of another name is never guessed.
func FromGGUF(v *GGUF) (*Tokenizer, error) {
	rule, err := v.rule()
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{bos: noToken, eos: noToken, norm: rule.normalizer(), ignoreMerges: rule.whole}
	t.pre = preTokenizer{splits: rule.splits(), byteLevel: true}
	vocab, added, err := v.sort()
	if err != nil {
		return nil, err
	}
	if err := t.setVocab(vocab, len(v.Tokens)); err != nil {
		return nil, err
	}
	if err := t.parseAdded(nil, &config{added: added}, len(v.Tokens)); err != nil {
		return nil, err
	}
	if err := t.setGGUFMerges(v.Merges); err != nil {
		return nil, err
	}
	if err := t.setEnds(v); err != nil {
		return nil, err
	}
	t.encoders.New = func() any { return &encoder{t: t} }
	return t, nil
}

// rule returns what the name of the rule stands for.
func (v *GGUF) rule() (ggufRule, error) {
	rule, known := ggufRules[v.Pre]
	switch {
	case v.Model != "gpt2":
		return rule, &UnsupportedError{Key: "tokenizer.ggml.model", Value: strconv.Quote(excerpt(v.Model))}
	case !known:
		return rule, &UnsupportedError{Key: "tokenizer.ggml.pre", Value: fmt.Sprintf("%q (known: %s)",
			excerpt(v.Pre), strings.Join(slices.Sorted(maps.Keys(ggufRules)), ", "))}
	case len(v.Types) != len(v.Tokens):
		return rule, fmt.Errorf("tokenizer: %d types in tokenizer.ggml.token_type for %d tokens", len(v.Types), len(v.Tokens))
	}
	return rule, nil
}

// sort tells the vocabulary from added tokens.
func (v *GGUF) sort() (vocab map[string]int32, added []*addedToken, err error) {
	vocab = make(map[string]int32, len(v.Tokens))
	for i, token := range v.Tokens {
		id := int32(i)
		switch v.Types[i] {
		case ggufNormal:
			if other, twice := vocab[token]; twice {
				return nil, nil, fmt.Errorf("tokenizer: tokenizer.ggml.tokens: %q has the ids %d and %d", excerpt(token), other, id)
			}
			vocab[token] = id
		case ggufControl, ggufUser:
			added = append(added, &addedToken{id: id, content: token, special: v.Types[i] == ggufControl})
		case ggufUnused:
		default:
			return nil, nil, &UnsupportedError{Key: fmt.Sprintf("tokenizer.ggml.token_type[%d]", i), Value: fmt.Sprint(v.Types[i])}
		}
	}
	return vocab, added, nil
}

// setGGUFMerges fills the table of pairs.
func (t *Tokenizer) setGGUFMerges(merges []string) error {
	list := make([][2]string, len(merges))
	for i, m := range merges {
		left, right, ok := strings.Cut(m, " ")
		if !ok || strings.Contains(right, " ") {
			return fmt.Errorf("tokenizer: tokenizer.ggml.merges: %q is not two tokens with a space between", excerpt(m))
		}
		list[i] = [2]string{left, right}
	}
	return t.enterMerges("tokenizer.ggml.merges", list)
}

// setEnds sets the tokens that begin and end a text.
func (t *Tokenizer) setEnds(v *GGUF) error {
	for _, end := range []struct {
		key    string
		id     int32
		add    bool
		dst    *int32
		around *[]int32
	}{{"bos", v.BOS, v.AddBOS, &t.bos, &t.before}, {"eos", v.EOS, v.AddEOS, &t.eos, &t.after}} {
		switch {
		case end.id >= 0 && t.has(end.id):
			*end.dst = end.id
		case end.id != noToken:
			return fmt.Errorf("tokenizer: tokenizer.ggml.%s_token_id is %d, which no token has", end.key, end.id)
		case end.add:
			return fmt.Errorf("tokenizer: tokenizer.ggml.add_%s_token is true without tokenizer.ggml.%s_token_id", end.key, end.key)
		}
		if end.add {
			*end.around = []int32{end.id}
		}
	}
	return nil
}
