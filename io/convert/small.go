package convert

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/tokenizer"
)

// The names of small files that the converter reads or writes itself.
const (
	configName     = "config.json"
	generationName = "generation_config.json"
	tokenizerName  = "tokenizer.json"
	tiktokenName   = "tiktoken.model"
	hunyuanName    = "hy.tiktoken"
	vocabName      = "vocab.bin"
)

// smallNames are copied if the source has them.
var smallNames = []string{
	configName, generationName, tokenizerName, "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
	"vocab.json", "merges.txt", "tokenizer.model", tiktokenName, hunyuanName, "chat_template.jinja", "chat_template.json",
}

// SmallFiles returns the names of the files beside the tensors that are copied if the source has
// them. A source must have config.json.
func SmallFiles() []string { return slices.Clone(smallNames) }

// smallFile is one file to be copied.
type smallFile struct {
	name, path string
	size       int64
	content    []byte // if path is ""
}

// findSmall lists the small files of a source.
func findSmall(dir string) ([]smallFile, error) {
	var out []smallFile
	for _, name := range smallNames {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("convert: %w", err)
		}
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("convert: %s is not a regular file", path)
		}
		out = append(out, smallFile{name: name, path: path, size: info.Size()})
	}
	return out, nil
}

func (s smallFile) copy(w io.Writer) error {
	if s.path == "" {
		_, err := w.Write(s.content)
		return err
	}
	f, err := os.Open(s.path)
	if err != nil {
		return fmt.Errorf("convert: %w", err)
	}
	defer f.Close()
	if _, err := io.Copy(w, f); err != nil {
		return fmt.Errorf("convert: copy %s: %w", s.path, err)
	}
	return nil
}

// fingerprint identifies source and options, so that an interrupted conversion can continue. It
// covers names, sizes, times and headers of the tensor files, and the small files in full.
func fingerprint(in *input, o Options) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "bits %d, of experts %d, layout %s\n", o.Bits, o.ExpertBits, o.layout())
	if err := in.shards(h); err != nil {
		return "", err
	}
	return smallPrint(h, in.small)
}

// printShards adds the tensor files of a checkpoint.
func printShards(h hash.Hash, ckpt *safetensors.Checkpoint) error {
	for _, f := range ckpt.Files() {
		info, err := os.Stat(f.Path())
		if err != nil {
			return fmt.Errorf("convert: %w", err)
		}
		fmt.Fprintf(h, "shard %q %d %d %x\n", filepath.Base(f.Path()), info.Size(), info.ModTime().UnixNano(), sha256.Sum256(f.Header()))
	}
	return nil
}

// smallPrint adds the small files and returns the fingerprint.
func smallPrint(h hash.Hash, small []smallFile) (string, error) {
	for _, s := range small {
		one := sha256.New()
		if err := s.copy(one); err != nil {
			return "", err
		}
		fmt.Fprintf(h, "file %q %x\n", s.name, one.Sum(nil))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// vocab writes vocab.bin for the tokenizer that load returns. If the tokenizer cannot be read it
// only warns: the weights are useful with another tokenizer.
func (o *output) vocab(ctx context.Context, load func() (*tokenizer.Tokenizer, error)) error {
	t, err := load()
	var table []byte
	if err == nil {
		table, err = vocabTable(t)
	}
	if err != nil {
		o.meter.say(fmt.Sprintf("%s left out: %v", vocabName, err))
		return nil
	}
	return o.write(ctx, vocabName, func(w io.Writer) error {
		_, err := w.Write(table)
		return err
	})
}

// loadVocab reads the tokenizer.json of a directory, else its tiktoken.model or hy.tiktoken.
func loadVocab(dir string) (*tokenizer.Tokenizer, error) {
	t, err := tokenizer.Load(filepath.Join(dir, tokenizerName))
	for _, name := range []string{tiktokenName, hunyuanName} {
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
		ranked, rankedErr := tokenizer.Load(filepath.Join(dir, name))
		if !errors.Is(rankedErr, fs.ErrNotExist) {
			return ranked, rankedErr
		}
	}
	return t, err
}

// vocabTable returns vocab.bin for a tokenizer: u32 number of entries, u32 largest
// id, then for each id a u16 length and the bytes. Unused ids have length 0. Numbers are
// little-endian.
func vocabTable(t *tokenizer.Tokenizer) ([]byte, error) {
	n := t.VocabSize()
	if n < 1 || n > math.MaxInt32 {
		return nil, fmt.Errorf("vocabulary of %d tokens", n)
	}
	var b bytes.Buffer
	head := binary.LittleEndian.AppendUint32(nil, uint32(n))
	b.Write(binary.LittleEndian.AppendUint32(head, uint32(n-1)))
	for id := range int32(n) {
		token, _ := t.TokenBytes(id) // empty for an unused id
		if len(token) > math.MaxUint16 {
			return nil, fmt.Errorf("token %d has %d bytes, more than %d", id, len(token), math.MaxUint16)
		}
		b.Write(binary.LittleEndian.AppendUint16(nil, uint16(len(token))))
		b.Write(token)
	}
	return b.Bytes(), nil
}
