//go:build linux && (amd64 || arm64)

package cuda

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/moeflux/moeflux-actor/internal/durable"
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
func (c *cache) store(key string, image []byte) error {
	if c.dir == "" {
		return nil
	}
	err := durable.MkdirAll(c.dir, durable.Shared)
	if err == nil {
		sum := sha256.Sum256(image)
		err = durable.WriteFile(c.path(key), durable.Shared, append(sum[:], image...))
	}
	if err != nil {
		return fmt.Errorf("cuda: cache of compiled kernels: %w", err)
	}
	return nil
}
