//go:build linux && (amd64 || arm64)

package cuda

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// cache keeps machine code in a folder, one file for each source, options and compiler. A file is
// the hash of its image and the image; a damaged one is ignored. Several processes
// may use a folder at once: files appear whole.
type cache struct {
	dir string // "" keeps nothing
}

// key names what a compiler makes of a source: options name the architecture.
func key(version, source string, opts []string) string {
	h := sha256.New()
	for _, s := range append([]string{version, source}, opts...) {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		io.WriteString(h, s)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

func (c *cache) path(key string) string { return filepath.Join(c.dir, key+".cubin") }

// load returns the image of a key, or nil if it is not there whole.
func (c *cache) load(key string) []byte {
	if c.dir == "" {
		return nil
	}
	b, err := os.ReadFile(c.path(key))
	if err != nil || len(b) <= sha256.Size {
		return nil
	}
	image := b[sha256.Size:]
	if sha256.Sum256(image) != [sha256.Size]byte(b[:sha256.Size]) {
		return nil
	}
	return image
}

// store keeps an image.
func (c *cache) store(key string, image []byte) (err error) {
	if c.dir == "" {
		return nil
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return fmt.Errorf("cuda: cache of compiled kernels: %w", err)
	}
	f, err := os.CreateTemp(c.dir, "new-*")
	if err != nil {
		return fmt.Errorf("cuda: cache of compiled kernels: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("cuda: cache of compiled kernels: %w", err), remove(f.Name()))
		}
	}()
	sum := sha256.Sum256(image)
	_, err = f.Write(append(sum[:], image...))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), c.path(key))
}

// remove removes a file that may be gone already.
func remove(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
