package flags

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/moeflux/moeflux-actor/internal/demo"
	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/internal/userdirs"
	"github.com/moeflux/moeflux-actor/io/gguf"
	"github.com/moeflux/moeflux-actor/io/modelfiles"
	"github.com/moeflux/moeflux-actor/tokenizer"
)

// ModelDir returns the packed model directory or the GGUF file to use: the one given, or the demo
// model, which is unpacked on first use.
func ModelDir(ctx context.Context, inv *process.Invocation, given, cacheDir string) (string, error) {
	if given != "" {
		info, err := os.Stat(given)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("there is no model directory %s; make one with %s convert, or leave --model out for the demo model", given, process.Program)
		case err != nil:
			return "", err
		case !info.IsDir() && !gguf.Is(given):
			return "", fmt.Errorf("%s is a file, neither a GGUF file nor a packed model directory as %s convert makes one", given, process.Program)
		}
		return given, nil
	}
	cache, note, err := FindCache(inv, cacheDir)
	if err != nil {
		return "", err
	}
	dir, err := demo.Dir(ctx, cache, func(line string) {
		if note != "" {
			inv.Say("%s", note)
			note = ""
		}
		inv.Say("%s", line)
	})
	if err != nil {
		return "", fmt.Errorf("the demo model cannot be unpacked under %s, name another folder with --cache-dir: %w", cache, err)
	}
	return dir, nil
}

// LoadTokenizer loads the tokenizer of a packed model directory or a GGUF file.
func LoadTokenizer(dir string) (*tokenizer.Tokenizer, error) {
	t, err := modelfiles.Tokenizer(dir)
	if err == nil && t == nil {
		return nil, noTokenizer(dir)
	}
	return t, err
}

func noTokenizer(dir string) error {
	return fmt.Errorf("%s has no tokenizer.json, tiktoken.model or hy.tiktoken; copy the checkpoint's there, or use logits and eval, which take token ids", dir)
}

// FindCache returns the folder for the demo model. Without a home it is one for this user among the
// temporary files, and note says so.
func FindCache(inv *process.Invocation, given string) (dir, note string, err error) {
	if given != "" {
		return given, "", nil
	}
	dir, note, err = userdirs.Where{Cache: inv.Env.CacheDir, Temp: inv.Env.TempDir}.CacheDir()
	if e, ok := errors.AsType[*userdirs.UnusableError](err); ok {
		err = fmt.Errorf("%s; that cannot be used, name a folder with --cache-dir: %w", e.Note, e.Err)
	}
	return dir, note, err
}
