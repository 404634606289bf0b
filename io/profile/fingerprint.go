package profile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Fingerprint identifies a packed model, wherever its directory is.
type Fingerprint [sha256.Size]byte

// String returns the fingerprint in hexadecimal digits.
func (f Fingerprint) String() string { return hex.EncodeToString(f[:]) }

// maxText is the largest size of a file whose content counts.
const maxText = 64 << 20

// Of returns the fingerprint of the model in a directory: of the names and sizes of all files, and
// of the content of *.json, which describe the others. It does not read weights; checksums.json, if
// there is one, stands for them. Folders of experts that lie elsewhere count as the model's.
func Of(dir string, experts ...string) (Fingerprint, error) {
	h := sha256.New()
	if err := add(h, dir); err != nil {
		return Fingerprint{}, err
	}
	for _, e := range experts {
		fmt.Fprintln(h, "experts")
		if err := add(h, e); err != nil {
			return Fingerprint{}, err
		}
	}
	return Fingerprint(h.Sum(nil)), nil
}

// add hashes a folder.
func add(h hash.Hash, dir string) error {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("profile: fingerprint: %w", err)
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		s, err := os.Stat(path) // files may be links
		if err != nil {
			return err
		}
		if !s.Mode().IsRegular() {
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%q %d\n", filepath.ToSlash(name), s.Size())
		if !strings.HasSuffix(name, ".json") || s.Size() > maxText {
			return nil
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(h, io.LimitReader(f, maxText))
		return err
	})
	if err != nil {
		return fmt.Errorf("profile: fingerprint of %s: %w", dir, err)
	}
	return nil
}
