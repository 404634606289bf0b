package demo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/moeflux/moeflux-actor/internal/durable"
	"github.com/moeflux/moeflux-actor/io/convert"
)

// Name is the name of the packed copy's directory. It differs for other checkpoints and packings.
func Name() string { return fmt.Sprintf("demo-%s-%d", checkpointSHA256[:12], packVersion) }

// Dir returns the packed model directory of the demo model, under cacheDir, which is made if need
// be. On first use the checkpoint is unpacked and converted there, which takes up to 28 MiB for a
// moment and leaves 11; later calls only compare the copy with its checksums, and make it anew if
// it is damaged.
//
// progress, if not nil, gets lines for people, on first use and on repair. Several processes may
// call Dir at once: each prepares a copy of its own, the first to finish puts it in place, the
// others drop theirs. After an error nothing new is left in cacheDir.
func Dir(ctx context.Context, cacheDir string, progress func(string)) (string, error) {
	if progress == nil {
		progress = func(string) {}
	}
	cacheDir, err := filepath.Abs(cacheDir)
	if err != nil {
		return "", fmt.Errorf("demo: %w", err)
	}
	dir := filepath.Join(cacheDir, Name())
	err = convert.Verify(ctx, dir)
	switch {
	case err == nil:
		return dir, nil
	case ctx.Err() != nil:
		return "", fmt.Errorf("demo: %w", context.Cause(ctx))
	case exists(dir):
		progress(fmt.Sprintf("the demo model in %s is damaged and is made anew: %v", dir, err))
	default:
		progress(fmt.Sprintf("unpacking the demo model to %s (11 MiB, %d while it is unpacked)", dir, unpackBytes>>20))
	}
	if err := build(ctx, cacheDir, dir, progress); err != nil {
		return "", fmt.Errorf("demo: preparing the demo model in %s: %w", cacheDir, err)
	}
	return dir, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// unpackBytes is the room that build takes at its height: the checkpoint, and the packed copy with
// what the converter keeps free beside it.
const unpackBytes = 28 << 20

// checkRoom reports a folder on a file system that has no room for build.
func checkRoom(dir string, free func(string) (uint64, error)) error {
	n, err := free(dir)
	if err != nil {
		return err
	}
	if n < unpackBytes {
		return fmt.Errorf("%s has %d MiB free, and unpacking takes %d", dir, n>>20, unpackBytes>>20)
	}
	return nil
}

// build makes a packed copy beside dir and puts it in place. cacheDir, if it is new, goes again
// when there is an error.
func build(ctx context.Context, cacheDir, dir string, progress func(string)) (err error) {
	fresh := !exists(cacheDir)
	if err := durable.MkdirAll(cacheDir, durable.Shared); err != nil {
		return err
	}
	defer func() {
		if err != nil && fresh {
			_ = os.Remove(cacheDir) // it stays if another process put something there
		}
	}()
	if err := checkRoom(cacheDir, durable.FreeSpace); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(cacheDir, Name()+".tmp-")
	if err != nil {
		return err
	}
	defer func() {
		if rerr := os.RemoveAll(tmp); rerr != nil {
			progress("a temporary folder is left behind: " + rerr.Error())
		}
	}()
	src, packed := filepath.Join(tmp, "moeflux-demo"), filepath.Join(tmp, "packed")
	if err := unpack(src); err != nil {
		return err
	}
	if err := convert.Convert(ctx, src, packed, convert.Options{}); err != nil {
		return err
	}
	return install(ctx, packed, dir, tmp)
}

// unpack writes the checkpoint directory.
func unpack(dst string) error {
	if err := os.Mkdir(dst, 0o755); err != nil {
		return err
	}
	for _, name := range checkpointFiles {
		b, err := fs.ReadFile(Files(), name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dst, name), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// installTries bounds how often install moves a damaged copy aside. More than once means that
// another process is repairing the copy too.
const installTries = 5

// install renames packed to dir, unless a good copy is there by now. What is there and damaged is
// moved to trash, which the caller removes, so that dir is never half removed.
func install(ctx context.Context, packed, dir, trash string) error {
	var err error
	for try := range installTries {
		err = durable.Rename(packed, dir)
		// ENOTDIR: a file is there
		if !errors.Is(err, fs.ErrExist) && !errors.Is(err, syscall.ENOTDIR) {
			return err
		}
		verr := convert.Verify(ctx, dir)
		if verr == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		aside := filepath.Join(trash, fmt.Sprintf("damaged-%d", try))
		if rerr := durable.Rename(dir, aside); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			return errors.Join(verr, rerr)
		}
	}
	return err
}
