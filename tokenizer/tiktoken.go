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

	"golang.org/x/text/unicode/norm"
)

const (
	jsonName     = "tokenizer.json"
	tiktokenName = "tiktoken.model"
	hunyuanName  = "hy.tiktoken"
	configName   = "tokenizer_config.json"
)

// rankedNames are the files that hold the vocabulary by ranks.
var rankedNames = []string{tiktokenName, hunyuanName}

// maxRankedBytes bounds a token of such a file. Finding the pairs that make a token takes the
// square of its length.
const maxRankedBytes = 4096

// ranked is what the code of a tokenizer_class adds to a file of ranks.
type ranked struct {
	file string
	cut  cutter // splits text
	nfc  bool   // text is brought to normal form C before anything else
	// lines says that a token's rank is the number of its line, without lines that repeat a token.
	lines bool
	// special returns the special tokens, which follow at base. named are those of the config.
	special func(named []*addedToken, base int32) ([]*addedToken, error)
}

var (
	kimiRanks    = ranked{file: tiktokenName, cut: cutKimi, special: reservedAfter}
	hunyuanRanks = ranked{
		file: hunyuanName, cut: func(s string) int { return cutQwen(s, letter, oneNumber) },
		nfc: true, lines: true, special: hunyuanSpecial,
	}
)

// rankedClasses are the values of tokenizer_class that are known.
var rankedClasses = map[string]ranked{"TikTokenTokenizer": kimiRanks, "Kimi2_6Tokenizer": kimiRanks, "HYTokenizer": hunyuanRanks}

// RankError reports a line of a tiktoken.model or hy.tiktoken that is not a token in base64, a
// space and a rank.
type RankError struct {
	File   string
	Line   int // from 1
	Reason string
}

func (e *RankError) Error() string {
	return fmt.Sprintf("tokenizer: %s, line %d: %s; fetch the file again, a line is a token in base64, a space and its rank",
		e.File, e.Line, e.Reason)
}

// loadRanked reads a file of ranks and the tokenizer_config.json beside it.
func loadRanked(path string) (*Tokenizer, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	dir, name := filepath.Split(path)
	cfg, err := loadConfig(dir)
	if err != nil {
		return nil, err
	}
	t, err := parseRanked(name, data, cfg)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Clean(dir), err)
	}
	return t, nil
}

// loadRankedDir reads the file of ranks of a directory. The error wraps fs.ErrNotExist if there is
// none.
func loadRankedDir(dir string) (t *Tokenizer, err error) {
	for _, name := range rankedNames {
		if t, err = loadRanked(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return t, err
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

// parseRanked makes the tokenizer of a file of ranks. The file holds the ranks alone: the rest
// comes from cfg and from the class that it names.
func parseRanked(name string, data []byte, cfg *config) (*Tokenizer, error) {
	if cfg == nil {
		return nil, fmt.Errorf("tokenizer: %s lacks the %s that names its special tokens; copy the checkpoint's beside it", name, configName)
	}
	kind, known := rankedClasses[cfg.class]
	if !known || kind.file != name {
		return nil, &UnsupportedError{Key: configName + ".tokenizer_class", Value: strconv.Quote(excerpt(cfg.class)) + " beside a " + name}
	}
	tokens, err := kind.parse(data)
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{bos: noToken, eos: noToken, ignoreMerges: true}
	if kind.nfc {
		t.norm = normalizer{norm.NFC}
	}
	if err := t.setVocab(spellVocab(tokens), len(tokens)); err != nil {
		return nil, err
	}
	t.setRanks()
	full := *cfg
	if full.added, err = kind.special(cfg.added, int32(len(tokens))); err != nil {
		return nil, err
	}
	t.giveWay(full.added)
	if err := t.parseAdded(nil, &full, len(tokens)+maxSpecial); err != nil {
		return nil, err
	}
	if err := t.applyConfig(&full); err != nil {
		return nil, err
	}
	t.pre = preTokenizer{splits: []splitStep{{cut: kind.cut}}, byteLevel: true}
	t.encoders.New = func() any { return &encoder{t: t} }
	return t, nil
}

// parse returns the tokens by rank. Ranks are 0 to n-1, in any order unless they are lines: special
// tokens follow at n.
func (k *ranked) parse(data []byte) ([]string, error) {
	lines := bytes.Split(data, []byte("\n"))
	count := 0
	for _, line := range lines {
		if len(bytes.TrimSpace(line)) > 0 {
			count++
		}
	}
	if count == 0 {
		return nil, &RankError{File: k.file, Line: 1, Reason: "the file is empty"}
	}
	tokens := make([]string, count)
	next := 0                           // rank, where it is the number of the line
	seen := make(map[string]int, count) // line of a token
	for i, line := range lines {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		token, number, reason := parseToken(line)
		if k.lines && seen[token] != 0 {
			continue
		}
		rank := next
		if next++; !k.lines && reason == "" {
			rank, reason = parseRank(number, count)
		}
		switch {
		case reason != "":
		case seen[token] != 0:
			reason = fmt.Sprintf("token %q is also in line %d", excerpt(token), seen[token])
		case tokens[rank] != "":
			reason = fmt.Sprintf("rank %d is also in line %d", rank, seen[tokens[rank]])
		}
		if reason != "" {
			return nil, &RankError{File: k.file, Line: i + 1, Reason: reason}
		}
		tokens[rank], seen[token] = token, i+1
	}
	return tokens[:len(seen)], nil
}

// parseToken reads one line. reason says what is wrong with it, "" if nothing is.
func parseToken(line []byte) (token string, number []byte, reason string) {
	encoded, number, ok := bytes.Cut(line, []byte(" "))
	if !ok {
		return "", nil, fmt.Sprintf("%q has no space", excerpt(string(line)))
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(string(encoded))
	if err != nil {
		return "", nil, fmt.Sprintf("%q is not base64", excerpt(string(encoded)))
	}
	if len(raw) == 0 || len(raw) > maxRankedBytes {
		return "", nil, fmt.Sprintf("the token has %d bytes, not 1 to %d", len(raw), maxRankedBytes)
	}
	return string(raw), number, ""
}

// parseRank reads the rank of a line of a file of count tokens.
func parseRank(number []byte, count int) (rank int, reason string) {
	rank, err := strconv.Atoi(string(number))
	if err != nil || rank < 0 || rank >= count {
		return 0, fmt.Sprintf("the rank is %q, not 0 to %d for a file of %d tokens", excerpt(string(number)), count-1, count)
	}
	return rank, ""
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
