package tokenizer

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

const (
	jsonName     = "tokenizer.json"
	tiktokenName = "tiktoken.model"
	configName   = "tokenizer_config.json"
)

// reservedTokens is how many special tokens follow the vocabulary of a tiktoken.model, named or
// not.
const reservedTokens = 256

// maxRankedBytes bounds a token of a tiktoken.model. Finding the pairs that make a token takes the
// square of its length.
const maxRankedBytes = 4096

// tiktokenClasses are the values of tokenizer_class whose splitting expression is patternKimi. The
// expression is in the code of that class, not in a file.
var tiktokenClasses = map[string]bool{"TikTokenTokenizer": true, "Kimi2_6Tokenizer": true}

// RankError reports a line of a tiktoken.model that is not a token in base64, a space and a rank.
type RankError struct {
	Line   int // from 1
	Reason string
}

func (e *RankError) Error() string {
	return fmt.Sprintf("tokenizer: %s, line %d: %s; fetch the file again, a line is a token in base64, a space and its rank",
		tiktokenName, e.Line, e.Reason)
}

// loadTiktoken reads tiktoken.model and tokenizer_config.json of a directory.
func loadTiktoken(dir string) (*Tokenizer, error) {
	data, err := os.ReadFile(filepath.Join(dir, tiktokenName))
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	cfg, err := loadConfig(dir)
	if err != nil {
		return nil, err
	}
	t, err := parseTiktoken(data, cfg)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return t, nil
}

// loadConfig reads tokenizer_config.json of a directory, nil if there is none.
func loadConfig(dir string) (*config, error) {
	raw, err := os.ReadFile(filepath.Join(dir, configName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	cfg, err := parseConfig(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return cfg, nil
}

// parseTiktoken makes the tokenizer of a tiktoken.model. The file holds the ranks alone: special
// tokens come from cfg, the splitting expression from the class that cfg names.
func parseTiktoken(data []byte, cfg *config) (*Tokenizer, error) {
	if cfg == nil {
		return nil, fmt.Errorf("tokenizer: %s lacks the %s that names its special tokens; copy the checkpoint's beside it", tiktokenName, configName)
	}
	if !tiktokenClasses[cfg.class] {
		return nil, &UnsupportedError{Key: configName + ".tokenizer_class", Value: strconv.Quote(excerpt(cfg.class)) + " beside a " + tiktokenName}
	}
	tokens, err := parseRanks(data)
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{bos: noToken, eos: noToken, ignoreMerges: true}
	if err := t.setVocab(spellVocab(tokens), len(tokens)); err != nil {
		return nil, err
	}
	t.setRanks()
	full := *cfg
	full.added = t.withReserved(cfg.added)
	if err := t.parseAdded(nil, &full, len(tokens)+reservedTokens); err != nil {
		return nil, err
	}
	if err := t.applyConfig(&full); err != nil {
		return nil, err
	}
	t.pre = preTokenizer{splits: []splitStep{{cut: cutKimi}}, byteLevel: true}
	t.encoders.New = func() any { return &encoder{t: t} }
	return t, nil
}

// parseRanks returns the tokens by rank. Ranks are 0 to n-1, in any order: special tokens follow at
// n.
func parseRanks(data []byte) ([]string, error) {
	var tokens []string
	lines := bytes.Split(data, []byte("\n"))
	count := 0
	for _, line := range lines {
		if len(bytes.TrimSpace(line)) > 0 {
			count++
		}
	}
	if count == 0 {
		return nil, &RankError{Line: 1, Reason: "the file is empty"}
	}
	tokens = make([]string, count)
	seen := make(map[string]int, count) // line of a token
	for i, line := range lines {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		token, rank, reason := parseRank(line, count)
		switch {
		case reason != "":
		case seen[token] != 0:
			reason = fmt.Sprintf("token %q is also in line %d", excerpt(token), seen[token])
		case tokens[rank] != "":
			reason = fmt.Sprintf("rank %d is also in line %d", rank, seen[tokens[rank]])
		}
		if reason != "" {
			return nil, &RankError{Line: i + 1, Reason: reason}
		}
		tokens[rank], seen[token] = token, i+1
	}
	return tokens, nil
}

// parseRank reads one line of a file of count tokens. reason says what is wrong with it, "" if
// nothing is.
func parseRank(line []byte, count int) (token string, rank int, reason string) {
	encoded, number, ok := bytes.Cut(line, []byte(" "))
	if !ok {
		return "", 0, fmt.Sprintf("%q has no space", excerpt(string(line)))
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(string(encoded))
	if err != nil {
		return "", 0, fmt.Sprintf("%q is not base64", excerpt(string(encoded)))
	}
	if len(raw) == 0 || len(raw) > maxRankedBytes {
		return "", 0, fmt.Sprintf("the token has %d bytes, not 1 to %d", len(raw), maxRankedBytes)
	}
	rank, err = strconv.Atoi(string(number))
	if err != nil || rank < 0 || rank >= count {
		return "", 0, fmt.Sprintf("the rank is %q, not 0 to %d for a file of %d tokens", excerpt(string(number)), count-1, count)
	}
	return string(raw), rank, ""
}

// spellVocab writes tokens in the byte alphabet, as tokenizer.json has them.
func spellVocab(tokens []string) map[string]int32 {
	vocab := make(map[string]int32, len(tokens))
	var spelled []rune
	for id, token := range tokens {
		spelled = spelled[:0]
		for i := range len(token) {
			spelled = append(spelled, byteToChar[token[i]])
		}
		vocab[string(spelled)] = int32(id)
	}
	return vocab
}

// setRanks fills the table of pairs from the vocabulary: any two tokens merge whose bytes together
// are a token, and its id is the rank.
func (t *Tokenizer) setRanks() {
	type merge struct{ left, right, id int32 }
	var merges []merge
	for id, token := range t.bytes {
		for i := 1; i < len(token); i++ {
			left, ok := t.pieces[token[:i]]
			if !ok {
				continue
			}
			if right, ok := t.pieces[token[i:]]; ok {
				merges = append(merges, merge{left, right, int32(id)})
			}
		}
	}
	t.merges = newPairTable(len(merges))
	for _, m := range merges {
		t.merges.put(m.left, m.right, uint32(m.id), m.id)
	}
}

// withReserved returns the named special tokens and those without a name, up to reservedTokens
// after the vocabulary. Where the text of one is spelled like an entry of the vocabulary, TokenID
// finds the special one, as Encode does.
func (t *Tokenizer) withReserved(named []*addedToken) []*addedToken {
	taken := map[int32]bool{}
	for _, tok := range named {
		taken[tok.id] = true
		if id, ok := t.ids[tok.content]; ok && id != tok.id {
			delete(t.ids, tok.content)
		}
	}
	all := append([]*addedToken{}, named...)
	for id := int32(len(t.bytes)); int(id) < len(t.bytes)+reservedTokens; id++ {
		if !taken[id] {
			all = append(all, &addedToken{id: id, content: fmt.Sprintf("<|reserved_token_%d|>", id), special: true})
		}
	}
	return all
}
