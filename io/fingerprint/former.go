package fingerprint

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxText is the largest size of a file whose content counted by the former rule.
const maxText = 64 << 20

// Former returns the fingerprint of the model in a directory by the former rule: of the names and
// sizes of all files, and of the content of *.json. experts is the folder of the layer files if
// that is another place, else empty. It is what the states of earlier versions carry, as long as no
// file has been added, removed or changed.
func Former(dir, experts string) (Fingerprint, error) {
	h := sha256.New()
	if err := addAll(h, dir); err != nil {
		return Fingerprint{}, err
	}
	if experts != "" {
		fmt.Fprintln(h, "experts")
		if err := addAll(h, experts); err != nil {
			return Fingerprint{}, err
		}
	}
	return Fingerprint(h.Sum(nil)), nil
}

// addAll hashes a folder.
func addAll(h hash.Hash, dir string) error {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("fingerprint: %w", err)
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
		return fmt.Errorf("fingerprint of %s: %w", dir, err)
	}
	return nil
}
