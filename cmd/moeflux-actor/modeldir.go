package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/moeflux/moeflux-actor/internal/demo"
	"github.com/moeflux/moeflux-actor/io/weights"
	"github.com/moeflux/moeflux-actor/tokenizer"
)

// modelDir returns the packed model directory to use: the one given, or the demo model, which is
// unpacked on first use.
func modelDir(ctx context.Context, inv *invocation, given, cacheDir string) (string, error) {
	if given != "" {
		info, err := os.Stat(given)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("there is no model directory %s; make one with %s convert, or leave --model out for the demo model", given, program)
		case err != nil:
			return "", err
		case !info.IsDir():
			return "", fmt.Errorf("%s is a file, not a packed model directory as %s convert makes one", given, program)
		}
		return given, nil
	}
	cache, note, err := findCache(inv, cacheDir)
	if err != nil {
		return "", err
	}
	dir, err := demo.Dir(ctx, cache, func(line string) {
		if note != "" {
			inv.say("%s", note)
			note = ""
		}
		inv.say("%s", line)
	})
	if err != nil {
		return "", fmt.Errorf("the demo model cannot be unpacked under %s, name another folder with --cache-dir: %w", cache, err)
	}
	return dir, nil
}

// loadTokenizer loads the tokenizer of a packed model directory.
func loadTokenizer(dir string) (*tokenizer.Tokenizer, error) {
	text, ok := weights.TextDir(dir)
	if !ok {
		return nil, fmt.Errorf("%s has no tokenizer.json; copy the checkpoint's there, or use logits and eval, which take token ids", dir)
	}
	return tokenizer.LoadDir(text)
}

// findCache returns the folder for the demo model. Without a home it is one for this user among the
// temporary files, and note says so.
func findCache(inv *invocation, given string) (dir, note string, err error) {
	if given != "" {
		return given, "", nil
	}
	cache, err := inv.env.cacheDir()
	if err == nil {
		return filepath.Join(cache, program), "", nil
	}
	dir = filepath.Join(inv.env.tempDir, fmt.Sprintf("%s-%d", program, os.Getuid()))
	note = fmt.Sprintf("this user has no cache folder (%v), using %s", err, dir)
	if err := makePrivate(dir); err != nil {
		return "", "", fmt.Errorf("%s; that cannot be used, name a folder with --cache-dir: %w", note, err)
	}
	return dir, note, nil
}

// makePrivate makes dir, or makes sure that it belongs to this user alone: among the temporary
// files anybody could have put it there.
func makePrivate(dir string) error {
	if err := os.Mkdir(dir, 0o700); err == nil || !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || info.Mode().Perm()&0o022 != 0 || !ok || int(owner.Uid) != os.Getuid() {
		return fmt.Errorf("%s exists and is not a folder that only this user can write", dir)
	}
	return nil
}
