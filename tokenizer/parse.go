package tokenizer

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxSpareIDs bounds the ids of a small file: an id may exceed the size of tokenizer.json in bytes
// by this much. Tables by id stay in proportion to the input, and a small vocabulary may still have
// the special ids of a full one.
const maxSpareIDs = 1 << 18

// Parse reads a tokenizer.json. The error is an *UnsupportedError if the file asks for what this
// package does not do. Truncation and padding in the file are ignored, see the package comment.
func Parse(tokenizerJSON []byte) (*Tokenizer, error) {
	return parse(tokenizerJSON, nil)
}

// Load reads a tokenizer.json, or a tiktoken.model or hy.tiktoken with the tokenizer_config.json
// beside it, see LoadDir.
func Load(tokenizerFile string) (*Tokenizer, error) {
	if slices.Contains(rankedNames, filepath.Base(tokenizerFile)) {
		return loadRanked(tokenizerFile)
	}
	data, err := os.ReadFile(tokenizerFile)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	t, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", tokenizerFile, err)
	}
	return t, nil
}

// parse reads a tokenizer.json as amended by cfg, which may be nil.
func parse(data []byte, cfg *config) (*Tokenizer, error) {
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("tokenizer: tokenizer.json is not UTF-8")
	}
	o := newObject("", data)
	o.allow("version", `"1.0"`)
	o.ignore("truncation", "padding")
	rawModel, rawAdded := o.take("model"), o.take("added_tokens")
	rawNorm, rawPre := o.take("normalizer"), o.take("pre_tokenizer")
	rawPost, rawDecoder := o.take("post_processor"), o.take("decoder")
	if err := o.end(); err != nil {
		return nil, err
	}
	t := &Tokenizer{bos: noToken, eos: noToken}
	steps := []func() error{
		func() error { return t.parseModel(rawModel, len(data)+maxSpareIDs) },
		func() (err error) { t.norm, err = parseNormalizer("normalizer", rawNorm, 0); return err },
		func() error { return t.parseAdded(rawAdded, cfg, len(data)+maxSpareIDs) },
		func() error { return t.parsePreTokenizer("pre_tokenizer", rawPre, 0) },
		func() error { return parseDecoder("decoder", rawDecoder, 0) },
		func() error { return t.parsePostProcessor("post_processor", rawPost, 0) },
		func() error { return t.applyConfig(cfg) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	if !t.pre.byteLevel {
		return nil, &UnsupportedError{Key: "pre_tokenizer", Value: "without ByteLevel at its end"}
	}
	t.encoders.New = func() any { return &encoder{t: t} }
	return t, nil
}

// parseModel reads vocabulary and merges. Ids must be below idLimit.
func (t *Tokenizer) parseModel(raw []byte, idLimit int) error {
	o := newObject("model", raw)
	if raw == nil {
		return &UnsupportedError{Key: "model", Value: "null"}
	}
	o.allow("type", `"BPE"`)
	o.allow("dropout", "0", "0.0")
	o.allow("continuing_subword_prefix", `""`)
	o.allow("end_of_word_suffix", `""`)
	rawUnk, rawFallback := o.take("unk_token"), o.take("byte_fallback")
	o.ignore("fuse_unk") // without effect where nothing is unknown, see below
	t.ignoreMerges = o.flag("ignore_merges", false)
	var vocab map[string]int32
	o.into("vocab", &vocab)
	rawMerges := o.take("merges")
	if o.err == nil {
		o.err = t.setVocab(vocab, idLimit)
	}
	// A byte can only be unknown if it has no token of its own.
	if slices.Contains(t.byteIDs[:], noToken) {
		if rawUnk != nil {
			o.refuse("unk_token", rawUnk)
		}
		if rawFallback != nil && string(rawFallback) != "false" {
			o.refuse("byte_fallback", rawFallback)
		}
	}
	if o.err == nil {
		o.err = t.setMerges(rawMerges)
	}
	return o.end()
}

// setVocab fills the tables by id and by spelling.
func (t *Tokenizer) setVocab(vocab map[string]int32, idLimit int) error {
	if len(vocab) == 0 {
		return fmt.Errorf("tokenizer: model.vocab is missing or empty")
	}
	size, total := 0, 0
	for entry, id := range vocab {
		if err := checkID(entry, id, idLimit); err != nil {
			return err
		}
		size, total = max(size, int(id)+1), total+len(entry)
	}
	t.ids = vocab
	t.bytes, t.flags = make([]string, size), make([]uint8, size)
	t.pieces = map[string]int32{}
	for i := range t.byteIDs {
		t.byteIDs[i] = noToken
	}
	// All tokens share one string: half a million small ones would weigh on the garbage collector.
	arena := make([]byte, 0, total)
	ends := make([]struct{ start, end int }, size)
	for entry, id := range vocab {
		if t.flags[id] != 0 {
			return fmt.Errorf("tokenizer: model.vocab gives id %d to two tokens", id)
		}
		start := len(arena)
		var spelled bool
		arena, spelled = appendSpelled(arena, entry)
		t.flags[id] = flagUsed
		if spelled {
			t.flags[id] |= flagSpelled
		}
		ends[id].start, ends[id].end = start, len(arena)
	}
	all := string(arena)
	for id := range t.bytes {
		t.bytes[id] = all[ends[id].start:ends[id].end]
		if t.flags[id]&flagSpelled == 0 || t.bytes[id] == "" {
			continue
		}
		if t.ignoreMerges {
			t.pieces[t.bytes[id]] = int32(id)
		}
		if len(t.bytes[id]) == 1 {
			t.byteIDs[t.bytes[id][0]] = int32(id)
		}
	}
	return nil
}

func checkID(entry string, id int32, idLimit int) error {
	if id < 0 || int(id) >= idLimit {
		return fmt.Errorf("tokenizer: token %q has id %d, outside 0 to %d for a file of this size", excerpt(entry), id, idLimit-1)
	}
	return nil
}

// setMerges reads merges, a list of "left right" or of ["left", "right"], and fills the table of
// pairs.
func (t *Tokenizer) setMerges(raw json.RawMessage) error {
	list, err := parseMerges(raw)
	if err != nil {
		return err
	}
	return t.enterMerges("model.merges", list)
}

// enterMerges fills the table of pairs from a list under key, the most urgent first.
func (t *Tokenizer) enterMerges(key string, list [][2]string) error {
	t.merges = newPairTable(len(list))
	for rank, m := range list {
		left, okLeft := t.ids[m[0]]
		right, okRight := t.ids[m[1]]
		id, ok := t.ids[m[0]+m[1]]
		if !okLeft || !okRight || !ok {
			return fmt.Errorf("tokenizer: %s[%d]: %q and %q or what they make is not in the vocabulary",
				key, rank, excerpt(m[0]), excerpt(m[1]))
		}
		t.merges.put(left, right, uint32(rank), id)
	}
	return nil
}

func parseMerges(raw json.RawMessage) ([][2]string, error) {
	var texts []string
	if json.Unmarshal(raw, &texts) == nil {
		list := make([][2]string, 0, len(texts))
		for _, text := range texts {
			if strings.HasPrefix(text, "#version") {
				continue
			}
			left, right, ok := strings.Cut(text, " ")
			if !ok || strings.Contains(right, " ") {
				return nil, fmt.Errorf("tokenizer: model.merges: %q is not two tokens with a space between", excerpt(text))
			}
			list = append(list, [2]string{left, right})
		}
		return list, nil
	}
	var pairs [][]string
	if err := json.Unmarshal(raw, &pairs); err != nil {
		return nil, fmt.Errorf("tokenizer: model.merges: %w", err)
	}
	list := make([][2]string, len(pairs))
	for i, p := range pairs {
		if len(p) != 2 {
			return nil, fmt.Errorf("tokenizer: model.merges[%d] has %d tokens instead of 2", i, len(p))
		}
		list[i] = [2]string(p)
	}
	return list, nil
}
